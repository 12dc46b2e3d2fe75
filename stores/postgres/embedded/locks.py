"""File locks between the processes that use one embedded server. The kernel drops them on kill -9."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import load_sentences

if sys.platform != "win32":
    import fcntl

sentences = load_sentences("recuerdo.stores.postgres")


def open_file(path: Path, flags: int) -> int:
    """Open or create a file of ours, and give a new one to the owner of its folder.

    Root may work in a folder of somebody else's: it must not follow a link planted there, and must not
    leave files that the owner cannot open.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    return descriptor


@contextmanager
def exclusive(path: Path, seconds: float) -> Iterator[None]:
    """Hold ``path`` alone. Raises StoreError when others have not let it go after ``seconds``."""
    descriptor = open_file(path, os.O_RDWR)
    try:
        deadline = time.monotonic() + seconds
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise StoreError(sentences("server_busy", file=path))
            time.sleep(0.02)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # also where a fork has a copy of the descriptor
        os.close(descriptor)


def take(path: Path) -> int | None:
    """Lock ``path`` alone and return the descriptor, which any process may inherit; None if it is locked."""
    descriptor = open_file(path, os.O_RDWR)
    if _try_lock(descriptor, fcntl.LOCK_EX):
        return descriptor
    os.close(descriptor)
    return None


class Membership:
    """This process as one of the clients of a server: a shared lock, held from the making to the leaving."""

    def __init__(self, path: Path) -> None:
        self._descriptor = open_file(path, os.O_RDWR)
        self._process = os.getpid()
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a fork of the one that joined, and so no client itself."""
        return self._process != os.getpid()

    def is_last(self) -> bool:
        """Leave, and say whether no other client is left.

        A flock that cannot be turned into an exclusive one is lost, which is just what leaving means. Called
        only under the exclusive lock of the start, so nobody can join in between.
        """
        return _try_lock(self._descriptor, fcntl.LOCK_EX)

    def close(self) -> None:
        """Let the lock go. In a fork only the copy of the descriptor: the lock is the parent's."""
        if not self.is_inherited:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
