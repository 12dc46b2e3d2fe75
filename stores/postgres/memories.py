"""Long-term memory of users: texts with their embeddings; the vector index can be rebuilt from here."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, LiteralString, NamedTuple
from uuid import UUID, uuid4, uuid5

import numpy as np
from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb

from recuerdo.state.limits import MemoryStatus, expiry, status_for
from recuerdo.stores.postgres.audit import Action, Change, delete_with_audit, write_audit
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import without_sensitive
from recuerdo.stores.recall.analysis import ANALYZER, analyse

_MEMORY_IDS = UUID("6f0c6c4e-6a1d-4a53-9a0b-6f3f2f0f7f51")

_COLUMNS = """id, assistant, user_id as user, kind, text, status, confidence, language, quote, message_id,
    turn_id as turn, metadata, created_at, updated_at, confirmed_at, expires_at"""

# What every read of a user's memory is bound to: scope, and expiry at the moment of reading (IM-53).
_IN_FORCE = """tenant = %(tenant)s and assistant = %(assistant)s and user_id = %(user)s
    and active and (expires_at is null or expires_at > %(now)s)"""

_SEARCH_ROWS = f"""
select id, language, conversation, position, created_at, terms, asks, analyzer,
    case when analyzer is distinct from %(analyzer)s then text end,
    case when embedder = %(embedder)s
        and (select count(*) from recuerdo.user_memory where {_IN_FORCE}) <= %(scanned)s then embedding end
from recuerdo.user_memory where {_IN_FORCE}
"""

# A replay of the same turn that comes to the same text writes nothing.
_UPSERT = """
insert into recuerdo.user_memory as kept
    (id, tenant, assistant, user_id, kind, text, embedding, embedder, status, confidence, language, quote,
     message_id, turn_id, item, metadata, created_at, updated_at, confirmed_at, expires_at,
     vector_waiting_since, terms, asks, analyzer, conversation, position)
select
     %(id)s, %(tenant)s, %(assistant)s, %(user)s, %(kind)s, %(text)s, %(embedding)s, %(embedder)s,
     %(status)s, %(confidence)s, %(language)s, %(quote)s, %(message_id)s, %(turn)s, %(item)s, %(metadata)s,
     %(at)s, %(at)s, %(confirmed_at)s, %(expires_at)s, %(at)s, %(terms)s, %(asks)s, %(analyzer)s,
     coalesce(%(conversation)s, turn.conversation), coalesce(%(position)s, turn.number)
from (select) as one left join recuerdo.turns turn on turn.tenant = %(tenant)s and turn.id = %(turn)s
on conflict (id) do update set
    text = excluded.text, embedding = excluded.embedding, embedder = excluded.embedder,
    terms = excluded.terms, asks = excluded.asks, analyzer = excluded.analyzer,
    status = excluded.status, confidence = excluded.confidence, language = excluded.language,
    quote = excluded.quote, message_id = excluded.message_id, metadata = excluded.metadata,
    updated_at = excluded.updated_at, confirmed_at = excluded.confirmed_at,
    expires_at = excluded.expires_at, vector_waiting_since = excluded.vector_waiting_since
where kept.text is distinct from excluded.text
returning xmax = 0 as added
"""

_VECTOR_COLUMNS = ("id", "tenant", "assistant", "user", "text", "embedding", "embedder")

FLOAT = np.dtype("<f4")
"""How embeddings are kept."""


@dataclass(frozen=True)
class NewMemory:
    """A memory to write. ``confidence`` 0 to 1 decides the status: low or confirmed (A-24, C-6).

    ``embedding`` and ``embedder`` (its name) are both given, or neither: then the worker embeds the text.
    Texts that hold sensitive data are stored without it, and embedded anew (RF-33). ``conversation`` and
    ``position`` say where it was said, for one that no turn says it of: its neighbours there help recall.
    """

    kind: str
    text: str
    language: str
    confidence: float | None = None
    embedding: Sequence[float] | None = None
    embedder: str | None = None
    quote: str | None = None
    message_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    conversation: str | None = None
    position: int | None = None


@dataclass(frozen=True)
class StoredMemory:
    """A memory in force. ``metadata`` is plain JSON data; ``expires_at`` None: published, no expiry."""

    id: UUID
    assistant: str
    user: str
    kind: str
    text: str
    status: MemoryStatus
    confidence: float | None
    language: str
    quote: str | None
    message_id: str | None
    turn: UUID | None
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    confirmed_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True)
class WaitingVector:
    """A stored memory whose vector is not in the index yet; ``embedding`` None: still to be made."""

    id: UUID
    tenant: str
    assistant: str
    user: str
    text: str
    embedding: list[float] | None
    embedder: str | None
    since: datetime


@dataclass(frozen=True)
class VectorDeletion:
    """A memory that is gone and whose vector is still in the index."""

    id: UUID
    tenant: str
    assistant: str


@dataclass(frozen=True)
class Nearest:
    """A memory's id and its cosine similarity, -1 to 1."""

    id: UUID
    similarity: float


class SearchRow(NamedTuple):
    """What recall compares of a memory.

    ``text`` only when it has to be analysed at the search, ``embedding`` (little-endian float32) only when
    all of the user's memories are compared.
    """

    id: UUID
    language: str
    conversation: str | None
    position: int | None
    created_at: datetime
    terms: bytes | None
    asks: bool | None
    analyzer: str | None
    text: str | None
    embedding: bytes | None


class Memories:
    """The memories of one tenant. Every method raises ScopeError when a part of its scope is missing."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def add(self, assistant: str, user: str, memory: NewMemory, at: datetime) -> WaitingVector:
        """Write one memory outside a turn, with its audit entry; its vector waits for the index."""
        require_scope(assistant=assistant, user=user)
        async with self._database.tenant(self._tenant) as connection:
            (written,) = await write_memories(connection, self._tenant, assistant, user, [memory], at, None)
            return written

    async def get(self, ids: Sequence[UUID], assistant: str, user: str, now: datetime) -> list[StoredMemory]:
        """Those of ``ids`` that are the user's and in force at ``now``, in the order of ``ids``.

        What an index says counts for nothing here: foreign, deleted and expired memories do not come back.
        """
        named = await self._read(assistant, user, now, " and id = any(%(ids)s)", ids=list(ids))
        found = {memory.id: memory for memory in named}
        return [found[memory_id] for memory_id in dict.fromkeys(ids) if memory_id in found]

    async def all(self, assistant: str, user: str, now: datetime, *, limit: int = 100) -> list[StoredMemory]:
        """The user's memories that are in force, newest first."""
        newest = " order by updated_at desc, id limit %(limit)s"
        return await self._read(assistant, user, now, newest, limit=limit)

    async def any(self, assistant: str, user: str, now: datetime) -> bool:
        """Whether anything of the user's is in force at ``now``."""
        require_scope(assistant=assistant, user=user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                f"select 1 from recuerdo.user_memory where {_IN_FORCE} limit 1",
                self._scope(assistant, user, now),
            )
            return await cursor.fetchone() is not None

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
        require_scope(assistant=assistant, user=user)
        scope = self._scope(assistant, user, now)
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(binary=True)
            await cursor.execute(
                f"select id, embedding from recuerdo.user_memory where {_IN_FORCE}"
                " and embedder = %(embedder)s and octet_length(embedding) = %(bytes)s",
                {**scope, "embedder": embedder, "bytes": FLOAT.itemsize * len(embedding)},
            )
            rows = await cursor.fetchall()
        return await asyncio.to_thread(_most_similar, rows, embedding, limit)

    async def search_rows(
        self, assistant: str, user: str, now: datetime, embedder: str, scanned: int
    ) -> list[SearchRow]:
        """All memories of the user that are in force; with what ``embedder`` made of them if they are few.

        That is: no more than ``scanned``. In no order.
        """
        require_scope(assistant=assistant, user=user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(binary=True, row_factory=tuple_row)
            await cursor.execute(
                _SEARCH_ROWS,
                {
                    **self._scope(assistant, user, now),
                    "analyzer": ANALYZER,
                    "embedder": embedder,
                    "scanned": scanned,
                },
            )
            return [SearchRow._make(row) for row in await cursor.fetchall()]

    async def confirm(self, memory_id: UUID, assistant: str, user: str, now: datetime) -> bool:
        """The user says that it is so: kept for 90 days from now (C-6). False when there is none in force."""
        require_scope(assistant=assistant, user=user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                "update recuerdo.user_memory set status = 'confirmed', confidence = 1,"
                " confirmed_at = %(now)s, updated_at = %(now)s, expires_at = %(expires_at)s"
                f" where {_IN_FORCE} and status <> 'published' and id = %(id)s",
                {
                    **self._scope(assistant, user, now),
                    "id": memory_id,
                    "expires_at": expiry("confirmed", now),
                },
            )
            if cursor.rowcount:
                change = Change("user_memory", str(memory_id), "confirmed")
                await write_audit(connection, self._tenant, user, now, [change])
            return bool(cursor.rowcount)

    async def forget(self, memory_id: UUID, assistant: str, user: str, at: datetime) -> bool:
        """Delete one memory; its vector goes with the next run of the worker. False: not the user's."""
        require_scope(assistant=assistant, user=user)
        where = "tenant = %(tenant)s and assistant = %(assistant)s and user_id = %(user)s and id = %(id)s"
        values = {"tenant": self._tenant, "assistant": assistant, "user": user, "id": memory_id}
        async with self._database.tenant(self._tenant) as connection:
            return bool(
                await delete_with_audit(connection, "user_memory", where, values, "forgotten", user, at)
            )

    async def _read(
        self, assistant: str, user: str, now: datetime, which: LiteralString, **values: Any
    ) -> list[StoredMemory]:
        require_scope(assistant=assistant, user=user)
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(StoredMemory))
            await cursor.execute(
                f"select {_COLUMNS} from recuerdo.user_memory where {_IN_FORCE}{which}",
                {**self._scope(assistant, user, now), **values},
            )
            return await cursor.fetchall()

    def _scope(self, assistant: str, user: str, now: datetime) -> dict[str, Any]:
        return {"tenant": self._tenant, "assistant": assistant, "user": user, "now": now}


async def write_memories(
    connection: Connection,
    tenant: str,
    assistant: str,
    user: str,
    memories: Sequence[NewMemory],
    at: datetime,
    turn: UUID | None,
) -> list[WaitingVector]:
    """Write the memories and their audit in the transaction of ``connection``.

    Within a turn a memory is keyed by its kind and its place among those of its kind, so a replay writes
    nothing twice. Returns what was written and so waits for the index.
    """
    written: list[WaitingVector] = []
    audit: list[Change] = []
    placed: defaultdict[str, int] = defaultdict(int)
    for memory in memories:
        item = placed[memory.kind]
        placed[memory.kind] += 1
        row = await _row(memory, at)
        row |= {"tenant": tenant, "assistant": assistant, "user": user, "turn": turn, "item": item}
        row["id"] = uuid5(_MEMORY_IDS, f"{tenant}\0{turn}\0{memory.kind}\0{item}") if turn else uuid4()
        cursor = await connection.execute(_UPSERT, {**row, "embedding": _encoded(row["embedding"])})
        if (change := await cursor.fetchone()) is None:
            continue
        action: Action = "added" if change["added"] else "updated"
        audit.append(Change("user_memory", str(row["id"]), action, turn, memory.message_id))
        written.append(WaitingVector(**{column: row[column] for column in _VECTOR_COLUMNS}, since=at))
    await write_audit(connection, tenant, user, at, audit)
    return written


async def waiting_vectors(database: Database, *, limit: int) -> list[WaitingVector]:
    """Memories of every tenant whose vector waits, longest first: work of the worker."""
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select id, tenant, assistant, user_id as user, text, embedding, embedder,"
            " vector_waiting_since as since from recuerdo.user_memory"
            " where vector_waiting_since is not null and active"
            " order by vector_waiting_since, id limit %s",
            (limit,),
        )
        rows = await cursor.fetchall()
    return [WaitingVector(**{**row, "embedding": _decoded(row["embedding"])}) for row in rows]


async def store_embeddings(database: Database, vectors: Sequence[WaitingVector]) -> None:
    """Keep the embeddings beside the texts they were made of, unless a text has changed meanwhile."""
    async with database.operator() as connection:
        await connection.cursor().executemany(
            "update recuerdo.user_memory set embedding = %(embedding)s, embedder = %(embedder)s"
            " where tenant = %(tenant)s and id = %(id)s and text = %(text)s",
            [{**vars(vector), "embedding": _encoded(vector.embedding)} for vector in vectors],
        )


async def mark_indexed(database: Database, vectors: Sequence[WaitingVector]) -> None:
    """The index has these vectors now.

    A row that changed meanwhile goes on waiting; of one that is gone the vector is noted for deletion.
    """
    values = {
        "tenants": [vector.tenant for vector in vectors],
        "assistants": [vector.assistant for vector in vectors],
        "ids": [vector.id for vector in vectors],
        "texts": [vector.text for vector in vectors],
        "since": [vector.since for vector in vectors],
    }
    async with database.operator() as connection:
        await connection.execute(
            "update recuerdo.user_memory kept set vector_waiting_since = null"
            " from unnest(%(ids)s::uuid[], %(texts)s::text[], %(since)s::timestamptz[])"
            " as written (id, text, since)"
            " where kept.id = written.id and kept.text = written.text"
            " and kept.vector_waiting_since = written.since",
            values,
        )
        await connection.execute(
            "insert into recuerdo.vector_deletions (tenant, assistant, id, since)"
            " select tenant, assistant, id, clock_timestamp()"
            " from unnest(%(tenants)s::text[], %(assistants)s::text[], %(ids)s::uuid[])"
            " as written (tenant, assistant, id)"
            " where not exists (select 1 from recuerdo.user_memory kept where kept.id = written.id)"
            " on conflict do nothing",
            values,
        )


async def mark_all_waiting(database: Database, tenant: str, assistant: str, now: datetime) -> int:
    """The assistant's vectors are to be written anew: its index was lost or is another embedder's (C-10).

    Returns how many memories wait now.
    """
    require_scope(tenant=tenant, assistant=assistant)
    async with database.tenant(tenant) as connection:
        cursor = await connection.execute(
            "update recuerdo.user_memory set vector_waiting_since = coalesce(vector_waiting_since, %s)"
            " where tenant = %s and assistant = %s",
            (now, tenant, assistant),
        )
        return cursor.rowcount


async def waiting_deletions(database: Database, *, limit: int) -> list[VectorDeletion]:
    """Vectors of every tenant whose memory is gone, longest first: work of the worker."""
    async with database.operator() as connection:
        # A replay may have written the same memory again; then its vector is wanted.
        await connection.execute(
            "delete from recuerdo.vector_deletions gone using recuerdo.user_memory kept"
            " where kept.id = gone.id"
        )
        cursor = connection.cursor(row_factory=class_row(VectorDeletion))
        await cursor.execute(
            "select id, tenant, assistant from recuerdo.vector_deletions order by since, id limit %s",
            (limit,),
        )
        return await cursor.fetchall()


async def deleted_from_index(database: Database, vectors: Sequence[VectorDeletion]) -> None:
    """The index no longer has these vectors."""
    async with database.operator() as connection:
        await connection.execute(
            "delete from recuerdo.vector_deletions where id = any(%s)", ([vector.id for vector in vectors],)
        )


async def _row(memory: NewMemory, at: datetime) -> dict[str, Any]:
    """The columns of a new memory, redacted. An embedding of a text that held sensitive data is not kept."""
    text = await without_sensitive(memory.text)
    kept = text == memory.text and memory.embedding is not None
    status = status_for(memory.confidence)
    analysis = await asyncio.to_thread(analyse, text, memory.language)
    return {
        "kind": memory.kind,
        "text": text,
        "embedding": list(memory.embedding) if kept and memory.embedding is not None else None,
        "embedder": memory.embedder if kept else None,
        "status": status,
        "confidence": memory.confidence,
        "language": memory.language,
        "quote": await without_sensitive(memory.quote),
        "message_id": memory.message_id,
        "metadata": Jsonb(await without_sensitive(memory.metadata)),
        "at": at,
        "confirmed_at": at if status == "confirmed" else None,
        "expires_at": expiry(status, at),
        "terms": analysis.terms,
        "asks": analysis.asks,
        "analyzer": ANALYZER,
        "conversation": memory.conversation,
        "position": memory.position,
    }


def _encoded(embedding: Sequence[float] | None) -> bytes | None:
    return None if embedding is None else np.asarray(embedding, FLOAT).tobytes()


def _decoded(embedding: bytes | None) -> list[float] | None:
    return None if embedding is None else np.frombuffer(embedding, FLOAT).tolist()


def _most_similar(rows: Sequence[dict[str, Any]], embedding: Sequence[float], limit: int) -> list[Nearest]:
    if not rows:
        return []
    stored = np.frombuffer(b"".join(row["embedding"] for row in rows), dtype=FLOAT)
    matrix = stored.reshape(len(rows), len(embedding))
    query = np.asarray(embedding, dtype=np.float32)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
    similarities = np.divide(matrix @ query, lengths, out=np.zeros(len(rows), np.float32), where=lengths > 0)
    best = np.argsort(-similarities, kind="stable")[:limit]
    return [Nearest(rows[index]["id"], float(similarities[index])) for index in best]
