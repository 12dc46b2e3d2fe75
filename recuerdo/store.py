"""Opens long-term memory as a LangGraph store, without an agent."""

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType

from langchain_core.embeddings import Embeddings

from recuerdo.graph.services import open_store_backend
from recuerdo.nodes.services import Clock
from recuerdo.stores.memory_store.home import Backend
from recuerdo.stores.memory_store.store import MemoryStore
from recuerdo.stores.settings import Settings


class StoreOpening:
    """What :func:`recuerdo.open_store` returns: ``async with`` for async code, ``with`` for scripts."""

    def __init__(
        self,
        settings: Settings | None,
        tenant: str | None,
        embeddings: Embeddings | None,
        clock: Clock | None,
    ) -> None:
        self._settings = settings
        self._tenant = tenant
        self._embeddings = embeddings
        self._clock = clock
        self._store = MemoryStore(self._open)

    async def __aenter__(self) -> MemoryStore:
        try:
            await self._store.astart()
        except BaseException:
            await self._store.aclose()
            raise
        return self._store

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._store.aclose()

    def __enter__(self) -> MemoryStore:
        try:
            self._store.start()
        except BaseException:
            self._store.close()
            raise
        return self._store

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._store.close()

    async def _open(self, stack: AsyncExitStack) -> Backend:
        settings = await asyncio.to_thread(Settings.load) if self._settings is None else self._settings
        return await open_store_backend(
            settings, self._tenant or settings.tenant, self._embeddings, self._clock, stack
        )


def open_store(
    settings: Settings | None = None,
    *,
    tenant: str | None = None,
    embeddings: Embeddings | None = None,
    clock: Clock | None = None,
) -> StoreOpening:
    """Open the store alone, for LangMem, the memory tool or a graph of one's own.

    Args:
        settings: deployment settings; None reads the environment.
        tenant: whose data; None: the setting.
        embeddings: any LangChain embeddings; None: the setting, or the bundled model.
        clock: returns the present instant, aware; None: the machine's.

    Raises when entered: SettingsError or StoreError that says what to do.
    """
    return StoreOpening(settings, tenant, embeddings, clock)
