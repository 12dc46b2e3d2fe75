"""The vector index in Chroma, embedded in a folder or on a server."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from recuerdo.state.errors import StoreError
from recuerdo.state.os_errors import system_reason
from recuerdo.stores.chroma.connection import ChromaConnection, sentences
from recuerdo.stores.chroma.folder import ChromaFolder, acquire, release
from recuerdo.stores.chroma.index import EmbedderChanged, Hit, NoIndex, VectorIndex, VectorItem
from recuerdo.stores.chroma.names import user_digest
from recuerdo.stores.chroma.server import ChromaServer
from recuerdo.stores.embeddings import Embedder

if TYPE_CHECKING:
    from chromadb import Collection

P = ParamSpec("P")
T = TypeVar("T")

# Vectors per call: other queries run in between, and Chroma holds Python up while it takes them in.
_BATCH = 100
_SALT_BYTES = 16


async def open_index(folder: Path, embedder: Embedder, url: str | None = None) -> VectorIndex:
    """The index for vectors of ``embedder``: on the server at ``url``, else in ``folder``.

    A folder is shared by all who open it in this process. One that is in use by another process, without
    permission or damaged gives a NoIndex that says why (``unavailable``). A server that does not answer is
    asked again at each call. Raises SettingsError when ``url`` is no address.
    """
    if url is not None:
        return ChromaIndex(ChromaServer(url), embedder)
    try:
        opened = await asyncio.to_thread(acquire, folder)
    except BlockingIOError:
        return NoIndex(sentences("index_locked", folder=folder))
    except OSError as error:
        return NoIndex(sentences("index_no_access", folder=folder, reason=system_reason(error)))
    except StoreError as error:
        return NoIndex(error.sentence)
    return ChromaIndex(opened, embedder)


class ChromaIndex:
    """A :class:`~recuerdo.stores.chroma.index.VectorIndex` in one Chroma; made by :func:`open_index`.

    A database per tenant, a collection per assistant, each made at its first write. A vector's metadata is
    a digest of the user's id, salted by collection (C-17): the files name nobody and hold no text.
    """

    unavailable = None

    def __init__(self, connection: ChromaConnection, embedder: Embedder) -> None:
        self._chroma = connection
        self._embedder = embedder.name
        self._closed = False

    async def upsert(self, tenant: str, assistant: str, items: Sequence[VectorItem]) -> None:
        """See VectorIndex."""
        unique = list({item.id: item for item in items}.values())
        for start in range(0, len(unique), _BATCH):
            batch = unique[start : start + _BATCH]
            await self._run(self._upsert, tenant, assistant, batch)

    async def delete(self, tenant: str, assistant: str, ids: Sequence[str]) -> None:
        """See VectorIndex."""
        unique = list(dict.fromkeys(ids))
        for start in range(0, len(unique), _BATCH):
            batch = unique[start : start + _BATCH]
            await self._run(self._delete, tenant, assistant, batch)

    async def delete_user(self, tenant: str, assistant: str, user: str) -> None:
        """See VectorIndex."""
        await self._run(self._delete_user, tenant, assistant, user)
        await self.purge()

    async def query(
        self, tenant: str, assistant: str, user: str, embedding: Sequence[float], limit: int
    ) -> list[Hit]:
        """See VectorIndex. Exact for a user of a few thousand memories, about 0.92 of the nearest beyond."""
        if limit <= 0:
            return []
        return await self._run(self._query, tenant, assistant, user, embedding, limit)

    async def count(self, tenant: str, assistant: str) -> int:
        """See VectorIndex."""
        return await self._run(self._count, tenant, assistant)

    async def reset(self, tenant: str, assistant: str) -> None:
        """See VectorIndex."""
        await self._run(self._drop, tenant, assistant)

    async def purge(self) -> None:
        """See VectorIndex. On a server nothing: its files are its own."""
        if self._closed:
            raise StoreError(sentences("index_closed"))
        await self._chroma.run(self._chroma.purge)

    async def close(self) -> None:
        """See VectorIndex. The last index of the process on a folder gives its lock back."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(_let_go, self._chroma)

    async def _run(
        self,
        call: Callable[Concatenate[str, str, P], T],
        tenant: str,
        assistant: str,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        if self._closed:
            raise StoreError(sentences("index_closed"))
        return await self._chroma.run(partial(self._found, call, tenant, assistant, *args, **kwargs))

    def _found(
        self,
        call: Callable[Concatenate[str, str, P], T],
        tenant: str,
        assistant: str,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """The call, once more when another process has replaced the collection meanwhile."""
        from chromadb.errors import NotFoundError

        try:
            return call(tenant, assistant, *args, **kwargs)
        except NotFoundError:
            self._chroma.forget(tenant, assistant)
            return call(tenant, assistant, *args, **kwargs)

    def _upsert(self, tenant: str, assistant: str, items: Sequence[VectorItem]) -> None:
        dimensions = len(items[0].embedding)
        collection = self._chroma.find(tenant, assistant) or self._chroma.create(
            tenant, assistant, self._about(dimensions)
        )
        salt = self._checked_salt(collection, dimensions)
        collection.upsert(
            ids=[item.id for item in items],
            embeddings=[item.embedding for item in items],
            metadatas=[{"user": user_digest(item.user, salt)} for item in items],
        )

    def _delete(self, tenant: str, assistant: str, ids: list[str]) -> None:
        collection = self._chroma.find(tenant, assistant)
        if collection is not None:
            self._chroma.has_leftovers = True
            collection.delete(ids=ids)

    def _delete_user(self, tenant: str, assistant: str, user: str) -> None:
        collection = self._chroma.find(tenant, assistant)
        if collection is None:
            return
        salt = _salt(collection)
        if salt is None:
            # Another program's, or of before users were digested: whose the vectors are it cannot say.
            self._drop(tenant, assistant)
            return
        self._chroma.has_leftovers = True
        collection.delete(where={"user": user_digest(user, salt)})

    def _query(
        self, tenant: str, assistant: str, user: str, embedding: Sequence[float], limit: int
    ) -> list[Hit]:
        collection = self._chroma.find(tenant, assistant)
        if collection is None:
            return []
        salt = self._checked_salt(collection, len(embedding))
        found = collection.query(
            query_embeddings=[embedding],
            n_results=limit,
            where={"user": user_digest(user, salt)},
            include=["distances"],
        )
        distances = found["distances"] or [[]]
        return [
            Hit(item_id, 1 - distance)
            for item_id, distance in zip(found["ids"][0], distances[0], strict=True)
        ]

    def _count(self, tenant: str, assistant: str) -> int:
        collection = self._chroma.find(tenant, assistant)
        return 0 if collection is None else collection.count()

    def _drop(self, tenant: str, assistant: str) -> None:
        self._chroma.drop(tenant, assistant)

    def _about(self, dimensions: int) -> dict[str, str | int]:
        salt = secrets.token_hex(_SALT_BYTES)
        return {"embedder": self._embedder, "dimensions": dimensions, "salt": salt}

    def _checked_salt(self, collection: "Collection", dimensions: int) -> str:
        """The collection's salt. Raises EmbedderChanged where it is not of this embedder and of this make."""
        metadata = collection.metadata or {}
        stored = f"{metadata.get('embedder')} ({metadata.get('dimensions')})"
        current = f"{self._embedder} ({dimensions})"
        salt = _salt(collection)
        if stored != current or salt is None:
            raise EmbedderChanged(sentences("embedder_changed", stored=stored, current=current))
        return salt


def _salt(collection: "Collection") -> str | None:
    salt = (collection.metadata or {}).get("salt")
    return salt if isinstance(salt, str) else None


def _let_go(connection: ChromaConnection) -> None:
    """A folder is let go of by its last user, a server at once."""
    if isinstance(connection, ChromaFolder):
        release(connection)
    else:
        connection.close()
