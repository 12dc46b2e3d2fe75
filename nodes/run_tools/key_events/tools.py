"""create_key_event, update_key_event, query_key_event: what they do, whoever is asked for the events."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any
from uuid import UUID

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, ValidationError

from recuerdo.nodes.run_tools.key_events.arguments import (
    QueryArguments,
    UpdateArguments,
    change_of,
    complaint,
    create_arguments,
    new_event,
    query_of,
    types_listed,
)
from recuerdo.state.errors import RecuerdoError
from recuerdo.state.key_events import (
    KeyEvent,
    Origin,
    Owner,
    event_data,
    has_tools,
)
from recuerdo.state.plan import KeyEventSettings, Plan
from recuerdo.stores.memory_store.events import KeyEvents

logger = logging.getLogger(__name__)

KEY_EVENT_TOOLS = ("create_key_event", "update_key_event", "query_key_event")

CALL_ID = "recuerdo_tool_call"
"""Key in ``configurable`` under which a tool finds the id of the call that it answers."""

ERROR_CHARACTERS = 500
"""Longest error that goes back to the model (IM-13)."""

_LISTED = (
    "id",
    "type",
    "type_removed",
    "summary",
    "entities",
    "status",
    "priority",
    "identity_resolved",
    "created_at",
    "updated_at",
)
"""What a list says of each event; the rest is read by id."""


@dataclass(frozen=True)
class EventScope:
    """In whose name a tool runs: the events that it may see, whose they are, and who changes them."""

    events: KeyEvents
    owner: Owner
    origin: Origin


ScopeOf = Callable[[RunnableConfig], Awaitable[EventScope]]
"""Reads the scope from the run's config; never from the model's arguments."""


def make_tools(plan: Plan, scope_of: ScopeOf) -> list[BaseTool]:
    """The three tools, or none while a condition is not met (LA-27, IM-4)."""
    if not has_tools(plan):
        return []
    settings = plan.key_events
    calls = _Calls(settings, scope_of)
    described = (
        (
            "create_key_event",
            calls.create,
            calls.create_arguments,
            "Open a key event: something of the user's that goes on beyond this conversation, like a ticket."
            f" If an open one is about the same, update that one. Types:\n{types_listed(settings)}",
        ),
        (
            "update_key_event",
            calls.update,
            UpdateArguments,
            "Change an open key event of the user's, by its id: its status, summary, severity or entities.",
        ),
        (
            "query_key_event",
            calls.query,
            QueryArguments,
            "Find the user's key events: open ones, and with include_closed or a status closed ones too;"
            f" or read one by its id. Types:\n{types_listed(settings)}",
        ),
    )
    return [_tool(*description) for description in described]


class _KeyEventTool(StructuredTool):
    """A tool whose function finds the id of the call that it answers in the config."""

    async def ainvoke(
        self, input: str | dict[str, Any] | ToolCall, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """As of any tool."""
        return await super().ainvoke(input, _with_call_id(input, config), **kwargs)

    def invoke(
        self, input: str | dict[str, Any] | ToolCall, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """As of any tool, also where a loop runs."""
        return super().invoke(input, _with_call_id(input, config), **kwargs)

    def _run(self, *args: Any, config: RunnableConfig, run_manager: Any = None, **kwargs: Any) -> Any:
        work = self._arun(*args, config=config, run_manager=None, **kwargs)
        # On a loop of its own: the caller may stand inside a running one.
        with ThreadPoolExecutor(1, thread_name_prefix="recuerdo-key-events") as thread:
            return thread.submit(asyncio.run, work).result()


def _with_call_id(call: Any, config: RunnableConfig | None) -> RunnableConfig:
    call_id = call.get("id") if isinstance(call, dict) and call.get("type") == "tool_call" else None
    given = config or RunnableConfig()
    return {**given, "configurable": {**(given.get("configurable") or {}), CALL_ID: call_id}}


def _tool(
    name: str, coroutine: Callable[..., Awaitable[str]], arguments: type[BaseModel], description: str
) -> BaseTool:
    return _KeyEventTool(
        name=name,
        description=description,
        # As JSON: of a model LangChain would lose the listed words. The function checks what it is given.
        args_schema=arguments.model_json_schema(),
        coroutine=coroutine,
        metadata={"read_only": True} if name == "query_key_event" else None,
        handle_tool_error=True,
    )


def _answered(
    work: Callable[..., Awaitable[dict[str, Any]]],
) -> Callable[..., Awaitable[str]]:
    """JSON text; what goes wrong is a short error for the model, never the end of the turn (IM-13)."""

    @wraps(work)
    async def answer(*args: Any, **kwargs: Any) -> str:
        try:
            return json.dumps(await work(*args, **kwargs), ensure_ascii=False)
        except RecuerdoError as error:
            raise ToolException(_cut(str(error))) from None
        except ValidationError as error:
            raise ToolException(_cut(complaint(error))) from None
        except ToolException:
            raise
        except Exception as error:
            logger.exception("key events")
            raise ToolException(f"Key events are not available now ({type(error).__name__}).") from None

    return answer


def _cut(text: str) -> str:
    return text if len(text) <= ERROR_CHARACTERS else text[: ERROR_CHARACTERS - 1] + "…"


class _Calls:
    """The three functions over the scope that each call's config gives."""

    def __init__(self, settings: KeyEventSettings, scope_of: ScopeOf) -> None:
        self.create_arguments = create_arguments(settings)
        self._settings = settings
        self._scope_of = scope_of

    @_answered
    async def create(self, /, config: RunnableConfig, **arguments: Any) -> dict[str, Any]:
        """``create_key_event``: the stored event (LA-25)."""
        event = new_event(arguments, self._settings)
        scope = await self._scope_of(config)
        return self._one(await scope.events.create(scope.owner, event, scope.origin))

    @_answered
    async def update(self, /, config: RunnableConfig, **arguments: Any) -> dict[str, Any]:
        """``update_key_event``: the event after the change (LA-20)."""
        event_id, change = change_of(arguments)
        scope = await self._scope_of(config)
        after = await scope.events.update(scope.owner, _uuid(event_id), change, scope.origin)
        return self._one(_found(event_id, after))

    @_answered
    async def query(self, /, config: RunnableConfig, **arguments: Any) -> dict[str, Any]:
        """``query_key_event``: one event, or a page of those that match (LA-23)."""
        given, which = query_of(arguments)
        scope = await self._scope_of(config)
        now = scope.origin.at
        if given.event_id is not None:
            event = await scope.events.get(scope.owner, _uuid(given.event_id), now)
            return self._one(_found(given.event_id, event))
        page = await scope.events.query(scope.owner, which, now, limit=given.limit, offset=given.offset)
        shown = [event_data(replace(event, history=None), self._settings) for event in page.events]
        after = given.offset + len(shown)
        return {
            "events": [{name: data[name] for name in _LISTED} for data in shown],
            "total": page.total,
            "next_offset": after if after < page.total else None,
        }

    def _one(self, event: KeyEvent) -> dict[str, Any]:
        return {"event": event_data(event, self._settings)}


def _uuid(event_id: str) -> UUID:
    """What is no id names no event: nobody is told the difference to a foreign one (LA-21)."""
    try:
        return UUID(event_id)
    except ValueError:
        raise _missing(event_id) from None


def _found(event_id: str, event: KeyEvent | None) -> KeyEvent:
    if event is None:
        raise _missing(event_id)
    return event


def _missing(event_id: str) -> ToolException:
    return ToolException(_cut(f"There is no key event with id '{event_id[:60]}'."))
