"""The worker: looks after what is kept, for every tenant. All its work is found in the tables' own state."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from recuerdo.state.errors import StoreError
from recuerdo.stores.chroma import EmbedderChanged, VectorIndex, VectorItem
from recuerdo.stores.embeddings import Embedder
from recuerdo.stores.postgres.checkpoints import prune, remove_leftovers
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.evidence import delete_expired_evidence
from recuerdo.stores.postgres.jobs import JOB_LEASE, Schedule
from recuerdo.stores.postgres.memories import (
    VectorDeletion,
    WaitingVector,
    deleted_from_index,
    mark_all_waiting,
    mark_indexed,
    store_embeddings,
    waiting_deletions,
    waiting_vectors,
)
from recuerdo.stores.postgres.retention import delete_expired
from recuerdo.stores.postgres.store_items import delete_expired_items
from recuerdo.stores.postgres.turns import fail_abandoned
from recuerdo.stores.reindex import restore_lost

_log = logging.getLogger(__name__)

Collection = tuple[str, str]
"""Tenant and assistant: what shares a collection of the index."""

VectorLike = TypeVar("VectorLike", WaitingVector, VectorDeletion)

ACTOR = "worker"
"""Who did it, in the audit."""

_PERIODS = {
    "abandoned_turns": timedelta(minutes=1),
    "vector_deletions": timedelta(seconds=30),
    "lost_vectors": timedelta(hours=1),
    "deleted_vectors": timedelta(hours=1),
    "vectors": timedelta(seconds=30),
    "leftovers": timedelta(minutes=10),
    "checkpoints": timedelta(hours=1),
}
# C-33: reads check the expiry themselves; the sweep only deletes.
_EXPIRY_PERIOD = timedelta(hours=6)
_BATCH = 256
_BATCHES_PER_RUN = 40
_IDLE_SECONDS = 5.0


@dataclass(frozen=True)
class Job:
    """Work of another room's that the worker does. ``name`` tells it apart in the schedule of all workers."""

    name: str
    period: timedelta
    run: Callable[[datetime], Awaitable[object]]


class Worker:
    """Runs what is due. Any number of workers may run at once: each due job runs in one of them.

    It works across tenants, on behalf of the operator. ``tenant`` narrows what goes by the clock, the
    deletion of what has expired, and ``spared`` names tenants that it leaves alone: what lives on one clock must
    not be swept by another. ``jobs`` are those of other rooms.
    """

    def __init__(
        self,
        database: Database,
        index: VectorIndex,
        embedder: Embedder,
        clock: Callable[[], datetime],
        *,
        tenant: str | None = None,
        spared: Sequence[str] = (),
        lease: timedelta = JOB_LEASE,
        jobs: Sequence[Job] = (),
    ) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._lease = lease
        expired = f"expired:{tenant}" if tenant else "expired"
        added = {job.name: job.period for job in jobs}
        self._schedule = Schedule(database, {**_PERIODS, expired: _EXPIRY_PERIOD, **added})
        self._jobs: dict[str, Callable[[datetime], Awaitable[object]]] = {
            "abandoned_turns": lambda now: fail_abandoned(database, now),
            "vector_deletions": self._delete_vectors,
            "lost_vectors": lambda now: restore_lost(database, index, embedder, now),
            "vectors": lambda now: index_waiting(database, index, embedder),
            "deleted_vectors": lambda now: _purge(index),
            "leftovers": lambda now: remove_leftovers(database),
            "checkpoints": lambda now: prune(database),
            expired: lambda now: _delete_expired(database, now, tenant, spared),
            **{job.name: job.run for job in jobs},
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Run what is due until ``stop`` is set; a job that has begun is ended first."""
        while not stop.is_set():
            try:
                await self.run_due(self._clock())
            except Exception as error:
                # The database is away, for instance: the next round may find it again.
                _log.warning("worker: %s; trying again", type(error).__name__)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _IDLE_SECONDS)

    async def run_due(self, now: datetime) -> list[str]:
        """Run every job that is due at ``now`` and that no other worker holds. Returns their names.

        A job that fails is logged and tried again after its period; it does not stop the others.
        """
        await self._schedule.prepare(now)
        done = []
        while claim := await self._schedule.claim(now, lease=self._lease):
            try:
                await self._jobs[claim.name](now)
            except Exception as error:
                # Only the kind of error: its text may quote what users wrote.
                _log.warning("worker: job %s failed: %s", claim.name, type(error).__name__)
            await self._schedule.complete(claim, now)
            done.append(claim.name)
        return done

    async def _delete_vectors(self, now: datetime) -> None:
        for _ in range(_BATCHES_PER_RUN):
            waiting = await waiting_deletions(self._database, limit=_BATCH)
            if not waiting or self._index.unavailable:
                return
            for (tenant, assistant), group in _by_collection(waiting):
                await self._index.delete(tenant, assistant, [str(vector.id) for vector in group])
            await deleted_from_index(self._database, waiting)


async def _delete_expired(
    database: Database, now: datetime, tenant: str | None, spared: Sequence[str]
) -> None:
    await delete_expired(database, now, actor=ACTOR, tenant=tenant, spared=spared)
    await delete_expired_items(database, now, tenant=tenant, spared=spared)
    await delete_expired_evidence(database, now, tenant=tenant, spared=spared)


async def _purge(index: VectorIndex) -> None:
    if not index.unavailable:
        await index.purge()


async def index_waiting(database: Database, index: VectorIndex, embedder: Embedder) -> None:
    """Bring what waits into the index, at most some 10,000 vectors. Raises StoreError as ``index_vectors``.

    A collection that the index does not take does not hold up the others.
    """
    failed: dict[Collection, StoreError] = {}
    for _ in range(_BATCHES_PER_RUN):
        waiting = await waiting_vectors(database, limit=_BATCH, left_out=failed)
        if not waiting or index.unavailable:
            break
        failed |= await _write(database, index, await _embedded(database, embedder, waiting))
    for error in failed.values():
        raise error


async def index_at_once(
    database: Database, index: VectorIndex, embedder: Embedder, written: Sequence[WaitingVector]
) -> None:
    """Bring what was just written into the index when it can be; else it waits for the worker."""
    if not written:
        return
    try:
        await index_vectors(database, index, embedder, written)
    except StoreError as error:
        _log.warning("vectors wait for the worker: %s", type(error).__name__)


async def index_vectors(
    database: Database, index: VectorIndex, embedder: Embedder, waiting: Sequence[WaitingVector]
) -> int:
    """Bring waiting memories into the index; embed those that have no vector of this embedder.

    For the end of a turn and for the worker alike. Returns how many are in the index now: 0 while it is
    unavailable, they go on waiting. Raises StoreError when the index or the embedder does not answer.
    """
    if index.unavailable or not waiting:
        return 0
    ready = await _embedded(database, embedder, waiting)
    for error in (await _write(database, index, ready)).values():
        raise error
    return len(ready)


async def _write(
    database: Database, index: VectorIndex, ready: Sequence[WaitingVector]
) -> dict[Collection, StoreError]:
    """Write into every collection that takes its vectors; returns those that do not, and why."""
    failed: dict[Collection, StoreError] = {}
    written: list[WaitingVector] = []
    for collection, group in _by_collection(ready):
        try:
            await _write_collection(database, index, collection, group)
            written += group
        except StoreError as error:
            failed[collection] = error
    # What was forgotten while its vector was being written.
    for (tenant, assistant), gone in _by_collection(await mark_indexed(database, written)):
        await index.delete(tenant, assistant, [str(vector.id) for vector in gone])
    return failed


async def _write_collection(
    database: Database, index: VectorIndex, collection: Collection, group: Sequence[WaitingVector]
) -> None:
    tenant, assistant = collection
    items = [VectorItem(str(v.id), v.user, v.embedding) for v in group if v.embedding is not None]
    try:
        await index.upsert(tenant, assistant, items)
    except EmbedderChanged:
        # The index was another model's. Everything in it is written anew, this batch first.
        await index.reset(tenant, assistant)
        await mark_all_waiting(database, tenant, assistant, group[0].since)
        await index.upsert(tenant, assistant, items)


async def _embedded(
    database: Database, embedder: Embedder, waiting: Sequence[WaitingVector]
) -> list[WaitingVector]:
    # One model of a name may give vectors of several lengths.
    dimensions = embedder.dimensions or len(await embedder.embed_query(waiting[0].text))
    missing = [
        v
        for v in waiting
        if v.embedding is None or v.embedder != embedder.name or len(v.embedding) != dimensions
    ]
    if not missing:
        return list(waiting)
    embeddings = await embedder.embed([vector.text for vector in missing])
    made = {
        vector.id: replace(vector, embedding=embedding, embedder=embedder.name)
        for vector, embedding in zip(missing, embeddings, strict=True)
    }
    await store_embeddings(database, list(made.values()))
    return [made.get(vector.id, vector) for vector in waiting]


def _by_collection(
    vectors: Iterable[VectorLike],
) -> Iterable[tuple[Collection, list[VectorLike]]]:
    """Group by collection."""
    groups: defaultdict[Collection, list[VectorLike]] = defaultdict(list)
    for vector in vectors:
        groups[vector.tenant, vector.assistant].append(vector)
    return groups.items()
