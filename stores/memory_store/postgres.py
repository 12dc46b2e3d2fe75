"""Memories of users in PostgreSQL, with their vectors in an index that can be rebuilt (ET-2)."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recuerdo.state.errors import StoreError
from recuerdo.stores.chroma import VectorIndex
from recuerdo.stores.embeddings import Embedder
from recuerdo.stores.postgres.arguments import checked_page, checked_query
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import (
    Memories,
    MemoryBatch,
    NewMemory,
    NewText,
    StoredMemory,
    WaitingVector,
)
from recuerdo.stores.postgres.memories.rows import checked_memory, checked_text
from recuerdo.stores.postgres.revisions import Revision
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import without_sensitive
from recuerdo.stores.recall.search import Recall, Recalled
from recuerdo.stores.worker import index_at_once

_log = logging.getLogger(__name__)


class PostgresMemories:
    """The memories that one assistant of one tenant has of its users: see ``UserMemories``.

    The vector follows at once when it can, else the worker writes it; the text is found by its words meanwhile.
    What was deleted is not found at once, in any process: whatever an index says is read again by its row.
    """

    def __init__(
        self, database: Database, index: VectorIndex, embedder: Embedder, tenant: str, assistant: str
    ) -> None:
        """Raises ScopeError when the tenant or the assistant is missing (C-11)."""
        require_scope(assistant=assistant)
        self._memories = Memories(database, tenant)
        self._database = database
        self._index = index
        self._embedder = embedder
        self._tenant = tenant
        self._assistant = assistant

    async def add(self, user: str, memory: NewMemory, at: datetime) -> StoredMemory:
        """See UserMemories."""
        (memory,) = await self._embedded([checked_memory(memory)])
        written = await self._memories.add(self._assistant, user, memory, at)
        await self._index_at_once([written])
        (stored,) = await self._memories.get([written.id], self._assistant, user, at)
        return stored

    async def write(self, user: str, batch: MemoryBatch, at: datetime) -> None:
        """See UserMemories. Texts are embedded in one call, and their vectors follow in one."""
        added = [checked_memory(memory) for memory in batch.added]
        changed = await self._with_vectors([checked_text(new.text) for new in batch.updated.values()])
        batch = replace(
            batch,
            added=await self._embedded(added),
            updated=dict(zip(batch.updated, changed, strict=True)),
        )
        written = await self._memories.write(self._assistant, user, batch, at)
        await self._index_at_once(written)
        replaced = (key for memory in added for key in memory.supersedes)
        await self._delete_vectors([*batch.forgotten, *replaced])

    async def noted(
        self, user: str, field: str, values: Sequence[str], now: datetime
    ) -> Sequence[StoredMemory]:
        """See UserMemories."""
        return await self._memories.noted(self._assistant, user, field, values, now)

    async def get(self, user: str, ids: Sequence[UUID], now: datetime) -> Sequence[StoredMemory]:
        """See UserMemories."""
        return await self._memories.get(ids, self._assistant, user, now)

    async def list(
        self, user: str, now: datetime, *, limit: int = 100, offset: int = 0, kind: str | None = None
    ) -> Sequence[StoredMemory]:
        """See UserMemories."""
        return await self._memories.all(self._assistant, user, now, limit=limit, offset=offset, kind=kind)

    async def search(self, user: str, query: str, now: datetime, limit: int) -> Sequence[Recalled]:
        """See UserMemories."""
        checked_page(limit)
        recall = Recall(self._database, self._index, self._embedder, self._tenant)
        return await recall.search(self._assistant, user, checked_query(query), now, limit)

    async def update(self, user: str, memory_id: UUID, text: str, at: datetime) -> StoredMemory | None:
        """See UserMemories."""
        (new,) = await self._with_vectors([checked_text(text)])
        written = await self._memories.update(
            memory_id, self._assistant, user, text, at, embedding=new.embedding, embedder=new.embedder
        )
        return await self._stored(written, user, at)

    async def confirm(self, user: str, memory_id: UUID, at: datetime) -> bool:
        """See UserMemories."""
        return await self._memories.confirm(memory_id, self._assistant, user, at)

    async def supersede(self, user: str, memory_id: UUID, by: NewMemory, at: datetime) -> StoredMemory | None:
        """See UserMemories."""
        (by,) = await self._embedded([checked_memory(by)])
        written = await self._memories.supersede(memory_id, self._assistant, user, by, at)
        await self._delete_vectors([memory_id] if written else [])
        return await self._stored(written, user, at)

    async def forget(self, user: str, memory_id: UUID, at: datetime, *, published: bool = False) -> bool:
        """See UserMemories."""
        gone = await self._memories.forget(memory_id, self._assistant, user, at, published=published)
        await self._delete_vectors([memory_id] if gone else [])
        return gone

    async def history(self, user: str, memory_id: UUID, now: datetime) -> Sequence[Revision]:
        """See UserMemories."""
        return await self._memories.history(memory_id, self._assistant, user, now)

    async def count(self, user: str, now: datetime) -> int:
        """See UserMemories."""
        return await self._memories.count(self._assistant, user, now)

    async def _stored(self, written: WaitingVector | None, user: str, at: datetime) -> StoredMemory | None:
        if written is None:
            return None
        await self._index_at_once([written])
        return next(iter(await self._memories.get([written.id], self._assistant, user, at)), None)

    async def _embedded(self, memories: Sequence[NewMemory]) -> Sequence[NewMemory]:
        """Those that come without a vector with one, where there can be one."""
        without = [memory for memory in memories if memory.embedding is None]
        made = iter(await self._with_vectors([memory.text for memory in without]))
        return [memory if memory.embedding is not None else _with(memory, next(made)) for memory in memories]

    async def _with_vectors(self, texts: Sequence[str]) -> Sequence[NewText]:
        """The texts with their vectors. Without one: the embedder is away, or the text must not reach it.

        Then what is stored waits for the worker.
        """
        clean = await without_sensitive(list(texts))
        allowed = [text for text, cleaned in zip(texts, clean, strict=True) if cleaned == text]
        vectors = await self._vectors(list(dict.fromkeys(allowed)))
        name = self._embedder.name
        return [NewText(text, vectors[text], name) if text in vectors else NewText(text) for text in texts]

    async def _vectors(self, texts: Sequence[str]) -> dict[str, Sequence[float]]:
        try:
            embeddings = await self._embedder.embed(list(texts)) if texts else []
        except StoreError as error:
            _log.warning("memories wait for their vectors: %s", type(error).__name__)
            return {}
        return dict(zip(texts, embeddings, strict=True))

    async def _index_at_once(self, written: Sequence[WaitingVector]) -> None:
        await index_at_once(self._database, self._index, self._embedder, written)

    async def _delete_vectors(self, ids: Sequence[UUID]) -> None:
        """At once when it can; else the worker does it, and until then no row gives them."""
        if not ids or self._index.unavailable:
            return
        try:
            await self._index.delete(self._tenant, self._assistant, [str(memory_id) for memory_id in ids])
        except StoreError as error:
            _log.warning("a vector's deletion waits for the worker: %s", type(error).__name__)


def _with(memory: NewMemory, new: NewText) -> NewMemory:
    return replace(memory, embedding=new.embedding, embedder=new.embedder)
