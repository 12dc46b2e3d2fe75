"""Brings in the memories of another memory tool: Chroma folders of ``{assistant_id}_memories`` (ET-27, IM-29).

The folder is only read. Its texts are embedded anew, go through the filter for sensitive data as every text
does, and are kept 90 days from the import: it is their newest write (C-8). Each gets an id of ours; that of the
source stands in its metadata with everything else that stood there, so importing a folder again adds nothing.
"""

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from recuerdo.nodes.receive.language import detect_language
from recuerdo.nodes.run_tools.memory_tool.operations import NOTE, HasMemories
from recuerdo.nodes.services import Clock, system_clock
from recuerdo.state.errors import InputError, ScopeError, SettingsError
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.stores.chroma.foreign import ForeignDocument, read_documents
from recuerdo.stores.memory_store.protocol import UserMemories
from recuerdo.stores.postgres.memories import NewMemory

sentences = load_sentences(__package__, "memory_import_sentences.yaml")

SOURCE_ID = "source_id"
"""Key in a memory's metadata under which an imported one has the id that it had in its source."""

SOURCE_KEY = "source_key"
"""Key beside it of what tells imported memories apart: an id of digits may look like a card, and be masked."""

_COLLECTION = re.compile(r"(?P<assistant>.+)_memories")
_FOLDER = re.compile(r"(?P<assistant>.+)_memories(?:\.db)?")
_OWN_COLUMNS = ("user_id", "memory_id")
_PAGE = 500


@dataclass(frozen=True)
class LeftOut:
    """A document that cannot be a memory, by its id in the source, and why."""

    id: str
    reason: Sentence


@dataclass
class ImportReport:
    """How many memories of how many users came in, how many were there already, and what was left out."""

    imported: int = 0
    present: int = 0
    users: set[str] = field(default_factory=set)
    assistants: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


async def import_chroma(
    store: HasMemories, folder: Path, *, assistant: str | None = None, clock: Clock = system_clock
) -> ImportReport:
    """Import every document of the folder's ``{assistant}_memories`` collections into ``store``.

    ``assistant`` None: every assistant that the collections name; else that one's collection, or the folder's only
    one whatever its name. An import that broke off is taken up by running it again.

    Raises:
        SettingsError: no Chroma database is there, or none of that assistant.
        StoreError: Chroma cannot open its copy, or the store is away.
    """
    collections = await read_documents(folder)
    report = ImportReport()
    for name, documents in _by_assistant(folder, collections, assistant).items():
        report.assistants.append(name)
        bringing = _Import(store.memories(name), clock, report)
        for document in documents:
            await bringing.bring_in(document)
    return report


def _by_assistant(
    folder: Path, collections: dict[str, list[ForeignDocument]], wanted: str | None
) -> dict[str, list[ForeignDocument]]:
    named = {
        match["assistant"]: documents
        for name, documents in collections.items()
        if (match := _COLLECTION.fullmatch(name))
    }
    if wanted is not None and wanted in named:
        return {wanted: named[wanted]}
    if not named and len(collections) == 1:
        # One folder per assistant: then the folder has the name, and the collection may have any.
        match = _FOLDER.fullmatch(folder.resolve().name)
        owner = wanted or (match["assistant"] if match else None)
        if owner is not None:
            return dict.fromkeys([owner], next(iter(collections.values())))
    if wanted is not None and named:
        raise SettingsError(
            sentences("not_of_assistant", folder=folder, assistant=wanted, found=_listed(named))
        )
    if not named:
        raise SettingsError(sentences("no_assistant", folder=folder, found=_listed(collections)))
    return named


def _listed(names: Sequence[str] | dict[str, Any]) -> str:
    return ", ".join(sorted(names)) or "-"


@dataclass
class _Import:
    """The import of one assistant's documents."""

    memories: UserMemories
    clock: Clock
    report: ImportReport
    there: dict[str, set[str]] = field(default_factory=dict)
    """Keys of what each user has already."""

    async def bring_in(self, document: ForeignDocument) -> None:
        user = str(document.metadata.get("user_id") or "").strip()
        try:
            if fault := _fault(document, user):
                raise InputError(fault)
            await self._add(document, user)
        except (InputError, ScopeError) as error:
            self.report.left_out.append(LeftOut(document.id, error.sentence))

    async def _add(self, document: ForeignDocument, user: str) -> None:
        if user not in self.there:
            self.there[user] = await _sources(self.memories, user, self.clock)
        if source_key(document.id) in self.there[user]:
            self.report.present += 1
            return
        await self.memories.add(user, await _memory(document), self.clock())
        self.there[user].add(source_key(document.id))
        self.report.imported += 1
        self.report.users.add(user)


def _fault(document: ForeignDocument, user: str) -> Sentence | None:
    if not (document.text or "").strip():
        return sentences("without_text")
    return None if user else sentences("without_user")


async def _sources(memories: UserMemories, user: str, clock: Clock) -> set[str]:
    """Keys of what the user has already."""
    found: set[str] = set()
    offset = 0
    while page := await memories.list(user, clock(), limit=_PAGE, offset=offset):
        found |= {memory.metadata[SOURCE_KEY] for memory in page if SOURCE_KEY in memory.metadata}
        offset += len(page)
    return found


async def _memory(document: ForeignDocument) -> NewMemory:
    text = document.text or ""
    kept = {key: _plain(value) for key, value in document.metadata.items() if key not in _OWN_COLUMNS}
    return NewMemory(
        kind=NOTE,
        text=text,
        language=await asyncio.to_thread(detect_language, text, previous=None, default="en"),
        confidence=1.0,
        metadata={**kept, SOURCE_ID: document.id, SOURCE_KEY: source_key(document.id)},
    )


def source_key(document_id: str) -> str:
    """32 letters of the id's hash; no digits."""
    digest = blake2b(document_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return digest.translate(str.maketrans("0123456789", "ghijklmnop"))


def _plain(value: Any) -> Any:
    """A value as JSON has it: that knows no infinite numbers."""
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)
