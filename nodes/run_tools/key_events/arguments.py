"""The arguments of the three tools, as their schemas say them to the model (IM-5)."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic.json_schema import SkipJsonSchema

from recuerdo.state.errors import InputError
from recuerdo.state.key_events import (
    LONGEST_ENTITY,
    LONGEST_SUMMARY,
    MOST_ENTITIES,
    SEVERITIES,
    STATUSES,
    EventChange,
    EventFilter,
    NewEvent,
    named_priority,
    named_status,
    named_type,
)
from recuerdo.state.plan import KeyEventSettings
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.key_events import PAGE

_sentences = load_sentences("recuerdo.state", "key_events_sentences.yaml")

MOST_OF_A_PAGE = 50
FURTHEST = 1_000_000

_SUMMARY = f"What it is about and how it stands, {LONGEST_SUMMARY} characters at most."
_ENTITIES = f"Names and numbers that it is about, {MOST_ENTITIES} of {LONGEST_ENTITY} characters at most."


def _argument(description: str, *, words: Sequence[str] = (), **given: Any) -> Any:
    """An argument whose words the schema lists; which are right is checked where all writers are."""

    def written(schema: dict[str, Any]) -> None:
        if words:
            schema["enum"] = list(words)
        if schema.get("default", "") is None:
            # Left out, not null: null is none of the words.
            del schema["default"]

    return Field(description=description, json_schema_extra=written, **given)


Text = str | SkipJsonSchema[None]
Texts = list[str] | SkipJsonSchema[None]


class CreateArguments(BaseModel):
    """Of ``create_key_event``."""

    event_type: str
    summary: str = _argument(_SUMMARY)
    severity: str = _argument("How urgent it is.", words=SEVERITIES, default="normal")
    entities: list[str] = _argument(_ENTITIES, default=[])
    confidence: float = _argument("How sure it is, 0 to 1.", default=1.0)


class UpdateArguments(BaseModel):
    """Of ``update_key_event``."""

    event_id: str = _argument("The event's id.")
    status: Text = _argument("Its new status.", words=STATUSES, default=None)
    summary: Text = _argument(f"Its new summary. {_SUMMARY}", default=None)
    severity: Text = _argument("How urgent it is now.", words=SEVERITIES, default=None)
    entities: Texts = _argument(f"All of them anew. {_ENTITIES}", default=None)


class QueryArguments(BaseModel):
    """Of ``query_key_event``."""

    event_id: Text = _argument("Read this one with its history.", default=None)
    event_type: Text = _argument("Only events of this type.", default=None)
    status: Text = _argument("Only events of this status.", words=STATUSES, default=None)
    include_closed: bool = _argument("The closed ones too.", default=False)
    limit: int = _argument("How many.", default=PAGE, ge=1, le=MOST_OF_A_PAGE)
    offset: int = _argument("How many to skip: next_offset of the page before.", default=0, ge=0, le=FURTHEST)


def types_listed(settings: KeyEventSettings) -> str:
    """Each type with its exact name and its description, one a line."""
    lines = (
        f"- '{kind.name}'" + (f": {kind.description}" if kind.description else "") for kind in settings.types
    )
    return "\n".join(lines)


def create_arguments(settings: KeyEventSettings) -> type[CreateArguments]:
    """Of ``create_key_event``, with the types of the plan."""
    names = [kind.name for kind in settings.types]
    event_type: Any = (str, _argument("One of the types, to the letter.", words=names))
    return create_model("create_key_event", __base__=CreateArguments, event_type=event_type)


def without_null(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that are given: some models write null for each that they leave out."""
    return {name: value for name, value in arguments.items() if value is not None}


def new_event(arguments: dict[str, Any], settings: KeyEventSettings) -> NewEvent:
    """What ``create_key_event`` is asked to make. Raises InputError or ValidationError that says what is wrong."""
    given = create_arguments(settings).model_validate(without_null(arguments))
    return NewEvent(
        type=named_type(given.event_type, settings),
        summary=given.summary,
        entities=tuple(given.entities),
        priority=named_priority(given.severity),
        confidence=given.confidence,
    )


def change_of(arguments: dict[str, Any]) -> tuple[str, EventChange]:
    """The id and the change that ``update_key_event`` is given. Raises as :func:`new_event`."""
    given = UpdateArguments.model_validate(without_null(arguments))
    change = EventChange(
        summary=given.summary,
        entities=None if given.entities is None else tuple(given.entities),
        status=None if given.status is None else named_status(given.status),
        priority=None if given.severity is None else named_priority(given.severity),
    )
    if not change.given():
        raise InputError(_sentences("event_nothing_to_change"))
    return given.event_id, change


def query_of(arguments: dict[str, Any]) -> tuple[QueryArguments, EventFilter]:
    """What ``query_key_event`` is asked for. Raises as :func:`new_event`."""
    given = QueryArguments.model_validate(without_null(arguments))
    status = None if given.status is None else named_status(given.status)
    return given, EventFilter(given.event_type, status, given.include_closed)


def refusal(tool: str, arguments: dict[str, Any], settings: KeyEventSettings) -> str | None:
    """The parameter error that a call of one of the tools was answered with, None: its arguments are right."""
    checks: dict[str, Callable[[], object]] = {
        "create_key_event": lambda: new_event(arguments, settings),
        "update_key_event": lambda: change_of(arguments),
        "query_key_event": lambda: query_of(arguments),
    }
    try:
        checks[tool]()
    except InputError as error:
        return str(error)
    except ValidationError as error:
        return complaint(error)
    return None


def complaint(error: ValidationError) -> str:
    """What is wrong with the first wrong argument, without the value."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]) or "arguments"
    return f"Invalid {name}: {first['msg']}."
