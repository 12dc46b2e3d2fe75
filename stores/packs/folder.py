"""Reads the folder of a pack: what does not matter is levelled, what could be read in two ways is refused.

Line ends, a byte-order mark, the order of the files, the form of accents in their names, hidden files and dates
make no difference. Every other byte does (OR-14).
"""

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from recuerdo.state.errors import SettingsError
from recuerdo.state.os_errors import system_reason
from recuerdo.state.plan import PACK_NAME
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.stores.packs.formats import CHECKS
from recuerdo.stores.packs.pack import Pack, PackFile
from recuerdo.stores.postgres.arguments import shown

sentences = load_sentences(__package__)

LARGEST_PACK = 256 * 1024
"""Bytes of all files together: about twenty times of what a plan's budget takes by default."""

MOST_FILES = 200

_HIDDEN_BY_OTHERS = {"thumbs.db", "desktop.ini"}
# What some file system refuses or changes: separators, quotes, wildcards, a blank or dot at the end.
_NOT_EVERYWHERE = re.compile(r'[\\:*?"<>|]|[ .]$|^ ')
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SUFFIXES = ", ".join(CHECKS)


def read_folder(folder: Path, name: str | None = None) -> Pack:
    """The pack of a folder of Markdown, CSV and YAML; ``name`` None takes the folder's own.

    Blocks. Raises SettingsError that names the file and what is wrong with it.
    """
    name = folder.resolve().name if name is None else name
    if not isinstance(name, str) or not re.fullmatch(PACK_NAME, name):
        raise SettingsError(sentences("name_invalid", name=shown(name)))
    files = list(_files(folder))
    if not files:
        raise SettingsError(sentences("folder_empty", folder=folder, suffixes=_SUFFIXES))
    return Pack.of(name, files)


def _files(folder: Path) -> Iterator[PackFile]:
    left = LARGEST_PACK
    for number, (named, path) in enumerate(_checked_paths(folder), 1):
        if number > MOST_FILES:
            raise _refused(path, sentences("too_many_files", limit=MOST_FILES))
        content = _content(path, left)
        left -= len(content)
        yield PackFile(named, _text(path, content))


def _checked_paths(folder: Path, above: str = "") -> Iterator[tuple[str, Path]]:
    """Every file that is not hidden: its path in the pack, and where it is read from."""
    for name, entry in _entries(folder).items():
        path = folder / entry.name
        if entry.is_symlink():
            raise _refused(path, sentences("file_link"))
        if entry.is_dir():
            yield from _checked_paths(path, f"{above}{name}/")
        elif not entry.is_file():
            raise _refused(path, sentences("file_special"))
        elif path.suffix.lower() not in CHECKS:
            raise _refused(path, sentences("file_suffix", suffixes=_SUFFIXES))
        else:
            yield above + name, path


def _entries(folder: Path) -> dict[str, os.DirEntry[str]]:
    """What is not hidden in a folder, by its name in NFC: a name that some machine would change is refused."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise SettingsError(
            sentences("folder_unreadable", folder=_printable(folder), reason=system_reason(error))
        ) from None
    by_name: dict[str, os.DirEntry[str]] = {}
    seen: dict[str, str] = {}
    for entry in entries:
        name = unicodedata.normalize("NFC", entry.name)
        if name.startswith(".") or name.lower() in _HIDDEN_BY_OTHERS:
            continue
        if not name.isprintable() or _NOT_EVERYWHERE.search(name):
            raise _refused(Path(entry.path), sentences("file_name"))
        twin = seen.setdefault(name.casefold(), entry.path)
        if twin != entry.path:
            raise _refused(Path(entry.path), sentences("file_twin", twin=twin))
        by_name[name] = entry
    return by_name


def _content(path: Path, left: int) -> bytes:
    try:
        # A link that was put here after the look at it is not followed.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(left + 1)
    except OSError as error:
        raise _refused(path, sentences("file_unreadable", reason=system_reason(error))) from None
    if len(content) > left:
        raise _refused(path, sentences("file_too_large", limit=LARGEST_PACK))
    return content


def _text(path: Path, content: bytes) -> str:
    """The text as it is sealed, once its format has been checked."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(path, sentences("file_not_utf8")) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _CONTROL.search(text):
        raise _refused(path, sentences("file_binary"))
    if not text.strip():
        raise _refused(path, sentences("file_empty"))
    if fault := CHECKS[path.suffix.lower()](text):
        raise _refused(path, fault)
    return text


def _refused(path: Path, reason: Sentence) -> SettingsError:
    return SettingsError(sentences("file_refused", file=_printable(path), reason=reason))


def _printable(path: Path) -> str:
    """A path that an error can show, though its name is no text."""
    return str(path).encode("utf-8", "backslashreplace").decode()
