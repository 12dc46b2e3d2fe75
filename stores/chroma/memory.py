"""A vector index in memory, for tests and for apps that keep nothing."""

import math
from collections import defaultdict
from collections.abc import Sequence

from recuerdo.stores.chroma.index import Hit, VectorItem


class MemoryIndex:
    """An exact :class:`~recuerdo.stores.chroma.index.VectorIndex` that ends with the process."""

    unavailable = None

    def __init__(self) -> None:
        self._collections: defaultdict[tuple[str, str], dict[str, VectorItem]] = defaultdict(dict)

    async def upsert(self, tenant: str, assistant: str, items: Sequence[VectorItem]) -> None:
        """See VectorIndex."""
        self._collections[tenant, assistant].update({item.id: item for item in items})

    async def delete(self, tenant: str, assistant: str, ids: Sequence[str]) -> None:
        """See VectorIndex."""
        for item_id in ids:
            self._collections[tenant, assistant].pop(item_id, None)

    async def delete_user(self, tenant: str, assistant: str, user: str) -> None:
        """See VectorIndex."""
        items = self._collections[tenant, assistant]
        self._collections[tenant, assistant] = {key: item for key, item in items.items() if item.user != user}

    async def query(
        self, tenant: str, assistant: str, user: str, embedding: Sequence[float], limit: int
    ) -> list[Hit]:
        """See VectorIndex."""
        own = (item for item in self._collections[tenant, assistant].values() if item.user == user)
        hits = [Hit(item.id, _cosine(item.embedding, embedding)) for item in own]
        return sorted(hits, key=lambda hit: -hit.similarity)[: max(limit, 0)]

    async def count(self, tenant: str, assistant: str) -> int:
        """See VectorIndex."""
        return len(self._collections[tenant, assistant])

    async def reset(self, tenant: str, assistant: str) -> None:
        """See VectorIndex."""
        self._collections.pop((tenant, assistant), None)

    async def purge(self) -> None:
        """See VectorIndex; there is no disk."""

    async def close(self) -> None:
        """See VectorIndex; the vectors stay until the object goes."""


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0
