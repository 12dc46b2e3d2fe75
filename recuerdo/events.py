"""Key events as operators see them: list, show, export, their types, and who looked (IM-16, IM-18, A-22)."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args
from uuid import UUID

from recuerdo.nodes.extract_events import ConversationEvents, EventReader
from recuerdo.nodes.services import Services
from recuerdo.state.errors import InputError
from recuerdo.state.key_events import EventPage, KeyEvent, Origin, event_data, hint, require_text
from recuerdo.state.plan import KeyEventSettings, Plan
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.state.turn import Mode
from recuerdo.stores.plans import PlanShelf
from recuerdo.stores.postgres.key_events import OperatorEvents, OperatorFilter, PostgresKeyEvents
from recuerdo.stores.postgres.key_events.extraction import Extraction, ExtractionLog
from recuerdo.stores.postgres.key_events.operators import View

_sentences = load_sentences(__package__)
_state_sentences = load_sentences("recuerdo.state", "key_events_sentences.yaml")

ExportFormat = Literal["json", "csv"]

MOST_OF_A_PAGE: Final = 1000
FURTHEST: Final = 1_000_000_000

_ALL = OperatorFilter()

# What a spreadsheet would run when it opens the file.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class TypeUse:
    """A type of event: whether it is in the dictionary, and how many events there are of it."""

    name: str
    description: str
    configured: bool
    events: int
    open: int


class Events:
    """The key events of one tenant, for its operators: of every assistant and user. ``actor`` says who looks.

    Every call raises ScopeError when the actor is missing, InputError for an argument that cannot be, and StoreError
    when the database does not answer. Of a preview nothing that writes an event can be called (C-14).
    """

    def __init__(self, services: Services, tenant: str, assistant: str, mode: Mode = "live") -> None:
        self._services = services
        self._tenant = tenant
        self._assistant = assistant
        self._mode = mode
        self._operators = OperatorEvents(services.database, tenant)

    async def list(
        self, which: OperatorFilter = _ALL, *, actor: str, limit: int = 50, offset: int = 0
    ) -> EventPage:
        """Events that match, last changed first; archived ones too. ``limit`` is 1 to 1,000."""
        _check_number("limit", limit, 1, MOST_OF_A_PAGE)
        _check_number("offset", offset, 0, FURTHEST)
        _check_actor(actor)
        return await self._operators.list(which, actor, self._services.clock(), limit=limit, offset=offset)

    async def show(self, event_id: UUID | str, *, actor: str) -> KeyEvent | None:
        """One event with its history; None: there is none of that id."""
        event_id = _checked_id(event_id)
        _check_actor(actor)
        return await self._operators.get(event_id, actor, self._services.clock())

    async def export(self, which: OperatorFilter = _ALL, *, actor: str, form: ExportFormat = "json") -> str:
        """All events that match, as a JSON array or as CSV with a header."""
        if form not in get_args(ExportFormat):
            raise InputError(_sentences("export_form", form=str(form)[:40]))
        _check_actor(actor)
        data = await self.data(await self._operators.export(which, actor, self._services.clock()))
        return _as_csv(data) if form == "csv" else json.dumps(data, ensure_ascii=False, indent=2)

    async def types(self, *, actor: str) -> Sequence[TypeUse]:
        """The dictionary of the plan with the events of the whole tenant, for the plan may serve other assistants too;
        after it the types that only events of the assistant still have.
        """
        _check_actor(actor)
        known = {kind.name: kind.description for kind in self.settings.types}
        shared = self.settings.shared_across_assistants
        of_type = {
            count.type: count
            for count in await self._operators.types(actor, self._services.clock())
            if shared or count.type in known or self._assistant in count.assistants
        }
        return [
            TypeUse(
                name=name,
                description=known.get(name, ""),
                configured=name in known,
                events=of_type[name].events if name in of_type else 0,
                open=of_type[name].open if name in of_type else 0,
            )
            for name in dict.fromkeys([*known, *of_type])
        ]

    async def without_type(self, name: str, *, actor: str, confirmed: bool = False) -> Plan:
        """The plan without a type of event: a draft, which acts once it is in force.

        Events of the type keep it, stay readable and are marked as of a removed type (IM-18).

        Raises InputError when there is no such type, or when it has events and ``confirmed`` is False.
        """
        require_text("type", name)
        used = {use.name: use for use in await self.types(actor=actor)}
        if name not in used or not used[name].configured:
            raise InputError(_sentences("event_type_unknown", type=str(name)[:100]))
        if used[name].events and not confirmed:
            raise InputError(_sentences("event_type_in_use", type=name, events=used[name].events))
        kept = tuple(kind for kind in self.settings.types if kind.name != name)
        settings = self.settings.model_copy(update={"types": kept})
        return self._services.plan.model_copy(update={"key_events": settings})

    async def adopt(self, session: str, *, user: str, actor: str) -> Sequence[UUID]:
        """The user of an anonymous session is known now: its events become his, noted in their history (A-22)."""
        self._require_live()
        _check_actor(actor)
        events = PostgresKeyEvents(
            self._services.database,
            self._tenant,
            self._assistant,
            shared=self.settings.shared_across_assistants,
        )
        return await events.adopt(session, user, Origin(self._services.clock(), actor, session))

    async def extract(self, conversation: str) -> ConversationEvents:
        """Read the events of one conversation now, whatever it waits for: by hand (IM-6).

        Only turns of an agent type that does not write them itself wait to be read (LA-26); what was read before is
        not read again. Raises InputError when the plan has no key events or there is no such conversation, BusyError
        while somebody else reads it, and ModelError when the model does not answer: nothing has changed then.
        """
        self._require_live()
        require_text("conversation", conversation)
        reader = EventReader(self._services, self._assistant)
        return await reader.read(self._tenant, conversation, "manual", self._services.clock())

    async def extractions(self, conversation: str) -> Sequence[Extraction]:
        """What was read out of a conversation so far, oldest first: when, why, by whom, which events."""
        require_text("conversation", conversation)
        events = PostgresKeyEvents(self._services.database, self._tenant, self._assistant)
        return await ExtractionLog(self._services.database, self._tenant, self._assistant, events).of(
            conversation
        )

    async def views(self, *, limit: int = 100) -> Sequence[View]:
        """Who looked at which events, newest first."""
        _check_number("limit", limit, 1, MOST_OF_A_PAGE)
        return await self._operators.views(limit=limit)

    async def data(self, events: Sequence[KeyEvent]) -> Sequence[dict[str, Any]]:
        """The events as JSON data. ``type_removed``: the plan that the event's assistant answers under no longer has
        its type; null where that plan is not known.
        """
        dictionaries = await self._dictionaries({event.assistant for event in events})
        return [_data(event, dictionaries[event.assistant]) for event in events]

    async def _dictionaries(self, assistants: set[str]) -> dict[str, KeyEventSettings | None]:
        """The settings that each assistant's events are under."""
        last = await self._operators.plans_of(sorted(assistants))
        plans = {name: last.get(name, name) for name in assistants}
        shelf = PlanShelf(self._services.database, self._services.keys)
        known: dict[str, KeyEventSettings | None] = {self._services.plan.name: self.settings}
        for plan in set(plans.values()) - set(known):
            active = await shelf.active(self._tenant, plan)
            known[plan] = active.plan.key_events if active else None
        found = {name: known[plan] for name, plan in plans.items()}
        return {**found, self._assistant: self.settings}

    @property
    def settings(self) -> KeyEventSettings:
        """The switch, the types and the rest, as the plan has them."""
        return self._services.plan.key_events

    @property
    def hint(self) -> Sentence | None:
        """What to do where the switch is on and nothing appears: no fault, a type is missing (LA-29)."""
        return hint(self.settings)

    def _require_live(self) -> None:
        if self._mode == "preview":
            raise InputError(_state_sentences("event_preview"))


def _data(event: KeyEvent, settings: KeyEventSettings | None) -> dict[str, Any]:
    if settings is None:
        return {**event_data(event, KeyEventSettings()), "type_removed": None}
    return event_data(event, settings)


def _check_number(name: str, number: int, least: int, greatest: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= greatest:
        raise InputError(_sentences("number_out_of_range", name=name, least=least, greatest=greatest))


def _check_actor(actor: str) -> None:
    """A blank name says nothing; that one is missing is said by the store."""
    if actor:
        require_text("actor", actor)
        if not actor.strip():
            raise InputError(_sentences("actor_blank"))


def _checked_id(event_id: UUID | str) -> UUID:
    try:
        return event_id if isinstance(event_id, UUID) else UUID(event_id)
    except (ValueError, AttributeError, TypeError):
        raise InputError(_sentences("event_id_invalid", id=str(event_id)[:60])) from None


def _as_csv(data: Sequence[dict[str, Any]]) -> str:
    """One line an event, lists as JSON; nothing in it is a formula."""
    names = list(data[0]) if data else ["id"]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\r\n")
    writer.writeheader()
    for event in data:
        writer.writerow({name: _cell(value) for name, value in event.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value
