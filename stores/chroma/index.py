"""What a vector index does, and the one that is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import Sentence


@dataclass(frozen=True)
class VectorItem:
    """A memory's vector: ``id`` of the memory, ``user`` it belongs to, ``embedding`` of length 1 (L2).

    The text stays in PostgreSQL.
    """

    id: str
    user: str
    embedding: Sequence[float]


@dataclass(frozen=True)
class Hit:
    """A memory that was found; ``similarity`` is the cosine, from -1 to 1."""

    id: str
    similarity: float


class EmbedderChanged(StoreError):
    """The stored vectors are another model's: ``reset`` the collection and write all its vectors anew."""


class VectorIndex(Protocol):
    """Vectors by tenant and assistant; a user is a filter that no query can leave out (ET-27, C-17).

    Every method but ``close`` raises StoreError when the index is unavailable or does not answer.
    """

    @property
    def unavailable(self) -> Sentence | None:
        """Why this index is not used and every call raises; None for one that works."""
        ...

    async def upsert(self, tenant: str, assistant: str, items: Sequence[VectorItem]) -> None:
        """Write the vectors; the last one of an id counts. Raises EmbedderChanged."""
        ...

    async def delete(self, tenant: str, assistant: str, ids: Sequence[str]) -> None:
        """Remove these memories; unknown ids are no error."""
        ...

    async def delete_user(self, tenant: str, assistant: str, user: str) -> None:
        """Remove all of one user's memories, from the disk too."""
        ...

    async def query(
        self, tenant: str, assistant: str, user: str, embedding: Sequence[float], limit: int
    ) -> list[Hit]:
        """The user's nearest memories, nearest first, at most ``limit``. Raises EmbedderChanged."""
        ...

    async def count(self, tenant: str, assistant: str) -> int:
        """How many vectors all users together have."""
        ...

    async def reset(self, tenant: str, assistant: str) -> None:
        """Drop all vectors of the assistant, so that they can be written anew."""
        ...

    async def purge(self) -> None:
        """Take off the disk what was deleted since the last time."""
        ...

    async def close(self) -> None:
        """Let go of the index; a second call does nothing."""
        ...


class NoIndex:
    """Stands where no index can be used: every call but ``close`` raises StoreError that says why."""

    def __init__(self, reason: Sentence) -> None:
        self._reason = reason

    @property
    def unavailable(self) -> Sentence:
        """Why there is no index."""
        return self._reason

    async def upsert(self, tenant: str, assistant: str, items: Sequence[VectorItem]) -> None:
        """Raise StoreError."""
        raise StoreError(self._reason)

    async def delete(self, tenant: str, assistant: str, ids: Sequence[str]) -> None:
        """Raise StoreError."""
        raise StoreError(self._reason)

    async def delete_user(self, tenant: str, assistant: str, user: str) -> None:
        """Raise StoreError."""
        raise StoreError(self._reason)

    async def query(
        self, tenant: str, assistant: str, user: str, embedding: Sequence[float], limit: int
    ) -> list[Hit]:
        """Raise StoreError."""
        raise StoreError(self._reason)

    async def count(self, tenant: str, assistant: str) -> int:
        """Raise StoreError."""
        raise StoreError(self._reason)

    async def reset(self, tenant: str, assistant: str) -> None:
        """Raise StoreError."""
        raise StoreError(self._reason)

    async def purge(self) -> None:
        """Raise StoreError."""
        raise StoreError(self._reason)

    async def close(self) -> None:
        """Close nothing."""
