"""Makes a memory permanent, or takes that back: by a supervisor alone, with a reason, audited (OR-11, IM-51)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from recuerdo.state.errors import InputError
from recuerdo.state.limits import CRITICAL_USES, MEMORY_MAX_DAYS, MemoryStatus, expiry
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.audit import Change, content_hash, write_audit
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.governance_audit import AuditAct, GovernanceAudit
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.memories.rows import COLUMNS, StoredMemory
from recuerdo.stores.postgres.roles import SUPERVISING, require_role
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import without_sensitive

_sentences = load_sentences(__package__, "memory_sentences.yaml")

# Whoever's it is: a supervisor looks after all users of the tenant and assistant.
_KEPT: LiteralString = """tenant = %(tenant)s and assistant = %(assistant)s and active
    and status <> 'withdrawn' and (expires_at is null or expires_at > %(now)s)"""

_CANDIDATES: LiteralString = f"""
select {COLUMNS}, used.turns as uses
from recuerdo.user_memory kept
join (
    select named.id as memory, count(*) as turns
    from recuerdo.turns turn, jsonb_array_elements_text(turn.record -> 'memories') as named (id)
    where turn.tenant = %(tenant)s and turn.mode = 'live' and turn.status = 'done'
        and turn.started_at > %(since)s
    group by named.id having count(*) >= %(uses)s
) used on used.memory = kept.id::text
where {_KEPT} and status <> 'published'
order by used.turns desc, kept.id limit %(limit)s
"""


@dataclass(frozen=True)
class Publication:
    """A supervisor's decision on a memory."""

    action: Literal["published", "withdrawn"]
    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True)
class Candidate(StoredMemory):
    """A memory that may be worth publishing: ``uses`` turns had it in their prompt."""

    uses: int = 0


class Publishing:
    """The permanent memories of one tenant and assistant.

    Every method that changes raises ScopeError when the actor is neither supervisor nor owner, and InputError
    when there is no such memory, or for a time without a zone.
    """

    def __init__(self, database: Database, tenant: str, assistant: str, keys: KeyFolder) -> None:
        require_scope(tenant=tenant, assistant=assistant)
        self._database = database
        self._tenant = tenant
        self._assistant = assistant
        self._audit = GovernanceAudit(database, tenant, keys)

    async def publish(self, memory_id: UUID, *, actor: str, reason: str, at: datetime) -> None:
        """Make a memory in force permanent, for the user it is of (C-7). Again: only the reason is added."""
        await self._decide(memory_id, "published", actor, reason, at)

    async def withdraw(self, memory_id: UUID, *, actor: str, reason: str, at: datetime) -> None:
        """Take a published memory out of use at once; the next sweep deletes it."""
        await self._decide(memory_id, "withdrawn", actor, reason, at)

    async def publications(self, memory_id: UUID) -> Sequence[Publication]:
        """What supervisors decided on the memory, oldest first."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(Publication))
            await cursor.execute(
                "select action, actor, reason, at from recuerdo.memory_publications"
                " where tenant = %s and memory_id = %s order by id",
                (self._tenant, memory_id),
            )
            return await cursor.fetchall()

    async def candidates(
        self, *, actor: str, now: datetime, uses: int = CRITICAL_USES, limit: int = 100
    ) -> Sequence[Candidate]:
        """Memories that at least ``uses`` turns of the last 90 days used, most used first (A-26)."""
        require_aware(now)
        values = {**self._scope(now), "since": now - timedelta(days=MEMORY_MAX_DAYS)}
        async with self._database.tenant(self._tenant) as connection:
            await require_role(connection, self._tenant, actor, SUPERVISING)
            cursor = connection.cursor(row_factory=class_row(Candidate))
            await cursor.execute(_CANDIDATES, {**values, "uses": uses, "limit": limit})
            return await cursor.fetchall()

    async def _decide(
        self,
        memory_id: UUID,
        status: Literal["published", "withdrawn"],
        actor: str,
        reason: str,
        at: datetime,
    ) -> None:
        require_aware(at)
        if not reason.strip():
            raise InputError(_sentences("reason_missing"))
        async with self._database.tenant(self._tenant) as connection:
            await require_role(connection, self._tenant, actor, SUPERVISING)
            user, text, before = await self._locked(connection, memory_id, at)
            if status == "withdrawn" and before != "published":
                raise InputError(_sentences("memory_not_published"))
            await connection.execute(
                "update recuerdo.user_memory set status = %s, expires_at = %s, changed_in = null where id = %s",
                (status, expiry(status, at), memory_id),
            )
            await connection.execute(
                "insert into recuerdo.memory_publications (tenant, memory_id, user_id, action, actor, reason, at)"
                " values (%s, %s, %s, %s, %s, %s, %s)",
                (self._tenant, memory_id, user, status, actor, await without_sensitive(reason), at),
            )
            hashed = await content_hash(connection, self._tenant, text)
            change = Change(
                "user_memory",
                str(memory_id),
                status,
                content_hash=hashed,
                previous_status=before,
                new_status=status,
            )
            await write_audit(connection, self._tenant, actor, at, [change])
            await self._audit.append(connection, _act(memory_id, hashed, before, status, actor, at))

    async def _locked(
        self, connection: Connection, memory_id: UUID, at: datetime
    ) -> tuple[str, str, MemoryStatus]:
        cursor = await connection.execute(
            f"select user_id, text, status from recuerdo.user_memory where {_KEPT} and id = %(id)s for update",
            {**self._scope(at), "id": memory_id},
        )
        row = await cursor.fetchone()
        if row is None:
            raise InputError(_sentences("memory_unknown"))
        return row["user_id"], row["text"], row["status"]

    def _scope(self, now: datetime) -> dict[str, object]:
        return {"tenant": self._tenant, "assistant": self._assistant, "now": now}


async def audit_imported(
    connection: Connection,
    tenant: str,
    audit: GovernanceAudit,
    memories: Sequence[UUID],
    actor: str,
    at: datetime,
) -> None:
    """Write into the audit which memories came in from a file as published ones, last in the transaction."""
    cursor = await connection.execute(
        "select id, text from recuerdo.user_memory"
        " where tenant = %s and status = 'published' and id = any(%s) order by id",
        (tenant, list(memories)),
    )
    for row in await cursor.fetchall():
        hashed = await content_hash(connection, tenant, row["text"])
        await audit.append(connection, _act(row["id"], hashed, None, "published", actor, at))


def _act(
    memory: UUID,
    hashed: bytes,
    before: MemoryStatus | None,
    after: Literal["published", "withdrawn"],
    actor: str,
    at: datetime,
) -> AuditAct:
    """The reason may tell of the user: it stands apart, and goes when he is forgotten."""
    details = {"content_hash": hashed.hex()}
    return AuditAct(at, actor, f"memory.{after}", str(memory), before, after, details)
