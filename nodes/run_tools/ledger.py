"""Runs a call under the ledger: it is entered before it runs, and what was entered before does not run again."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from json import JSONDecodeError
from uuid import UUID

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools.base import ToolException

from recuerdo.nodes.run_tools.requested import Requested
from recuerdo.nodes.run_tools.tools import call_of
from recuerdo.nodes.services import Clock
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.evidence import Run
from recuerdo.stores.postgres.tool_calls import NewToolCall, Outcome, Settled, ToolCall, ToolCalls

TOOL_SECONDS = 30.0
"""How long one tool may run."""

IDEMPOTENCY_KEY = "idempotency_key"
"""Key in ``configurable`` of the call's id, for a tool to pass on: the same call has the same one, always."""


@dataclass(frozen=True)
class Ledger:
    """The ledger of the caller's tenant, for the calls of one turn. None: a preview leaves no trace (C-14)."""

    calls: ToolCalls | None
    run: Run
    clock: Clock

    async def answer(self, one: Requested, config: RunnableConfig) -> ToolMessage:
        """Run a call that can run, or say what is known of it from before."""
        config = {"configurable": {**config["configurable"], IDEMPOTENCY_KEY: str(one.id)}}
        if self.calls is None:
            return _said(one, await _ended(one, config))
        new = NewToolCall(one.id, self.run, one.name, one.effect, self.clock())
        before = await self.calls.claim(new)
        if before is not None:
            return _remembered(one, before)
        ended = await _ended(one, config)
        kept = await self.calls.complete(one.id, ended.outcome, ended.text, self.clock())
        if kept.status == "done" != ended.outcome:
            # It broke off after its effect was written.
            return _remembered(one, kept)
        return _said(one, ended)


async def once(config: RunnableConfig, effect: Callable[[Connection], Awaitable[str]]) -> str:
    """For a tool that writes in our own database: ``effect`` gets the connection of one transaction, of the
    caller's tenant, in which the ledger notes its text; so it happens exactly once, or not at all.

    Outside a live turn, in a preview, nothing is written: ToolException.
    """
    call = call_of(config)
    if call.caller.mode == "preview":
        raise ToolException("a preview changes nothing")
    ledger = ToolCalls(call.services.database, call.caller.tenant)
    key = UUID(config["configurable"][IDEMPOTENCY_KEY])
    return await ledger.once(key, call.services.clock(), effect)


@dataclass(frozen=True)
class _Ended:
    outcome: Outcome
    text: str


async def _ended(one: Requested, config: RunnableConfig) -> _Ended:
    """Run the tool; a failure is a result."""
    assert one.tool is not None, "the caller has looked"
    try:
        output = await asyncio.wait_for(
            one.tool.ainvoke({**one.asked, "type": "tool_call"}, config), TOOL_SECONDS
        )
    except TimeoutError:
        return _broken_off(one, f"{one.name} did not answer within {TOOL_SECONDS:g} s.")
    except asyncio.CancelledError as error:
        if _is_stopped():
            raise
        # Something that the tool waited for was cancelled, not the turn.
        return _broken_off(one, f"{one.name} broke off: {type(error).__name__}.")
    except Exception as error:
        if not _is_refusal(error):
            return _broken_off(one, f"{one.name} broke off: {type(error).__name__}.")
        return _Ended("failed", f"{one.name} failed: {error}")
    if not isinstance(output, ToolMessage):
        return _Ended("done", str(output))
    return _Ended("failed" if output.status == "error" else "done", str(output.text))


def _is_stopped() -> bool:
    """Whether the turn itself is being cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _is_refusal(error: Exception) -> bool:
    """Whether the tool itself says no. An answer that could not be read, a ValueError too, is none."""
    return isinstance(error, ToolException | ValueError) and not isinstance(
        error, JSONDecodeError | UnicodeError
    )


def _broken_off(one: Requested, text: str) -> _Ended:
    """A read that is late or loses its connection has failed. Of anything else nobody knows whether it happened."""
    if one.effect != "foreign":
        return _Ended("failed", text)
    return _Ended("unknown", f"{text} {_UNKNOWN}")


_UNKNOWN = (
    "It may have taken effect or not: the outcome is unknown. A person has to check; do not call it again, and tell"
    " the user so."
)

_SETTLED: dict[Settled, str] = {
    "happened": "A person has checked: it took effect. Do not call it again.",
    "did_not_happen": "A person has checked: it did not take effect.",
}


def _said(one: Requested, ended: _Ended) -> ToolMessage:
    return one.result(ended.text, failed=ended.outcome != "done")


def _remembered(one: Requested, before: ToolCall) -> ToolMessage:
    """What the ledger has of a call that ran, or began to."""
    if before.settled is not None:
        return one.result(f"{one.name} was started before. {_SETTLED[before.settled]}", failed=True)
    if before.status in ("started", "unknown"):
        return one.result(f"{one.name} was started before. {_UNKNOWN}", failed=True)
    return one.result(before.result or "", failed=before.status == "failed")
