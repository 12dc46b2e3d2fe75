"""The memories of a user through LangGraph's store are the ones that the agent recalls."""

from pathlib import Path
from uuid import UUID

import pytest
from langgraph.store.base import GetOp, PutOp
from langmem import create_manage_memory_tool

from recuerdo.state.errors import RecuerdoError, ScopeError
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.memory_store.namespaces import (
    decode_label,
    encode_label,
    memories_namespace,
    memory_scope,
)
from recuerdo.stores.memory_store.opening import InMemoryStore
from recuerdo.stores.memory_store.store import MemoryStore
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import NewMemory
from recuerdo.stores.postgres.publishing import Publishing
from recuerdo.stores.postgres.roles import Roles
from tests.stores.memory_store.conftest import TENANT, Clock, WordEmbeddings, postgres_store

ANA = memories_namespace("A1", "ana@mail.example")
BEN = memories_namespace("A1", "ben")


async def test_what_is_put_is_recalled_and_what_was_learnt_is_an_item(
    store: MemoryStore, clock: Clock
) -> None:
    await store.aput(ANA, "diet", {"content": "Ana is vegetarian", "tags": ["food"]})
    own = store.memories("A1")
    (memory,) = await own.list("ana@mail.example", clock.now)
    assert (memory.text, memory.status, memory.language) == ("Ana is vegetarian", "confirmed", "en")
    learnt = await own.add("ana@mail.example", NewMemory("fact", "Ana vive en Lima", "es", 0.9), clock.now)
    item = await store.aget(ANA, str(learnt.id))
    assert item is not None and item.value == {"kind": "fact", "content": "Ana vive en Lima"}
    diet = await store.aget(ANA, "diet")
    assert diet is not None and diet.value == {"content": "Ana is vegetarian", "tags": ["food"]}
    assert diet.namespace == ANA
    found = await store.asearch(ANA, query="vegetarian food")
    assert found[0].key == "diet" and found[0].score is not None and len(found) == 2
    assert {item.key for item in await store.asearch(ANA)} == {"diet", str(learnt.id)}
    assert [item.key for item in await store.asearch(ANA, filter={"tags": ["food"]}, limit=1)] == ["diet"]


def test_la_20_no_other_user_and_no_shorter_prefix_reads_them(store: MemoryStore) -> None:
    store.put(ANA, "k", {"content": "Ana is vegetarian"})
    item = store.search(ANA)[0]
    assert store.search(BEN) == store.search(BEN, query="vegetarian") == []
    assert store.get(BEN, "k") is None and store.get(BEN, item.key) is None
    for prefix in [(), ("memories",), ("memories", "A1"), ("memories", "A2", ANA[2])]:
        assert store.search(prefix) == store.search(prefix, query="vegetarian") == []
    store.delete(BEN, "k")
    store.put(BEN, "k", {"content": "Ben eats meat"})
    kept = store.get(ANA, "k")
    assert kept is not None and kept.value["content"] == "Ana is vegetarian"
    assert store.list_namespaces() == []


async def test_another_text_keeps_the_memory_and_other_fields_replace_it(
    store: MemoryStore, clock: Clock
) -> None:
    own = store.memories("A1")
    note = NewMemory("fact", "Ana vive en Lima", "es", 0.9, metadata={"source": "call"})
    learnt = await own.add("ana@mail.example", note, clock.now)
    made = clock.now
    clock.forward(days=1)
    await store.aput(ANA, str(learnt.id), {"content": "Ana vive en Quito"})
    (memory,) = await own.list("ana@mail.example", clock.now)
    assert (memory.id, memory.text, memory.created_at) == (learnt.id, "Ana vive en Quito", made)
    await store.aput(ANA, str(learnt.id), {"kind": "home", "content": "Ana vive en Cali", "since": 2024})
    (memory,) = await own.list("ana@mail.example", clock.now)
    assert (memory.kind, memory.text, memory.metadata["source"]) == ("home", "Ana vive en Cali", "call")
    item = await store.aget(ANA, str(learnt.id))
    assert item is not None and item.value == {"kind": "home", "content": "Ana vive en Cali", "since": 2024}
    assert {each.text for each in await own.history("ana@mail.example", memory.id, clock.now)} == {
        "Ana vive en Lima",
        "Ana vive en Quito",
    }


async def test_deleted_ones_are_gone_for_every_reader(store: MemoryStore, clock: Clock) -> None:
    store.batch([PutOp(ANA, "a", {"content": "likes tea"}), PutOp(ANA, "b", {"content": "likes coffee"})])
    store.delete(ANA, "a")
    assert store.get(ANA, "a") is None
    assert [item.key for item in store.search(ANA, query="tea")] == ["b"]
    assert await store.memories("A1").count("ana@mail.example", clock.now) == 1
    store.delete(ANA, "never")


def test_rf_32_they_expire_as_memories_do(store: MemoryStore, clock: Clock) -> None:
    store.put(ANA, "a", {"content": "likes tea"})
    clock.forward(days=89)
    assert store.get(ANA, "a") is not None
    clock.forward(days=1)
    assert store.get(ANA, "a") is None
    assert store.search(ANA) == store.search(ANA, query="tea") == []


def test_structured_contents_come_back_as_they_were_put(store: MemoryStore) -> None:
    value = {"kind": "Memory", "content": {"content": "likes tea", "context": {"n": 1}}}
    store.put(ANA, "a", value)
    item = store.get(ANA, "a")
    assert item is not None and item.value == value
    changed = {"kind": "Memory", "content": {"content": "likes coffee"}}
    store.put(ANA, "a", changed)
    assert [item.value for item in store.search(ANA, query="coffee")] == [changed]


async def test_rf_33_what_is_sensitive_is_taken_out(store: MemoryStore, clock: Clock) -> None:
    card = "4111 1111 1111 1111"
    store.put(ANA, "a", {"content": f"My card is {card}", "extra": {"note": card}})
    item = store.get(ANA, "a")
    (memory,) = await store.memories("A1").list("ana@mail.example", clock.now)
    assert item is not None and "4111" not in f"{item.value} {memory.text} {memory.metadata}"


@pytest.mark.parametrize("value", [{}, {"content": ""}, {"content": None}, {"content": "x" * 4_001}])
def test_im_30_values_that_are_no_memory(store: MemoryStore, value: dict[str, object]) -> None:
    with pytest.raises(RecuerdoError):
        store.put(ANA, "a", value)
    assert store.search(ANA) == []


def test_a_ttl_of_its_own_is_refused(store: MemoryStore) -> None:
    with pytest.raises(RecuerdoError, match="expiry"):
        store.put(ANA, "a", {"content": "likes tea"}, ttl=5)


def test_a_batch_of_memories_reads_before_it_writes(store: MemoryStore) -> None:
    found = store.batch([PutOp(ANA, "a", {"content": "one"}), GetOp(ANA, "a")])
    assert found == [None, None]
    assert store.get(ANA, "a") is not None


def test_names_become_labels_and_back() -> None:
    for name in ("ana@mail.example", "100%", "a%2Eb", "..", "../x", "ñandú %"):
        assert "." not in encode_label(name) and decode_label(encode_label(name)) == name
    assert memory_scope(memories_namespace("A.1", "b%2E.c")) == ("A.1", "b%2E.c")
    assert memory_scope(("memories", "a")) is memory_scope(("docs", "a", "b")) is None


@pytest.mark.parametrize(
    "key",
    ["4111111111111111", "ES9121000418450200051332", "sk-abcdefghijklmnop1234567890abcdef", "pin=1234 x"],
)
def test_c_16_a_key_that_is_sensitive_is_refused_and_none_is_altered(store: MemoryStore, key: str) -> None:
    for namespace in (ANA, ("own", "items")):
        with pytest.raises(ValueError, match="sensitive") as error:
            store.put(namespace, key, {"content": "likes tea"})
        assert key not in str(error.value)
        assert store.get(namespace, key) is None
        store.delete(namespace, key)
    with pytest.raises(ValueError, match="sensitive"):
        store.put(("own", key.replace(".", "")), "k", {"content": "likes tea"})
    assert store.search(ANA) == []


@pytest.mark.parametrize(
    "key",
    ["1234567890", "order-2024-11-30", "thread_5551234567", "ana@mail.example", "20123456789", "a/b", "ñ 😀"],
)
def test_any_other_key_gives_the_memory_back_and_is_one(store: MemoryStore, key: str) -> None:
    store.put(ANA, key, {"content": "likes tea"})
    store.put(ANA, key, {"content": "likes coffee", "n": 1})
    (item,) = store.search(ANA)
    assert (item.key, item.value) == (key, {"content": "likes coffee", "n": 1})
    assert store.get(ANA, key) is not None
    store.delete(ANA, key)
    assert store.search(ANA) == []


@pytest.mark.parametrize(
    "bad", [{"content": "x" * 4_001}, {"content": ""}, {"content": "x", "kind": "k" * 101}, {"content": {1}}]
)
def test_im_30_of_a_batch_with_one_bad_memory_nothing_is_stored(
    store: MemoryStore, bad: dict[str, object]
) -> None:
    with pytest.raises(RecuerdoError):
        store.batch(
            [
                PutOp(ANA, "good", {"content": "likes tea"}),
                PutOp(("own", "items"), "k", {"content": "an item"}),
                PutOp(BEN, "bad", bad),
                PutOp(BEN, "good", {"content": "likes coffee"}),
            ]
        )
    assert store.search(ANA) == store.search(BEN) == store.search(("own",)) == []


def test_a_batch_of_memories_is_embedded_in_one_call(store: MemoryStore, embeddings: WordEmbeddings) -> None:
    store.batch([PutOp(ANA, f"k{number}", {"content": f"fact {number}"}) for number in range(40)])
    if not isinstance(store, InMemoryStore):
        assert [len(call) for call in embeddings.calls] == [40]
    changed = [PutOp(ANA, f"k{number}", {"content": f"news {number}"}) for number in range(20)]
    gone = [PutOp(ANA, f"k{number}", None) for number in range(20, 30)]
    store.batch([*changed, *gone, PutOp(ANA, "more", {"content": "likes tea"})])
    kept = {item.key: item.value["content"] for item in store.search(ANA, limit=100)}
    assert len(kept) == 31
    assert (kept["k0"], kept["k19"], kept["k30"], kept["more"]) == (
        "news 0",
        "news 19",
        "fact 30",
        "likes tea",
    )
    assert store.search(ANA, query="news 7")[0].key == "k7"


async def test_or_11_the_store_face_neither_changes_nor_deletes_what_is_published(
    database_url: str, embeddings: WordEmbeddings, clock: Clock, tmp_path: Path
) -> None:
    store = postgres_store(database_url, embeddings, clock)
    keys = KeyFolder(tmp_path / "keys")
    user = "ana@mail.example"
    await store.aput(ANA, "diet", {"content": "Ana is vegetarian"})
    (fact,) = await store.memories("A1").list(user, clock.now)
    learnt = await store.memories("A1").add(user, NewMemory("fact", "Ana vive en Lima", "es", 0.9), clock.now)
    database = await Database.open(database_url)
    await Roles(database, TENANT, keys).appoint_first_owner("olga", clock.now)
    for published in (fact, learnt):
        publishing = Publishing(database, TENANT, "A1", keys)
        await publishing.publish(published.id, actor="olga", reason="x", at=clock.now)
    await database.close()
    for value in (None, {"content": "Ana eats meat"}, {"content": "Ana is vegetarian", "n": 1}):
        with pytest.raises(ScopeError, match="published"):
            await store.abatch([PutOp(("own", "items"), "k", {"n": 1}), PutOp(ANA, "diet", value)])
    with pytest.raises(ScopeError, match="published"):
        await store.adelete(ANA, "diet")
    with pytest.raises(ScopeError, match="published"):
        await store.memories("A1").forget(user, fact.id, clock.now)
    assert await store.asearch(("own",)) == []
    # LangMem's tool names a memory by its id.
    manage = create_manage_memory_tool(ANA, store=store)
    with pytest.raises(ScopeError, match="published"):
        await manage.ainvoke({"action": "delete", "id": str(learnt.id)})
    kept = await store.memories("A1").list(user, clock.now)
    assert {(one.text, one.status) for one in kept} == {
        ("Ana is vegetarian", "published"),
        ("Ana vive en Lima", "published"),
    }
    await store.aclose()


def test_a_key_that_looks_like_an_id_is_a_key(store: MemoryStore) -> None:
    key = str(UUID(int=7))
    store.put(ANA, key, {"content": "likes tea"})
    store.put(ANA, key, {"content": "likes coffee"})
    assert [(item.key, item.value) for item in store.search(ANA)] == [(key, {"content": "likes coffee"})]
