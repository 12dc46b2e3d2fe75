"""One folder of embedded Chroma: its lock, its worker thread, and who in this process shares it.

Two processes on one folder corrupt the index silently, so a process writes only while it holds the folder's
lock, which the kernel drops when the process dies. Within the process all users share one client.
"""

import asyncio
import fcntl
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from recuerdo.state.errors import RecuerdoError, StoreError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.chroma.names import collection_name, database_name

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api import ServerAPI
    from chromadb.config import System

sentences = load_sentences(__package__)
logger = logging.getLogger(__name__)

T = TypeVar("T")

# Each collection in use costs Chroma 4 descriptors and 2.6 MB. The ones beyond a fifth of the descriptors it
# throws out of memory, and those that were never written to disk it then cannot find again.
_COLLECTIONS_IN_USE = 32


class ChromaFolder:
    """An open folder. Every call of Chroma runs in its one worker thread, in order, off the event loop."""

    def __init__(self, path: Path) -> None:
        """Open ``path``: blocks. BlockingIOError when another process has it, OSError, StoreError."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self.users = 0
        self.process = os.getpid()
        self._collections: dict[tuple[str, str], Collection] = {}
        self._lock = _take_lock(path / "writer.lock")
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="recuerdo-chroma")
        try:
            self._system, self._server = self._worker.submit(self._guard, self._connect).result()
        except BaseException:
            self._let_go()
            raise

    async def run(self, call: Callable[[], T]) -> T:
        """Run ``call`` in the worker thread. StoreError for whatever Chroma raises."""
        if self.process != os.getpid():  # a forked child has the object, but not its thread
            raise StoreError(sentences("index_closed"))
        try:
            future = self._worker.submit(self._guard, call)
        except RuntimeError:
            raise StoreError(sentences("index_closed")) from None
        return await asyncio.wrap_future(future)

    def stop(self) -> None:
        """Close the client and give the lock back: blocks until the calls under way are done."""
        self._collections.clear()
        try:
            self._worker.submit(self._guard, self._system.stop).result()
        finally:
            self._let_go()

    def find(self, tenant: str, assistant: str) -> "Collection | None":
        """The collection of an assistant, if there is one. In the worker thread only."""
        from chromadb import Collection
        from chromadb.errors import NotFoundError

        known = self._collections.get((tenant, assistant))
        if known is not None:
            return known
        if len(self._collections) >= _COLLECTIONS_IN_USE:
            self._reopen()
        try:
            model = self._server.get_collection(collection_name(assistant), database=database_name(tenant))
        except NotFoundError:
            return None
        # Without an embedding function Chroma cannot embed, download or compare anything.
        collection = Collection(client=self._server, model=model, embedding_function=None)
        self._collections[tenant, assistant] = collection
        return collection

    def create(self, tenant: str, assistant: str, metadata: dict[str, str | int]) -> "Collection":
        """A new collection in cosine space. In the worker thread only."""
        self._ensure_database(database_name(tenant))
        self._server.create_collection(
            collection_name(assistant),
            metadata=metadata,
            configuration={"hnsw": {"space": "cosine"}},
            database=database_name(tenant),
        )
        collection = self.find(tenant, assistant)
        if collection is None:
            raise StoreError(sentences("index_broken", folder=self.path, kind="create"))
        return collection

    def drop(self, tenant: str, assistant: str) -> None:
        """Remove a collection with all its vectors. In the worker thread only."""
        if self.find(tenant, assistant) is None:
            return
        self._server.delete_collection(collection_name(assistant), database=database_name(tenant))
        del self._collections[tenant, assistant]

    def _connect(self) -> "tuple[System, ServerAPI]":
        # Here, not above: chromadb takes 0.8 s and 50 MB to import.
        from chromadb.api import ServerAPI
        from chromadb.config import Settings, System

        system = System(
            Settings(
                chroma_api_impl="chromadb.api.rust.RustBindingsAPI",
                anonymized_telemetry=False,
                is_persistent=True,
                persist_directory=str(self.path),
            )
        )
        server = system.instance(ServerAPI)  # type: ignore[type-abstract]
        system.start()
        return system, server

    def _reopen(self) -> None:
        self._collections.clear()
        self._system.stop()
        self._system, self._server = self._connect()

    def _ensure_database(self, name: str) -> None:
        from chromadb.errors import NotFoundError

        try:
            self._server.get_database(name)
        except NotFoundError:
            self._server.create_database(name)

    def _guard(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except RecuerdoError:
            raise
        except BaseException as error:  # a panic in Chroma's Rust part is no Exception
            kind = type(error).__name__
            logger.warning("vector index %s: %s: %s", self.path, kind, error)
            raise StoreError(sentences("index_broken", folder=self.path, kind=kind)) from error

    def _let_go(self) -> None:
        self._worker.shutdown()
        os.close(self._lock)


def _take_lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


_open: dict[Path, ChromaFolder] = {}
_opening = threading.Lock()


def acquire(path: Path) -> ChromaFolder:
    """The open folder at ``path``, opened if nobody in this process has it: blocks. ``release`` it."""
    path = path.resolve()
    with _opening:
        folder = _open.get(path)
        if folder is None or folder.process != os.getpid():
            folder = _open[path] = ChromaFolder(path)
        folder.users += 1
        return folder


def release(folder: ChromaFolder) -> None:
    """One user less; the last one closes the folder: blocks. A forked child leaves it to its parent."""
    if folder.process != os.getpid():
        return
    with _opening:
        folder.users -= 1
        if folder.users == 0:
            del _open[folder.path]
            folder.stop()
