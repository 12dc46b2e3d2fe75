"""The schedule of the worker: which job is due, and that only one worker runs it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from recuerdo.stores.postgres.database import Database

JOB_LEASE = timedelta(minutes=5)
"""How long a worker may take for one job before another one takes it over."""

_CLAIM = """
update recuerdo.jobs set lease_holder = %(holder)s, lease_until = clock_timestamp() + %(lease)s
where name = (
    select name from recuerdo.jobs
    where name = any(%(names)s) and due_at <= %(now)s
        and (lease_until is null or lease_until <= clock_timestamp())
    order by due_at, name limit 1 for update skip locked
)
returning name
"""


@dataclass(frozen=True)
class Claim:
    """A job that is this worker's until its lease ends."""

    name: str
    holder: UUID


class Schedule:
    """The jobs table. ``now`` is the worker's clock (aware); leases go by the database's own."""

    def __init__(self, database: Database, periods: Mapping[str, timedelta]) -> None:
        self._database = database
        self._periods = periods

    async def prepare(self, now: datetime) -> None:
        """Enter jobs that are not in the table yet; they are due at once.

        So is one that is due later than its period allows: the clock has gone back since.
        """
        values = {"now": now, "names": list(self._periods), "periods": list(self._periods.values())}
        async with self._database.connection() as connection:
            await connection.execute(
                "insert into recuerdo.jobs (name, due_at)"
                " select name, %(now)s from unnest(%(names)s::text[]) as job (name) on conflict do nothing",
                values,
            )
            await connection.execute(
                "update recuerdo.jobs job set due_at = %(now)s"
                " from unnest(%(names)s::text[], %(periods)s::interval[]) as known (name, period)"
                " where job.name = known.name and job.due_at > %(now)s + known.period",
                values,
            )

    async def claim(self, now: datetime, *, lease: timedelta = JOB_LEASE) -> Claim | None:
        """Take the job that has been due longest and that no other worker holds; None when there is none."""
        holder = uuid4()
        async with self._database.connection() as connection:
            cursor = await connection.execute(
                _CLAIM, {"holder": holder, "lease": lease, "names": list(self._periods), "now": now}
            )
            row = await cursor.fetchone()
            return Claim(row["name"], holder) if row else None

    async def complete(self, claim: Claim, now: datetime) -> None:
        """The job has run; it is due again one period after ``now``. Nothing when the lease was lost."""
        async with self._database.connection() as connection:
            await connection.execute(
                "update recuerdo.jobs set due_at = %s, last_run_at = %s,"
                " lease_holder = null, lease_until = null where name = %s and lease_holder = %s",
                (now + self._periods[claim.name], now, claim.name, claim.holder),
            )
