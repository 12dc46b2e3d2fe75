"""Memories of users in this process alone, for tests and notebooks: what PostgresMemories does, without a server."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

from recuerdo.state.limits import DEFAULT_LIMITS, MemoryLimits, expiry, status_for
from recuerdo.stores.embeddings import Embedder
from recuerdo.stores.postgres.arguments import checked_name, checked_page, checked_query
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.memories import MemoryBatch, NewMemory, SearchRow, StoredMemory
from recuerdo.stores.postgres.memories.rows import (
    checked_memory,
    checked_text,
    clean_metadata,
    encoded,
    words_digest,
)
from recuerdo.stores.postgres.revisions import Reason, Revision, revision_expiry
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import without_sensitive
from recuerdo.stores.recall.search import Recalled, rank


@dataclass(frozen=True)
class _Old:
    revision: Revision
    expires_at: datetime


@dataclass(frozen=True)
class _Kept:
    memory: StoredMemory
    position: int | None
    embedding: bytes | None
    history: tuple[_Old, ...] = ()


class InMemoryMemories:
    """The memories that one assistant has of its users: see ``UserMemories``. They end with the process."""

    def __init__(
        self, embedder: Embedder, *, assistant: str = "default", limits: MemoryLimits = DEFAULT_LIMITS
    ) -> None:
        require_scope(assistant=assistant)
        self._embedder = embedder
        self._assistant = assistant
        self._limits = limits
        self._users: defaultdict[str, dict[UUID, _Kept]] = defaultdict(dict)

    async def add(self, user: str, memory: NewMemory, at: datetime) -> StoredMemory:
        """See UserMemories."""
        self._checked(user, at)
        return await self._add(user, checked_memory(memory), at, ())

    async def write(self, user: str, batch: MemoryBatch, at: datetime) -> None:
        """See UserMemories."""
        self._checked(user, at)
        added = [checked_memory(memory) for memory in batch.added]
        texts = {key: checked_text(new.text) for key, new in batch.updated.items()}
        before = dict(self._users[user])
        try:
            for memory in added:
                await self._add(user, memory, at, ())
            for memory_id, text in texts.items():
                await self.update(user, memory_id, text, at)
        except Exception:
            self._users[user] = before
            raise
        for memory_id in batch.forgotten:
            self._users[user].pop(memory_id, None)

    async def noted(
        self, user: str, field: str, values: Sequence[str], now: datetime
    ) -> Sequence[StoredMemory]:
        """See UserMemories."""
        in_force = sorted(self._in_force(user, now), key=lambda kept: kept.memory.updated_at, reverse=True)
        return [kept.memory for kept in in_force if kept.memory.metadata.get(field) in values]

    async def get(self, user: str, ids: Sequence[UUID], now: datetime) -> Sequence[StoredMemory]:
        """See UserMemories."""
        in_force = {kept.memory.id: kept.memory for kept in self._in_force(user, now)}
        return [in_force[memory_id] for memory_id in dict.fromkeys(ids) if memory_id in in_force]

    async def list(
        self, user: str, now: datetime, *, limit: int = 100, offset: int = 0, kind: str | None = None
    ) -> Sequence[StoredMemory]:
        """See UserMemories."""
        checked_page(limit, offset)
        if kind is not None:
            checked_name("kind", kind)
        found = [kept.memory for kept in self._in_force(user, now) if kind in (None, kept.memory.kind)]
        found.sort(key=lambda memory: memory.id)
        found.sort(key=lambda memory: memory.updated_at, reverse=True)
        return found[offset : offset + limit]

    async def search(self, user: str, query: str, now: datetime, limit: int) -> Sequence[Recalled]:
        """See UserMemories."""
        checked_page(limit)
        query = checked_query(query)
        rows = [_search_row(kept) for kept in self._in_force(user, now)]
        if not rows or not limit:
            return []
        embedding = await self._embedder.embed_query(query)
        best = await asyncio.to_thread(rank, rows, embedding, query, limit)
        return [Recalled(memory, best[memory.id]) for memory in await self.get(user, list(best), now)]

    async def update(self, user: str, memory_id: UUID, text: str, at: datetime) -> StoredMemory | None:
        """See UserMemories."""
        checked_text(text)
        if self._in_force_by_id(user, memory_id, at) is None:
            return None
        clean, embedding = await self._taken(text)
        old = self._in_force_by_id(user, memory_id, at)
        if old is None:
            return None
        memory = replace(
            old.memory,
            text=clean,
            quote=None,
            message_id=None,
            updated_at=at,
            confirmed_at=at if old.memory.status == "confirmed" else old.memory.confirmed_at,
            expires_at=expiry(old.memory.status, at, self._limits),
        )
        ended = (_ended(old.memory, at, "updated"),) if clean != old.memory.text else ()
        self._keep(user, replace(old, memory=memory, embedding=embedding, history=old.history + ended))
        return memory

    async def confirm(self, user: str, memory_id: UUID, at: datetime) -> bool:
        """See UserMemories."""
        kept = self._in_force_by_id(user, memory_id, at)
        if kept is None:
            return False
        memory = replace(
            kept.memory,
            status="confirmed",
            confidence=1.0,
            confirmed_at=at,
            updated_at=at,
            expires_at=expiry("confirmed", at, self._limits),
        )
        self._keep(user, replace(kept, memory=memory))
        return True

    async def supersede(self, user: str, memory_id: UUID, by: NewMemory, at: datetime) -> StoredMemory | None:
        """See UserMemories."""
        checked_memory(by)
        if self._in_force_by_id(user, memory_id, at) is None:
            return None
        return await self._add(user, by, at, [memory_id])

    async def forget(self, user: str, memory_id: UUID, at: datetime, *, published: bool = False) -> bool:
        """See UserMemories. Nothing is published here: there are no supervisors."""
        self._checked(user, at)
        return self._users[user].pop(memory_id, None) is not None

    async def history(self, user: str, memory_id: UUID, now: datetime) -> Sequence[Revision]:
        """See UserMemories."""
        self._checked(user, now)
        for kept in self._users[user].values():
            former = {old.revision.memory_id for old in kept.history}
            if memory_id == kept.memory.id or memory_id in former:
                return [old.revision for old in kept.history if old.expires_at > now]
        return []

    async def count(self, user: str, now: datetime) -> int:
        """See UserMemories."""
        return len(list(self._in_force(user, now)))

    async def _add(
        self, user: str, memory: NewMemory, at: datetime, replaced: Sequence[UUID]
    ) -> StoredMemory:
        text, embedding = await self._taken(memory.text)
        same = self._same_words(user, memory.kind, text, at) if memory.once else None
        if same is None:
            kept = await self._new(user, memory, text, embedding, at)
        else:
            noted = {**same.memory.metadata, **await clean_metadata(memory.metadata)}
            self._keep(user, replace(same, memory=replace(same.memory, metadata=noted)))
            if status_for(memory.confidence, self._limits) == "confirmed":
                await self.confirm(user, same.memory.id, at)
            kept = self._users[user][same.memory.id]
        self._keep(user, self._taking_places(user, kept, [*memory.supersedes, *replaced], at))
        return kept.memory

    async def _new(
        self, user: str, memory: NewMemory, text: str, embedding: bytes | None, at: datetime
    ) -> _Kept:
        status = status_for(memory.confidence, self._limits)
        stored = StoredMemory(
            id=uuid4(),
            assistant=self._assistant,
            user=user,
            kind=memory.kind,
            text=text,
            status=status,
            confidence=memory.confidence,
            language=memory.language,
            quote=await without_sensitive(memory.quote),
            message_id=memory.message_id,
            turn=None,
            metadata=await clean_metadata(memory.metadata),
            created_at=at,
            updated_at=at,
            confirmed_at=at if status == "confirmed" else None,
            expires_at=expiry(status, at, self._limits),
            conversation=memory.conversation,
        )
        return _Kept(stored, memory.position, embedding)

    def _taking_places(self, user: str, kept: _Kept, replaced: Sequence[UUID], at: datetime) -> _Kept:
        """``kept`` with the histories and texts of the memories whose place it takes."""
        history = kept.history
        for memory_id in replaced:
            old = self._in_force_by_id(user, memory_id, at)
            if old is not None and memory_id != kept.memory.id:
                history += (*old.history, _ended(old.memory, at, "superseded"))
                del self._users[user][memory_id]
        return replace(kept, history=history)

    async def _taken(self, text: str) -> tuple[str, bytes]:
        """A text without sensitive data, and the vector of what is left."""
        clean = await without_sensitive(text)
        (embedding,) = await self._embedder.embed([clean])
        return clean, encoded(embedding) or b""

    def _same_words(self, user: str, kind: str, text: str, at: datetime) -> _Kept | None:
        words = words_digest(text)
        alike = (
            kept
            for kept in self._in_force(user, at)
            if kept.memory.kind == kind and words_digest(kept.memory.text) == words
        )
        return next(alike, None)

    def _in_force_by_id(self, user: str, memory_id: UUID, at: datetime) -> _Kept | None:
        return next((kept for kept in self._in_force(user, at) if kept.memory.id == memory_id), None)

    def _in_force(self, user: str, now: datetime) -> Iterator[_Kept]:
        self._checked(user, now)
        for kept in list(self._users[user].values()):
            expires_at = kept.memory.expires_at
            if expires_at is None or expires_at > now:
                yield kept

    def _keep(self, user: str, kept: _Kept) -> None:
        self._users[user][kept.memory.id] = kept

    def _checked(self, user: str, at: datetime) -> None:
        require_scope(user=user)
        require_aware(at)


def _ended(memory: StoredMemory, at: datetime, reason: Reason) -> _Old:
    revision = Revision(memory.text, at, reason, memory.message_id, memory.id)
    return _Old(revision, revision_expiry(memory.expires_at, at))


def _search_row(kept: _Kept) -> SearchRow:
    memory = kept.memory
    return SearchRow(
        memory.id,
        memory.language,
        memory.conversation,
        kept.position,
        memory.created_at,
        None,
        None,
        None,
        memory.text,
        kept.embedding,
    )
