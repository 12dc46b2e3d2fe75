"""Key events: what is open between a user and an assistant, like a ticket, over all sessions (LA-18, IM-1).

What an event is, which words it takes, what a change does to it and in which order events stand: pure, so that
every store and every writer means the same.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Final, Literal, TypeVar, get_args
from uuid import UUID

from recuerdo.state.errors import InputError
from recuerdo.state.levels import EPISODIC, Level
from recuerdo.state.plan import KeyEventSettings, Plan
from recuerdo.state.sentences import Sentence, load_sentences

_sentences = load_sentences(__package__, "key_events_sentences.yaml")

EventStatus = Literal["PENDING", "IN_PROGRESS", "RESOLVED", "CLOSED"]
EventPriority = Literal["LOW", "MEDIUM", "HIGH", "CRITICAL"]
Severity = Literal["low", "normal", "high", "urgent"]
ChangeAction = Literal["created", "updated", "adopted"]

STATUSES: Final[tuple[EventStatus, ...]] = get_args(EventStatus)
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)

PRIORITY_OF: Final[dict[str, EventPriority]] = {
    "low": "LOW",
    "normal": "MEDIUM",
    "high": "HIGH",
    "urgent": "CRITICAL",
}
"""The stored constant of each severity word (IM-3)."""

LONGEST_SUMMARY = 1000
LONGEST_ENTITY = 100
MOST_ENTITIES = 20

_QUOTED = 100
"""Characters of a wrong value that an error repeats."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Owner:
    """Whose events: the user's in all sessions (LA-21), or, while nobody is identified, the session's (LA-32).

    ``session`` is the conversation in which the call is made; None only where the user is known.
    """

    user: str | None
    session: str | None


@dataclass(frozen=True)
class Origin:
    """Who makes a change, when (aware) and where. One with a ``key`` is made once, however often it is repeated."""

    at: datetime
    actor: str
    session: str | None = None
    turn: UUID | None = None
    key: str | None = None


@dataclass(frozen=True)
class NewEvent:
    """An event to create. Raises InputError for texts that are empty or too long. ``confidence`` is 0 to 1."""

    type: str
    summary: str
    entities: tuple[str, ...] = ()
    status: EventStatus = "PENDING"
    priority: EventPriority = "MEDIUM"
    confidence: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", _name("event_type", self.type))
        _check_texts(self.summary, self.entities)
        if not 0 <= self.confidence <= 1:
            raise InputError(_sentences("event_confidence"))


@dataclass(frozen=True)
class EventChange:
    """What becomes of an event; None leaves a field as it is. Raises InputError as NewEvent does."""

    summary: str | None = None
    entities: tuple[str, ...] | None = None
    status: EventStatus | None = None
    priority: EventPriority | None = None

    def __post_init__(self) -> None:
        _check_texts("-" if self.summary is None else self.summary, self.entities or ())

    def given(self) -> dict[str, Any]:
        """The fields to change with their new values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Revision:
    """One change of an event; ``fields`` has for each field its old and its new value as JSON data (IM-2)."""

    number: int
    at: datetime
    action: ChangeAction
    actor: str
    session: str | None
    turn: UUID | None
    fields: dict[str, tuple[Any, Any]]


@dataclass(frozen=True)
class KeyEvent:
    """An event as it is stored (IM-1). ``session`` is where it was created; ``history``, oldest change first, is
    None where it was not read."""

    id: UUID
    assistant: str
    type: str
    summary: str
    entities: tuple[str, ...]
    status: EventStatus
    priority: EventPriority
    confidence: float
    user: str | None
    session: str | None
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None
    version: int
    history: tuple[Revision, ...] | None = None
    level: Level = EPISODIC

    @property
    def identity_resolved(self) -> bool:
        """Whether the event is a user's; one of an anonymous session is found in that session only (LA-33)."""
        return self.user is not None


@dataclass(frozen=True)
class EventFilter:
    """Which events: of that type, of that status. ``closed``: the closed ones too, while they are kept.

    Raises InputError for a type that is no text which can be kept, and for another status.
    """

    type: str | None = None
    status: EventStatus | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", asked_type(self.type))
        if self.status is not None:
            named_status(self.status)


@dataclass(frozen=True)
class EventPage:
    """Some events of those that were asked for, and how many there are of them."""

    events: tuple[KeyEvent, ...]
    total: int


def changed(event: KeyEvent, change: EventChange, origin: Origin) -> tuple[KeyEvent, Revision] | None:
    """The event after ``change`` with the entry for its history; None when the event is so already."""
    new = {name: value for name, value in change.given().items() if value != getattr(event, name)}
    if not new:
        return None
    revision = Revision(
        number=event.version + 1,
        at=origin.at,
        action="updated",
        actor=origin.actor,
        session=origin.session,
        turn=origin.turn,
        fields={name: (as_json(getattr(event, name)), as_json(value)) for name, value in new.items()},
    )
    closed_at = event.closed_at
    if "status" in new:
        closed_at = origin.at if new["status"] == "CLOSED" else None
    return (
        replace(event, **new, closed_at=closed_at, updated_at=origin.at, version=revision.number),
        revision,
    )


def created(event: KeyEvent, origin: Origin) -> Revision:
    """The first entry of an event's history."""
    values = {name: as_json(getattr(event, name)) for name in ("summary", "entities", "status", "priority")}
    return Revision(
        number=event.version,
        at=origin.at,
        action="created",
        actor=origin.actor,
        session=origin.session,
        turn=origin.turn,
        fields={name: (None, value) for name, value in values.items()},
    )


def as_json(value: Any) -> Any:
    """A field's value as JSON data."""
    return list(value) if isinstance(value, tuple) else value


def rank(event: KeyEvent) -> tuple[int, float, UUID]:
    """Sorts events as A-18 says: PENDING and IN_PROGRESS, then RESOLVED, then CLOSED; last updated first; id."""
    place = {"RESOLVED": 1, "CLOSED": 2}.get(event.status, 0)
    return place, -event.updated_at.timestamp(), event.id


def named_type(name: str, settings: KeyEventSettings) -> str:
    """The configured type of exactly that name (LA-30, LA-31). InputError that lists the types otherwise (A-21)."""
    names = [event_type.name for event_type in settings.types]
    same_letters = unicodedata.normalize("NFC", name)
    if same_letters not in names:
        allowed = ", ".join(f"'{known}'" for known in names)
        raise InputError(_sentences("event_type_invalid", type=_short(name), allowed=allowed))
    return same_letters


def asked_type(name: str | None) -> str | None:
    """A type to look for, in the encoding of the dictionary; it need not be in it any more (IM-18). InputError for
    what is no text that can be kept."""
    return None if name is None else _name("event_type", name)


def require_text(name: str, text: str | None) -> None:
    """Raise InputError that names a text which is none, empty, or cannot be kept."""
    if text is not None:
        _name(name, text)


def named_status(word: str) -> EventStatus:
    """One of the four statuses (IM-2); InputError that lists them otherwise."""
    return _one_of("status", word, STATUSES)


def named_priority(severity: str) -> EventPriority:
    """The priority that a severity word stands for (IM-3); InputError that lists the words otherwise."""
    return PRIORITY_OF[_one_of("severity", severity, SEVERITIES)]


def require_aware(name: str, instant: datetime | None) -> None:
    """Raise InputError that names a date and time without a time zone."""
    if instant is not None and (not isinstance(instant, datetime) or instant.tzinfo is None):
        raise InputError(_sentences("event_time_naive", name=name))


@dataclass(frozen=True)
class Condition:
    """One thing that must hold for the tools of key events to appear, and whether it does (IM-11)."""

    name: Literal["enabled", "types", "agent_type"]
    met: bool
    sentence: Sentence


def tool_conditions(plan: Plan) -> tuple[Condition, ...]:
    """What must hold for the three tools to be bound: the switch, a type (LA-27), the agent type (IM-4)."""
    settings = plan.key_events
    return (
        Condition("enabled", settings.enabled, _sentences("condition_enabled")),
        Condition("types", bool(settings.types), _sentences("condition_types")),
        Condition("agent_type", plan.agent_type == "loop", _sentences("condition_agent_type")),
    )


def has_tools(plan: Plan) -> bool:
    """Whether the three tools are bound: all or none (IM-4)."""
    return all(condition.met for condition in tool_conditions(plan))


def are_active(settings: KeyEventSettings) -> bool:
    """Whether open events are injected: with the switch alone and no type nothing is (LA-28)."""
    return settings.enabled and bool(settings.types)


def reads_later(plan: Plan) -> bool:
    """Whether events are read out of conversations in the background: by agents without the tools (LA-26)."""
    return are_active(plan.key_events) and plan.agent_type != "loop"


def hint(settings: KeyEventSettings) -> Sentence | None:
    """What the panel says of a switch that does nothing: no fault, but a type is missing (LA-29)."""
    return _sentences("hint_no_types") if settings.enabled and not settings.types else None


def type_removed(event: KeyEvent, settings: KeyEventSettings) -> bool:
    """Whether the event's type is no longer in the dictionary: it keeps it and stays readable (IM-18)."""
    return event.type not in {event_type.name for event_type in settings.types}


def removed_types(before: Plan, after: Plan) -> tuple[str, ...]:
    """Types of ``before`` that the dictionary of ``after`` no longer has: to be confirmed where events have them."""
    kept = {event_type.name for event_type in after.key_events.types}
    return tuple(kind.name for kind in before.key_events.types if kind.name not in kept)


def event_data(event: KeyEvent, settings: KeyEventSettings) -> dict[str, Any]:
    """The event as JSON data with everything that is known of it (IM-1); its history when it was read."""
    data: dict[str, Any] = {
        "id": str(event.id),
        "level": event.level,
        "type": event.type,
        "type_removed": type_removed(event, settings),
        "summary": event.summary,
        "entities": list(event.entities),
        "status": event.status,
        "priority": event.priority,
        "confidence": event.confidence,
        "assistant": event.assistant,
        "user": event.user,
        "session": event.session,
        "identity_resolved": event.identity_resolved,
        "created_at": event.created_at.isoformat(),
        "updated_at": event.updated_at.isoformat(),
        "closed_at": event.closed_at.isoformat() if event.closed_at else None,
    }
    if event.history is not None:
        data["history"] = [_revision_data(revision) for revision in event.history]
    return data


def _revision_data(revision: Revision) -> dict[str, Any]:
    return {
        "number": revision.number,
        "at": revision.at.isoformat(),
        "action": revision.action,
        "actor": revision.actor,
        "session": revision.session,
        "turn": str(revision.turn) if revision.turn else None,
        "changes": {name: {"from": old, "to": new} for name, (old, new) in revision.fields.items()},
    }


_Word = TypeVar("_Word", bound=str)


def _one_of(name: str, word: str, allowed: Sequence[_Word]) -> _Word:
    for known in allowed:
        if word == known:
            return known
    word = str(word)
    listed = ", ".join(f"'{known}'" for known in allowed)
    raise InputError(_sentences("event_word_invalid", name=name, word=_short(word), allowed=listed))


def _check_texts(summary: str, entities: Sequence[str]) -> None:
    if not summary.strip() or len(summary) > LONGEST_SUMMARY:
        raise InputError(_sentences("event_text_length", name="summary", longest=LONGEST_SUMMARY))
    if len(entities) > MOST_ENTITIES:
        raise InputError(_sentences("event_entities_many", most=MOST_ENTITIES))
    if any(not entity.strip() or len(entity) > LONGEST_ENTITY for entity in entities):
        raise InputError(_sentences("event_text_length", name="entities", longest=LONGEST_ENTITY))


def _name(name: str, text: str) -> str:
    if not isinstance(text, str) or not text or _UNSTORABLE.search(text):
        raise InputError(_sentences("event_text_invalid", name=name))
    return unicodedata.normalize("NFC", text)


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "…"
