"""The memories of one tenant: read under the caller's scope, and changed outside a turn."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import numpy as np
from psycopg.rows import class_row, tuple_row

from recuerdo.stores.postgres.arguments import checked_name, checked_page
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.memories.rows import (
    COLUMNS,
    FLOAT,
    IN_FORCE,
    OWN,
    Alike,
    MemoryBatch,
    Nearest,
    NewMemory,
    SearchRow,
    StoredMemory,
    WaitingVector,
    checked_memory,
    checked_text,
)
from recuerdo.stores.postgres.memories.writing import MemoryWriter, write_batch
from recuerdo.stores.postgres.revisions import Revision, revisions_of
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.recall.analysis import ANALYZER

# Switched off, but not expired: what its user may still look at and switch on again.
_INACTIVE: LiteralString = f"{OWN} and not active and status <> 'withdrawn' and expires_at > %(now)s"

_SEARCH_ROWS: LiteralString = f"""
select id, language, conversation, position, created_at, terms, asks, analyzer,
    case when analyzer is distinct from %(analyzer)s then text end,
    case when embedder = %(embedder)s
        and (select count(*) from recuerdo.user_memory where {IN_FORCE}) <= %(scanned)s then embedding end
from recuerdo.user_memory where {IN_FORCE}
"""


class Memories:
    """The memories of one tenant.

    Every method raises ScopeError when a part of its scope is missing, and InputError for a time without a
    zone. What an index says counts for nothing here: foreign, deleted, switched off, withdrawn and expired
    memories do not come back.
    """

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def add(self, assistant: str, user: str, memory: NewMemory, at: datetime) -> WaitingVector:
        """Write one memory outside a turn; its vector waits for the index.

        Raises InputError for a text that is blank or longer than 4,000 characters (IM-30).
        """
        checked_memory(memory)
        async with self._writer(assistant, user, at) as writer:
            written = await writer.add(memory)
            assert written is not None, "outside a turn nothing is a replay"
            return written

    async def write(
        self, assistant: str, user: str, batch: MemoryBatch, at: datetime
    ) -> Sequence[WaitingVector]:
        """Make all changes of a batch or, when one of them cannot be, none. Returns what waits for the index.

        Raises InputError for what no memory can be, ScopeError when one of them is published.
        """
        for memory in batch.added:
            checked_memory(memory)
        for new in batch.updated.values():
            checked_text(new.text)
        async with self._writer(assistant, user, at) as writer:
            return await write_batch(writer, batch)

    async def get(self, ids: Sequence[UUID], assistant: str, user: str, now: datetime) -> list[StoredMemory]:
        """Those of ``ids`` that are the user's and in force at ``now``, in the order of ``ids``."""
        named = await self._read(f"{IN_FORCE} and id = any(%(ids)s)", assistant, user, now, ids=list(ids))
        found = {memory.id: memory for memory in named}
        return [found[memory_id] for memory_id in dict.fromkeys(ids) if memory_id in found]

    async def all(
        self,
        assistant: str,
        user: str,
        now: datetime,
        *,
        limit: int = 100,
        offset: int = 0,
        kind: str | None = None,
    ) -> list[StoredMemory]:
        """The user's memories that are in force, of one kind or all, last changed first.

        Raises InputError for a page or a kind that cannot be.
        """
        return await self._page(IN_FORCE, assistant, user, now, limit=limit, offset=offset, kind=kind)

    async def inactive(
        self, assistant: str, user: str, now: datetime, *, limit: int = 100, offset: int = 0
    ) -> list[StoredMemory]:
        """The user's memories that are switched off and not expired: no other read gives them (IM-30)."""
        return await self._page(_INACTIVE, assistant, user, now, limit=limit, offset=offset, kind=None)

    async def noted(
        self, assistant: str, user: str, field: str, values: Sequence[str], now: datetime
    ) -> list[StoredMemory]:
        """Those in force whose metadata has one of ``values`` in ``field``, last changed first."""
        return await self._read(
            f"{IN_FORCE} and metadata ->> %(field)s = any(%(values)s) order by updated_at desc, id",
            assistant,
            user,
            now,
            field=field,
            values=list(values),
        )

    async def any(self, assistant: str, user: str, now: datetime) -> bool:
        """Whether anything of the user's is in force at ``now``."""
        return bool(await self.all(assistant, user, now, limit=1))

    async def count(self, assistant: str, user: str, now: datetime) -> int:
        """How many of the user's are in force at ``now``."""
        (row,) = await self._database.read(
            self._tenant,
            f"select count(*) as number from recuerdo.user_memory where {IN_FORCE}",
            self._scope(assistant, user, now),
        )
        return int(row["number"])

    async def nearest(
        self,
        assistant: str,
        user: str,
        embedding: Sequence[float],
        embedder: str,
        now: datetime,
        limit: int,
    ) -> list[Nearest]:
        """The ``limit`` memories most similar to ``embedding``, by an exact scan of the user's own rows.

        Only rows that the same embedder wrote are compared. The most similar comes first.
        """
        scope = self._scope(assistant, user, now)
        rows = await self._database.read(
            self._tenant,
            f"select id, embedding from recuerdo.user_memory where {IN_FORCE}"
            " and embedder = %(embedder)s and octet_length(embedding) = %(bytes)s",
            {**scope, "embedder": embedder, "bytes": FLOAT.itemsize * len(embedding)},
            binary=True,
        )
        if not rows:
            return []
        return await asyncio.to_thread(_most_similar, rows, embedding, limit)

    async def alike(
        self,
        assistant: str,
        user: str,
        embedding: Sequence[float],
        embedder: str,
        now: datetime,
        limit: int,
    ) -> list[Alike]:
        """As :meth:`nearest`, with the memories: what a new fact may say again, or contradict."""
        near = await self.nearest(assistant, user, embedding, embedder, now, limit)
        if not near:
            return []
        similarity = {found.id: found.similarity for found in near}
        memories = await self.get(list(similarity), assistant, user, now)
        return [Alike(memory, similarity[memory.id]) for memory in memories]

    async def search_rows(
        self, assistant: str, user: str, now: datetime, embedder: str, scanned: int
    ) -> list[SearchRow]:
        """All memories of the user that are in force; with what ``embedder`` made of them if they are few.

        That is: no more than ``scanned``. In no order.
        """
        scope = self._scope(assistant, user, now)
        values = {"analyzer": ANALYZER, "embedder": embedder, "scanned": scanned}
        found = await self._database.read(
            self._tenant, _SEARCH_ROWS, {**scope, **values}, rows=tuple_row, binary=True
        )
        return [SearchRow._make(row) for row in found]

    async def history(self, memory_id: UUID, assistant: str, user: str, now: datetime) -> Sequence[Revision]:
        """Earlier texts of the memory and of those it took the place of, oldest first."""
        require_scope(assistant=assistant, user=user)
        require_aware(now)
        async with self._database.tenant(self._tenant) as connection:
            return await revisions_of(connection, self._tenant, assistant, user, memory_id, now)

    async def update(
        self,
        memory_id: UUID,
        assistant: str,
        user: str,
        text: str,
        at: datetime,
        *,
        embedding: Sequence[float] | None = None,
        embedder: str | None = None,
    ) -> WaitingVector | None:
        """Give a memory another text; its expiry is counted anew, all else stays (ET-12, A-38).

        The message that the old text came from stays with that, in the history. None: none in force. Raises
        InputError for a text that cannot be, ScopeError for a published memory.
        """
        checked_text(text)
        async with self._writer(assistant, user, at) as writer:
            return await writer.update(memory_id, text, embedding, embedder)

    async def confirm(self, memory_id: UUID, assistant: str, user: str, now: datetime) -> bool:
        """The user says that it is so: kept for 90 days from now (C-6). False when there is none in force."""
        async with self._writer(assistant, user, now) as writer:
            return await writer.confirm(memory_id)

    async def supersede(
        self, memory_id: UUID, assistant: str, user: str, by: NewMemory, at: datetime
    ) -> WaitingVector | None:
        """Put ``by`` in the place of a memory (see ``NewMemory.supersedes``). None: none in force.

        Raises InputError for a text that cannot be, ScopeError for a published memory.
        """
        checked_memory(by)
        async with self._writer(assistant, user, at) as writer:
            if not await writer.in_force(memory_id):
                return None
            return await writer.add(replace(by, supersedes=[*by.supersedes, memory_id]))

    async def set_active(
        self, memory_id: UUID, assistant: str, user: str, active: bool, at: datetime
    ) -> bool:
        """Switch a memory off, so that nothing reads it, or on again (IM-30).

        False: it is so already, there is none, or it is published.
        """
        async with self._writer(assistant, user, at) as writer:
            return await writer.set_active(memory_id, active)

    async def forget(
        self, memory_id: UUID, assistant: str, user: str, at: datetime, *, published: bool = False
    ) -> bool:
        """Delete one memory; its vector goes with the next run of the worker. False: not the user's.

        Raises ScopeError for one that a supervisor published (OR-11), unless ``published``: the user himself asks.
        """
        async with self._writer(assistant, user, at) as writer:
            return await writer.forget(memory_id, published=published)

    @asynccontextmanager
    async def _writer(self, assistant: str, user: str, at: datetime) -> AsyncIterator[MemoryWriter]:
        require_scope(assistant=assistant, user=user)
        require_aware(at)
        async with self._database.tenant(self._tenant) as connection:
            yield MemoryWriter(connection, self._tenant, assistant, user, at, None, self._database.limits)

    async def _page(
        self,
        which: LiteralString,
        assistant: str,
        user: str,
        now: datetime,
        *,
        limit: int,
        offset: int,
        kind: str | None,
    ) -> list[StoredMemory]:
        checked_page(limit, offset)
        if kind is not None:
            checked_name("kind", kind)
        page: LiteralString = f"""{which} and (%(kind)s::text is null or kind = %(kind)s)
            order by updated_at desc, id limit %(limit)s offset %(offset)s"""
        return await self._read(page, assistant, user, now, limit=limit, offset=offset, kind=kind)

    async def _read(
        self, which: LiteralString, assistant: str, user: str, now: datetime, **values: Any
    ) -> list[StoredMemory]:
        return await self._database.read(
            self._tenant,
            f"select {COLUMNS} from recuerdo.user_memory where {which}",
            {**self._scope(assistant, user, now), **values},
            rows=class_row(StoredMemory),
        )

    def _scope(self, assistant: str, user: str, now: datetime) -> dict[str, Any]:
        require_scope(assistant=assistant, user=user)
        require_aware(now)
        return {"tenant": self._tenant, "assistant": assistant, "user": user, "now": now}


def _most_similar(rows: Sequence[dict[str, Any]], embedding: Sequence[float], limit: int) -> list[Nearest]:
    stored = np.frombuffer(b"".join(row["embedding"] for row in rows), dtype=FLOAT)
    matrix = stored.reshape(len(rows), len(embedding))
    query = np.asarray(embedding, dtype=np.float32)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
    similarities = np.divide(matrix @ query, lengths, out=np.zeros(len(rows), np.float32), where=lengths > 0)
    best = np.argsort(-similarities, kind="stable")[:limit]
    return [Nearest(rows[index]["id"], float(similarities[index])) for index in best]
