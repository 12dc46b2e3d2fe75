"""The memories of one user as items of LangGraph's store: the very ones that the agent recalls."""

import json
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from langgraph.store.base import GetOp, Item, PutOp, SearchItem, SearchOp

from recuerdo.stores.memory_store.filters import meets, read_filter
from recuerdo.stores.memory_store.items import ItemError, plain_value, sentences
from recuerdo.stores.memory_store.language import likely_language
from recuerdo.stores.memory_store.namespaces import MemoryScope, memories_namespace
from recuerdo.stores.memory_store.protocol import UserMemories
from recuerdo.stores.postgres.memories import NewMemory, StoredMemory
from recuerdo.stores.postgres.text import without_sensitive

_PAGE = 500
_KIND = "note"
# In a memory's metadata: the key it was put under, and what else its value has.
_KEY, _VALUE = "store_key", "store_value"
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
        memory = await self._find(op.key, now)
        return self._item(memory) if memory else None

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

    async def put(self, op: PutOp, now: datetime) -> None:
        """Write, change or (value None) forget the memory of this key."""
        before = await self._find(op.key, now)
        if op.value is None:
            if before:
                await self._memories.forget(self._user, before.id, now)
            return
        if op.ttl is not None:
            raise ItemError(sentences("memory_ttl"))
        value = await without_sensitive(plain_value(op.value))
        memory = _new_memory(op.key, value, before)
        if before is None:
            await self._memories.add(self._user, memory, now)
        elif _says_no_more(value, before, memory):
            await self._memories.update(self._user, before.id, memory.text, now)
        else:
            await self._memories.supersede(self._user, before.id, memory, now)

    async def _find(self, key: str, now: datetime) -> StoredMemory | None:
        if memory_id := _as_id(key):
            for memory in await self._memories.get(self._user, [memory_id], now):
                if _key(memory) == key:
                    return memory
        async for memory in self._all(now):
            if _key(memory) == key:
                return memory
        return None

    async def _all(self, now: datetime) -> AsyncIterator[StoredMemory]:
        offset = 0
        while page := await self._memories.list(self._user, now, limit=_PAGE, offset=offset):
            for memory in page:
                yield memory
            offset += _PAGE

    def _item(self, memory: StoredMemory, score: float | None = None) -> SearchItem:
        return SearchItem(
            namespace=self._namespace,
            key=_key(memory),
            value=_value(memory),
            created_at=memory.created_at,
            updated_at=memory.updated_at,
            score=score,
        )


def _new_memory(key: str, value: dict[str, Any], before: StoredMemory | None) -> NewMemory:
    """What ``value`` says as a memory; what else was noted of the one before it stays."""
    text = _text(value)
    if not text.strip():
        raise ItemError(sentences("memory_text"))
    kind, language = value.get("kind"), value.get("language")
    return NewMemory(
        kind=kind if isinstance(kind, str) and kind else _KIND,
        text=text,
        language=language if language in ("es", "en") else likely_language(text),
        confidence=_CERTAIN,
        metadata={**(before.metadata if before else {}), _KEY: key, _VALUE: _beside_text(value)},
    )


def _says_no_more(value: dict[str, Any], before: StoredMemory, memory: NewMemory) -> bool:
    """Whether the value differs from the memory in its text alone."""
    kept = before.metadata.get(_VALUE)
    if kept is None:
        return value.keys() <= {"kind", "content"} and value.get("kind", before.kind) == before.kind
    return "content" not in kept and bool(kept == memory.metadata[_VALUE])


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
    return str(memory.metadata.get(_KEY, memory.id))


def _as_id(key: str) -> UUID | None:
    try:
        return UUID(key)
    except ValueError:
        return None
