"""The data folder of an embedded server, and the server process that works in it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.embedded.account import Account
from recuerdo.stores.postgres.embedded.binaries import Binaries
from recuerdo.stores.postgres.embedded.locks import open_file, take

sentences = load_sentences("recuerdo.stores.postgres")

NAME = "recuerdo"  # of the database and of its superuser
_PORT = "5432"  # only a part of the socket's name: there is no TCP
_SOCKET = f".s.PGSQL.{_PORT}"
_LONGEST_SOCKET = 103  # bytes without the closing NUL: 108 on Linux, 104 on macOS
_SMALLEST_DISK = 128 * 1024**2  # bytes; a fresh cluster with its database takes about 50 MB
_LARGEST_LOG = 1024**2  # bytes
_INITDB_SECONDS = 120
_CONNECT_SECONDS = 5
_ORPHAN_SECONDS = 2  # what processes of a server that was killed take to end
_ENDING = "57P"  # SQLSTATEs of a server that is shutting down; one that was killed gives none at all
# The first that the system has. Words are cut by the character type: under plain C, the signs in «hola» and
# ¿qué would count as letters, and the lexical search would miss them. Sorting never depends on the system.
_CHARACTER_TYPES = ("C.UTF-8", "en_US.UTF-8", "C")

_SETTINGS = {
    "listen_addresses": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Small: one machine, few clients, no replicas. fsync stays on: a power cut loses nothing.
    "max_connections": "50",
    "shared_buffers": "32MB",
    "huge_pages": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
    "max_logical_replication_workers": "0",
    "max_worker_processes": "0",  # parallel queries need /dev/shm, of which a container has 64 MB
    # The log shall hold no text of a user's: no statements, no values of a failed constraint.
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_SETTINGS_18 = {"io_method": "sync"}  # no processes for reading ahead


@dataclass(frozen=True)
class Postmaster:
    """The server process that works in a cluster, and whether it says that it takes connections."""

    pid: int
    ready: bool


class Cluster:
    """The cluster ``<folder>/cluster`` and what is done with it.

    Nothing here is safe against a second process: the caller holds the exclusive lock.
    """

    def __init__(self, folder: Path, account: Account) -> None:
        self.path = folder / "cluster"
        self.account = account
        self._folder = folder
        self._log = folder / "server.log"
        self._lock = folder / "server.lock"

    @property
    def major(self) -> int | None:
        """The major version that made the cluster; None where there is none yet."""
        try:
            return int((self.path / "PG_VERSION").read_text())
        except FileNotFoundError:
            return None

    def create(self, binaries: Binaries) -> None:
        """Make the cluster: under another name, then renamed, so that one with its final name is whole.

        Raises StoreError where there is no room or initdb fails.
        """
        free = shutil.disk_usage(self._folder).free
        if free < _SMALLEST_DISK:
            raise StoreError(sentences("server_disk_full", folder=self._folder))
        for character_type in _CHARACTER_TYPES:
            unfinished = self._unfinished_folder()
            result = self._initdb(binaries, unfinished, character_type)
            if "invalid locale name" not in result.stdout:
                break
        if result.returncode:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise StoreError(sentences("server_init_failed", reason=_last_lines(result.stdout)))
        unfinished.rename(self.path)
        _sync_folder(self._folder)

    def _unfinished_folder(self) -> Path:
        """A new empty folder for initdb. Those of attempts that were broken off are removed; the new one has
        another name, since an initdb may still be running that its client did not outlive."""
        prefix = "cluster.unfinished-"
        for abandoned in self._folder.glob(f"{prefix}*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self._folder))
        self.account.own(folder)
        return folder

    def _initdb(
        self, binaries: Binaries, folder: Path, character_type: str
    ) -> subprocess.CompletedProcess[str]:
        if binaries.major >= 17:
            sorting = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        else:
            sorting = ["--locale=C"]
        command: list[str | Path] = [
            binaries.folder / "initdb",
            f"--pgdata={self._seen_by_server(folder)}",
            f"--username={NAME}",
            "--encoding=UTF8",
            *sorting,
            f"--lc-ctype={character_type}",
            "--auth-local=trust",
            "--auth-host=reject",
            "--data-checksums",
            "--no-instructions",
        ]
        try:
            return self.account.run(command, folder, seconds=_INITDB_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise StoreError(sentences("server_slow", seconds=_INITDB_SECONDS, log="initdb")) from error

    def launch(self, binaries: Binaries) -> "subprocess.Popen[bytes] | None":
        """Start the server process; it is ready some time later. Its output goes to the log.

        Returns None while any process of an earlier server is still there. All of them hold one lock, so that
        also one is noticed that we cannot see: in another container on the same volume, or an orphan.
        """
        lock = take(self._lock)
        if lock is None:
            return None
        try:
            return self._launch(binaries, lock)
        finally:
            os.close(lock)

    def _launch(self, binaries: Binaries, lock: int) -> "subprocess.Popen[bytes]":
        settings = _SETTINGS | (_SETTINGS_18 if binaries.major >= 18 else {})
        settings["cluster_name"] = self._mark
        # The socket is named relative to the data folder: so the server needs no way from the root to it.
        data = self._seen_by_server(self.path)
        command: list[str | Path] = [binaries.folder / "postgres", "-D", data, "-k", ".", "-p", _PORT]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        self._clear_foreign_pids()
        log = open_file(self._log, os.O_WRONLY | os.O_APPEND)
        try:
            if os.fstat(log).st_size > _LARGEST_LOG:
                os.ftruncate(log, 0)
            return self.account.launch(command, self.path, output=log, lock=lock)
        finally:
            os.close(log)

    def postmaster(self) -> Postmaster | None:
        """The live server of this cluster, from its pid file."""
        written = self._pid_file()
        if written is None or not self._is_served_by(written.pid):
            return None
        return written

    def answers(self) -> str | None:
        """The server's version if it takes a connection, else None. Makes the database if it is missing."""
        written = self._pid_file()
        if written is None or not written.ready:
            return None
        try:
            connection = psycopg.connect(
                self.conninfo("postgres"), autocommit=True, connect_timeout=_CONNECT_SECONDS
            )
        except psycopg.OperationalError:
            return None
        try:
            with connection:
                found = connection.execute("SELECT FROM pg_database WHERE datname = %s", [NAME])
                if not found.rowcount:
                    connection.execute(f"CREATE DATABASE {NAME}")
                return connection.info.parameter_status("server_version")
        except psycopg.Error as error:
            if error.sqlstate is None or error.sqlstate.startswith(_ENDING):
                return None
            raise StoreError(sentences("server_failed", reason=_last_lines(str(error)))) from error

    def stop(self, seconds: float) -> bool:
        """Shut the server down (its "fast" way: sessions are ended, everything is written).

        Returns whether it is gone after ``seconds``; if not, it goes on shutting down by itself.
        """
        running = self.postmaster()
        if running is not None:
            with suppress(ProcessLookupError):
                os.kill(running.pid, signal.SIGINT)
        deadline = time.monotonic() + (seconds if running else _ORPHAN_SECONDS)
        while (lock := take(self._lock)) is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        os.close(lock)
        self._drop_link()
        return True

    def conninfo(self, database: str = NAME) -> str:
        """How to connect. Raises StoreError where another account holds the link to a long path."""
        return make_conninfo("", host=str(self._socket_folder()), port=_PORT, user=NAME, dbname=database)

    def last_words(self) -> str:
        """The last lines of the server's log, as one line."""
        try:
            return _last_lines(self._log.read_text(errors="replace"))
        except FileNotFoundError:
            return ""

    @property
    def _mark(self) -> str:
        """Tells the servers of two folders apart on the command line: by inode, so however it is reached."""
        found = self.path.stat()
        return f"{NAME}-{found.st_dev:x}-{found.st_ino:x}"

    def _seen_by_server(self, folder: Path) -> Path:
        """``folder`` as its server names it, who works in it.

        Root's unprivileged account may have no way to it from the root, below /root for one. The working
        folder is entered while the child is still root, and stays reachable under this name.
        """
        here = Path("/proc/self/cwd")
        return here if self.account.user is not None and here.exists() else folder

    def _pid_file(self) -> Postmaster | None:
        try:
            lines = (self.path / "postmaster.pid").read_text(errors="replace").splitlines()
            pid = abs(int(lines[0]))  # negative for a server in single-user mode
        except (FileNotFoundError, IndexError, ValueError):
            return None
        return Postmaster(pid, len(lines) > 7 and lines[7].strip() == "ready")

    def _clear_foreign_pids(self) -> None:
        """Remove what a dead server left, where its number now belongs to a process of something else.

        PostgreSQL would refuse to start because of it. A pid file that names a dead process is left to
        PostgreSQL. Called when no server of ours is alive.
        """
        (self.path / f"{_SOCKET}.lock").unlink(missing_ok=True)
        written = self._pid_file()
        if written is None or _exists(written.pid):
            (self.path / "postmaster.pid").unlink(missing_ok=True)

    def _is_served_by(self, pid: int) -> bool:
        """Whether process ``pid`` is a server of this cluster: started by us or by hand. A zombie is none."""
        arguments = _command_line(pid)
        if f"cluster_name={self._mark}" in arguments:
            return True
        return bool(arguments) and Path(arguments[0]).name == "postgres" and self._is_working_folder_of(pid)

    def _is_working_folder_of(self, pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/cwd").samefile(self.path)
        except OSError:  # gone, or another account's, or a system without /proc
            return False

    def _drop_link(self) -> None:
        """Remove the short name of a long socket path, if there is one of ours."""
        folder = self._socket_folder()
        if folder != self.path:
            folder.unlink(missing_ok=True)

    def _socket_folder(self) -> Path:
        """The folder of the socket as libpq can take it: short, and without the comma that parts hosts."""
        if _is_usable(self.path):
            return self.path
        found = self.path.stat()
        name = f"{NAME}-{os.geteuid()}-{found.st_dev:x}-{found.st_ino:x}"
        parents = [Path(tempfile.gettempdir()), Path("/tmp")]
        link = next(parent / name for parent in parents if _is_usable(parent / name))
        _link(link, self.path)
        return link


def _is_usable(folder: Path) -> bool:
    socket = os.fsencode(folder / _SOCKET)
    return len(socket) <= _LONGEST_SOCKET and b"," not in socket


def _link(link: Path, target: Path) -> None:
    """Make ``link`` lead to ``target``; never follow one that somebody else has planted."""
    try:
        if link.lstat().st_uid != os.geteuid() or not link.is_symlink():
            raise StoreError(sentences("server_socket_foreign", path=link))
        if link.readlink() == target:
            return
        link.unlink()
    except FileNotFoundError:
        pass
    link.symlink_to(target)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _command_line(pid: int) -> list[str]:
    """The arguments of a live process; nothing for a zombie or none. Anybody may read them (unlike links)."""
    if Path("/proc/self/cmdline").exists():
        try:
            written = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            return []
        return written.rstrip("\0").split("\0") if written else []
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _last_lines(text: str, count: int = 5) -> str:
    return " | ".join(line.strip() for line in text.strip().splitlines()[-count:])
