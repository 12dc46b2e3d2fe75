"""Both implementations of the store, over one clock, with embeddings that need no model."""

import hashlib
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.embeddings import Embeddings

from recuerdo.state.folding import folded, plain
from recuerdo.stores.chroma import MemoryIndex
from recuerdo.stores.memory_store.home import Backend
from recuerdo.stores.memory_store.opening import InMemoryStore, postgres_backend, store_embedder
from recuerdo.stores.memory_store.store import MemoryStore
from recuerdo.stores.postgres.database import Database

TENANT = "t1"
DIMENSIONS = 64


class WordEmbeddings(Embeddings):
    """A vector of the words of a text: alike when they have words in common. Counts its calls."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.away = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        if self.away:
            raise ConnectionError("away")
        return [_vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class OtherEmbeddings(WordEmbeddings):
    """Another model, with other dimensions."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector[:32] for vector in super().embed_documents(texts)]


def _vector(text: str) -> list[float]:
    vector = [0.01] * DIMENSIONS
    for word in folded(plain(text)).replace(":", " ").split():
        vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % DIMENSIONS] += 1
    return vector


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def embeddings() -> WordEmbeddings:
    return WordEmbeddings()


def postgres_store(
    database_url: str,
    embeddings: Embeddings,
    clock: Clock,
    tenant: str = TENANT,
    index: MemoryIndex | None = None,
) -> MemoryStore:
    """A store over PostgreSQL, as open_store makes it, with a vector index in memory."""

    async def opened(stack: AsyncExitStack) -> Backend:
        database = await Database.open(database_url)
        stack.push_async_callback(database.close)
        return postgres_backend(database, index or MemoryIndex(), store_embedder(embeddings), clock, tenant)

    return MemoryStore(opened)


@pytest.fixture(params=["postgres", "memory"])
def store(request: pytest.FixtureRequest, embeddings: WordEmbeddings, clock: Clock) -> Iterator[MemoryStore]:
    """Each test runs over both."""
    if request.param == "memory":
        store: MemoryStore = InMemoryStore(TENANT, embeddings, clock)
    else:
        store = postgres_store(request.getfixturevalue("database_url"), embeddings, clock)
    yield store
    store.close()
