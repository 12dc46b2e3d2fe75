"""The vector index written anew from PostgreSQL: on request, or because vectors are missing in it (C-10)
or are another embedder's (fault 11).
"""

from datetime import datetime
from typing import NamedTuple

from recuerdo.stores.chroma import VectorIndex
from recuerdo.stores.embeddings import Embedder
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import mark_all_waiting, mark_others_waiting


class _Collection(NamedTuple):
    tenant: str
    assistant: str
    vectors: int


async def reindex(database: Database, index: VectorIndex, tenant: str, assistant: str, now: datetime) -> int:
    """Empty an assistant's collection and let its vectors wait for it again. Returns how many wait.

    Nothing is embedded again, and nothing of the old collection stays on the disk. Raises StoreError when the
    index is unavailable: nothing has changed then.
    """
    waiting = await _begin_anew(database, index, tenant, assistant, now)
    await index.purge()
    return waiting


async def restore_lost(database: Database, index: VectorIndex, embedder: Embedder, now: datetime) -> int:
    """Write anew every collection with fewer vectors than PostgreSQL says it has. Returns how many were.

    So an index whose folder was deleted, or that was put back from an old copy, mends itself. Vectors that
    another embedder made wait to be made anew.
    """
    if index.unavailable:
        return 0
    await mark_others_waiting(database, embedder.name, embedder.dimensions, now)
    lost = [
        kept
        for kept in await _collections(database)
        if await index.count(kept.tenant, kept.assistant) < kept.vectors
    ]
    for kept in lost:
        await _begin_anew(database, index, kept.tenant, kept.assistant, now)
    return len(lost)


async def _begin_anew(
    database: Database, index: VectorIndex, tenant: str, assistant: str, now: datetime
) -> int:
    await index.reset(tenant, assistant)
    return await mark_all_waiting(database, tenant, assistant, now)


async def _collections(database: Database) -> list[_Collection]:
    """What the index should hold at least."""
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select tenant, assistant, count(*) as vectors from recuerdo.user_memory"
            " where vector_waiting_since is null and active group by tenant, assistant"
        )
        return [_Collection(**row) for row in await cursor.fetchall()]
