"""One folder of embedded Chroma: its lock, its worker thread, and who in this process shares it.

Two processes on one folder corrupt the index silently, so a process writes only while it holds the folder's
lock, which the kernel drops when the process dies. Within the process all users share one client.
"""

import fcntl
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from recuerdo.state.sentences import Sentence
from recuerdo.stores.chroma.connection import ChromaConnection, sentences
from recuerdo.stores.chroma.leftovers import remove_leftovers

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api import ServerAPI
    from chromadb.config import System

# Each collection in use costs Chroma 4 descriptors and 2.6 MB. The ones beyond a fifth of the descriptors it
# throws out of memory, and those that were never written to disk it then cannot find again.
_COLLECTIONS_IN_USE = 32


class ChromaFolder(ChromaConnection):
    """An open folder. Its one worker thread runs every call in order."""

    def __init__(self, path: Path) -> None:
        """Open ``path``: blocks. BlockingIOError when another process has it, OSError, StoreError."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self.users = 0
        self._lock = _take_lock(path / "writer.lock")
        super().__init__(str(path), threads=1)
        try:
            self._system, self._server = self._workers.submit(self._guard, self._connect).result()
        except BaseException:
            self._let_go()
            raise

    def server(self) -> "ServerAPI":
        """See ChromaConnection."""
        return self._server

    def broken(self, kind: str) -> Sentence:
        """See ChromaConnection."""
        return sentences("index_broken", folder=self.path, kind=kind)

    def find(self, tenant: str, assistant: str) -> "Collection | None":
        """See ChromaConnection; not too many collections stay in use at once."""
        if (tenant, assistant) not in self._collections and len(self._collections) >= _COLLECTIONS_IN_USE:
            self._reopen()
        return super().find(tenant, assistant)

    def purge(self) -> None:
        """See ChromaConnection. Takes some 50 ms, and what Chroma has in memory is read anew afterwards."""
        if self.has_leftovers:
            self._stop()
            self._system, self._server = self._connect()

    def close(self) -> None:
        """Close the client and give the lock back: blocks until the calls under way are done."""
        try:
            self._workers.submit(self._guard, self._stop).result()
        finally:
            self._let_go()

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
        self._stop()
        self._system, self._server = self._connect()

    def _stop(self) -> None:
        """Stop Chroma; with nobody in its files, what was deleted is taken out of them."""
        self._collections.clear()
        self._system.stop()
        if self.has_leftovers:
            self.has_leftovers = False
            remove_leftovers(self.path)

    def _let_go(self) -> None:
        self._workers.shutdown()
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
            folder.close()
