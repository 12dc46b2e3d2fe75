"""The items of one tenant in this process alone, for tests and notebooks."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recuerdo.stores.memory_store.filters import Condition, meets
from recuerdo.stores.memory_store.items import Candidate, ItemKey, Namespace, NewItem, StoredItem, expiry
from recuerdo.stores.memory_store.namespaces import NamespaceQuery
from recuerdo.stores.recall.analysis import ANALYZER


@dataclass
class _Kept:
    item: NewItem
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None

    def stored(self) -> StoredItem:
        """A copy: what the caller does with it changes nothing here."""
        value = copy.deepcopy(self.item.value)
        return StoredItem(self.item.at, value, self.item.ttl, self.created_at, self.updated_at)


class InMemoryItems:
    """An :class:`~recuerdo.stores.memory_store.items.ItemTable` that ends with the process."""

    def __init__(self) -> None:
        self._kept: dict[ItemKey, _Kept] = {}

    async def get(self, keys: Sequence[ItemKey], now: datetime) -> dict[ItemKey, StoredItem]:
        """See ItemTable."""
        return {at: kept.stored() for at in keys if (kept := self._in_force(at, now))}

    async def newest(
        self, prefix: Namespace, conditions: Sequence[Condition], now: datetime, limit: int, offset: int
    ) -> list[StoredItem]:
        """See ItemTable."""
        found = sorted(self._below(prefix, conditions, now), key=lambda kept: _sorted(kept.item.at))
        found.sort(key=lambda kept: kept.updated_at, reverse=True)
        return [kept.stored() for kept in found[offset : offset + limit]]

    async def candidates(
        self, prefix: Namespace, conditions: Sequence[Condition], now: datetime
    ) -> list[Candidate]:
        """See ItemTable."""
        found = (kept.item for kept in self._below(prefix, conditions, now))
        return [
            Candidate(item.at, item.text, item.terms, ANALYZER, item.embedding, item.embedder)
            for item in found
            if item.text is not None and item.terms is not None
        ]

    async def namespaces(self, query: NamespaceQuery, now: datetime) -> list[Namespace]:
        """See ItemTable."""
        found = {kept.item.at.namespace for kept in self._below((), (), now)}
        listed = {namespace[: query.max_depth] for namespace in found if query.matches(namespace)}
        return sorted(listed, key=_joined)[query.offset : query.offset + query.limit]

    async def touch(self, keys: Sequence[ItemKey], now: datetime) -> None:
        """See ItemTable."""
        for at in keys:
            if kept := self._in_force(at, now):
                kept.expires_at = expiry(kept.item.ttl, now)

    async def write(self, items: Sequence[NewItem], deleted: Sequence[ItemKey], now: datetime) -> None:
        """See ItemTable."""
        for at in deleted:
            self._kept.pop(at, None)
        for item in items:
            before = self._in_force(item.at, now)
            created_at = before.created_at if before else now
            self._kept[item.at] = _Kept(item, created_at, now, expiry(item.ttl, now))

    async def keep_embeddings(self, candidates: Sequence[Candidate]) -> None:
        """See ItemTable."""
        for candidate in candidates:
            kept = self._kept.get(candidate.at)
            if kept and kept.item.text == candidate.text:
                kept.item = replace(kept.item, embedding=candidate.embedding, embedder=candidate.embedder)

    def _in_force(self, at: ItemKey, now: datetime) -> _Kept | None:
        kept = self._kept.get(at)
        return kept if kept and (kept.expires_at is None or kept.expires_at > now) else None

    def _below(self, prefix: Namespace, conditions: Sequence[Condition], now: datetime) -> Iterator[_Kept]:
        for at, kept in self._kept.items():
            below = at.namespace[: len(prefix)] == prefix
            if below and self._in_force(at, now) and meets(kept.item.value, conditions):
                yield kept


def _joined(namespace: Namespace) -> bytes:
    return ".".join(namespace).encode()


def _sorted(at: ItemKey) -> tuple[bytes, bytes]:
    """As PostgreSQL sorts them."""
    return _joined(at.namespace), at.key.encode()
