"""What only the store in PostgreSQL can get wrong: tenants, other processes, other models, the sweep."""

from datetime import timedelta

import pytest
from langgraph.store.base import PutOp

from recuerdo.state.errors import ScopeError, StoreError
from recuerdo.stores.chroma import MemoryIndex
from recuerdo.stores.memory_store.namespaces import memories_namespace
from recuerdo.stores.memory_store.opening import InMemoryStore, TenantStores, store_embedder
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.retention import forget_user
from recuerdo.stores.postgres.store_items import PostgresItems, delete_expired_items
from recuerdo.stores.worker import Worker
from tests.stores.memory_store.conftest import (
    TENANT,
    Clock,
    OtherEmbeddings,
    WordEmbeddings,
    postgres_store,
)

DOCS = ("docs",)
ANA = memories_namespace("A1", "ana@mail.example")


def test_or_6_another_tenant_sees_nothing_on_any_path(
    database_url: str, embeddings: WordEmbeddings, clock: Clock
) -> None:
    own = postgres_store(database_url, embeddings, clock)
    other = postgres_store(database_url, embeddings, clock, tenant="t2")
    own.batch([PutOp(DOCS, "a", {"text": "red apple"}), PutOp(ANA, "m", {"content": "likes tea"})])
    assert other.get(DOCS, "a") is None and other.get(ANA, "m") is None
    assert other.search(()) == other.search(DOCS, query="apple") == other.search(ANA, query="tea") == []
    assert other.list_namespaces() == []
    other.delete(DOCS, "a")
    other.put(DOCS, "a", {"text": "theirs"})
    kept = own.get(DOCS, "a")
    assert kept is not None and kept.value == {"text": "red apple"}
    own.close()
    other.close()


async def test_or_6_a_statement_without_a_tenant_sees_only_its_own(
    database: Database, database_url: str, embeddings: WordEmbeddings, clock: Clock
) -> None:
    for tenant in ("t1", "t2"):
        store = postgres_store(database_url, embeddings, clock, tenant=tenant)
        await store.aput(DOCS, "a", {"text": tenant})
        await store.aclose()
    async with database.tenant("t2") as connection:
        cursor = await connection.execute("select value from recuerdo.store_items")
        assert [row["value"] for row in await cursor.fetchall()] == [{"text": "t2"}]


def test_no_tenant_no_store(database: Database) -> None:
    with pytest.raises(ScopeError):
        PostgresItems(database, "")
    with pytest.raises(ScopeError):
        InMemoryStore("")

    async def never(tenant: str, stack: object) -> None:
        raise AssertionError

    with pytest.raises(ScopeError):
        TenantStores(never).of("")  # type: ignore[arg-type]


def test_what_one_process_writes_or_deletes_another_sees_at_once(
    database_url: str, embeddings: WordEmbeddings, clock: Clock
) -> None:
    one = postgres_store(database_url, embeddings, clock)
    two = postgres_store(database_url, embeddings, clock)
    one.batch([PutOp(DOCS, "a", {"text": "red apple"}), PutOp(ANA, "m", {"content": "likes tea"})])
    assert two.search(DOCS, query="apple") and two.search(ANA, query="tea")
    one.batch([PutOp(DOCS, "a", None), PutOp(ANA, "m", None)])
    assert two.search(DOCS, query="apple") == two.search(ANA, query="tea") == []
    assert two.get(DOCS, "a") is None and two.get(ANA, "m") is None
    one.close()
    two.close()


async def test_another_embedder_on_existing_items(
    database_url: str, database: Database, embeddings: WordEmbeddings, clock: Clock
) -> None:
    before = postgres_store(database_url, embeddings, clock)
    docs = {"a": "red apple", "b": "green pear", "c": "blue car"}
    await before.abatch([PutOp(DOCS, key, {"text": text}) for key, text in docs.items()])
    await before.aclose()
    other = OtherEmbeddings()
    after = postgres_store(database_url, other, clock)
    assert [item.key for item in await after.asearch(DOCS, query="apple", limit=1)] == ["a"]
    assert sorted(map(len, other.calls)) == [1, 3]
    await after.asearch(DOCS, query="pear")
    assert sorted(map(len, other.calls)) == [1, 1, 3]
    async with database.tenant(TENANT) as connection:
        cursor = await connection.execute(
            "select distinct embedder, octet_length(embedding) as bytes from recuerdo.store_items"
        )
        assert await cursor.fetchall() == [{"embedder": "OtherEmbeddings", "bytes": 32 * 4}]
    await after.aclose()


async def test_the_sweep_deletes_what_has_expired_of_its_tenants(
    database_url: str, database: Database, embeddings: WordEmbeddings, clock: Clock
) -> None:
    for tenant in ("t1", "t2", "t3"):
        store = postgres_store(database_url, embeddings, clock, tenant=tenant)
        await store.aput(DOCS, "short", {"v": 1}, ttl=5)
        await store.aput(DOCS, "long", {"v": 1}, ttl=50)
        await store.aput(DOCS, "stays", {"v": 1})
        await store.aclose()
    later = clock.now + timedelta(minutes=6)
    assert await delete_expired_items(database, clock.now) == 0
    assert await delete_expired_items(database, later, tenant="t1") == 1
    assert await delete_expired_items(database, later, spared=["t2"]) == 1
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select tenant, count(*) as left from recuerdo.store_items group by tenant order by tenant"
        )
        assert [row["left"] for row in await cursor.fetchall()] == [2, 3, 2]


async def test_the_worker_sweeps(
    database_url: str, database: Database, embeddings: WordEmbeddings, clock: Clock
) -> None:
    store = postgres_store(database_url, embeddings, clock)
    await store.aput(DOCS, "short", {"v": 1}, ttl=5)
    worker = Worker(database, MemoryIndex(), store_embedder(embeddings), clock)
    clock.forward(minutes=6)
    await worker.run_due(clock.now)
    async with database.operator() as connection:
        cursor = await connection.execute("select count(*) as left from recuerdo.store_items")
        assert await cursor.fetchone() == {"left": 0}
    await store.aclose()


async def test_im_43_forget_all_takes_the_items_of_that_user_and_no_others(
    database_url: str, database: Database, embeddings: WordEmbeddings, clock: Clock
) -> None:
    store = postgres_store(database_url, embeddings, clock)
    ben = memories_namespace("A1", "ben")
    for namespace in (ANA, ben):
        await store.aput(namespace, "m", {"content": "likes tea"})
        await store.aput(("prefs", namespace[2]), "p", {"theme": "dark"})
    await forget_user(database, TENANT, "ana@mail.example", clock.now)
    assert await store.asearch(ANA) == await store.asearch(("prefs", ANA[2])) == []
    assert len(await store.asearch(ben)) == len(await store.asearch(("prefs", "ben"))) == 1
    await store.aclose()


def test_a_server_that_is_away_is_said_and_tried_again(embeddings: WordEmbeddings, clock: Clock) -> None:
    store = postgres_store("postgresql://nobody:secret-word@127.0.0.1:1/none", embeddings, clock)
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            store.get(DOCS, "a")
        assert "secret-word" not in str(caught.value)
    store.close()


def test_the_vectors_of_memories_stand_in_the_index(
    database_url: str, embeddings: WordEmbeddings, clock: Clock
) -> None:
    index = MemoryIndex()
    store = postgres_store(database_url, embeddings, clock, index=index)
    store.put(ANA, "m", {"content": "likes tea"})
    (items,) = index._collections.values()
    assert [item.user for item in items.values()] == ["ana@mail.example"]
    store.close()
