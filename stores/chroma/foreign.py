"""Chroma folders that another program made: their documents are read from a copy, never from the folder itself.

Only ids, texts and metadata count. Vectors are made anew from the texts, so it does not matter which embedding
function or how many dimensions a collection has (known faults 11 to 13).
"""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from recuerdo.state.errors import RecuerdoError, SettingsError, StoreError
from recuerdo.state.os_errors import system_reason
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from chromadb import Collection

sentences = load_sentences(__package__, "foreign_sentences.yaml")

DATABASE_FILE = "chroma.sqlite3"
"""Where Chroma keeps ids, texts and metadata; vectors lie in folders beside it."""

_PAGE = 1_000


@dataclass(frozen=True)
class ForeignDocument:
    """What a collection holds under one id; ``text`` is None for a vector alone."""

    id: str
    text: str | None
    metadata: dict[str, Any]


async def read_documents(folder: Path) -> dict[str, list[ForeignDocument]]:
    """All documents by collection. Needs the space of a copy of ``chroma.sqlite3`` for temporary files.

    Raises SettingsError when ``folder`` holds no Chroma database or cannot be read, StoreError when Chroma cannot
    open its copy.
    """
    return await asyncio.to_thread(_read, folder)


def _read(folder: Path) -> dict[str, list[ForeignDocument]]:
    with TemporaryDirectory(prefix="recuerdo-import-") as copy:
        _copy(folder, Path(copy))
        try:
            return _read_copy(Path(copy))
        except RecuerdoError:
            raise
        except BaseException as error:  # a panic in Chroma's Rust part is no Exception
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise StoreError(sentences("foreign_broken", folder=folder, kind=type(error).__name__)) from error


def _copy(folder: Path, to: Path) -> None:
    """The database with its journals, if there are any: what was written last may stand there."""
    try:
        if not (folder / DATABASE_FILE).is_file():
            raise SettingsError(sentences("foreign_missing", folder=folder))
        for part in folder.glob(f"{DATABASE_FILE}*"):
            shutil.copyfile(part, to / part.name)
    except OSError as error:
        raise SettingsError(
            sentences("foreign_unreadable", folder=folder, reason=system_reason(error))
        ) from None


def _read_copy(folder: Path) -> dict[str, list[ForeignDocument]]:
    # Here, not above: chromadb takes 0.8 s and 50 MB to import.
    from chromadb import Collection
    from chromadb.api import ServerAPI
    from chromadb.config import Settings, System

    system = System(
        Settings(
            chroma_api_impl="chromadb.api.rust.RustBindingsAPI",
            anonymized_telemetry=False,
            is_persistent=True,
            persist_directory=str(folder),
        )
    )
    server = system.instance(ServerAPI)  # type: ignore[type-abstract]
    system.start()
    try:
        return {
            # With no embedding function there is none to be in conflict with the one that was kept.
            model.name: list(_documents(Collection(client=server, model=model, embedding_function=None)))
            for model in server.list_collections()
        }
    finally:
        system.stop()


def _documents(collection: "Collection") -> Iterator[ForeignDocument]:
    for offset in range(0, collection.count(), _PAGE):
        page = collection.get(limit=_PAGE, offset=offset, include=["documents", "metadatas"])
        texts, metadata = page["documents"] or [], page["metadatas"] or []
        for key, text, values in zip_longest(page["ids"], texts, metadata):
            yield ForeignDocument(key, text, dict(values or {}))
