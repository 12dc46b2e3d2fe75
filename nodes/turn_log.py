"""A running turn in the turn log: LangChain messages as rows, and the lease that it holds."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from uuid import UUID

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from recuerdo.nodes.call import Call
from recuerdo.nodes.receive.message import LEASE
from recuerdo.state.errors import RecuerdoError
from recuerdo.state.turn import TurnInfo, Work
from recuerdo.stores.postgres.evidence import Run
from recuerdo.stores.postgres.turns import NewMessage


def log_rows(messages: Sequence[AnyMessage], at: datetime) -> list[NewMessage]:
    """The rows of replies, tool calls and tool results."""
    return [_row(message, at) for message in messages]


def _row(message: AnyMessage, at: datetime) -> NewMessage:
    if isinstance(message, ToolMessage):
        return NewMessage(
            id=str(message.id),
            role="tool",
            content=str(message.text),
            at=at,
            tool_name=message.name,
            tool_call_id=message.tool_call_id,
        )
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return NewMessage(
        id=str(message.id),
        role="assistant",
        content=str(message.text),
        at=at,
        tool_calls=[{"id": call["id"], "name": call["name"], "args": call["args"]} for call in calls] or None,
    )


def run_of(work: Work, call: Call) -> Run:
    """The turn, for the ledger and for evidence."""
    caller, services = call.caller, call.services
    return Run(
        turn=UUID(work["turn"]["id"]),
        conversation=caller.conversation,
        assistant=caller.assistant,
        user=caller.user,
        plan=services.plan.name,
        revision=services.revision.number if services.revision else None,
    )


async def log_messages(call: Call, turn: TurnInfo, messages: Sequence[AnyMessage], *, position: int) -> None:
    """Write messages of a running turn before it ends; the user's message has position 0."""
    rows = log_rows(messages, call.services.clock())
    await call.turns.add_messages(UUID(turn["id"]), rows, position=position)


@asynccontextmanager
async def holding_lease(call: Call, turn: TurnInfo) -> AsyncIterator[None]:
    """Renew the turn's lease while a model or a tool works, however long it takes.

    So the lease can be short, and a conversation whose process died is soon free.
    """
    renewal = asyncio.create_task(_renew(call, UUID(turn["id"])))
    try:
        yield
    finally:
        renewal.cancel()


async def _renew(call: Call, turn: UUID) -> None:
    while True:
        await asyncio.sleep(LEASE.total_seconds() / 3)
        # A lease that is lost ends the turn where it writes; a database that is away may come back in time.
        with suppress(RecuerdoError):
            await call.turns.extend_lease(turn, LEASE)
