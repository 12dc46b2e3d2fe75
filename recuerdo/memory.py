"""What is remembered of a user, as an app sees it: list and forget (IM-43)."""

from collections.abc import Sequence
from uuid import UUID

from recuerdo.nodes.services import Services
from recuerdo.stores.postgres.memories import Memories, StoredMemory
from recuerdo.stores.postgres.preferences import Preference, Preferences
from recuerdo.stores.postgres.symbols import Interest, SymbolInterest


class Memory:
    """The long-term memory of one tenant and assistant."""

    def __init__(self, services: Services, tenant: str, assistant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._assistant = assistant
        self._memories = Memories(services.database, tenant)
        self._preferences = Preferences(services.database, tenant)
        self._symbols = SymbolInterest(services.database, tenant)

    async def list(self, *, user: str, limit: int = 100) -> Sequence[StoredMemory]:
        """Memories that are in force, newest first."""
        return await self._memories.all(self._assistant, user, self._services.clock(), limit=limit)

    async def preferences(self, *, user: str) -> dict[str, Preference]:
        """Preferences that are in force, by key."""
        return await self._preferences.all(user, self._services.clock())

    async def symbols(self, *, user: str) -> Sequence[Interest]:
        """Symbols of interest, most mentioned first."""
        return await self._symbols.of(user, self._services.clock())

    async def forget(self, memory_id: UUID, *, user: str) -> bool:
        """Forget one memory, row and vector; False when the user has none of that id."""
        now = self._services.clock()
        gone = await self._memories.forget(memory_id, self._assistant, user, now)
        if gone and self._services.index.unavailable is None:
            await self._services.index.delete(self._tenant, self._assistant, [str(memory_id)])
        return gone

    async def forget_preference(self, key: str, *, user: str) -> bool:
        """Forget one preference; False when there is none of that key."""
        return await self._preferences.delete(user, key, self._services.clock())
