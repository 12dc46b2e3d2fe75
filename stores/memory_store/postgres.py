"""Memories of users in PostgreSQL, with their vectors in an index that can be rebuilt (ET-2)."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recuerdo.state.errors import StoreError
from recuerdo.stores.chroma import VectorIndex
from recuerdo.stores.embeddings import Embedder
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import Memories, NewMemory, StoredMemory, WaitingVector
from recuerdo.stores.postgres.memories.rows import checked_memory, checked_text
from recuerdo.stores.postgres.revisions import Revision
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import without_sensitive
from recuerdo.stores.recall.search import Recall, Recalled
from recuerdo.stores.worker import index_vectors

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
        written = await self._memories.add(
            self._assistant, user, await self._embedded(checked_memory(memory)), at
        )
        await self._index_at_once(written)
        (stored,) = await self._memories.get([written.id], self._assistant, user, at)
        return stored

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
        recall = Recall(self._database, self._index, self._embedder, self._tenant)
        return await recall.search(self._assistant, user, query, now, limit)

    async def update(self, user: str, memory_id: UUID, text: str, at: datetime) -> StoredMemory | None:
        """See UserMemories."""
        embedding = await self._embedding(checked_text(text))
        written = await self._memories.update(
            memory_id,
            self._assistant,
            user,
            text,
            at,
            embedding=embedding,
            embedder=self._embedder.name if embedding else None,
        )
        return await self._stored(written, user, at)

    async def confirm(self, user: str, memory_id: UUID, at: datetime) -> bool:
        """See UserMemories."""
        return await self._memories.confirm(memory_id, self._assistant, user, at)

    async def supersede(self, user: str, memory_id: UUID, by: NewMemory, at: datetime) -> StoredMemory | None:
        """See UserMemories."""
        by = await self._embedded(checked_memory(by))
        written = await self._memories.supersede(memory_id, self._assistant, user, by, at)
        await self._delete_vectors([memory_id] if written else [])
        return await self._stored(written, user, at)

    async def forget(self, user: str, memory_id: UUID, at: datetime) -> bool:
        """See UserMemories."""
        gone = await self._memories.forget(memory_id, self._assistant, user, at)
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
        await self._index_at_once(written)
        return next(iter(await self._memories.get([written.id], self._assistant, user, at)), None)

    async def _embedded(self, memory: NewMemory) -> NewMemory:
        if memory.embedding is not None:
            return memory
        embedding = await self._embedding(memory.text)
        return replace(memory, embedding=embedding, embedder=self._embedder.name if embedding else None)

    async def _embedding(self, text: str) -> Sequence[float] | None:
        """None: the embedder is away, or the text must not reach it; then the stored text waits for the worker."""
        if await without_sensitive(text) != text:
            return None
        try:
            (embedding,) = await self._embedder.embed([text])
        except StoreError as error:
            _log.warning("a memory waits for its vector: %s", type(error).__name__)
            return None
        return embedding

    async def _index_at_once(self, written: WaitingVector) -> None:
        try:
            await index_vectors(self._database, self._index, self._embedder, [written])
        except StoreError as error:
            _log.warning("a vector waits for the worker: %s", type(error).__name__)

    async def _delete_vectors(self, ids: Sequence[UUID]) -> None:
        """At once when it can; else the worker does it, and until then no row gives them."""
        if not ids or self._index.unavailable:
            return
        try:
            await self._index.delete(self._tenant, self._assistant, [str(memory_id) for memory_id in ids])
        except StoreError as error:
            _log.warning("a vector's deletion waits for the worker: %s", type(error).__name__)
