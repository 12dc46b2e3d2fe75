"""When the Learning Hub looks at a tenant's evidence: every 6 hours, once, however many workers there are (OR-23).

One sweep of a tenant is open at a time. The next one is entered when it ends, on the same grid of hours, so one that
was missed runs once, late.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, LiteralString
from uuid import UUID, uuid4

from psycopg.rows import class_row

from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.scope import require_scope

SWEEP_PERIOD = timedelta(hours=6)
"""Time between two sweeps of a tenant (OR-23, C-33)."""

SWEEP_LEASE = timedelta(minutes=10)
"""How long a worker may take for a sweep before another one takes it over."""

SweepStatus = Literal["due", "running", "done", "failed"]

_COLUMNS = "id, due_at, status, started_at, ended_at, evidence, proposals, error"

_ENTER = """
insert into recuerdo.sweeps (tenant, due_at, status) values (%(tenant)s, %(due_at)s, 'due')
on conflict (tenant) where status in ('due', 'running') do nothing
"""

# The clock went back: nobody waits longer than a period.
_BRING_FORWARD = """
update recuerdo.sweeps set due_at = %(latest)s
where tenant = %(tenant)s and status = 'due' and due_at > %(latest)s
"""

_CLAIM = """
update recuerdo.sweeps
set status = 'running', holder = %(holder)s, lease_until = clock_timestamp() + %(lease)s, started_at = %(now)s
where tenant = %(tenant)s and status in ('due', 'running') and due_at <= %(by)s
    and (lease_until is null or lease_until <= clock_timestamp())
returning id, due_at
"""

_END = """
update recuerdo.sweeps
set status = %(status)s, ended_at = %(now)s, evidence = %(evidence)s, proposals = %(proposals)s, error = %(error)s,
    holder = null, lease_until = null
where tenant = %(tenant)s and id = %(id)s and holder = %(holder)s
"""

# One step for each tenant, not for each piece: the index gives the next one.
_TENANTS = """
with recursive known (tenant) as (
    (select tenant from recuerdo.evidence order by tenant limit 1)
    union all
    select (select e.tenant from recuerdo.evidence e where e.tenant > known.tenant order by e.tenant limit 1)
    from known where known.tenant is not null
)
select tenant from known where tenant is not null
union select tenant from recuerdo.sweeps where status in ('due', 'running') order by tenant
"""


@dataclass(frozen=True)
class Sweep:
    """A sweep, or the next one (``due``). ``evidence`` counts the pieces that it looked at, ``error`` is a kind."""

    id: int
    due_at: datetime
    status: SweepStatus
    started_at: datetime | None
    ended_at: datetime | None
    evidence: int | None
    proposals: int | None
    error: str | None


@dataclass(frozen=True)
class SweepClaim:
    """A sweep that is this worker's until its lease ends."""

    id: int
    due_at: datetime
    holder: UUID


class Sweeps:
    """The sweeps of one tenant. ``now`` is the worker's clock (aware); leases go by the database's own."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def prepare(self, now: datetime) -> None:
        """See to it that one is due within a period: the first one a whole period after the first look."""
        latest = require_aware(now) + SWEEP_PERIOD
        async with self._database.tenant(self._tenant) as connection:
            await self._enter(connection, latest)
            await connection.execute(_BRING_FORWARD, {"tenant": self._tenant, "latest": latest})

    async def claim(
        self, now: datetime, *, lease: timedelta = SWEEP_LEASE, early: bool = False
    ) -> SweepClaim | None:
        """Take the sweep that is due, with ``early`` the next one; None: there is none, or another worker has it."""
        holder = uuid4()
        values: dict[str, Any] = {"tenant": self._tenant, "holder": holder, "lease": lease, "now": now}
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(_CLAIM, {**values, "by": now + SWEEP_PERIOD if early else now})
            row = await cursor.fetchone()
        return SweepClaim(row["id"], row["due_at"], holder) if row else None

    async def complete(self, claim: SweepClaim, now: datetime, *, evidence: int, proposals: int) -> None:
        """The sweep has run. The next one is due at the next hour of the grid."""
        found = {"status": "done", "evidence": evidence, "proposals": proposals, "error": None}
        await self._end(claim, now, found)

    async def fail(self, claim: SweepClaim, now: datetime, error: str) -> None:
        """The sweep broke off with an error of that kind; the next one looks at the same evidence."""
        found = {"status": "failed", "evidence": None, "proposals": None, "error": error}
        await self._end(claim, now, found)

    async def list(self, *, limit: int = 20) -> Sequence[Sweep]:
        """Sweeps, newest first; the one that is due next is among them."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(Sweep))
            await cursor.execute(
                f"select {_COLUMNS} from recuerdo.sweeps where tenant = %s order by id desc limit %s",
                (self._tenant, limit),
            )
            return await cursor.fetchall()

    async def _end(self, claim: SweepClaim, now: datetime, found: dict[str, Any]) -> None:
        """Nothing when the lease was lost: another worker ends it."""
        values = {"tenant": self._tenant, "id": claim.id, "holder": claim.holder, "now": now}
        async with self._database.tenant(self._tenant) as connection:
            ended = await connection.execute(_END, {**values, **found})
            if ended.rowcount:
                await self._enter(connection, next_sweep(claim.due_at, now))

    async def _enter(self, connection: Connection, due_at: datetime) -> None:
        await connection.execute(_ENTER, {"tenant": self._tenant, "due_at": due_at})


def next_sweep(due_at: datetime, now: datetime) -> datetime:
    """The first hour after ``now`` on the grid of ``due_at``: those that were missed are not made up one by one.

    A sweep that ran before it was due leaves the grid as it is.
    """
    if now < due_at:
        return due_at
    return due_at + ((now - due_at) // SWEEP_PERIOD + 1) * SWEEP_PERIOD


async def tenants_with_evidence(database: Database) -> list[str]:
    """Every tenant that there is evidence of, or a sweep to come: for the worker."""
    query: LiteralString = _TENANTS
    async with database.operator() as connection:
        cursor = await connection.execute(query)
        return [row["tenant"] for row in await cursor.fetchall()]
