"""The supervisor: one PostgreSQL server for all processes that use a folder, stopped after the last."""

import atexit
import errno
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recuerdo.state.errors import StoreError
from recuerdo.state.os_errors import system_reason
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.embedded.account import server_account
from recuerdo.stores.postgres.embedded.binaries import Binaries, find_binaries
from recuerdo.stores.postgres.embedded.cluster import Cluster
from recuerdo.stores.postgres.embedded.locks import Membership, exclusive

sentences = load_sentences("recuerdo.stores.postgres")
logger = logging.getLogger(__name__)

_START_SECONDS = 60  # also for the recovery after a crash
_STOP_SECONDS = 30
_WATCH_SECONDS = 0.5
_LOCK_SECONDS = 200  # longer than another process may need to make a cluster and to start its server
_REASONS = {
    errno.EACCES: "server_folder_no_permission",
    errno.EPERM: "server_folder_no_permission",
    errno.EROFS: "server_folder_read_only",
    errno.ENOSPC: "server_disk_full",
    errno.EDQUOT: "server_disk_full",
}


class EmbeddedServer:
    """A PostgreSQL server of our own in one folder, shared by all processes that use the folder (IM-37).

    The server listens on a Unix socket only and belongs to no process: it runs from the first client's
    :meth:`start` to the last client's :meth:`stop`. A client that is killed counts no more. A server that
    outlives all its clients is stopped by the next one that ends last. While a client is there, a server that
    dies is started again. Safe to use from several threads.
    """

    version: str
    """The running server's version, such as "18.6"; empty before the first start."""

    def __init__(self, folder: Path) -> None:
        self.version = ""
        self._folder = folder.absolute()
        self._mutex = threading.Lock()
        self._membership: Membership | None = None
        self._left = threading.Event()

    def start(self) -> str:
        """Join as a client, start the server where none answers, and return how to connect (libpq conninfo).

        Blocking (about a second on a fresh folder); may be called again, which also restarts a server that
        has died. Raises StoreError: folder not usable, no programs for this machine, data of another major
        version, server that does not start.
        """
        if sys.platform == "win32":
            raise StoreError(sentences("server_not_on_windows"))
        with self._mutex, _folder_errors(self._folder):
            self._folder.mkdir(mode=0o711, parents=True, exist_ok=True)
            with exclusive(self._folder / "start.lock", _LOCK_SECONDS):
                return self._join()

    def stop(self) -> None:
        """Leave; the last client stops the server. Also called at the end of the process; never raises."""
        with self._mutex:
            membership, self._membership = self._membership, None
            if membership is None:
                return
            atexit.unregister(self.stop)
            self._left.set()
            try:
                self._leave(membership)
            except (OSError, StoreError) as error:
                logger.warning("%s (%s)", sentences("server_not_stopped", folder=self._folder).en, error)
            finally:
                membership.close()

    @property
    def pid(self) -> int | None:
        """The number of the server process (postmaster); None where none is running."""
        with _folder_errors(self._folder):
            running = self._cluster().postmaster()
        return running.pid if running else None

    def _join(self) -> str:
        if self._membership is not None and self._membership.is_inherited:
            self._membership.close()
            self._membership = None
        if self._membership is not None:
            return self._ensure_running()
        membership = Membership(self._folder / "clients.lock")
        try:
            conninfo = self._ensure_running()
        except BaseException:
            membership.close()
            raise
        self._membership = membership
        atexit.register(self.stop)
        self._watch()
        return conninfo

    def _watch(self) -> None:
        """Look after the server until we leave. A fork has no such thread, and is no client."""
        left = self._left = threading.Event()
        threading.Thread(
            target=self._revive, args=(left,), name="recuerdo-postgres-watch", daemon=True
        ).start()

    def _revive(self, left: threading.Event) -> None:
        told = ""
        while not left.wait(_WATCH_SECONDS):
            try:
                if self.pid is None:
                    self._restart(left)
                told = ""
            except (OSError, StoreError) as error:
                # Once for each reason, not twice a second.
                if str(error) != told:
                    logger.warning("%s", error)
                told = str(error)

    def _restart(self, left: threading.Event) -> None:
        with self._mutex, _folder_errors(self._folder):
            if left.is_set():
                return
            with exclusive(self._folder / "start.lock", _LOCK_SECONDS):
                self._ensure_running()
        logger.warning("%s", sentences("server_revived", folder=self._folder).en)

    def _leave(self, membership: Membership) -> None:
        if membership.is_inherited:
            return
        with exclusive(self._folder / "start.lock", _LOCK_SECONDS):
            if membership.is_last() and not self._cluster().stop(_STOP_SECONDS):
                logger.warning("%s", sentences("server_not_stopped", folder=self._folder).en)

    def _cluster(self) -> Cluster:
        return Cluster(self._folder, server_account(self._folder, self._folder / "cluster"))

    def _ensure_running(self) -> str:
        cluster = self._cluster()
        version = cluster.answers()
        if version is None:
            binaries = find_binaries(cluster.account, cluster.major)
            if cluster.major is None:
                cluster.create(binaries)
            version = _start_server(cluster, binaries)
        self.version = version
        return cluster.conninfo()


def _start_server(cluster: Cluster, binaries: Binaries) -> str:
    """Wait until the server answers, starting it where there is none, and return its version."""
    process: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process is None and cluster.postmaster() is None:
            process = cluster.launch(binaries)
            _reap(process)
        if process is not None and process.returncode is not None:
            raise StoreError(sentences("server_failed", reason=cluster.last_words()))
        version = cluster.answers()
        if version is not None:
            return version
        time.sleep(0.005)
    raise StoreError(sentences("server_slow", seconds=_START_SECONDS, log=cluster.last_words()))


def _reap(process: "subprocess.Popen[bytes] | None") -> None:
    """Take note of the end of our child whenever that is: as a zombie it would look alive to others."""
    if process is not None:
        threading.Thread(target=process.wait, name="recuerdo-postgres", daemon=True).start()


@contextmanager
def _folder_errors(folder: Path) -> Iterator[None]:
    """Says in a sentence why the operating system does not let us use the folder."""
    try:
        yield
    except OSError as error:
        key = _REASONS.get(error.errno or 0, "server_folder_failed")
        raise StoreError(sentences(key, folder=folder, reason=system_reason(error))) from error
