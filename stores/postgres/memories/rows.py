"""What a memory is: one to write, one that is kept, and what recall compares of it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

import numpy as np

from recuerdo.state.errors import InputError
from recuerdo.state.folding import folded, plain
from recuerdo.state.levels import EPISODIC, Level
from recuerdo.state.limits import MEMORY_MAX_CHARACTERS, MemoryStatus
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.arguments import checked_name
from recuerdo.stores.postgres.text import storable, without_sensitive
from recuerdo.stores.sensitive.naming import is_sensitive_name

sentences = load_sentences("recuerdo.stores.postgres", "memory_sentences.yaml")

FLOAT = np.dtype("<f4")
"""How embeddings are kept."""

COLUMNS: LiteralString = """id, assistant, user_id as user, kind, text, status, confidence, language, quote,
    message_id, turn_id as turn, metadata, created_at, updated_at, confirmed_at, expires_at, conversation, active"""
"""Those of a StoredMemory."""

OWN: LiteralString = "tenant = %(tenant)s and assistant = %(assistant)s and user_id = %(user)s"
"""What every query of a user's memory is bound to (C-11)."""

KEPT: LiteralString = f"""{OWN} and status <> 'withdrawn'
    and (expires_at is null or expires_at > %(now)s)"""
"""And, of what is not to be read but to be compared: neither expired nor withdrawn, switched off or not."""

IN_FORCE: LiteralString = f"{KEPT} and active"
"""And every read: expiry counts at the moment of reading, whether swept or not (IM-53)."""

STORE_KEY = "store_key"
"""In a memory's metadata: the key that an app put it under. A name, so it is kept as it stands."""

LANGUAGES = ("es", "en")
"""Those that a memory can be in."""

MAX_METADATA_BYTES = 100_000
"""JSON bytes of a memory's metadata, but for the store's own: an item's value has its own limit."""


@dataclass(frozen=True)
class NewMemory:
    """A memory to write. ``confidence`` 0 to 1 decides the status: low or confirmed (A-24, C-6).

    ``embedding`` and ``embedder`` (its name) are both given, or neither: then the worker embeds the text.
    Texts that hold sensitive data are stored without it, and embedded anew (RF-33). ``conversation`` and
    ``position`` say where it was said, for one that no turn says it of: its neighbours there help recall.

    ``supersedes`` names memories of the user whose place it takes: they are recalled no more, their texts stay
    in its history. ``once``: where the user has a memory of this kind in the same words (case, accents and
    blanks apart), that one is confirmed instead of a second one written, with what is new in the metadata; one
    that was switched off is on again, for the user says it again.
    """

    kind: str
    text: str
    language: str
    confidence: float | None = None
    embedding: Sequence[float] | None = None
    embedder: str | None = None
    quote: str | None = None
    message_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    conversation: str | None = None
    position: int | None = None
    supersedes: Sequence[UUID] = ()
    once: bool = False


@dataclass(frozen=True)
class StoredMemory:
    """A memory that is kept. ``metadata`` is plain JSON data; ``expires_at`` None: published, no expiry."""

    id: UUID
    assistant: str
    user: str
    kind: str
    text: str
    status: MemoryStatus
    confidence: float | None
    language: str
    quote: str | None
    message_id: str | None
    turn: UUID | None
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    confirmed_at: datetime | None
    expires_at: datetime | None
    conversation: str | None = None
    active: bool = True
    level: Level = EPISODIC


@dataclass(frozen=True)
class MemoryChanges:
    """What a turn says of memories that are there: confirmed again (A-25), to be forgotten, or another text by id.

    Ids that are not the user's, not in force any more or published change nothing. ``message_id``: who said so.
    """

    confirmed: Sequence[UUID] = ()
    forgotten: Sequence[UUID] = ()
    message_id: str | None = None
    updated: Mapping[UUID, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NewText:
    """Another text for a memory; ``embedding`` and ``embedder`` are both given or neither."""

    text: str
    embedding: Sequence[float] | None = None
    embedder: str | None = None


@dataclass(frozen=True)
class MemoryBatch:
    """Changes of one user's memories that are made together or not at all; by id, where they are there."""

    added: Sequence[NewMemory] = ()
    updated: Mapping[UUID, NewText] = field(default_factory=dict)
    forgotten: Sequence[UUID] = ()


@dataclass(frozen=True)
class WaitingVector:
    """A stored memory whose vector is not in the index yet; ``embedding`` None: still to be made."""

    id: UUID
    tenant: str
    assistant: str
    user: str
    text: str
    embedding: list[float] | None
    embedder: str | None
    since: datetime


@dataclass(frozen=True)
class VectorDeletion:
    """A memory that is gone and whose vector is still in the index."""

    id: UUID
    tenant: str
    assistant: str


@dataclass(frozen=True)
class Nearest:
    """A memory's id and its cosine similarity, -1 to 1."""

    id: UUID
    similarity: float


@dataclass(frozen=True)
class Alike:
    """A memory in force and its cosine similarity, -1 to 1, to what was asked."""

    memory: StoredMemory
    similarity: float


class SearchRow(NamedTuple):
    """What recall compares of a memory.

    ``text`` only when it has to be analysed at the search, ``embedding`` (little-endian float32) only when
    all of the user's memories are compared.
    """

    id: UUID
    language: str
    conversation: str | None
    position: int | None
    created_at: datetime
    terms: bytes | None
    asks: bool | None
    analyzer: str | None
    text: str | None
    embedding: bytes | None


def encoded(embedding: Sequence[float] | None) -> bytes | None:
    """An embedding as it is kept."""
    return None if embedding is None else np.asarray(embedding, FLOAT).tobytes()


def decoded(embedding: bytes | None) -> list[float] | None:
    """A kept embedding as a list."""
    return None if embedding is None else np.frombuffer(embedding, FLOAT).tolist()


def checked_memory(memory: NewMemory) -> NewMemory:
    """``memory``; raises InputError for a text, kind, language, confidence or metadata that no memory can have."""
    checked_text(memory.text)
    checked_name("kind", memory.kind)
    if memory.language not in LANGUAGES:
        raise InputError(sentences("memory_language", languages=", ".join(LANGUAGES)))
    if memory.confidence is not None and not _is_share(memory.confidence):
        raise InputError(sentences("memory_confidence"))
    _check_metadata(memory.metadata)
    return memory


def _is_share(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number <= 1


def _check_metadata(metadata: object) -> None:
    if not isinstance(metadata, Mapping):
        raise InputError(sentences("memory_metadata"))
    own = {key: value for key, value in metadata.items() if not str(key).startswith("store_")}
    try:
        size = len(json.dumps(own, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace"))
    except (TypeError, ValueError, RecursionError):
        raise InputError(sentences("memory_metadata")) from None
    if size > MAX_METADATA_BYTES:
        raise InputError(sentences("memory_metadata_too_large", bytes=MAX_METADATA_BYTES))


async def clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """``metadata`` without what is sensitive; the key that an app gave stays, unless it is sensitive itself."""
    clean: dict[str, Any] = await without_sensitive(dict(metadata))
    key = metadata.get(STORE_KEY)
    if isinstance(key, str) and not is_sensitive_name(key):
        clean[STORE_KEY] = storable(key)
    return clean


def checked_text(text: str) -> str:
    """``text``; raises InputError when it is none, blank or longer than 4,000 characters (IM-30)."""
    if not isinstance(text, str):
        raise InputError(sentences("memory_no_text"))
    if not text.strip():
        raise InputError(sentences("memory_empty"))
    if len(text) > MEMORY_MAX_CHARACTERS:
        raise InputError(sentences("memory_too_long", length=len(text), longest=MEMORY_MAX_CHARACTERS))
    return text


def words_digest(text: str) -> bytes:
    """16 bytes that are the same for texts that differ in case, accents, blanks and final stop alone."""
    words = " ".join(folded(plain(text)).split()).rstrip(".! ")
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=16).digest()
