"""The four modes (ET-8 to ET-22). Order of checks: mode, context, opening the store, parameters, ownership (IM-24)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from recuerdo.nodes.receive.language import detect_language
from recuerdo.nodes.run_tools.memory_tool import texts
from recuerdo.nodes.run_tools.memory_tool.arguments import (
    Mode,
    Refused,
    as_id,
    checked_k,
    checked_mode,
    checked_scope,
    echoed,
    required,
)
from recuerdo.nodes.services import Clock
from recuerdo.stores.memory_store.protocol import UserMemories
from recuerdo.stores.postgres.memories import NewMemory, StoredMemory
from recuerdo.stores.postgres.memories.rows import checked_text

NOTE = "note"
"""The kind of what is remembered because somebody said so."""


class HasMemories(Protocol):
    """A store as the tool needs it: any of ours."""

    def memories(self, assistant: str, /) -> UserMemories:
        """The memories of one assistant."""
        ...


Propose = Callable[[str, str, UUID | None], None]
"""Takes a text, its language, and the memory that is to have this text, if any: done after a yes (IM-34)."""


@dataclass(frozen=True)
class Backing:
    """What a call of the tool works on.

    ``inferred``: what is added counts as inferred, kept 7 days, not 90 (C-8). ``propose``: where a text goes that
    the user is to be asked about first, None: it is stored at once.
    """

    store: HasMemories
    clock: Clock
    inferred: bool = False
    propose: Propose | None = None


@dataclass(frozen=True)
class _Asked:
    """One call whose mode and scope are sound."""

    arguments: Mapping[str, Any]
    user: str
    memories: UserMemories
    backing: Backing


async def perform(arguments: Mapping[str, Any], config: RunnableConfig, backing: Backing) -> str:
    """Do what the model asked for and say so. Raises Refused, and whatever the store raises."""
    mode = checked_mode(arguments)
    scope = checked_scope(config)
    memories = backing.store.memories(scope.assistant)
    return await _MODES[mode](_Asked(arguments, scope.user, memories, backing))


async def _add(asked: _Asked) -> str:
    (text,) = required(asked.arguments, ("memory",), texts.MEMORY_REQUIRED)
    language = await _language(text)
    if asked.backing.propose is not None:
        asked.backing.propose(checked_text(text), language, None)
        return texts.PROPOSED
    confidence = None if asked.backing.inferred else 1.0
    memory = NewMemory(kind=NOTE, text=text, language=language, confidence=confidence)
    stored = await asked.memories.add(asked.user, memory, asked.backing.clock())
    return _said(texts.ADDED, asked.user, stored)


async def _search(asked: _Asked) -> str:
    (query,) = required(asked.arguments, ("query",), texts.QUERY_REQUIRED)
    k = checked_k(asked.arguments)
    found = await asked.memories.search(asked.user, query, asked.backing.clock(), k)
    if not found:
        return texts.NONE_FOUND.format(user=asked.user, query=query)
    return "\n".join(
        # One line each, whatever the memory looks like.
        texts.FOUND.format(memory=" ".join(hit.memory.text.splitlines()), memory_id=hit.memory.id)
        for hit in found
    )


async def _update(asked: _Asked) -> str:
    memory_id, text = required(asked.arguments, ("memory_id", "memory"), texts.UPDATE_REQUIRED)
    key = as_id(memory_id)
    if key is None:
        raise _not_found(memory_id, asked.user)
    if asked.backing.propose is not None:
        return await _propose_update(asked, key, memory_id, text)
    stored = await asked.memories.update(asked.user, key, text, asked.backing.clock())
    if stored is None:
        raise _not_found(memory_id, asked.user)
    return _said(texts.UPDATED, asked.user, stored)


async def _propose_update(asked: _Asked, key: UUID, memory_id: str, text: str) -> str:
    assert asked.backing.propose is not None, "the caller has looked"
    found = await asked.memories.get(asked.user, [key], asked.backing.clock())
    if not found:
        raise _not_found(memory_id, asked.user)
    if found[0].status == "published":
        raise Refused(texts.PUBLISHED)
    asked.backing.propose(checked_text(text), await _language(text), key)
    return texts.PROPOSED


async def _delete(asked: _Asked) -> str:
    (memory_id,) = required(asked.arguments, ("memory_id",), texts.MEMORY_ID_REQUIRED)
    key = as_id(memory_id)
    if key is None or not await asked.memories.forget(asked.user, key, asked.backing.clock()):
        raise _not_found(memory_id, asked.user)
    return texts.DELETED.format(memory_id=key, user=asked.user)


_MODES: dict[Mode, Callable[[_Asked], Awaitable[str]]] = {
    "add": _add,
    "search": _search,
    "update": _update,
    "delete": _delete,
}


def _said(text: str, user: str, stored: StoredMemory) -> str:
    return text.format(user=user, memory=stored.text, memory_id=stored.id)


def _not_found(memory_id: str, user: str) -> Refused:
    """The same for one that is not there and one that is somebody else's (IM-25)."""
    return Refused(texts.NOT_FOUND.format(memory_id=echoed(memory_id), user=user))


async def _language(text: str) -> str:
    return await asyncio.to_thread(detect_language, text, previous=None, default="en")
