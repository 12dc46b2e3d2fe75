"""The vector index written anew from PostgreSQL: on request, or because vectors are missing in it (C-10)."""

from datetime import datetime
from typing import NamedTuple

from recuerdo.stores.chroma import VectorIndex
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import mark_all_waiting


class _Collection(NamedTuple):
    tenant: str
    assistant: str
    vectors: int


async def reindex(database: Database, index: VectorIndex, tenant: str, assistant: str, now: datetime) -> int:
    """Empty an assistant's collection and let its vectors wait for it again. Returns how many wait.

    Nothing is embedded again. Raises StoreError when the index is unavailable: nothing has changed then.
    """
    await index.reset(tenant, assistant)
    return await mark_all_waiting(database, tenant, assistant, now)


async def restore_lost(database: Database, index: VectorIndex, now: datetime) -> int:
    """Write anew every collection with fewer vectors than PostgreSQL says it has. Returns how many were.

    So an index whose folder was deleted, or that was put back from an old copy, mends itself.
    """
    if index.unavailable:
        return 0
    lost = [
        kept
        for kept in await _collections(database)
        if await index.count(kept.tenant, kept.assistant) < kept.vectors
    ]
    for kept in lost:
        await reindex(database, index, kept.tenant, kept.assistant, now)
    return len(lost)


async def _collections(database: Database) -> list[_Collection]:
    """What the index should hold at least."""
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select tenant, assistant, count(*) as vectors from recuerdo.user_memory"
            " where vector_waiting_since is null and active group by tenant, assistant"
        )
        return [_Collection(**row) for row in await cursor.fetchall()]
