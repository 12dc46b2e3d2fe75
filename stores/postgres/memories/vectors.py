"""Which vectors wait for the index: work of the worker, for every tenant."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np
from psycopg.rows import class_row

from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories.rows import FLOAT, VectorDeletion, WaitingVector, decoded, encoded
from recuerdo.stores.postgres.scope import require_scope


def usable_embedding(kept: bytes | None) -> bytes | None:
    """``kept`` when it is a vector: whole float32 numbers, finite, not all 0. None: it has to be made anew."""
    if not kept or len(kept) % FLOAT.itemsize:
        return None
    length = np.linalg.norm(np.frombuffer(kept, FLOAT))
    return kept if np.isfinite(length) and length > 0 else None


async def waiting_vectors(
    database: Database, *, limit: int, left_out: Iterable[tuple[str, str]] = ()
) -> list[WaitingVector]:
    """Memories of every tenant whose vector waits, longest first: work of the worker.

    None of the collections ``left_out`` (tenant, assistant). A damaged embedding is None, as one to be made.
    """
    pairs = list(left_out)
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select id, tenant, assistant, user_id as user, text, embedding, embedder,"
            " vector_waiting_since as since from recuerdo.user_memory"
            " where vector_waiting_since is not null and active"
            " and (tenant, assistant) not in (select * from unnest(%s::text[], %s::text[]))"
            " order by vector_waiting_since, id limit %s",
            ([tenant for tenant, _ in pairs], [assistant for _, assistant in pairs], limit),
        )
        rows = await cursor.fetchall()
    return [
        WaitingVector(**{**row, "embedding": decoded(usable_embedding(row["embedding"]))}) for row in rows
    ]


async def store_embeddings(database: Database, vectors: Sequence[WaitingVector]) -> None:
    """Keep the embeddings beside the texts they were made of, unless a text has changed meanwhile."""
    async with database.operator() as connection:
        await connection.cursor().executemany(
            "update recuerdo.user_memory set embedding = %(embedding)s, embedder = %(embedder)s"
            " where tenant = %(tenant)s and id = %(id)s and text = %(text)s",
            [{**vars(vector), "embedding": encoded(vector.embedding)} for vector in vectors],
        )


async def mark_indexed(database: Database, vectors: Sequence[WaitingVector]) -> list[VectorDeletion]:
    """The index has these vectors now.

    A row that changed meanwhile goes on waiting; of one that is gone the vector is noted for deletion. Returns
    those: who wrote them had best delete them now.
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
        cursor = connection.cursor(row_factory=class_row(VectorDeletion))
        await cursor.execute(
            "with gone as (select tenant, assistant, id"
            " from unnest(%(tenants)s::text[], %(assistants)s::text[], %(ids)s::uuid[])"
            " as written (tenant, assistant, id)"
            " where not exists (select 1 from recuerdo.user_memory kept where kept.id = written.id)),"
            " noted as (insert into recuerdo.vector_deletions (tenant, assistant, id, since)"
            " select tenant, assistant, id, clock_timestamp() from gone on conflict do nothing)"
            " select id, tenant, assistant from gone",
            values,
        )
        return await cursor.fetchall()


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


async def mark_others_waiting(database: Database, embedder: str, dimensions: int, now: datetime) -> int:
    """Vectors that ``embedder`` did not make, or made with other dimensions, wait to be made anew (fault 11).

    ``dimensions`` 0: not known, only the name counts. Of every tenant: work of the worker. Returns how many.
    """
    async with database.operator() as connection:
        cursor = await connection.execute(
            "update recuerdo.user_memory set vector_waiting_since = %(now)s"
            " where vector_waiting_since is null and (embedder is distinct from %(embedder)s"
            " or %(bytes)s > 0 and octet_length(embedding) <> %(bytes)s)",
            {"now": now, "embedder": embedder, "bytes": dimensions * FLOAT.itemsize},
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
