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


# What every SQLite file begins with.
_SQLITE = b"SQLite format 3\0"


class ChromaFolder(ChromaConnection):
    """An open folder. Its one worker thread runs every call in order.

    Chroma itself is loaded at the first call (0.8 s, 50 MB): many a process reads and writes no vector.
    """

    def __init__(self, path: Path) -> None:
        """Open ``path``: blocks. BlockingIOError when another process has it, OSError, StoreError."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self.users = 0
        self._lock = _take_lock(path / "writer.lock")
        super().__init__(str(path), threads=1)
        self._connected: tuple[System, ServerAPI] | None = None
        try:
            if _is_damaged(path / "chroma.sqlite3"):
                # At once, so that Chroma says what is wrong.
                self._workers.submit(self._guard, self.server).result()
        except BaseException:
            self._let_go()
            raise

    def server(self) -> "ServerAPI":
        """See ChromaConnection."""
        if self._connected is None:
            self._connected = self._connect()
        return self._connected[1]

    def broken(self, kind: str) -> Sentence:
        """See ChromaConnection."""
        return sentences("index_broken", folder=self.path, kind=kind)

    def find(self, tenant: str, assistant: str) -> "Collection | None":
        """See ChromaConnection; not too many collections stay in use at once."""
        if (tenant, assistant) not in self._collections and len(self._collections) >= _COLLECTIONS_IN_USE:
            self._stop()
        return super().find(tenant, assistant)

    def purge(self) -> None:
        """See ChromaConnection. Takes some 50 ms, and what Chroma has in memory is read anew afterwards."""
        if self.has_leftovers:
            self._stop()

    def close(self) -> None:
        """Close the client and give the lock back: blocks until the calls under way are done."""
        try:
            self._workers.submit(self._guard, self._stop).result()
        finally:
            self._let_go()

    def _connect(self) -> "tuple[System, ServerAPI]":
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

    def _stop(self) -> None:
        """Stop Chroma until the next call; with nobody in its files, what was deleted is taken out of them."""
        self._collections.clear()
        connected, self._connected = self._connected, None
        if connected:
            connected[0].stop()
        if self.has_leftovers:
            self.has_leftovers = False
            remove_leftovers(self.path)

    def _let_go(self) -> None:
        self._workers.shutdown()
        os.close(self._lock)


def _is_damaged(database: Path) -> bool:
    """Whether Chroma's database is there and is none: seen at a glance, before Chroma is loaded."""
    try:
        with database.open("rb") as file:
            return file.read(len(_SQLITE)) != _SQLITE
    except FileNotFoundError:
        return False


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
