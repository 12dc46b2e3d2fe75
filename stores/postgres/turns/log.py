"""The turn log of one tenant: begin, write, finish, break off and clear; and all that is read of it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from recuerdo.state.errors import BusyError
from recuerdo.state.usage import Usage
from recuerdo.stores.postgres.approvals import Approvals
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.memories import MemoryWriter, WaitingVector, change_memories, write_memories
from recuerdo.stores.postgres.preferences import forget_preferences, write_preferences
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.symbols import forget_symbols, write_symbols
from recuerdo.stores.postgres.text import storable
from recuerdo.stores.postgres.tool_calls import leave_open_calls
from recuerdo.stores.postgres.turns import lease as leases
from recuerdo.stores.postgres.turns.ending import end_preview, end_running
from recuerdo.stores.postgres.turns.history import TurnHistory, require_session
from recuerdo.stores.postgres.turns.rows import NO_USAGE, NewMessage, NewTurn, Reservation, TurnOutcome
from recuerdo.stores.postgres.turns.writing import (
    delete_messages,
    next_position,
    write_done,
    write_messages,
    write_turn,
)

_POLL_SECONDS = 0.05
_ERROR_CHARACTERS = 500


class TurnLog(TurnHistory):
    """The log of one tenant.

    A conversation belongs to the user and the assistant that began it. Reads give nothing of a foreign one;
    writes raise ScopeError. ``user`` None is the anonymous session: its conversation is kept, long-term
    memory is not written. The first user who goes on with it under its id claims it (A-22).
    """

    async def begin(self, turn: NewTurn, *, lease: timedelta, wait: timedelta) -> int:
        """Take the conversation's lease and write the turn and the user's message, in one transaction.

        While another turn runs, wait up to ``wait``, then raise BusyError. A turn whose lease has expired is
        marked as failed and makes place. The same turn begun again (a replay) keeps its number and rows.
        A preview turn takes no lease and writes neither conversation nor message (C-14).

        Returns:
            The turn's number in the conversation, from 1.

        Raises:
            ScopeError: the conversation is neither this user's nor anonymous, or not this assistant's.
            BusyError: another turn of the conversation is running.
        """
        async with self._taken(turn, turn.id, lease, wait) as connection:
            return await write_turn(connection, self._tenant, turn)

    async def reserve(self, reservation: Reservation, *, lease: timedelta, wait: timedelta) -> None:
        """Take a conversation from before its thread is loaded until ``release``. Waits and raises as ``begin``.

        InputError when the turn that it resumes does not wait.
        """
        async with self._taken(reservation, None, lease, wait):
            return

    async def release(self, ticket: UUID, at: datetime, error: str | None = None) -> None:
        """Give up a reservation. A turn that has not ended under it broke off before anybody knew of it: it has failed
        with ``error``, None: it was stopped.
        """
        async with self._database.tenant(self._tenant) as connection:
            turn = await leases.release_ticket(connection, self._tenant, ticket)
            if turn is not None:
                status: Literal["failed", "cancelled"] = "failed" if error else "cancelled"
                await end_running(connection, self._tenant, turn, status, at, error)

    async def is_waiting(self, turn: UUID) -> bool:
        """Whether the turn waits for a person."""
        async with self._database.tenant(self._tenant) as connection:
            return await leases.waiting_user(connection, self._tenant, turn) is not None

    async def take_up(self, turn: UUID, user: str | None, lease: timedelta, ticket: UUID | None) -> None:
        """A turn of this user's that has waited for a person goes on, under a lease again; any other stays as it is.

        ``ticket`` is that of the reservation it runs under, if any. Raises ScopeError when it is somebody else's,
        BusyError when another turn holds the conversation.
        """
        async with self._database.tenant(self._tenant) as connection:
            await leases.take_up(connection, self._tenant, turn, user, lease, ticket)

    async def extend_lease(self, turn: UUID, lease: timedelta) -> None:
        """Hold the lease for ``lease`` from now. Raises BusyError when another turn has taken it."""
        async with self._database.tenant(self._tenant) as connection:
            if not await leases.extend(connection, self._tenant, turn, lease):
                await leases.check_needs_no_lease(connection, self._tenant, turn)

    async def add_messages(self, turn: UUID, messages: Sequence[NewMessage], *, position: int) -> None:
        """Write messages of a running turn before its end; the user's message has position 0.

        So a tool's whole result can be read by reference in the same turn. Raises BusyError when the turn no
        longer holds its lease.
        """
        async with self._database.tenant(self._tenant) as connection:
            held = await leases.hold(connection, self._tenant, turn)
            if held is None:
                await leases.check_needs_no_lease(connection, self._tenant, turn)
                return
            async with connection.pipeline():
                await write_messages(
                    connection, self._tenant, held.conversation, turn, messages, position=position
                )

    async def finish(self, outcome: TurnOutcome) -> list[WaitingVector]:
        """Write all that a turn leaves behind and release its lease, in one transaction (RF-52 to RF-55).

        Finishing a turn that is done already writes nothing. A preview turn leaves its usage and nothing
        else (IM-15). Raises BusyError when another turn has taken the lease.

        Returns:
            The memories whose vectors wait for the index.
        """
        async with self._database.tenant(self._tenant) as connection:
            held = await leases.hold(connection, self._tenant, outcome.turn)
            if held is None:
                await leases.check_needs_no_lease(connection, self._tenant, outcome.turn)
                await end_preview(
                    connection, self._tenant, outcome.turn, "done", outcome.at, None, outcome.usage
                )
                return []
            written = await self._learn(connection, held, outcome)
            async with connection.pipeline():
                await self._write_outcome(connection, held, outcome)
            return written

    async def fail(
        self,
        turn: UUID,
        at: datetime,
        error: str,
        messages: Sequence[NewMessage] = (),
        usage: Usage = NO_USAGE,
    ) -> None:
        """The turn broke off: the user's message stays, marked as failed, a partial reply as partial (RF-52).

        ``error`` is a key or one short sentence, without secrets. Does nothing for a turn that has ended.
        """
        await self._break_off(turn, "failed", at, error, messages, usage)

    async def cancel(
        self, turn: UUID, at: datetime, messages: Sequence[NewMessage] = (), usage: Usage = NO_USAGE
    ) -> None:
        """The user stopped the turn: what was said so far stays, the reply marked as partial (IM-38)."""
        await self._break_off(turn, "cancelled", at, None, messages, usage)

    async def clear(self, conversation: str, user: str | None, approvals: Approvals, at: datetime) -> None:
        """Delete the conversation's turns and messages; long-term memory stays (IM-36). What waits for a person in
        it is taken back in the same transaction, audited; calls whose outcome nobody knows stay to be settled.

        The conversation's row stays, so that nobody else can take its id. Raises ScopeError when it is not
        the user's, BusyError while a turn runs. LangGraph's checkpoints are another store:
        see ``checkpoints.delete_thread``.
        """
        scope = self._scope(conversation, user)
        async with self._database.tenant(self._tenant) as connection:
            if not await leases.lock_free(connection, self._tenant, conversation, user):
                return
            withdrawn = await approvals.withdraw(
                connection, actor=user or conversation, at=at, conversation=conversation
            )
            await leave_open_calls(connection, self._tenant, at, conversation=conversation)
            await connection.execute(
                "delete from recuerdo.turns where tenant = %(tenant)s and conversation = %(conversation)s",
                scope,
            )
            await approvals.audit_withdrawn(connection, withdrawn)

    @asynccontextmanager
    async def _taken(
        self, asked: NewTurn | Reservation, turn: UUID | None, lease: timedelta, wait: timedelta
    ) -> AsyncIterator[Connection]:
        """A transaction in which the conversation is taken; waits while another turn holds it."""
        require_scope(conversation=asked.conversation, assistant=asked.assistant)
        require_session(asked.user)
        deadline = asyncio.get_running_loop().time() + wait.total_seconds()
        while True:
            async with self._database.tenant(self._tenant) as connection:
                if await leases.take_lease(connection, self._tenant, asked, turn, lease):
                    yield connection
                    return
            if asyncio.get_running_loop().time() >= deadline:
                raise BusyError(leases.sentences("conversation_busy"))
            await asyncio.sleep(_POLL_SECONDS)

    async def _write_outcome(self, connection: Connection, held: leases.Held, outcome: TurnOutcome) -> None:
        turn, position = outcome.turn, outcome.position
        await write_messages(
            connection, self._tenant, held.conversation, turn, outcome.messages, position=position
        )
        # A replay may have fewer messages than the run before it.
        await delete_messages(connection, self._tenant, turn, after=position + len(outcome.messages) - 1)
        await write_done(connection, self._tenant, outcome)
        await leases.release(connection, self._tenant, held, outcome.at)

    async def _learn(
        self, connection: Connection, held: leases.Held, outcome: TurnOutcome
    ) -> list[WaitingVector]:
        if held.user is None:
            return []
        at, turn, limits = outcome.at, outcome.turn, self._database.limits
        await write_preferences(connection, self._tenant, held.user, outcome.preferences, at, turn, limits)
        said = outcome.memory_changes.message_id
        await forget_preferences(
            connection, self._tenant, held.user, outcome.dropped_preferences, at, turn, said
        )
        await forget_symbols(connection, self._tenant, held.user, outcome.unfollowed, at, turn, said)
        await write_symbols(connection, self._tenant, held.user, outcome.symbols, at, turn)
        writer = MemoryWriter(connection, self._tenant, held.assistant, held.user, at, turn, limits)
        changed = await change_memories(writer, outcome.memory_changes)
        written = await write_memories(
            connection, self._tenant, held.assistant, held.user, outcome.memories, at, turn, limits
        )
        return [*changed, *written]

    async def _break_off(
        self,
        turn: UUID,
        status: Literal["failed", "cancelled"],
        at: datetime,
        error: str | None,
        messages: Sequence[NewMessage],
        usage: Usage,
    ) -> None:
        error = storable(error)[:_ERROR_CHARACTERS] if error else None
        async with self._database.tenant(self._tenant) as connection:
            held = await leases.hold(connection, self._tenant, turn)
            if held is None:
                await end_preview(connection, self._tenant, turn, status, at, error, usage)
                return
            position = await next_position(connection, self._tenant, turn)
            async with connection.pipeline():
                await write_messages(
                    connection,
                    self._tenant,
                    held.conversation,
                    turn,
                    messages,
                    position=position,
                    reply_status="partial",
                )
            await end_running(connection, self._tenant, turn, status, at, error)
            async with connection.pipeline():
                await connection.execute(
                    "update recuerdo.turns set usage = %s where tenant = %s and id = %s",
                    (Jsonb(usage.as_json()), self._tenant, turn),
                )
                await leases.release(connection, self._tenant, held, at)
