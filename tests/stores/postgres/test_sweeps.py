"""When a sweep is due, and that it runs once (OR-23, C-33)."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.evidence import EvidenceLog, NewEvidence, Run
from recuerdo.stores.postgres.sweeps import SweepClaim, Sweeps, next_sweep, tenants_with_evidence
from tests.stores.postgres.conftest import NOW

HOUR = timedelta(hours=1)
MIDNIGHT = datetime(2025, 12, 5, tzinfo=UTC)


async def run(sweeps: Sweeps, now: datetime) -> bool:
    """One look of a worker."""
    await sweeps.prepare(now)
    claim = await sweeps.claim(now)
    if claim:
        await sweeps.complete(claim, now, evidence=3, proposals=1)
    return claim is not None


async def hours(sweeps: Sweeps, first: int, last: int) -> list[int]:
    """The hours in which one ran."""
    return [hour for hour in range(first, last + 1) if await run(sweeps, MIDNIGHT + hour * HOUR)]


@pytest.fixture
def sweeps(database: Database) -> Sweeps:
    return Sweeps(database, "t1")


async def test_or_23_four_sweeps_in_a_day_each_with_a_record(sweeps: Sweeps) -> None:
    assert await hours(sweeps, 0, 24) == [6, 12, 18, 24]
    records = [sweep for sweep in await sweeps.list() if sweep.status == "done"]
    assert [sweep.due_at for sweep in records] == [MIDNIGHT + hour * HOUR for hour in (24, 18, 12, 6)]
    assert all(sweep.evidence == 3 and sweep.proposals == 1 and sweep.ended_at for sweep in records)


async def test_or_23_missed_sweeps_run_once_at_the_start_and_then_on_the_grid(sweeps: Sweeps) -> None:
    assert await hours(sweeps, 0, 7) == [6]
    assert await hours(sweeps, 27, 40) == [27, 30, 36]


async def test_or_23_two_workers_at_one_tick_run_one_sweep(database: Database) -> None:
    await Sweeps(database, "t1").prepare(MIDNIGHT)
    claims = await asyncio.gather(*(Sweeps(database, "t1").claim(MIDNIGHT + 6 * HOUR) for _ in range(8)))
    assert len([claim for claim in claims if claim]) == 1


async def test_or_23_clock_that_goes_back_delays_no_longer_than_a_period(sweeps: Sweeps) -> None:
    assert await hours(sweeps, 0, 12) == [6, 12]
    # Three days earlier.
    assert await hours(sweeps, -60, -40) == [-54, -48, -42]


async def test_sweep_of_a_worker_that_died_is_taken_over(sweeps: Sweeps) -> None:
    await sweeps.prepare(MIDNIGHT)
    dead = await sweeps.claim(MIDNIGHT + 6 * HOUR, lease=timedelta(microseconds=1))
    assert dead is not None
    heir = await sweeps.claim(MIDNIGHT + 6 * HOUR)
    assert heir is not None and heir.id == dead.id
    # Who lost the lease writes nothing.
    await sweeps.complete(dead, MIDNIGHT + 6 * HOUR, evidence=9, proposals=9)
    assert [sweep.status for sweep in await sweeps.list()] == ["running"]
    await sweeps.complete(heir, MIDNIGHT + 6 * HOUR, evidence=1, proposals=0)
    assert [(sweep.status, sweep.evidence) for sweep in await sweeps.list()] == [("due", None), ("done", 1)]


async def test_failed_sweep_is_recorded_with_its_kind_of_error(sweeps: Sweeps) -> None:
    await sweeps.prepare(MIDNIGHT)
    claim = await sweeps.claim(MIDNIGHT + 6 * HOUR)
    assert claim is not None
    await sweeps.fail(claim, MIDNIGHT + 6 * HOUR, "StoreError")
    newest, failed = await sweeps.list()
    assert (failed.status, failed.error) == ("failed", "StoreError")
    assert (newest.status, newest.due_at) == ("due", MIDNIGHT + 12 * HOUR)


async def test_early_sweep_leaves_the_grid(sweeps: Sweeps) -> None:
    await sweeps.prepare(MIDNIGHT)
    claim = await sweeps.claim(MIDNIGHT + HOUR, early=True)
    assert isinstance(claim, SweepClaim)
    assert await sweeps.claim(MIDNIGHT + HOUR, early=True) is None
    await sweeps.complete(claim, MIDNIGHT + HOUR, evidence=0, proposals=0)
    assert await hours(sweeps, 1, 12) == [6, 12]


async def test_tenants_do_not_share_their_sweeps(database: Database) -> None:
    assert await hours(Sweeps(database, "t1"), 0, 6) == [6]
    assert await hours(Sweeps(database, "t2"), 0, 6) == [6]
    assert len(await Sweeps(database, "t2").list()) == 2


async def test_tenants_with_evidence_or_a_sweep_to_come_are_known(database: Database) -> None:
    for tenant in ("b", "c"):
        run_of = Run(turn=_id(tenant), conversation="k", assistant="A1", user="u1")
        pieces = [NewEvidence("tool_used", NOW, run_of, str(n), "get_rates") for n in range(3)]
        await EvidenceLog(database, tenant).write(*pieces)
    await Sweeps(database, "a").prepare(NOW)
    assert await tenants_with_evidence(database) == ["a", "b", "c"]


def test_next_sweep_stays_on_the_grid() -> None:
    assert next_sweep(MIDNIGHT, MIDNIGHT) == MIDNIGHT + 6 * HOUR
    assert next_sweep(MIDNIGHT, MIDNIGHT + 5 * HOUR) == MIDNIGHT + 6 * HOUR
    assert next_sweep(MIDNIGHT, MIDNIGHT + 100 * HOUR) == MIDNIGHT + 102 * HOUR
    assert next_sweep(MIDNIGHT, MIDNIGHT - HOUR) == MIDNIGHT


async def test_sweep_without_a_tenant_or_a_zone_is_refused(database: Database) -> None:
    with pytest.raises(ScopeError):
        Sweeps(database, "")
    with pytest.raises(InputError):
        await Sweeps(database, "t1").prepare(datetime(2025, 12, 5))


def _id(text: str):  # type: ignore[no-untyped-def]
    from uuid import NAMESPACE_URL, uuid5

    return uuid5(NAMESPACE_URL, text)
