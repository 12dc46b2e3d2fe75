"""What a model answers when it reads a conversation: the arguments of one tool, or the same JSON in a text; checked.

Nothing is taken on trust: the type is one of the dictionary to the letter (LA-31), the words are those of severity and
status, and the quote stands in what the user himself said, so nothing is made up; it also names the turn.
"""

import json
import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.utils.json import parse_partial_json
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from recuerdo.nodes.build_context.phrasing import as_data
from recuerdo.nodes.extract_events.protocol import Heard
from recuerdo.state.errors import InputError
from recuerdo.state.key_events import (
    LONGEST_ENTITY,
    LONGEST_SUMMARY,
    MOST_ENTITIES,
    SEVERITIES,
    STATUSES,
    EventChange,
    KeyEvent,
    NewEvent,
    named_priority,
    named_status,
    named_type,
)
from recuerdo.state.plan import KeyEventSettings
from recuerdo.stores.postgres.key_events.extraction import FoundEvent, Spoken

TOOL = "record_key_events"
"""The name of the tool whose arguments the answer is."""

MOST_FOUND = 20
"""Events of one answer; what comes after them is left out."""

_LONGEST_ANSWER = 40_000
_END_OF_THOUGHT = "</think>"


class Stated(BaseModel):
    """One event as the model read it, not yet checked. ``known`` is the number of an open one that it changes."""

    model_config = ConfigDict(extra="ignore")

    quote: str
    known: int | None = None
    type: str | None = None
    summary: str | None = None
    severity: str | None = None
    status: str | None = None
    entities: list[str] | None = None
    confidence: float = Field(default=0.7, ge=0, le=1)


def _readable(value: Any) -> list[Any]:
    """Of a list, the entries that can be read: one broken entry does not cost the others."""
    found: list[Any] = []
    for entry in (value if isinstance(value, list) else [])[:MOST_FOUND]:
        try:
            found.append(Stated.model_validate(entry))
        except ValidationError:
            found.append(None)
    return found


class Answer(BaseModel):
    """What a model answered; None stands for an entry that cannot be read."""

    events: Annotated[list[Stated | None], BeforeValidator(_readable)]


def schema_of(settings: KeyEventSettings) -> dict[str, Any]:
    """The tool whose arguments the model answers with, the types of the dictionary in it to the letter."""
    fields = {
        "quote": {"type": "string", "description": "An exact copy of the user's own words that say so."},
        "known": {
            "type": ["integer", "null"],
            "description": "The number of the open event that it is about.",
        },
        "type": {"type": "string", "enum": [kind.name for kind in settings.types]},
        "summary": {"type": "string", "maxLength": LONGEST_SUMMARY},
        "severity": {"type": "string", "enum": list(SEVERITIES)},
        "status": {"type": "string", "enum": list(STATUSES)},
        "entities": {
            "type": "array",
            "items": {"type": "string", "maxLength": LONGEST_ENTITY},
            "maxItems": MOST_ENTITIES,
        },
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    }
    item = {"type": "object", "properties": fields, "required": ["quote"]}
    parameters = {
        "type": "object",
        "properties": {"events": {"type": "array", "items": item, "maxItems": MOST_FOUND}},
        "required": ["events"],
    }
    about = "Record the key events of a conversation; an empty list when there are none."
    return {"type": "function", "function": {"name": TOOL, "description": about, "parameters": parameters}}


def shape() -> str:
    """The answer for a model that answers in a text."""
    example: dict[str, Any] = {
        "quote": "",
        "known": None,
        "type": "",
        "summary": "",
        "severity": "normal",
        "status": "PENDING",
        "entities": [],
        "confidence": 0.9,
    }
    return json.dumps({"events": [example]}, ensure_ascii=False)


def read_answer(reply: AIMessage) -> Answer | None:
    """A model's answer; None when it cannot be read."""
    arguments = [call["args"] for call in reply.tool_calls if call["name"] == TOOL]
    try:
        return Answer.model_validate(arguments[0] if arguments else _json_in(str(reply.text)))
    except (ValueError, RecursionError):
        return None


def _json_in(text: str) -> Any:
    said = text.rpartition(_END_OF_THOUGHT)[2]
    start = said.find("{")
    return parse_partial_json(said[start : start + _LONGEST_ANSWER]) if start >= 0 else None


def checked(answer: Answer, heard: Heard) -> tuple[list[FoundEvent], int]:
    """The events that stand the checks, and how many did not."""
    # As the model was shown it.
    said = [(one, _same(as_data(one.text))) for one in heard.spoken if one.role == "user"]
    found = [_checked(stated, heard, said) if stated else None for stated in answer.events]
    kept = {one.key: one for one in found if one}
    return list(kept.values()), len(found) - len([one for one in found if one])


def _checked(stated: Stated, heard: Heard, said: Sequence[tuple[Spoken, str]]) -> FoundEvent | None:
    quote = _same(stated.quote)
    spoken = next((one for one, text in said if quote and quote in text), None)
    if spoken is None:
        return None
    try:
        if stated.known is not None:
            return _change(stated, spoken, heard.known)
        return _new(stated, spoken, quote, heard.settings)
    except InputError:
        return None


def _change(stated: Stated, spoken: Spoken, known: Sequence[KeyEvent]) -> FoundEvent | None:
    if stated.known is None or not 1 <= stated.known <= len(known):
        return None
    event = known[stated.known - 1]
    change = EventChange(
        summary=_within(stated.summary),
        entities=tuple(map(_within_entity, stated.entities)) if stated.entities else None,
        status=None if stated.status is None else named_status(stated.status),
        priority=None if stated.severity is None else named_priority(stated.severity),
    )
    if not change.given():
        return None
    return FoundEvent(spoken.turn, f"{event.id}:change", change, event.id)


def _new(stated: Stated, spoken: Spoken, quote: str, settings: KeyEventSettings) -> FoundEvent:
    kind = named_type(stated.type or "", settings)
    event = NewEvent(
        type=kind,
        summary=_within(stated.summary) or stated.quote[:LONGEST_SUMMARY],
        entities=tuple(map(_within_entity, stated.entities or ()))[:MOST_ENTITIES],
        status="PENDING" if stated.status is None else named_status(stated.status),
        priority=named_priority(stated.severity or "normal"),
        confidence=stated.confidence,
    )
    return FoundEvent(spoken.turn, f"{kind}:{quote}", event)


def _within(summary: str | None) -> str | None:
    return summary[:LONGEST_SUMMARY] if summary and summary.strip() else None


def _within_entity(entity: str) -> str:
    return entity[:LONGEST_ENTITY]


def _same(text: str) -> str:
    """As quotes are compared: one encoding, single blanks."""
    return " ".join(unicodedata.normalize("NFC", text).split())
