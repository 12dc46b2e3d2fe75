"""A connection to Chroma, of either kind: its worker threads, its collections, its failures."""

import asyncio
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from recuerdo.state.errors import RecuerdoError, StoreError
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.stores.chroma.names import collection_name, database_name

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api import ServerAPI

sentences = load_sentences(__package__)
logger = logging.getLogger(__name__)

T = TypeVar("T")


class ChromaConnection(ABC):
    """Runs calls of Chroma in worker threads, off the event loop, and knows the collections by scope.

    A database per tenant, a collection per assistant. ``name`` says in errors which Chroma it is;
    ``has_leftovers``: something was deleted since the last ``purge``.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.process = os.getpid()
        self.has_leftovers = False
        self._collections: dict[tuple[str, str], Collection] = {}
        self._workers = ThreadPoolExecutor(threads, thread_name_prefix="recuerdo-chroma")

    @abstractmethod
    def server(self) -> "ServerAPI":
        """Chroma's own interface. In a worker thread only."""

    @abstractmethod
    def broken(self, kind: str) -> Sentence:
        """What to tell when Chroma raised an error of this ``kind``."""

    @abstractmethod
    def purge(self) -> None:
        """Take what was deleted or replaced off the disk. In a worker thread only."""

    @abstractmethod
    def close(self) -> None:
        """Let go of Chroma: blocks until the calls under way are done."""

    async def run(self, call: Callable[[], T]) -> T:
        """Run ``call`` in a worker thread. StoreError for whatever Chroma raises."""
        if self.process != os.getpid():  # a forked child has the object, but not its threads
            raise StoreError(sentences("index_closed"))
        try:
            future = self._workers.submit(self._guard, call)
        except RuntimeError:
            raise StoreError(sentences("index_closed")) from None
        return await asyncio.wrap_future(future)

    def find(self, tenant: str, assistant: str) -> "Collection | None":
        """The collection of an assistant, if there is one. In a worker thread only."""
        from chromadb.errors import NotFoundError

        known = self._collections.get((tenant, assistant))
        if known is not None:
            return known
        try:
            model = self.server().get_collection(collection_name(assistant), database=database_name(tenant))
        except NotFoundError:
            return None
        return self._keep(tenant, assistant, model)

    def create(self, tenant: str, assistant: str, metadata: dict[str, str | int]) -> "Collection":
        """A new collection in cosine space, or the one that somebody else just made. In a worker thread only."""
        self._ensure_database(database_name(tenant))
        model = self.server().create_collection(
            collection_name(assistant),
            metadata=metadata,
            configuration={"hnsw": {"space": "cosine"}},
            get_or_create=True,
            database=database_name(tenant),
        )
        return self._keep(tenant, assistant, model)

    def drop(self, tenant: str, assistant: str) -> None:
        """Remove a collection with all its vectors. In a worker thread only."""
        if self.find(tenant, assistant) is None:
            return
        self.has_leftovers = True
        self.server().delete_collection(collection_name(assistant), database=database_name(tenant))
        self.forget(tenant, assistant)

    def forget(self, tenant: str, assistant: str) -> None:
        """Look the collection up again at its next use: somebody else may have replaced it."""
        self._collections.pop((tenant, assistant), None)

    def _keep(self, tenant: str, assistant: str, model: object) -> "Collection":
        from chromadb import Collection

        # Without an embedding function Chroma cannot embed, download or compare anything.
        collection = Collection(client=self.server(), model=model, embedding_function=None)  # type: ignore[arg-type]
        self._collections[tenant, assistant] = collection
        return collection

    def _ensure_database(self, name: str) -> None:
        from chromadb.errors import NotFoundError, UniqueConstraintError

        try:
            self.server().get_database(name)
        except NotFoundError:
            try:
                self.server().create_database(name)
            except UniqueConstraintError:
                return

    def _guard(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except RecuerdoError:
            raise
        except BaseException as error:  # a panic in Chroma's Rust part is no Exception
            kind = type(error).__name__
            logger.warning("vector index %s: %s: %s", self.name, kind, error)
            raise StoreError(self.broken(kind)) from error
