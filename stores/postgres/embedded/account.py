"""The operating-system account that the server's programs run as. PostgreSQL refuses to run as root."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import load_sentences

if sys.platform != "win32":
    import pwd

sentences = load_sentences("recuerdo.stores.postgres")

# What the server inherits of our environment: nothing. The keys in it are none of its business, and
# PGPORT, PGDATA or LANG of the user's shell must not change what it does.
_ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"}


@dataclass(frozen=True)
class Account:
    """An account to run programs as; ``user`` and ``group`` are None for the one that this process has."""

    user: int | None = None
    group: int | None = None

    @property
    def extra_groups(self) -> list[int] | None:
        """No other groups for a switched account, so that nothing of root's is left."""
        return None if self.user is None else []

    def run(
        self, command: Sequence[str | Path], folder: Path, *, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run ``command`` in ``folder`` to its end. Raises OSError where it cannot be executed, and
        subprocess.TimeoutExpired."""
        with _refusals():
            return subprocess.run(
                command,
                cwd=folder,
                env=_ENVIRONMENT,
                user=self.user,
                group=self.group,
                extra_groups=self.extra_groups,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
            )

    def launch(
        self, command: Sequence[str | Path], folder: Path, *, output: int, lock: int
    ) -> "subprocess.Popen[bytes]":
        """Start ``command`` in ``folder`` in a session of its own, so that Ctrl-C in our terminal does not
        reach it. It keeps the descriptors ``output`` and ``lock`` and no other: none of our pipes."""
        with _refusals():
            return subprocess.Popen(
                command,
                cwd=folder,
                env=_ENVIRONMENT,
                user=self.user,
                group=self.group,
                extra_groups=self.extra_groups,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(lock,),
                start_new_session=True,
            )

    def own(self, path: Path) -> None:
        """Give ``path``, which this process has just made, to the account."""
        if self.user is None or self.group is None:
            return
        with _refusals():
            os.chown(path, self.user, self.group, follow_symlinks=False)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turns "operation not permitted" into a StoreError: root without the right to change accounts."""
    try:
        yield
    except PermissionError as error:
        if error.errno != errno.EPERM:
            raise
        raise StoreError(sentences("server_account_refused")) from error


def server_account(folder: Path, cluster: Path) -> Account:
    """The account for the data in ``folder``: our own, or for root an account without rights.

    That is the owner of ``cluster``, else the owner of ``folder``, else `nobody`; never root.
    """
    if os.geteuid() != 0:
        return Account()
    for path in (cluster, folder):
        account = _owner(path)
        if account is not None:
            return account
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid)


def _owner(path: Path) -> Account | None:
    """The owner of ``path`` where it is an account with a name other than root (initdb needs the name)."""
    try:
        entry = pwd.getpwuid(path.stat().st_uid)
    except (FileNotFoundError, KeyError):
        return None
    return Account(entry.pw_uid, entry.pw_gid) if entry.pw_uid != 0 else None
