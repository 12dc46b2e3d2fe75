import asyncio
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import Sentence
from recuerdo.stores.chroma import EmbedderChanged, NoIndex, VectorItem, open_index
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.jobs import Schedule
from recuerdo.stores.postgres.memories import Memories, NewMemory, waiting_vectors
from recuerdo.stores.postgres.turns import NewTurn, TurnLog
from recuerdo.stores.worker import Worker

NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)
JOBS = {
    "abandoned_turns",
    "vector_deletions",
    "lost_vectors",
    "deleted_vectors",
    "vectors",
    "leftovers",
    "checkpoints",
    "expired",
}


class Index(NoIndex):
    """Remembers what it was told."""

    unavailable = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.vectors: dict[str, tuple[str, str, str, list[float]]] = {}
        self.changed = False
        self.broken = False
        self.broken_tenants: set[str] = set()
        self.purged = 0
        self.written = asyncio.Event()

    async def upsert(self, tenant: str, assistant: str, items: Sequence[VectorItem]) -> None:
        if self.broken or tenant in self.broken_tenants:
            raise StoreError(Sentence("no", "no"))
        if self.changed:
            raise EmbedderChanged(Sentence("otro", "other"))
        for item in items:
            self.vectors[item.id] = (tenant, assistant, item.user, list(item.embedding))
        self.written.set()

    async def delete(self, tenant: str, assistant: str, ids: Sequence[str]) -> None:
        for memory_id in ids:
            self.vectors.pop(memory_id, None)

    async def count(self, tenant: str, assistant: str) -> int:
        return sum(vector[:2] == (tenant, assistant) for vector in self.vectors.values())

    async def reset(self, tenant: str, assistant: str) -> None:
        self.changed = False
        self.vectors = {k: v for k, v in self.vectors.items() if v[:2] != (tenant, assistant)}

    async def purge(self) -> None:
        self.purged += 1


class Embedder:
    name = "lengths"
    dimensions = 2

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        return (await self.embed([text]))[0]


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
def memories(database: Database) -> Memories:
    return Memories(database, "t1")


def worker_of(database: Database, index: NoIndex, **changes: Any) -> Worker:
    return Worker(database, index, Embedder(), lambda: NOW, **changes)


async def add(memories: Memories, text: str = "hola", **fields: Any) -> UUID:
    written = await memories.add("A1", "u1", NewMemory("qa", text, "es", 1.0, **fields), NOW)
    return written.id


async def test_due_jobs_run_once_and_then_wait_for_their_period(database: Database, index: Index) -> None:
    worker = worker_of(database, index)
    assert set(await worker.run_due(NOW)) == JOBS
    assert await worker.run_due(NOW) == []
    assert set(await worker.run_due(NOW + timedelta(seconds=30))) == {"vectors", "vector_deletions"}


async def test_jobs_run_on_after_the_clock_went_back(database: Database, index: Index) -> None:
    await worker_of(database, index).run_due(NOW)
    earlier = NOW - timedelta(days=30)
    assert set(await worker_of(database, index).run_due(earlier)) == JOBS
    assert await worker_of(database, index).run_due(earlier) == []


async def test_two_workers_at_one_tick_share_the_jobs(database: Database, index: Index) -> None:
    workers = [worker_of(database, index) for _ in range(2)]
    ran = await asyncio.gather(*(worker.run_due(NOW) for worker in workers))
    assert sorted([*ran[0], *ran[1]]) == sorted(JOBS)


async def test_waiting_vectors_are_indexed(database: Database, index: Index, memories: Memories) -> None:
    with_vector = await add(memories, embedding=[0.5, 0.5], embedder="lengths")
    without = await add(memories, "cuatro")
    of_another_model = await add(memories, "tres", embedding=[9.0, 9.0, 9.0], embedder="old")
    await worker_of(database, index).run_due(NOW)
    assert index.vectors == {
        str(with_vector): ("t1", "A1", "u1", [0.5, 0.5]),
        str(without): ("t1", "A1", "u1", [1.0, 6.0]),
        str(of_another_model): ("t1", "A1", "u1", [1.0, 4.0]),
    }
    assert await waiting_vectors(database, limit=9) == []
    # What was embedded is kept: a rebuild need not embed again, and the exact scan finds it.
    assert len(await memories.nearest("A1", "u1", [1.0, 1.0], "lengths", NOW, 9)) == 3


async def test_vectors_wait_while_the_index_is_away(database: Database, memories: Memories) -> None:
    memory = await add(memories)
    await worker_of(database, NoIndex(Sentence("ocupado", "busy"))).run_due(NOW)
    assert [vector.id for vector in await waiting_vectors(database, limit=9)] == [memory]
    await memories.forget(memory, "A1", "u1", NOW)
    index = Index()
    index.vectors[str(memory)] = ("t1", "A1", "u1", [])
    await worker_of(database, index).run_due(NOW + timedelta(minutes=1))
    assert index.vectors == {}


async def test_fault_11_index_of_another_embedder_is_written_anew(
    database: Database, index: Index, memories: Memories
) -> None:
    old = await add(memories, "viejo")
    worker = worker_of(database, index)
    await worker.run_due(NOW)
    new = await add(memories, "nuevo")
    index.changed = True
    await worker.run_due(NOW + timedelta(minutes=1))
    assert set(index.vectors) == {str(old), str(new)}


class Longer(Embedder):
    """The same model by name, asked for longer vectors."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 2.0, float(len(text))] for text in texts]


@pytest.mark.parametrize("told", [3, 0])
async def test_fault_11_the_same_name_with_other_dimensions_is_written_anew(
    database: Database, tmp_path: Path, memories: Memories, told: int
) -> None:
    """A real index, which refuses vectors of another length; ``told`` 0: the length shows with the first vector."""
    old = await add(memories, "viejo")
    first = await open_index(tmp_path / "chroma", Embedder())
    await Worker(database, first, Embedder(), lambda: NOW).run_due(NOW)
    assert len(await first.query("t1", "A1", "u1", [1.0, 5.0], 9)) == 1
    await first.close()
    new = await add(memories, "nuevo")
    embedder = Longer(told)
    index = await open_index(tmp_path / "chroma", embedder)
    worker = Worker(database, index, embedder, lambda: NOW)
    for minutes in (60, 61, 62):
        await worker.run_due(NOW + timedelta(minutes=minutes))
    found = {hit.id for hit in await index.query("t1", "A1", "u1", [1.0, 2.0, 5.0], 9)}
    await index.close()
    assert found == {str(old), str(new)}
    assert await waiting_vectors(database, limit=9) == []
    assert len(await memories.nearest("A1", "u1", [1.0, 2.0, 3.0], "lengths", NOW, 9)) == 2


async def test_fault_11_after_a_change_of_embedder_nothing_new_need_be_written(
    database: Database, index: Index, memories: Memories
) -> None:
    memory = await add(memories, "uno")
    await worker_of(database, index).run_due(NOW)
    worker = Worker(database, index, Longer(3), lambda: NOW)
    for minutes in (60, 61):
        await worker.run_due(NOW + timedelta(minutes=minutes))
    assert index.vectors[str(memory)][3] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "damaged", ["0102030405", "", "0000c07f0000c07f", "0000000000000000", "0000807f0000807f"]
)
async def test_or_6_a_damaged_vector_holds_up_nobody_and_is_made_anew(
    database: Database, index: Index, memories: Memories, damaged: str
) -> None:
    bad = await add(memories, "uno", embedding=[0.5, 0.5], embedder="lengths")
    other = Memories(database, "t2")
    apart = (await other.add("A1", "u1", NewMemory("qa", "tres", "es", 1.0), NOW)).id
    async with database.operator() as connection:
        await connection.execute(
            "update recuerdo.user_memory set embedding = decode(%s, 'hex') where id = %s", (damaged, bad)
        )
    await worker_of(database, index).run_due(NOW)
    assert {key: vector[3] for key, vector in index.vectors.items()} == {
        str(bad): [1.0, 3.0],
        str(apart): [1.0, 4.0],
    }
    assert await waiting_vectors(database, limit=9) == []
    assert len(await memories.nearest("A1", "u1", [1.0, 3.0], "lengths", NOW, 9)) == 1


async def test_a_collection_that_the_index_does_not_take_holds_up_no_other(
    database: Database, index: Index, memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recuerdo.stores.worker._BATCH", 2)
    waits = {await add(memories, text) for text in ("uno", "dos", "tres")}
    other = Memories(database, "t2")
    apart = (await other.add("A1", "u1", NewMemory("qa", "cuatro", "es", 1.0), NOW)).id
    index.broken_tenants = {"t1"}
    await worker_of(database, index).run_due(NOW)
    assert set(index.vectors) == {str(apart)}
    assert {vector.id for vector in await waiting_vectors(database, limit=9)} == waits


async def test_im_43_the_disk_is_purged_every_hour(database: Database, index: Index) -> None:
    worker = worker_of(database, index)
    await worker.run_due(NOW)
    await worker.run_due(NOW + timedelta(minutes=59))
    assert index.purged == 1
    await worker.run_due(NOW + timedelta(hours=1))
    assert index.purged == 2
    assert "deleted_vectors" in await worker_of(database, NoIndex(Sentence("no", "no"))).run_due(
        NOW + timedelta(hours=2)
    )


async def test_c_10_an_index_that_was_lost_is_written_anew_by_itself(
    database: Database, index: Index, memories: Memories
) -> None:
    kept = [await add(memories, "uno"), await add(memories, "dos")]
    other = Memories(database, "t2")
    apart = (await other.add("A1", "u1", NewMemory("qa", "tres", "es", 1.0), NOW)).id
    worker = worker_of(database, index)
    await worker.run_due(NOW)
    before = dict(index.vectors)
    assert set(before) == {str(memory) for memory in (*kept, apart)}
    del index.vectors[str(kept[0])], index.vectors[str(kept[1])]
    await worker.run_due(NOW + timedelta(hours=1))
    await worker.run_due(NOW + timedelta(hours=1, minutes=1))
    assert index.vectors == before
    await worker.run_due(NOW + timedelta(hours=2))
    assert await waiting_vectors(database, limit=9) == []


async def test_rf_32_c_33_expired_memories_go_with_their_vectors(
    database: Database, index: Index, memories: Memories
) -> None:
    memory = await add(memories)
    worker = worker_of(database, index)
    await worker.run_due(NOW)
    assert str(memory) in index.vectors
    day_90 = NOW + timedelta(days=90)
    await worker.run_due(day_90)
    await worker.run_due(day_90 + timedelta(minutes=1))
    assert index.vectors == {}
    async with database.connection() as connection:
        for table in ("user_memory", "vector_deletions"):
            rows = await (await connection.execute(f"select 1 from recuerdo.{table}")).fetchall()
            assert rows == []


async def test_c_33_im_53_expired_at_half_past_twelve_is_read_no_more_and_deleted_at_six(
    database: Database, index: Index, memories: Memories
) -> None:
    midnight = datetime(2025, 12, 5, tzinfo=UTC)
    half_past = midnight + timedelta(minutes=30)
    low = NewMemory("note", "Viaja en mayo", "es")
    await memories.add("A1", "u1", low, half_past - timedelta(days=7))
    worker = worker_of(database, index)

    async def at(now: datetime) -> tuple[int, int]:
        """How many are read, and how many are there, once the worker has looked."""
        await worker.run_due(now)
        async with database.connection() as connection:
            cursor = await connection.execute("select 1 from recuerdo.user_memory")
            rows = await cursor.fetchall()
        return len(await memories.all("A1", "u1", now)), len(rows)

    second = timedelta(seconds=1)
    assert await at(midnight) == (1, 1)
    assert await at(half_past - second) == (1, 1)
    assert await at(half_past + timedelta(minutes=1)) == (0, 1)
    assert await at(midnight + timedelta(hours=6) - second) == (0, 1)
    assert await at(midnight + timedelta(hours=6)) == (0, 0)


async def test_abandoned_turns_are_failed(database: Database, index: Index) -> None:
    log = TurnLog(database, "t1")
    turn = NewTurn(uuid4(), "c", "A1", "u1", None, "live", NOW, "es", "m", "hola")
    await log.begin(turn, lease=timedelta(seconds=-1), wait=timedelta())
    await worker_of(database, index).run_due(NOW)
    assert [message.status for message in await log.messages("c", "u1")] == ["failed"]


async def test_failing_job_is_logged_without_texts_and_stops_no_other(
    database: Database, index: Index, memories: Memories, caplog: pytest.LogCaptureFixture
) -> None:
    await add(memories, "un texto muy privado")
    index.broken = True
    worker = worker_of(database, index)
    assert set(await worker.run_due(NOW)) == JOBS
    assert "job vectors failed: StoreError" in caplog.text
    assert "privado" not in caplog.text
    index.broken = False
    await worker.run_due(NOW + timedelta(minutes=1))
    assert len(index.vectors) == 1


KILLED = """
import asyncio, os, sys
from datetime import datetime, timedelta
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.jobs import Schedule
async def main():
    database = await Database.open(sys.argv[1])
    schedule = Schedule(database, {"vectors": timedelta(seconds=30)})
    now = datetime.fromisoformat(sys.argv[2])
    await schedule.prepare(now)
    assert await schedule.claim(now, lease=timedelta(seconds=float(sys.argv[3])))
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""


@pytest.mark.parametrize(("lease", "runs_again"), [(0.0, True), (600.0, False)])
async def test_job_of_a_killed_worker_runs_again_after_its_lease(
    database: Database, database_url: str, index: Index, lease: float, runs_again: bool
) -> None:
    command = [sys.executable, "-c", KILLED, database_url, NOW.isoformat(), str(lease)]
    killed = await asyncio.to_thread(subprocess.run, command, timeout=60, check=False)
    assert killed.returncode == -9
    assert ("vectors" in await worker_of(database, index).run_due(NOW)) is runs_again


async def test_worker_that_lost_its_lease_does_not_complete_the_job(database: Database) -> None:
    schedule = Schedule(database, {"vectors": timedelta(seconds=30)})
    await schedule.prepare(NOW)
    late = await schedule.claim(NOW, lease=timedelta(seconds=-1))
    second = await schedule.claim(NOW)
    assert late is not None
    assert second is not None
    await schedule.complete(late, NOW)
    assert await schedule.claim(NOW) is None
    await schedule.complete(second, NOW)
    assert await schedule.claim(NOW + timedelta(seconds=30)) is not None


async def test_run_works_until_it_is_stopped(database: Database, index: Index, memories: Memories) -> None:
    await add(memories)
    stop = asyncio.Event()
    running = asyncio.create_task(worker_of(database, index).run(stop))
    async with asyncio.timeout(30):
        await index.written.wait()
        stop.set()
        await running


async def test_run_outlives_a_database_that_is_away(
    database: Database, index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    await database.close()
    stop = asyncio.Event()
    running = asyncio.create_task(worker_of(database, index).run(stop))
    await asyncio.sleep(0.1)
    assert not running.done()
    assert "trying again" in caplog.text
    stop.set()
    await running
