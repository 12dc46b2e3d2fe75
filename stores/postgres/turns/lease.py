"""The lease that orders the turns of a conversation: a row with an expiry, held from begin to finish.

Each function works in the transaction of the connection that it is given, under its tenant.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from recuerdo.state.errors import BusyError, InputError, ScopeError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.turns.claiming import claim_session
from recuerdo.stores.postgres.turns.ending import ABANDONED, end_running
from recuerdo.stores.postgres.turns.rows import NewTurn, Reservation

sentences = load_sentences("recuerdo.stores.postgres")
_waiting = load_sentences("recuerdo.stores.postgres", "approvals_sentences.yaml")

# How long a reservation lasts after its turn's last write: enough for the checkpoint.
_CHECKPOINT_LEASE = timedelta(seconds=30)

# A reservation that a crash of the server takes along is missed by nobody: its agent's connection is gone with it, and
# the turn's own transaction, which waits for the disk, comes right after.
_NO_WAIT_FOR_DISK = "set local synchronous_commit = off"

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


@dataclass(frozen=True)
class Held:
    """The conversation whose lease a turn holds; its row is locked."""

    conversation: str
    assistant: str
    user: str | None


async def take_lease(
    connection: Connection, tenant: str, asked: NewTurn | Reservation, turn: UUID | None, lease: timedelta
) -> bool:
    """Make or check the conversation and take its lease; False while another turn holds it.

    Raises ScopeError for a foreign one, BusyError while a turn waits for a person, InputError when the turn to
    resume does not wait.
    """
    values = {**vars(asked), "tenant": tenant, "turn": turn}
    preview = isinstance(asked, NewTurn) and asked.mode == "preview"
    async with connection.pipeline():
        if isinstance(asked, Reservation):
            await connection.execute(_NO_WAIT_FOR_DISK)
        if not preview:
            await connection.execute(_INSERT_CONVERSATION, values)
        locked = await connection.execute(_LOCK_CONVERSATION, values)
        waiting = await connection.execute(_WAITING_TURN, values)
    row = await locked.fetchone()
    if row is not None and not _may_go_on(row, asked):
        raise ScopeError(sentences("conversation_foreign"))
    if row is None or preview:
        return True
    if row["busy"]:
        return False
    _check_waiting(await waiting.fetchone(), asked)
    if row["lease_turn"] not in (None, turn):
        await end_running(connection, tenant, row["lease_turn"], "failed", asked.at, ABANDONED)
    if row["user"] is None and asked.user is not None:
        await claim_session(connection, tenant, asked, asked.user)
    await connection.execute(_TAKE_LEASE, {**values, "lease": lease})
    return True


async def lock_free(connection: Connection, tenant: str, conversation: str, user: str | None) -> bool:
    """Lock the user's conversation, which no turn may hold; False when there is none.

    Raises ScopeError for a foreign one, BusyError while a turn runs.
    """
    values = {"tenant": tenant, "conversation": conversation, "turn": None, "ticket": None}
    cursor = await connection.execute(_LOCK_CONVERSATION, values)
    row = await cursor.fetchone()
    if row is None:
        return False
    if row["user"] != user:
        raise ScopeError(sentences("conversation_foreign"))
    if row["busy"]:
        raise BusyError(sentences("conversation_busy"))
    return True


async def hold(connection: Connection, tenant: str, turn: UUID) -> Held | None:
    """Lock the conversation whose lease the turn holds; None when it holds none."""
    cursor = connection.cursor(row_factory=class_row(Held))
    await cursor.execute(
        "select id as conversation, assistant, user_id as user from recuerdo.conversations"
        " where tenant = %s and lease_turn = %s for update",
        (tenant, turn),
    )
    return await cursor.fetchone()


async def extend(connection: Connection, tenant: str, turn: UUID, lease: timedelta) -> bool:
    """Hold the lease for ``lease`` from now; False when the turn holds none."""
    cursor = await connection.execute(
        "update recuerdo.conversations set lease_until = clock_timestamp() + %s"
        " where tenant = %s and lease_turn = %s",
        (lease, tenant, turn),
    )
    return bool(cursor.rowcount)


async def release(connection: Connection, tenant: str, held: Held, at: datetime) -> None:
    """The turn has ended; a reservation outlives it, for the checkpoint."""
    await connection.execute(
        "update recuerdo.conversations set lease_turn = null, updated_at = %s, lease_until ="
        " case when lease_ticket is not null then clock_timestamp() + %s end"
        " where tenant = %s and id = %s",
        (at, _CHECKPOINT_LEASE, tenant, held.conversation),
    )


async def release_ticket(connection: Connection, tenant: str, ticket: UUID) -> UUID | None:
    """Give up a reservation; returns the turn that held the lease under it to the last, if any."""
    cursor = await connection.execute(
        "update recuerdo.conversations c set lease_turn = null, lease_ticket = null, lease_until = null"
        " from (select id, lease_turn from recuerdo.conversations where tenant = %(tenant)s"
        "  and lease_ticket = %(ticket)s for update) held"
        " where c.tenant = %(tenant)s and c.id = held.id returning held.lease_turn as turn",
        {"tenant": tenant, "ticket": ticket},
    )
    row = await cursor.fetchone()
    return row["turn"] if row else None


async def waiting_user(connection: Connection, tenant: str, turn: UUID) -> dict[str, Any] | None:
    """The user, under that name, of a turn that waits for a person; None when it does not wait."""
    cursor = await connection.execute(
        "select user_id as user from recuerdo.turns where tenant = %s and id = %s and status = 'waiting'",
        (tenant, turn),
    )
    return await cursor.fetchone()


async def take_up(
    connection: Connection, tenant: str, turn: UUID, user: str | None, lease: timedelta, ticket: UUID | None
) -> None:
    """A turn of this user's that has waited goes on, under a lease again; any other stays as it is.

    Raises ScopeError when it is somebody else's, BusyError when another turn holds the conversation.
    """
    waiting = await waiting_user(connection, tenant, turn)
    if waiting is None:
        return
    if waiting["user"] != user:
        raise ScopeError(sentences("conversation_foreign"))
    values = {"tenant": tenant, "turn": turn, "lease": lease, "ticket": ticket}
    taken = await connection.execute(_TAKE_UP, values)
    if not taken.rowcount:
        raise BusyError(sentences("conversation_busy"))
    await connection.execute(
        "update recuerdo.turns set status = 'running' where tenant = %(tenant)s and id = %(turn)s", values
    )


async def check_needs_no_lease(connection: Connection, tenant: str, turn: UUID) -> None:
    """Previews and turns that are done need no lease; any other has lost it: BusyError."""
    cursor = await connection.execute(
        "select mode, status from recuerdo.turns where tenant = %s and id = %s", (tenant, turn)
    )
    row = await cursor.fetchone()
    if row is None or (row["mode"] == "live" and row["status"] != "done"):
        raise BusyError(sentences("lease_lost"))


def _check_waiting(waiting: dict[str, Any] | None, asked: NewTurn | Reservation) -> None:
    """While a turn waits for a person only that one goes on: BusyError that names what it waits for."""
    resumes = asked.resumes if isinstance(asked, Reservation) else None
    if resumes is not None and (waiting is None or waiting["turn"] != resumes):
        raise InputError(_waiting("turn_not_waiting"))
    if waiting is not None and resumes is None:
        key = "conversation_waits" if waiting["status"] == "pending" else "conversation_not_gone_on"
        raise BusyError(_waiting(key, id=waiting["approval"], tool=waiting["tool"]))


def _may_go_on(row: dict[str, Any], asked: NewTurn | Reservation) -> bool:
    """Whether the conversation is the asker's, or anonymous, so that a user may claim it (A-22)."""
    return bool(row["assistant"] == asked.assistant and row["user"] in (asked.user, None))
