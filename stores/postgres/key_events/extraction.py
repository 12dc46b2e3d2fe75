"""Which conversations wait for their key events to be read, and writing what was read exactly once (LA-26, IM-6).

A turn waits while its row says so. Whoever reads a conversation holds a lease on it; the events and the mark that
the turns were read are one transaction, so a reader that is killed leaves nothing, and the next one begins anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, LiteralString
from uuid import UUID, uuid4

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from recuerdo.state.errors import BusyError
from recuerdo.state.key_events import EventChange, NewEvent, Origin, Owner
from recuerdo.state.sentences import load_sentences
from recuerdo.state.usage import Usage
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.key_events.store import PostgresKeyEvents
from recuerdo.stores.postgres.key_events.writing import change_key
from recuerdo.stores.postgres.scope import require_scope

_sentences = load_sentences(__package__)

Reason = Literal["idle", "threshold", "manual"]
ExtractorName = Literal["rules", "model"]

ACTOR = "extraction"
"""Who changed an event, in its history."""

LEASE = timedelta(minutes=2)
"""How long a reader may take for one conversation before another takes it over."""

_NO_USAGE = Usage()

# Turns that have ended, however they did: what their user said counts (RF-52).
_ENDED: LiteralString = "t.events_unread and t.mode = 'live' and t.status in ('done', 'failed', 'cancelled')"
_SAID: LiteralString = "(m.role = 'user' or m.role = 'assistant' and m.tool_calls is null)"

# What a conversation was last said under; a turn that failed has no record.
_LAST_PLAN: LiteralString = """(select r.record->>'plan' from recuerdo.turns r
    where r.tenant = c.tenant and r.conversation = c.id and r.record is not null order by r.number desc limit 1)"""
# Whether all of it was said under drafts of the plan's name, and something was.
_DRAFTED: LiteralString = """coalesce((
    select bool_and((r.record->>'draft')::boolean and r.record->>'plan' = %(plan)s)
    from recuerdo.turns r where r.tenant = c.tenant and r.conversation = c.id), false)"""
_IN_REACH: LiteralString = f"""(case when %(only)s::text is not null then c.assistant = %(only)s
    else coalesce({_LAST_PLAN}, c.assistant) = %(plan)s end)
    and (not %(draft)s or {_DRAFTED})"""

_DUE: LiteralString = f"""
select c.id as conversation, c.assistant, c.updated_at <= %(idle_since)s as idle
from (
    select distinct t.tenant, t.conversation from recuerdo.turns t
    where {_ENDED} and t.tenant = %(tenant)s
) as unread
join recuerdo.conversations c on c.tenant = unread.tenant and c.id = unread.conversation
left join recuerdo.event_extraction_leases l on l.tenant = c.tenant and l.conversation = c.id
where {_IN_REACH}
    and (c.lease_until is null or c.lease_until <= clock_timestamp())
    and (l.lease_until is null or l.lease_until <= clock_timestamp())
    and (l.not_before is null or l.not_before <= %(now)s)
    and (c.updated_at <= %(idle_since)s or %(threshold)s <= (
        select count(*) from recuerdo.messages m
        join recuerdo.turns t on t.tenant = m.tenant and t.id = m.turn_id
        where t.tenant = c.tenant and t.conversation = c.id and {_ENDED} and {_SAID}))
order by c.updated_at, c.id limit %(limit)s
"""

_CLAIM = """
insert into recuerdo.event_extraction_leases as kept (tenant, conversation, holder, lease_until)
values (%(tenant)s, %(conversation)s, %(holder)s, clock_timestamp() + %(lease)s)
on conflict (tenant, conversation) do update set holder = excluded.holder, lease_until = excluded.lease_until
where kept.lease_until is null or kept.lease_until <= clock_timestamp()
returning failures
"""

_UNREAD: LiteralString = f"""
select m.turn_id as turn, m.role, m.content as text
from recuerdo.turns t join recuerdo.messages m on m.tenant = t.tenant and m.turn_id = t.id
where t.tenant = %(tenant)s and t.conversation = %(conversation)s and {_ENDED} and {_SAID}
order by t.number, m.position
"""

_KEEP = """
insert into recuerdo.event_extractions
    (tenant, conversation, assistant, at, reason, extractor, turns, created, updated, refused, usage)
values (%(tenant)s, %(conversation)s, %(assistant)s, %(at)s, %(reason)s, %(extractor)s, %(turns)s, %(created)s,
    %(updated)s, %(refused)s, %(usage)s)
"""


@dataclass(frozen=True)
class Reach:
    """Whose conversations are read: those of one assistant, None: of every one that last answered under ``plan``.

    A ``draft`` reads only what was said under drafts of the plan: what it tries acts on nobody's live conversations.
    """

    plan: str
    assistant: str | None = None
    draft: bool = False

    def as_values(self) -> dict[str, Any]:
        """For the queries."""
        return {"plan": self.plan, "only": self.assistant, "draft": self.draft}


@dataclass(frozen=True)
class DueConversation:
    """A conversation that has ended, or has as many new messages as the plan asks for (A-20, IM-6)."""

    conversation: str
    assistant: str
    reason: Reason


@dataclass(frozen=True)
class Spoken:
    """What the user or the assistant said in a turn that was not read yet."""

    turn: UUID
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Claimed:
    """A conversation that is this reader's until its lease ends. ``failures`` since it was last read."""

    conversation: str
    owner: Owner
    language: str
    spoken: Sequence[Spoken]
    holder: UUID
    failures: int


@dataclass(frozen=True)
class FoundEvent:
    """An event that a turn gave: a new one, or a change of the one named by ``event_id``."""

    turn: UUID
    key: str
    event: NewEvent | EventChange
    event_id: UUID | None = None


@dataclass(frozen=True)
class Reading:
    """What was read out of some turns, by whom, and what that used."""

    turns: Sequence[UUID]
    found: Sequence[FoundEvent]
    extractor: ExtractorName
    refused: int = 0
    usage: Usage = _NO_USAGE


@dataclass(frozen=True)
class Extraction:
    """One extraction that was made: the turns that it read, and the ids of its events."""

    conversation: str
    at: datetime
    reason: Reason
    extractor: ExtractorName
    turns: Sequence[UUID]
    created: Sequence[UUID]
    updated: Sequence[UUID]
    refused: int


@dataclass(frozen=True)
class Whose:
    """The assistant of a conversation, and whether something of it waits that is out of a reader's reach."""

    assistant: str
    out_of_reach: bool


async def whose_conversation(
    database: Database, tenant: str, conversation: str, reach: Reach
) -> Whose | None:
    """Of a conversation of the tenant; None: there is none of that id."""
    require_scope(tenant=tenant, conversation=conversation)
    async with database.tenant(tenant) as connection:
        cursor = connection.cursor(row_factory=class_row(Whose))
        await cursor.execute(
            f"select c.assistant, not ({_IN_REACH}) and exists (select 1 from recuerdo.turns t"
            f" where t.tenant = c.tenant and t.conversation = c.id and {_ENDED}) as out_of_reach"
            " from recuerdo.conversations c where c.tenant = %(tenant)s and c.id = %(conversation)s",
            {**reach.as_values(), "tenant": tenant, "conversation": conversation},
        )
        return await cursor.fetchone()


async def waiting_tenants(database: Database, reach: Reach) -> list[str]:
    """Tenants with turns that wait to be read: for the worker."""
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select distinct t.tenant from recuerdo.turns t join recuerdo.conversations c"
            " on c.tenant = t.tenant and c.id = t.conversation"
            f" where {_ENDED} and {_IN_REACH} order by t.tenant",
            reach.as_values(),
        )
        return [row["tenant"] for row in await cursor.fetchall()]


async def due_conversations(
    database: Database,
    tenant: str,
    reach: Reach,
    now: datetime,
    *,
    idle: timedelta,
    threshold: int | None,
    limit: int,
) -> list[DueConversation]:
    """Conversations of a tenant to read now, longest idle first.

    None while a turn runs in it, while somebody else reads it, or until the pause after a failure is over.
    """
    values = {
        **reach.as_values(),
        "now": now,
        "idle_since": now - idle,
        "threshold": threshold,
        "limit": limit,
        "tenant": tenant,
    }
    async with database.tenant(tenant) as connection:
        cursor = await connection.execute(_DUE, values)
        return [
            DueConversation(row["conversation"], row["assistant"], "idle" if row["idle"] else "threshold")
            for row in await cursor.fetchall()
        ]


class ExtractionLog:
    """Reading one tenant's conversations for the key events of an assistant."""

    def __init__(self, database: Database, tenant: str, assistant: str, events: PostgresKeyEvents) -> None:
        require_scope(tenant=tenant, assistant=assistant)
        self._database = database
        self._tenant = tenant
        self._assistant = assistant
        self._events = events

    async def claim(self, conversation: str, lease: timedelta = LEASE) -> Claimed | None:
        """Take a conversation to read it. None: it is not this assistant's, or nothing of it waits.

        Raises BusyError while somebody else reads it.
        """
        require_scope(conversation=conversation)
        holder = uuid4()
        values = {"tenant": self._tenant, "conversation": conversation, "lease": lease, "holder": holder}
        async with self._database.tenant(self._tenant) as connection:
            row = await _conversation(connection, values)
            if row is None or row["assistant"] != self._assistant or not await _unread(connection, values):
                return None
            cursor = await connection.execute(_CLAIM, values)
            taken = await cursor.fetchone()
            if taken is None:
                raise BusyError(_sentences("conversation_being_read"))
            # Once more under the lease: whoever held it until just now may have read them.
            spoken = await _unread(connection, values)
            if not spoken:
                await _give_up(connection, values)
                return None
            owner = Owner(row["user"], conversation)
            return Claimed(conversation, owner, row["language"], spoken, holder, taken["failures"])

    async def finish(
        self, claimed: Claimed, reading: Reading, reason: Reason, at: datetime
    ) -> Extraction | None:
        """Write the events and that the turns were read, and free the conversation, in one transaction.

        None, and nothing is written, when the lease was lost or one of the turns was read or cleared meanwhile.
        """
        values = {"tenant": self._tenant, "conversation": claimed.conversation, "holder": claimed.holder}
        async with self._database.tenant(self._tenant) as connection:
            # First the conversation, as whoever claims it for a user does: its events are his from then on.
            row = await _conversation(connection, values, " for update")
            if row is None or not await _mark(connection, values, reading.turns):
                return None
            owner = Owner(row["user"], claimed.conversation)
            created, updated = await self._write(connection, owner, reading, at)
            made = Extraction(
                claimed.conversation,
                at,
                reason,
                reading.extractor,
                list(reading.turns),
                created,
                updated,
                reading.refused,
            )
            usage = Jsonb(reading.usage.as_json())
            kept = {**vars(made), "tenant": self._tenant, "assistant": self._assistant, "usage": usage}
            await connection.execute(_KEEP, kept)
            return made

    async def postpone(self, claimed: Claimed, until: datetime) -> None:
        """It could not be read: free it, to be tried again after ``until``. Nothing of it is lost."""
        async with self._database.tenant(self._tenant) as connection:
            await connection.execute(
                "update recuerdo.event_extraction_leases set holder = null, lease_until = null,"
                " failures = failures + 1, not_before = %s"
                " where tenant = %s and conversation = %s and holder = %s",
                (until, self._tenant, claimed.conversation, claimed.holder),
            )

    async def of(self, conversation: str) -> list[Extraction]:
        """The extractions of a conversation, oldest first."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                "select conversation, at, reason, extractor, turns, created, updated, refused"
                " from recuerdo.event_extractions where tenant = %s and conversation = %s order by id",
                (self._tenant, conversation),
            )
            return [Extraction(**row) for row in await cursor.fetchall()]

    async def _write(
        self, connection: Connection, owner: Owner, reading: Reading, at: datetime
    ) -> tuple[list[UUID], list[UUID]]:
        created, updated = [], []
        origin = Origin(at, ACTOR, owner.session)
        for found in reading.found:
            # A turn that is read again, from a copy put back for instance, makes no second event.
            made = replace(origin, turn=found.turn, key=change_key("extracted", str(found.turn), found.key))
            if isinstance(found.event, NewEvent):
                created.append((await self._events.create_in(connection, owner, found.event, made)).id)
            elif found.event_id is not None:
                after = await self._events.update_in(connection, owner, found.event_id, found.event, made)
                updated += [after.id] if after else []
        return created, updated


async def _conversation(
    connection: Connection, values: dict[str, Any], lock: Literal["", " for update"] = ""
) -> dict[str, Any] | None:
    cursor = await connection.execute(
        "select assistant, user_id as user, language from recuerdo.conversations"
        f" where tenant = %(tenant)s and id = %(conversation)s{lock}",
        values,
    )
    return await cursor.fetchone()


async def _unread(connection: Connection, values: dict[str, Any]) -> list[Spoken]:
    cursor = await connection.execute(_UNREAD, values)
    return [Spoken(**row) for row in await cursor.fetchall()]


async def _mark(connection: Connection, values: dict[str, Any], turns: Sequence[UUID]) -> bool:
    """Mark the turns as read and give the lease up; False when either is no longer this reader's."""
    values = {**values, "turns": list(turns)}
    cursor = await connection.execute(
        "select 1 from recuerdo.turns where tenant = %(tenant)s and id = any(%(turns)s) and events_unread"
        " for update",
        values,
    )
    if len(await cursor.fetchall()) != len(turns):
        return False
    if not await _give_up(connection, values):
        return False
    await connection.execute(
        "update recuerdo.turns set events_unread = false where tenant = %(tenant)s and id = any(%(turns)s)",
        values,
    )
    return True


async def _give_up(connection: Connection, values: dict[str, Any]) -> bool:
    """Free the conversation; False when it is no longer this reader's."""
    cursor = await connection.execute(
        "delete from recuerdo.event_extraction_leases"
        " where tenant = %(tenant)s and conversation = %(conversation)s and holder = %(holder)s",
        values,
    )
    return bool(cursor.rowcount)
