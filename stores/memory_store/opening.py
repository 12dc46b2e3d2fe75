"""Stores over PostgreSQL, and the one that is kept in this process alone."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from recuerdo.stores.chroma import VectorIndex
from recuerdo.stores.embeddings import BundledEmbedder, Embedder, LangChainEmbedder
from recuerdo.stores.memory_store.events import InMemoryKeyEvents, KeptEvents
from recuerdo.stores.memory_store.home import Backend
from recuerdo.stores.memory_store.in_memory import InMemoryMemories
from recuerdo.stores.memory_store.items_in_memory import InMemoryItems
from recuerdo.stores.memory_store.postgres import PostgresMemories
from recuerdo.stores.memory_store.store import MemoryStore
from recuerdo.stores.memory_store.threaded import ThreadedEmbeddings
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.key_events import PostgresKeyEvents
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.store_items import PostgresItems

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

Clock = Callable[[], datetime]

OpenTenant = Callable[[str, AsyncExitStack], Awaitable[Backend]]
"""Opens the backend of a tenant on the running loop; what is to be closed goes on the stack."""


def postgres_backend(
    database: Database, index: VectorIndex, embedder: Embedder, clock: Clock, tenant: str
) -> Backend:
    """What a tenant's store works on, over parts of the running loop."""
    return Backend(
        items=PostgresItems(database, tenant),
        memories=partial(PostgresMemories, database, index, embedder, tenant),
        events=partial(PostgresKeyEvents, database, tenant),
        embedder=embedder,
        clock=clock,
    )


def store_embedder(embeddings: "Embeddings") -> LangChainEmbedder:
    """An app's embeddings for the loop of a store; its vectors are the same as the app's own."""
    embedder = LangChainEmbedder(ThreadedEmbeddings(embeddings))
    embedder.name = LangChainEmbedder(embeddings).name
    return embedder


class TenantStores:
    """One store for each tenant that asks for it, opened at its first use."""

    def __init__(self, open_tenant: OpenTenant) -> None:
        self._open_tenant = open_tenant
        self._stores: dict[str, MemoryStore] = {}

    def of(self, tenant: str) -> MemoryStore:
        """The store of ``tenant``. Raises ScopeError without one (C-11)."""
        require_scope(tenant=tenant)
        if tenant not in self._stores:
            self._stores[tenant] = MemoryStore(partial(self._open_tenant, tenant))
        return self._stores[tenant]

    async def aclose(self) -> None:
        """Close them all."""
        stores, self._stores = self._stores, {}
        await asyncio.gather(*(store.aclose() for store in stores.values()))


class InMemoryStore(MemoryStore):
    """A :class:`MemoryStore` that ends with the process, for tests and notebooks.

    ``embeddings`` None: the bundled model. ``clock`` returns the present instant, aware; None: the machine's.
    """

    def __init__(
        self,
        tenant: str = "default",
        embeddings: "Embeddings | None" = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises ScopeError without a tenant."""
        require_scope(tenant=tenant)
        embedder = store_embedder(embeddings) if embeddings else BundledEmbedder()
        backend = Backend(
            items=InMemoryItems(),
            memories=cache(lambda assistant: InMemoryMemories(embedder, assistant=assistant)),
            events=partial(InMemoryKeyEvents, tenant, kept=KeptEvents()),
            embedder=embedder,
            clock=clock or _now,
        )

        async def opened(stack: AsyncExitStack) -> Backend:
            return backend

        super().__init__(opened)


def _now() -> datetime:
    return datetime.now(UTC)
