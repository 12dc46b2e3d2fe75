"""The turn log: conversations, turns, messages, and the lease that orders the turns of a conversation."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from recuerdo.state.errors import BusyError, InputError, ScopeError
from recuerdo.state.key_events import Origin
from recuerdo.state.sentences import load_sentences
from recuerdo.state.usage import Usage
from recuerdo.stores.postgres.approvals import withdraw_pending
from recuerdo.stores.postgres.audit import Change, write_audit
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.evidence import NewEvidence, Run, write_evidence
from recuerdo.stores.postgres.key_events import adopt_events
from recuerdo.stores.postgres.memories import (
    MemoryChanges,
    MemoryWriter,
    NewMemory,
    WaitingVector,
    change_memories,
    write_memories,
)
from recuerdo.stores.postgres.preferences import (
    PreferenceChange,
    forget_preferences,
    write_preferences,
)
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.symbols import forget_symbols, write_symbols
from recuerdo.stores.postgres.text import storable, storable_json
from recuerdo.stores.postgres.tool_calls import leave_open_calls

_sentences = load_sentences(__package__)
_waiting = load_sentences(__package__, "approvals_sentences.yaml")

TurnMode = Literal["live", "preview"]
TurnStatus = Literal["running", "waiting", "done", "failed", "cancelled"]
Role = Literal["user", "assistant", "tool"]
MessageStatus = Literal["ok", "failed", "partial"]

ABANDONED = "abandoned"
"""The error of a turn whose process went away: its lease expired (RF-52)."""

_POLL_SECONDS = 0.05
# How long a reservation lasts after its turn's last write: enough for the checkpoint.
_CHECKPOINT_LEASE = timedelta(seconds=30)
_ERROR_CHARACTERS = 500

_INSERT_CONVERSATION = """
insert into recuerdo.conversations (tenant, id, assistant, user_id, language, started_at, updated_at)
values (%(tenant)s, %(conversation)s, %(assistant)s, %(user)s, %(language)s, %(at)s, %(at)s)
on conflict do nothing
"""

_LOCK_CONVERSATION = """
select assistant, user_id as user, lease_turn,
    lease_until > clock_timestamp() and not coalesce(lease_turn = %(turn)s, false)
        and not coalesce(lease_ticket = %(ticket)s, false) as busy
from recuerdo.conversations where tenant = %(tenant)s and id = %(conversation)s for update
"""

# A turn that waits for a person, with the request that it waits for; None: all are decided.
_WAITING_TURN = """
select t.id as turn, a.id as approval, a.tool, a.status
from recuerdo.turns t
left join recuerdo.approvals a on a.tenant = t.tenant and a.turn_id = t.id
where t.tenant = %(tenant)s and t.conversation = %(conversation)s and t.status = 'waiting'
order by (a.status = 'pending') desc, a.requested_at desc limit 1
"""

_TAKE_UP = """
update recuerdo.conversations c set lease_turn = %(turn)s, lease_until = clock_timestamp() + %(lease)s
from recuerdo.turns t
where t.tenant = %(tenant)s and t.id = %(turn)s and t.status = 'waiting'
    and c.tenant = t.tenant and c.id = t.conversation
    and (coalesce(c.lease_until <= clock_timestamp(), true) or c.lease_ticket = %(ticket)s)
"""

_TAKE_LEASE = """
update recuerdo.conversations set lease_turn = %(turn)s, lease_ticket = %(ticket)s,
    lease_until = clock_timestamp() + %(lease)s, language = %(language)s, updated_at = %(at)s
where tenant = %(tenant)s and id = %(conversation)s
"""

# A replay takes up its own row again; an id that names another conversation's turn is refused.
_INSERT_TURN = """
insert into recuerdo.turns as kept
    (tenant, id, conversation, user_id, number, parent_turn, status, mode, started_at, events_unread)
values
    (%(tenant)s, %(turn)s, %(conversation)s, %(user)s,
     (select coalesce(max(number), 0) + 1 from recuerdo.turns
      where tenant = %(tenant)s and conversation = %(conversation)s and mode = 'live'),
     %(parent)s, 'running', %(mode)s, %(at)s, %(events_unread)s)
on conflict (tenant, id) do update set status = 'running', ended_at = null, error = null
where (kept.conversation, kept.user_id, kept.mode)
    is not distinct from (excluded.conversation, excluded.user_id, excluded.mode)
returning number, xmax <> 0 as replayed
"""

_UPSERT_MESSAGE = """
insert into recuerdo.messages
    (tenant, turn_id, position, conversation, id, role, content, tool_calls, tool_name, tool_call_id,
     status, created_at)
values
    (%(tenant)s, %(turn)s, %(position)s, %(conversation)s, %(id)s, %(role)s, %(content)s, %(tool_calls)s,
     %(tool_name)s, %(tool_call_id)s, %(status)s, %(at)s)
on conflict (tenant, turn_id, position) do update set
    id = excluded.id, role = excluded.role, content = excluded.content, tool_calls = excluded.tool_calls,
    tool_name = excluded.tool_name, tool_call_id = excluded.tool_call_id, status = excluded.status,
    created_at = excluded.created_at
"""

_SELECT_CONVERSATIONS = """
select id, assistant, user_id as user, language, started_at, updated_at,
    (select count(*) from recuerdo.messages m
     where m.tenant = c.tenant and m.conversation = c.id
       and (m.role = 'user' or m.role = 'assistant' and m.tool_calls is null)) as messages_count,
    (select t.id from recuerdo.turns t
     where t.tenant = c.tenant and t.conversation = c.id and t.mode = 'live'
     order by t.number desc limit 1) as last_turn
from recuerdo.conversations c
"""

_SELECT_MESSAGES = """
select id, turn, role, content, at, status, tool_calls, tool_name, tool_call_id
from (
    select m.id, m.turn_id as turn, m.role, m.content, m.created_at as at, m.status, m.tool_calls,
        m.tool_name, m.tool_call_id, t.number, m.position
    from recuerdo.messages m
    join recuerdo.turns t on t.tenant = m.tenant and t.id = m.turn_id
    where m.tenant = %(tenant)s and m.conversation = %(conversation)s
        and t.user_id is not distinct from %(user)s
    order by t.number desc, m.position desc limit %(limit)s
) as newest
order by number, position
"""

_SELECT_MESSAGE = """
select m.id, m.turn_id as turn, m.role, m.content, m.created_at as at, m.status, m.tool_calls, m.tool_name,
    m.tool_call_id
from recuerdo.messages m
join recuerdo.turns t on t.tenant = m.tenant and t.id = m.turn_id
where m.tenant = %s and m.turn_id = %s and m.id = %s and t.user_id = %s
"""

_SUM_USAGE = """
with used as (
    select usage from recuerdo.turns
    where tenant = %(tenant)s and conversation = %(conversation)s and user_id is not distinct from %(user)s
)
select coalesce(sum((usage->>'input')::bigint), 0)::bigint as input,
    coalesce(sum((usage->>'output')::bigint), 0)::bigint as output,
    coalesce(sum((usage->>'total')::bigint), 0)::bigint as total,
    coalesce(sum((usage->>'cached')::bigint), 0)::bigint as cached,
    sum((usage->>'units')::numeric) as units,
    sum((usage->>'units_without_cache')::numeric) as units_without_cache,
    coalesce(sum((usage->>'unreported')::bigint), 0)::bigint as unreported,
    array(select distinct family from used, jsonb_array_elements_text(usage->'unpriced') as family
        order by family) as unpriced
from used
"""


@dataclass(frozen=True)
class NewTurn:
    """A turn about to run. ``at`` is aware; ``user`` None is the anonymous session of LA-32.

    ``ticket`` is that of the reservation under which it runs, if any: see ``TurnLog.reserve``. ``events_unread``:
    key events will be read out of it in the background (LA-26).
    """

    id: UUID
    conversation: str
    assistant: str
    user: str | None
    parent: UUID | None
    mode: TurnMode
    at: datetime
    language: str
    message_id: str
    text: str
    ticket: UUID | None = None
    events_unread: bool = False


@dataclass(frozen=True)
class Reservation:
    """Takes a conversation for an agent, from before its thread is loaded until its checkpoint is written.

    A turn's own lease ends with its last write in the log, but LangGraph writes the checkpoint after that: who
    loads the thread in between would go on from a stale state. ``resumes`` is the waiting turn that is to go on;
    None: a new one.
    """

    ticket: UUID
    conversation: str
    assistant: str
    user: str | None
    at: datetime
    language: str
    resumes: UUID | None = None


@dataclass(frozen=True)
class NewMessage:
    """A reply, a call of tools or a tool's result, for the log. ``tool_calls`` is plain JSON data."""

    id: str
    role: Role
    content: str
    at: datetime
    tool_calls: Sequence[dict[str, Any]] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


_NO_USAGE = Usage()
_NO_CHANGES = MemoryChanges()


@dataclass(frozen=True)
class TurnOutcome:
    """What a finished turn leaves behind. User, assistant and mode are those the turn began with.

    ``messages`` stand from ``position`` on (the user's is 0); those before it were written while it ran.
    ``dropped_preferences`` are keys, ``unfollowed`` symbols that the user takes back.
    """

    turn: UUID
    at: datetime
    messages: Sequence[NewMessage]
    position: int = 1
    usage: Usage = _NO_USAGE
    record: dict[str, Any] = field(default_factory=dict)
    preferences: Sequence[PreferenceChange] = ()
    symbols: Sequence[str] = ()
    memories: Sequence[NewMemory] = ()
    memory_changes: MemoryChanges = _NO_CHANGES
    dropped_preferences: Sequence[str] = ()
    unfollowed: Sequence[str] = ()


@dataclass(frozen=True)
class StoredMessage:
    """A message of the log."""

    id: str
    turn: UUID
    role: Role
    content: str
    at: datetime
    status: MessageStatus
    tool_calls: list[dict[str, Any]] | None
    tool_name: str | None
    tool_call_id: str | None


@dataclass(frozen=True)
class ConversationInfo:
    """A conversation in short; ``messages_count`` counts user and assistant texts (A-41)."""

    id: str
    assistant: str
    user: str | None
    language: str
    started_at: datetime
    updated_at: datetime
    messages_count: int
    last_turn: UUID | None


@dataclass(frozen=True)
class _Held:
    """The conversation whose lease a turn holds; its row is locked."""

    conversation: str
    assistant: str
    user: str | None


class TurnLog:
    """The log of one tenant.

    A conversation belongs to the user and the assistant that began it. Reads give nothing of a foreign one;
    writes raise ScopeError. ``user`` None is the anonymous session: its conversation is kept, long-term
    memory is not written. The first user who goes on with it under its id claims it (A-22).
    """

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

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
            return await self._write_turn(connection, turn)

    async def reserve(self, reservation: Reservation, *, lease: timedelta, wait: timedelta) -> None:
        """Take a conversation from before its thread is loaded until ``release``. Waits and raises as ``begin``.

        InputError when the turn that it resumes does not wait.
        """
        async with self._taken(reservation, None, lease, wait):
            return

    async def release(self, ticket: UUID) -> None:
        """Give up a reservation."""
        async with self._database.tenant(self._tenant) as connection:
            await connection.execute(
                "update recuerdo.conversations set lease_turn = null, lease_ticket = null, lease_until = null"
                " where tenant = %s and lease_ticket = %s",
                (self._tenant, ticket),
            )

    async def is_waiting(self, turn: UUID) -> bool:
        """Whether the turn waits for a person."""
        async with self._database.tenant(self._tenant) as connection:
            return await self._waiting_user(connection, turn) is not None

    async def take_up(self, turn: UUID, user: str | None, lease: timedelta, ticket: UUID | None) -> None:
        """A turn of this user's that has waited for a person goes on, under a lease again; any other stays as it is.

        ``ticket`` is that of the reservation it runs under, if any. Raises ScopeError when it is somebody else's,
        BusyError when another turn holds the conversation.
        """
        values = {"tenant": self._tenant, "turn": turn, "lease": lease, "ticket": ticket}
        async with self._database.tenant(self._tenant) as connection:
            waiting = await self._waiting_user(connection, turn)
            if waiting is None:
                return
            if waiting["user"] != user:
                raise ScopeError(_sentences("conversation_foreign"))
            taken = await connection.execute(_TAKE_UP, values)
            if not taken.rowcount:
                raise BusyError(_sentences("conversation_busy"))
            await connection.execute(
                "update recuerdo.turns set status = 'running' where tenant = %(tenant)s and id = %(turn)s",
                values,
            )

    async def extend_lease(self, turn: UUID, lease: timedelta) -> None:
        """Hold the lease for ``lease`` from now. Raises BusyError when another turn has taken it."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                "update recuerdo.conversations set lease_until = clock_timestamp() + %s"
                " where tenant = %s and lease_turn = %s",
                (lease, self._tenant, turn),
            )
            if not cursor.rowcount:
                await self._check_needs_no_lease(connection, turn)

    async def add_messages(self, turn: UUID, messages: Sequence[NewMessage], *, position: int) -> None:
        """Write messages of a running turn before its end; the user's message has position 0.

        So a tool's whole result can be read by reference in the same turn. Raises BusyError when the turn no
        longer holds its lease.
        """
        async with self._database.tenant(self._tenant) as connection:
            held = await self._hold(connection, turn)
            if held is None:
                await self._check_needs_no_lease(connection, turn)
                return
            await self._write_messages(connection, held.conversation, turn, messages, position=position)

    async def finish(self, outcome: TurnOutcome) -> list[WaitingVector]:
        """Write all that a turn leaves behind and release its lease, in one transaction (RF-52 to RF-55).

        Finishing a turn that is done already writes nothing. A preview turn leaves its usage and nothing
        else (IM-15). Raises BusyError when another turn has taken the lease.

        Returns:
            The memories whose vectors wait for the index.
        """
        async with self._database.tenant(self._tenant) as connection:
            held = await self._hold(connection, outcome.turn)
            if held is None:
                await self._check_needs_no_lease(connection, outcome.turn)
                await self._end_preview(connection, outcome.turn, "done", outcome.at, None, outcome.usage)
                return []
            await self._write_messages(
                connection, held.conversation, outcome.turn, outcome.messages, position=outcome.position
            )
            # A replay may have fewer messages than the run before it.
            await connection.execute(
                "delete from recuerdo.messages where tenant = %s and turn_id = %s and position > %s",
                (self._tenant, outcome.turn, outcome.position + len(outcome.messages) - 1),
            )
            written = await self._learn(connection, held, outcome)
            await connection.execute(
                "update recuerdo.turns set status = 'done', ended_at = %s, usage = %s, record = %s"
                " where tenant = %s and id = %s",
                (
                    outcome.at,
                    Jsonb(outcome.usage.as_json()),
                    Jsonb(storable_json(outcome.record)),
                    self._tenant,
                    outcome.turn,
                ),
            )
            await self._release(connection, held, outcome.at)
            return written

    async def fail(
        self,
        turn: UUID,
        at: datetime,
        error: str,
        messages: Sequence[NewMessage] = (),
        usage: Usage = _NO_USAGE,
    ) -> None:
        """The turn broke off: the user's message stays, marked as failed, a partial reply as partial (RF-52).

        ``error`` is a key or one short sentence, without secrets. Does nothing for a turn that has ended.
        """
        await self._break_off(turn, "failed", at, error, messages, usage)

    async def cancel(
        self, turn: UUID, at: datetime, messages: Sequence[NewMessage] = (), usage: Usage = _NO_USAGE
    ) -> None:
        """The user stopped the turn: what was said so far stays, the reply marked as partial (IM-38)."""
        await self._break_off(turn, "cancelled", at, None, messages, usage)

    async def conversation(self, conversation: str, user: str | None) -> ConversationInfo | None:
        """The conversation in short; None when there is none or it is not the user's (RF-42)."""
        require_scope(conversation=conversation)
        _require_session(user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(ConversationInfo))
            await cursor.execute(
                _SELECT_CONVERSATIONS + " where tenant = %s and id = %s and user_id is not distinct from %s",
                (self._tenant, conversation, user),
            )
            return await cursor.fetchone()

    async def conversations(self, user: str, *, limit: int = 50) -> list[ConversationInfo]:
        """The user's conversations that have turns, newest first. Anonymous sessions cannot be listed."""
        require_scope(user=user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(ConversationInfo))
            await cursor.execute(
                _SELECT_CONVERSATIONS + " where tenant = %s and user_id = %s and exists (select 1"
                " from recuerdo.turns t"
                " where t.tenant = c.tenant and t.conversation = c.id and t.mode = 'live')"
                " order by updated_at desc, id limit %s",
                (self._tenant, user, limit),
            )
            return await cursor.fetchall()

    async def messages(
        self, conversation: str, user: str | None, *, limit: int | None = None
    ) -> list[StoredMessage]:
        """The newest ``limit`` messages (None: all) with role, text and time, oldest first (RF-2)."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(StoredMessage))
            await cursor.execute(_SELECT_MESSAGES, {**self._scope(conversation, user), "limit": limit})
            return await cursor.fetchall()

    async def message(self, turn: UUID, message_id: str, user: str) -> StoredMessage | None:
        """One message of the user's own turn: where something remembered came from. None: gone, or foreign."""
        require_scope(user=user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(StoredMessage))
            await cursor.execute(_SELECT_MESSAGE, (self._tenant, turn, message_id, user))
            return await cursor.fetchone()

    async def usage(self, conversation: str, user: str | None) -> Usage:
        """Tokens and cost of all turns of the conversation, previews too: they are billed (RF-21, IM-15)."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(_SUM_USAGE, self._scope(conversation, user))
            row = await cursor.fetchone()
        assert row is not None, "an aggregate gives one row"
        return Usage(**{**row, "unpriced": tuple(row["unpriced"])})

    async def record(self, turn: UUID, user: str | None) -> dict[str, Any] | None:
        """What went into the turn's requests; None when it is not the user's or has left none (IM-45)."""
        _require_session(user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                "select record from recuerdo.turns"
                " where tenant = %s and id = %s and user_id is not distinct from %s",
                (self._tenant, turn, user),
            )
            row = await cursor.fetchone()
            return row["record"] if row else None

    async def newest_record(self, conversation: str | None, user: str | None) -> dict[str, Any] | None:
        """As ``record``, of the newest turn that left one; ``conversation`` None: of any of the user's."""
        require_scope(**({"conversation": conversation} if user is None or conversation is not None else {}))
        _require_session(user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                "select record from recuerdo.turns where tenant = %(tenant)s and record is not null"
                " and user_id is not distinct from %(user)s"
                " and (%(conversation)s::text is null or conversation = %(conversation)s)"
                " order by started_at desc, number desc limit 1",
                {"tenant": self._tenant, "user": user, "conversation": conversation},
            )
            row = await cursor.fetchone()
            return row["record"] if row else None

    async def tool_result(self, conversation: str, message_id: str, user: str | None) -> str | None:
        """The whole text of a tool's message that the prompt had a part of; None when not the user's."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                "select m.content from recuerdo.messages m"
                " join recuerdo.turns t on t.tenant = m.tenant and t.id = m.turn_id"
                " where m.tenant = %(tenant)s and m.conversation = %(conversation)s and m.id = %(id)s"
                " and m.role = 'tool' and t.user_id is not distinct from %(user)s"
                " order by t.number desc limit 1",
                {**self._scope(conversation, user), "id": message_id},
            )
            row = await cursor.fetchone()
            return row["content"] if row else None

    async def clear(self, conversation: str, user: str | None) -> None:
        """Delete the conversation's turns and messages; long-term memory stays (IM-36).

        The conversation's row stays, so that nobody else can take its id. Raises ScopeError when it is not
        the user's, BusyError while a turn runs. LangGraph's checkpoints are another store:
        see ``checkpoints.delete_thread``.
        """
        scope = self._scope(conversation, user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(_LOCK_CONVERSATION, {**scope, "turn": None, "ticket": None})
            row = await cursor.fetchone()
            if row is None:
                return
            if row["user"] != user:
                raise ScopeError(_sentences("conversation_foreign"))
            if row["busy"]:
                raise BusyError(_sentences("conversation_busy"))
            await withdraw_pending(connection, self._tenant, conversation, user or conversation)
            await connection.execute(
                "delete from recuerdo.turns where tenant = %(tenant)s and conversation = %(conversation)s",
                scope,
            )

    def _scope(self, conversation: str, user: str | None) -> dict[str, Any]:
        require_scope(conversation=conversation)
        _require_session(user)
        return {"tenant": self._tenant, "conversation": conversation, "user": user}

    def _values(self, turn: NewTurn) -> dict[str, Any]:
        return {**vars(turn), "tenant": self._tenant, "turn": turn.id}

    @asynccontextmanager
    async def _taken(
        self, asked: NewTurn | Reservation, turn: UUID | None, lease: timedelta, wait: timedelta
    ) -> AsyncIterator[Connection]:
        """A transaction in which the conversation is taken; waits while another turn holds it."""
        require_scope(conversation=asked.conversation, assistant=asked.assistant)
        _require_session(asked.user)
        deadline = asyncio.get_running_loop().time() + wait.total_seconds()
        while True:
            async with self._database.tenant(self._tenant) as connection:
                if await self._take_lease(connection, asked, turn, lease):
                    yield connection
                    return
            if asyncio.get_running_loop().time() >= deadline:
                raise BusyError(_sentences("conversation_busy"))
            await asyncio.sleep(_POLL_SECONDS)

    async def _take_lease(
        self, connection: Connection, asked: NewTurn | Reservation, turn: UUID | None, lease: timedelta
    ) -> bool:
        """Make or check the conversation and take its lease; False while another turn holds it."""
        values = {**vars(asked), "tenant": self._tenant, "turn": turn}
        preview = isinstance(asked, NewTurn) and asked.mode == "preview"
        if not preview:
            await connection.execute(_INSERT_CONVERSATION, values)
        cursor = await connection.execute(_LOCK_CONVERSATION, values)
        row = await cursor.fetchone()
        if row is not None and not _may_go_on(row, asked):
            raise ScopeError(_sentences("conversation_foreign"))
        if row is None or preview:
            return True
        if row["busy"]:
            return False
        await self._check_waiting(connection, asked)
        if row["lease_turn"] not in (None, turn):
            await _end(connection, self._tenant, row["lease_turn"], "failed", asked.at, ABANDONED)
        if row["user"] is None and asked.user is not None:
            await self._claim(connection, asked, asked.user)
        await connection.execute(_TAKE_LEASE, {**values, "lease": lease})
        return True

    async def _waiting_user(self, connection: Connection, turn: UUID) -> dict[str, Any] | None:
        cursor = await connection.execute(
            "select user_id as user from recuerdo.turns where tenant = %s and id = %s and status = 'waiting'",
            (self._tenant, turn),
        )
        return await cursor.fetchone()

    async def _check_waiting(self, connection: Connection, asked: NewTurn | Reservation) -> None:
        """While a turn waits for a person only that one goes on: BusyError that names what it waits for."""
        values = {"tenant": self._tenant, "conversation": asked.conversation}
        cursor = await connection.execute(_WAITING_TURN, values)
        row = await cursor.fetchone()
        resumes = asked.resumes if isinstance(asked, Reservation) else None
        if resumes is not None and (row is None or row["turn"] != resumes):
            raise InputError(_waiting("turn_not_waiting"))
        if row is not None and resumes is None:
            key = "conversation_waits" if row["status"] == "pending" else "conversation_not_gone_on"
            raise BusyError(_waiting(key, id=row["approval"], tool=row["tool"]))

    async def _claim(self, connection: Connection, asked: NewTurn | Reservation, user: str) -> None:
        """The session's user is known now: its turns and its key events become his, audited (A-22).

        Its row is locked, so of two users who claim it at once the second finds it foreign.
        """
        values = {"tenant": self._tenant, "conversation": asked.conversation, "user": user}
        await connection.execute(
            "update recuerdo.conversations set user_id = %(user)s"
            " where tenant = %(tenant)s and id = %(conversation)s",
            values,
        )
        await connection.execute(
            "update recuerdo.turns set user_id = %(user)s"
            " where tenant = %(tenant)s and conversation = %(conversation)s and user_id is null",
            values,
        )
        origin = Origin(asked.at, user, asked.conversation)
        await adopt_events(connection, self._tenant, asked.assistant, asked.conversation, user, origin)
        change = Change("conversations", asked.conversation, "adopted")
        await write_audit(connection, self._tenant, user, asked.at, [change])

    async def _write_turn(self, connection: Connection, turn: NewTurn) -> int:
        cursor = await connection.execute(_INSERT_TURN, self._values(turn))
        row = await cursor.fetchone()
        if row is None:
            raise ScopeError(_sentences("conversation_foreign"))
        if row["replayed"]:
            # What the run before it said does not count; it begins anew.
            await connection.execute(
                "delete from recuerdo.messages where tenant = %s and turn_id = %s and position > 0",
                (self._tenant, turn.id),
            )
        if turn.mode == "live":
            message = NewMessage(turn.message_id, "user", turn.text, turn.at)
            await self._write_messages(connection, turn.conversation, turn.id, [message], position=0)
        return int(row["number"])

    async def _hold(self, connection: Connection, turn: UUID) -> _Held | None:
        """Lock the conversation whose lease the turn holds; None when it holds none."""
        cursor = connection.cursor(row_factory=class_row(_Held))
        await cursor.execute(
            "select id as conversation, assistant, user_id as user from recuerdo.conversations"
            " where tenant = %s and lease_turn = %s for update",
            (self._tenant, turn),
        )
        return await cursor.fetchone()

    async def _check_needs_no_lease(self, connection: Connection, turn: UUID) -> None:
        """Previews and turns that are done need no lease; any other has lost it: BusyError."""
        cursor = await connection.execute(
            "select mode, status from recuerdo.turns where tenant = %s and id = %s", (self._tenant, turn)
        )
        row = await cursor.fetchone()
        if row is None or (row["mode"] == "live" and row["status"] != "done"):
            raise BusyError(_sentences("lease_lost"))

    async def _write_messages(
        self,
        connection: Connection,
        conversation: str,
        turn: UUID,
        messages: Sequence[NewMessage],
        *,
        position: int = 1,
        reply_status: MessageStatus = "ok",
    ) -> None:
        rows = [
            {
                **vars(message),
                "tenant": self._tenant,
                "turn": turn,
                "conversation": conversation,
                "position": place,
                "content": storable(message.content),
                "tool_calls": Jsonb(storable_json(message.tool_calls)) if message.tool_calls else None,
                "status": reply_status if message.role == "assistant" and not message.tool_calls else "ok",
            }
            for place, message in enumerate(messages, start=position)
        ]
        if rows:
            await connection.cursor().executemany(_UPSERT_MESSAGE, rows)

    async def _next_position(self, connection: Connection, turn: UUID) -> int:
        cursor = await connection.execute(
            "select max(position) + 1 as position from recuerdo.messages where tenant = %s and turn_id = %s",
            (self._tenant, turn),
        )
        row = await cursor.fetchone()
        return int(row["position"]) if row else 1

    async def _learn(self, connection: Connection, held: _Held, outcome: TurnOutcome) -> list[WaitingVector]:
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
            held = await self._hold(connection, turn)
            if held is None:
                await self._end_preview(connection, turn, status, at, error, usage)
                return
            await self._write_messages(
                connection,
                held.conversation,
                turn,
                messages,
                position=await self._next_position(connection, turn),
                reply_status="partial",
            )
            await _end(connection, self._tenant, turn, status, at, error)
            await connection.execute(
                "update recuerdo.turns set usage = %s where tenant = %s and id = %s",
                (Jsonb(usage.as_json()), self._tenant, turn),
            )
            await self._release(connection, held, at)

    async def _end_preview(
        self,
        connection: Connection,
        turn: UUID,
        status: TurnStatus,
        at: datetime,
        error: str | None,
        usage: Usage,
    ) -> None:
        await connection.execute(
            "update recuerdo.turns set status = %s, ended_at = %s, error = %s, usage = %s"
            " where tenant = %s and id = %s and mode = 'preview' and status = 'running'",
            (status, at, error, Jsonb(usage.as_json()), self._tenant, turn),
        )

    async def _release(self, connection: Connection, held: _Held, at: datetime) -> None:
        await connection.execute(
            "update recuerdo.conversations set lease_turn = null, updated_at = %s, lease_until ="
            " case when lease_ticket is not null then clock_timestamp() + %s end"
            " where tenant = %s and id = %s",
            (at, _CHECKPOINT_LEASE, self._tenant, held.conversation),
        )


async def fail_abandoned(database: Database, now: datetime) -> int:
    """Mark turns of every tenant whose lease has expired as failed, and release them. Returns how many."""
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select tenant, id, lease_turn from recuerdo.conversations"
            " where lease_until <= clock_timestamp() for update skip locked"
        )
        expired = await cursor.fetchall()
        for row in expired:
            await _end(connection, row["tenant"], row["lease_turn"], "failed", now, ABANDONED)
            await connection.execute(
                "update recuerdo.conversations set lease_turn = null, lease_ticket = null, lease_until = null"
                " where tenant = %s and id = %s",
                (row["tenant"], row["id"]),
            )
        return len(expired)


async def _end(
    connection: Connection,
    tenant: str,
    turn: UUID,
    status: Literal["failed", "cancelled"],
    at: datetime,
    error: str | None,
) -> None:
    """End a running turn that has no outcome; the user's message of a failed one is marked (RF-52).

    Its calls of tools that are still open are marked, and a failed run is evidence (OR-22).
    """
    cursor = await connection.execute(
        "update recuerdo.turns t set status = %s, ended_at = %s, error = %s from recuerdo.conversations c"
        " where t.tenant = %s and t.id = %s and t.status = 'running'"
        " and c.tenant = t.tenant and c.id = t.conversation"
        " returning t.conversation, c.assistant, t.user_id as user",
        (status, at, error, tenant, turn),
    )
    ended = await cursor.fetchone()
    await leave_open_calls(connection, tenant, turn, at)
    if ended and status == "failed":
        run = Run(turn, **ended)
        failure = NewEvidence("run_failed", at, run, str(turn), data={"error": error})
        await write_evidence(connection, tenant, [failure])
    if status == "failed":
        await connection.execute(
            "update recuerdo.messages set status = 'failed'"
            " where tenant = %s and turn_id = %s and role = 'user'",
            (tenant, turn),
        )


def _may_go_on(row: dict[str, Any], asked: NewTurn | Reservation) -> bool:
    """Whether the conversation is the asker's, or anonymous, so that a user may claim it (A-22)."""
    return bool(row["assistant"] == asked.assistant and row["user"] in (asked.user, None))


def _require_session(user: str | None) -> None:
    """None is the anonymous session; an empty name is a caller's mistake."""
    if user is not None:
        require_scope(user=user)
