"""What a store of memories does, whatever keeps them (ET-2)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from recuerdo.stores.postgres.memories import MemoryBatch, NewMemory, StoredMemory
from recuerdo.stores.postgres.revisions import Revision
from recuerdo.stores.recall.search import Recalled


class UserMemories(Protocol):
    """The memories of one tenant and assistant; every call names its user.

    What reads returns only what is the user's, active and in force at ``now`` (IM-53); what changes a memory
    changes only such a one. Every text goes through the filter for sensitive data (RF-33).

    Raises ScopeError when the user is missing or the memory is published, so that only a supervisor may change
    it or take it away (OR-11), InputError for a text that is empty or longer than 4,000 characters (IM-30), any
    other part that no memory can have, or a time without a zone, and StoreError when what keeps the memories is
    away.
    """

    async def add(self, user: str, memory: NewMemory, at: datetime) -> StoredMemory:
        """Keep a memory; its confidence decides how long (C-6). One said before may only be confirmed: ``once``."""
        ...

    async def get(self, user: str, ids: Sequence[UUID], now: datetime) -> Sequence[StoredMemory]:
        """Those of ``ids`` that are in force, in the order of ``ids``."""
        ...

    async def write(self, user: str, batch: MemoryBatch, at: datetime) -> None:
        """Make all changes of a batch or, when one of them cannot be, none."""
        ...

    async def noted(
        self, user: str, field: str, values: Sequence[str], now: datetime
    ) -> Sequence[StoredMemory]:
        """What is in force and has one of ``values`` in that field of its metadata, last changed first."""
        ...

    async def list(
        self, user: str, now: datetime, *, limit: int = 100, offset: int = 0, kind: str | None = None
    ) -> Sequence[StoredMemory]:
        """What is in force, of one ``kind`` or of all, last changed first."""
        ...

    async def search(self, user: str, query: str, now: datetime, limit: int) -> Sequence[Recalled]:
        """The best ``limit`` memories for ``query``, best first; no lower limit of likeness (A-37)."""
        ...

    async def update(self, user: str, memory_id: UUID, text: str, at: datetime) -> StoredMemory | None:
        """Give a memory another text. Its id, metadata, creation and conversation stay (ET-12).

        Its expiry is counted anew, as from a write (A-38). None: none in force.
        """
        ...

    async def confirm(self, user: str, memory_id: UUID, at: datetime) -> bool:
        """The user says that it is so: 90 days from now (A-25). False: none in force."""
        ...

    async def supersede(self, user: str, memory_id: UUID, by: NewMemory, at: datetime) -> StoredMemory | None:
        """Put ``by`` in the place of a memory, whose text stays in its history alone. None: none in force."""
        ...

    async def forget(self, user: str, memory_id: UUID, at: datetime, *, published: bool = False) -> bool:
        """Delete a memory with its history. False: not the user's.

        ``published``: also one that a supervisor published, which is the user's own right and nobody else's.
        """
        ...

    async def history(self, user: str, memory_id: UUID, now: datetime) -> Sequence[Revision]:
        """Earlier texts of a memory and of those it took the place of, oldest first (until they expire too)."""
        ...

    async def count(self, user: str, now: datetime) -> int:
        """How many are in force."""
        ...
