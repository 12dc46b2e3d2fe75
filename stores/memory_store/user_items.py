"""The memories of one user as items of LangGraph's store: the very ones that the agent recalls."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from langgraph.store.base import GetOp, Item, PutOp, SearchItem, SearchOp

from recuerdo.state.errors import ScopeError
from recuerdo.stores.memory_store.filters import meets, read_filter
from recuerdo.stores.memory_store.items import FoundItem, ItemError, plain_value, sentences
from recuerdo.stores.memory_store.language import likely_language
from recuerdo.stores.memory_store.namespaces import MemoryScope, memories_namespace
from recuerdo.stores.memory_store.protocol import UserMemories
from recuerdo.stores.postgres.memories import MemoryBatch, NewMemory, NewText, StoredMemory
from recuerdo.stores.postgres.memories.rows import LANGUAGES, STORE_KEY, checked_memory
from recuerdo.stores.postgres.memories.rows import sentences as memory_sentences
from recuerdo.stores.postgres.text import without_sensitive

_KIND = "note"
# In a memory's metadata, beside the key it was put under: what else its value has.
_VALUE = "store_value"
# Who puts a memory by its own key says so.
_CERTAIN = 1.0


class UserItems:
    """One user's memories: an item's value is ``{"kind": ..., "content": text, ...}``.

    A memory that was not put here has its id as key. What was put keeps its key and its other fields.
    """

    def __init__(self, memories: UserMemories, scope: MemoryScope) -> None:
        self._memories = memories
        self._user = scope.user
        self._namespace = memories_namespace(*scope)

    async def get(self, op: GetOp, now: datetime) -> Item | None:
        """The memory of this key, if it is in force."""
        found = await self._find([op.key], now)
        return self._item(found[op.key]) if op.key in found else None

    async def search(self, op: SearchOp, now: datetime) -> list[SearchItem]:
        """Best first for a query, else last changed first."""
        conditions = read_filter(op.filter)
        end = op.offset + op.limit
        # A filter is tried on all, so that what it leaves out does not shorten the answer.
        wanted = await self._memories.count(self._user, now) if conditions else end
        if op.query:
            recalled = await self._memories.search(self._user, op.query, now, wanted)
            found = [self._item(each.memory, each.score) for each in recalled]
        else:
            newest = await self._memories.list(self._user, now, limit=wanted)
            found = [self._item(memory) for memory in newest]
        return [item for item in found if meets(item.value, conditions)][op.offset : end]

    async def changes(self, puts: Sequence["MemoryPut"], now: datetime) -> MemoryBatch:
        """What putting these changes: written, changed or (value None) forgotten under their keys.

        Raises ScopeError when one of them is published.
        """
        before = await self._find([put.key for put in puts], now)
        added: list[NewMemory] = []
        updated: dict[UUID, NewText] = {}
        forgotten: list[UUID] = []
        for put in puts:
            old = before.get(put.key)
            if old and old.status == "published":
                raise ScopeError(memory_sentences("memory_published"))
            if put.value is None:
                forgotten += [old.id] if old else []
            elif old and _says_no_more(put.value, old):
                updated[old.id] = NewText(_text(put.value))
            else:
                added.append(_new_memory(put.key, put.value, old))
        return MemoryBatch(added, updated, forgotten)

    async def write(self, batch: MemoryBatch, now: datetime) -> None:
        """Make these changes together."""
        if batch.added or batch.updated or batch.forgotten:
            await self._memories.write(self._user, batch, now)

    async def _find(self, keys: Sequence[str], now: datetime) -> dict[str, StoredMemory]:
        """The memories of these keys that are in force; of two of one key the one that changed last."""
        ids = [memory_id for key in keys if (memory_id := _as_id(key))]
        by_id = await self._memories.get(self._user, ids, now) if ids else []
        found = {_key(memory): memory for memory in by_id}
        missing = [key for key in keys if key not in found]
        for memory in await self._memories.noted(self._user, STORE_KEY, missing, now) if missing else []:
            found.setdefault(_key(memory), memory)
        return found

    def _item(self, memory: StoredMemory, score: float | None = None) -> SearchItem:
        return FoundItem(
            namespace=self._namespace,
            key=_key(memory),
            value=_value(memory),
            created_at=memory.created_at,
            updated_at=memory.updated_at,
            score=score,
        )


@dataclass(frozen=True)
class MemoryPut:
    """A put that is sound: its value holds nothing sensitive, and can be a memory. None: the memory goes."""

    key: str
    value: dict[str, Any] | None


async def checked_puts(ops: Sequence[PutOp]) -> list[MemoryPut]:
    """Puts of memories, checked before anything is written. Raises ItemError, or InputError as NewMemory's checks."""
    for op in ops:
        if op.value is not None and op.ttl is not None:
            raise ItemError(sentences("memory_ttl"))
    values = await without_sensitive([None if op.value is None else plain_value(op.value) for op in ops])
    for op, value in zip(ops, values, strict=True):
        if value is not None:
            checked_memory(_new_memory(op.key, value, None))
    return [MemoryPut(op.key, value) for op, value in zip(ops, values, strict=True)]


def _new_memory(key: str, value: dict[str, Any], before: StoredMemory | None) -> NewMemory:
    """What ``value`` says as a memory in the place of the one before; what else was noted of that stays."""
    text = _text(value)
    if not text.strip():
        raise ItemError(sentences("memory_text"))
    kind, language = value.get("kind"), value.get("language")
    return NewMemory(
        kind=kind if isinstance(kind, str) and kind.strip() else _KIND,
        text=text,
        language=language if language in LANGUAGES else likely_language(text),
        confidence=_CERTAIN,
        metadata={**(before.metadata if before else {}), STORE_KEY: key, _VALUE: _beside_text(value)},
        supersedes=[before.id] if before else [],
    )


def _says_no_more(value: dict[str, Any], before: StoredMemory) -> bool:
    """Whether the value differs from the memory in its text alone."""
    kept = before.metadata.get(_VALUE)
    if kept is None:
        return value.keys() <= {"kind", "content"} and value.get("kind", before.kind) == before.kind
    return "content" not in kept and bool(kept == _beside_text(value))


def _text(value: Mapping[str, Any]) -> str:
    """What is remembered: the content; one with fields of its own as JSON."""
    content = value.get("content")
    if isinstance(content, str):
        return content
    return "" if content is None else json.dumps(content, ensure_ascii=False, sort_keys=True)


def _beside_text(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a memory's text does not hold: all, where the content has fields of its own."""
    if not isinstance(value["content"], str):
        return dict(value)
    return {name: item for name, item in value.items() if name != "content"}


def _value(memory: StoredMemory) -> dict[str, Any]:
    """As it was put, with the text that the memory has now."""
    kept = memory.metadata.get(_VALUE)
    if kept is None:
        return {"kind": memory.kind, "content": memory.text}
    if "content" in kept and _text(kept) == memory.text:
        return dict(kept)
    return {**kept, "content": memory.text}


def _key(memory: StoredMemory) -> str:
    return str(memory.metadata.get(STORE_KEY, memory.id))


def _as_id(key: str) -> UUID | None:
    try:
        return UUID(key)
    except ValueError:
        return None
