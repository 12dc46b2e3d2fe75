"""The store does what LangGraph's PostgresStore does, over PostgreSQL and in memory alike."""

import asyncio
import gc
import math
import operator
import threading
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)

from recuerdo.state.errors import RecuerdoError
from recuerdo.stores.memory_store.opening import InMemoryStore
from recuerdo.stores.memory_store.store import MemoryStore
from tests.stores.memory_store.conftest import Clock, WordEmbeddings

DOCS = ("docs",)


def keys(items: Any) -> list[str]:
    return [item.key for item in items]


def test_an_item_is_put_read_and_deleted(store: MemoryStore, clock: Clock) -> None:
    assert isinstance(store, BaseStore) and bool(store)
    value = {"theme": "dark", "nested": {"a": [1, 2.5, None, True]}, "ñ": "Año"}
    store.put(("users", "123"), "prefs", value)
    item = store.get(("users", "123"), "prefs")
    assert item == Item(
        value=value,
        key="prefs",
        namespace=("users", "123"),
        created_at=clock.now,
        updated_at=clock.now,
    )
    assert store.get(("users",), "prefs") is None
    assert store.get(("users", "123"), "other") is None
    store.delete(("users", "123"), "prefs")
    assert store.get(("users", "123"), "prefs") is None
    store.delete(("users", "123"), "prefs")


def test_a_put_replaces_the_value_and_keeps_when_it_was_made(store: MemoryStore, clock: Clock) -> None:
    made = clock.now
    store.put(DOCS, "a", {"text": "one", "more": 1})
    clock.forward(hours=1)
    store.put(DOCS, "a", {"text": "two"})
    item = store.get(DOCS, "a")
    assert item is not None and item.value == {"text": "two"}
    assert (item.created_at, item.updated_at) == (made, clock.now)


def test_what_a_caller_does_with_a_value_changes_nothing(store: MemoryStore) -> None:
    value: dict[str, Any] = {"list": [1]}
    store.put(DOCS, "a", value)
    value["list"].append(2)
    first = store.get(DOCS, "a")
    assert first is not None and first.value == {"list": [1]}
    first.value["list"].append(3)
    again = store.get(DOCS, "a")
    assert again is not None and again.value == {"list": [1]}


def test_a_batch_reads_before_it_writes_and_the_last_put_counts(store: MemoryStore) -> None:
    store.put(("test", "foo"), "key1", {"data": "value1"})
    store.put(("test", "bar"), "key2", {"data": "value2"})
    results = store.batch(
        [
            PutOp(("test",), "key3", {"data": "first"}),
            GetOp(("test",), "key3"),
            GetOp(("test", "foo"), "key1"),
            PutOp(("test",), "key3", {"data": "last"}),
            SearchOp(("test",), filter={"data": "last"}),
            ListNamespacesOp(),
            PutOp(("test", "bar"), "key2", None),
            GetOp(("test", "bar"), "key2"),
        ]
    )
    assert results[0] is results[1] is results[3] is results[6] is None
    assert isinstance(results[2], Item) and results[2].value == {"data": "value1"}
    assert results[4] == []
    assert results[5] == [("test", "bar"), ("test", "foo")]
    assert isinstance(results[7], Item) and results[7].value == {"data": "value2"}
    last = store.get(("test",), "key3")
    assert last is not None and last.value == {"data": "last"}
    assert store.get(("test", "bar"), "key2") is None
    assert store.batch([]) == []


async def test_the_async_face_does_the_same(store: MemoryStore) -> None:
    await store.aput(DOCS, "a", {"text": "red apple"})
    await asyncio.gather(*(store.aput(DOCS, f"n{number}", {"number": number}) for number in range(5)))
    item = await store.aget(DOCS, "a")
    assert item is not None and item.value == {"text": "red apple"}
    assert len(await store.asearch(DOCS, limit=100)) == 6
    assert keys(await store.asearch(DOCS, query="apple", limit=1)) == ["a"]
    assert await store.alist_namespaces() == [DOCS]
    await store.adelete(DOCS, "a")
    assert await store.aget(DOCS, "a") is None


async def test_the_sync_face_works_where_a_loop_runs_and_from_any_thread(store: MemoryStore) -> None:
    store.put(DOCS, "a", {"text": "here"})
    await store.aput(DOCS, "b", {"text": "there"})
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(store.get(DOCS, "b"))),
        threading.Thread(target=lambda: found.append(asyncio.run(store.aget(DOCS, "a")))),
    ]
    for thread in threads:
        thread.start()
    await asyncio.to_thread(lambda: [thread.join() for thread in threads])
    assert sorted(item.value["text"] for item in found) == ["here", "there"]


def test_without_a_query_the_last_changed_comes_first(store: MemoryStore, clock: Clock) -> None:
    for key in "abcd":
        store.put(DOCS, key, {"key": key})
        clock.forward(seconds=1)
    store.put(DOCS, "a", {"key": "a", "again": True})
    found = store.search(DOCS)
    assert keys(found) == ["a", "d", "c", "b"]
    assert all(isinstance(item, SearchItem) and item.score is None for item in found)
    assert keys(store.search(DOCS, limit=2, offset=1)) == ["d", "c"]
    assert store.search(DOCS, limit=0) == store.search(DOCS, offset=10) == []
    assert keys(store.search(DOCS, query="")) == ["a", "d", "c", "b"]


def test_a_prefix_is_whole_labels(store: MemoryStore) -> None:
    for namespace in [("foo",), ("foo", "bar"), ("foobar",), ("foo_", "x"), ("foo%",), ("foo-x",), ("fo",)]:
        store.put(namespace, "k", {"at": list(namespace)})
    assert {item.namespace for item in store.search(("foo",))} == {("foo",), ("foo", "bar")}
    assert {item.namespace for item in store.search(("foo_",))} == {("foo_", "x")}
    assert len(store.search(())) == 7


FILTERED = {
    "one": {"color": "red", "score": 4.5, "n": 10, "meta": {"lang": "es", "rank": 3}, "tags": ["a", "b"]},
    "two": {"color": "red", "score": 3.0, "n": 9, "meta": {"lang": "en"}, "none": None},
    "three": {"color": "green", "score": 4, "flag": True},
    "four": {"color": "blue%s", "score": "4.2", "flag": 1},
}


CASES: list[tuple[dict[str, Any], str]] = [
    ({"color": "red"}, "one two"),
    ({"color": {"$eq": "red"}, "score": {"$gt": 4}}, "one"),
    ({"color": {"$ne": "red"}}, "three four"),
    ({"color": "blue%s"}, "four"),
    ({"n": {"$gt": 9}}, "one"),
    ({"n": {"$gte": 9, "$lt": 10}}, "two"),
    ({"score": {"$lte": 4.0}}, "two three"),
    ({"score": 4.0}, "three"),
    ({"score": {"$gt": "4.1"}}, "one four"),
    ({"missing": {"$ne": 1}}, ""),
    ({"missing": None}, ""),
    ({"none": None}, "two"),
    ({"none": {"$ne": 1}}, "two"),
    ({"none": {"$lt": 1}}, ""),
    ({"flag": True}, "three"),
    ({"flag": 1}, "four"),
    ({"meta": {"lang": "es"}}, "one"),
    ({"meta": {"lang": {"$ne": "es"}}}, "two"),
    ({"meta": {"rank": {"$gte": 3}}}, "one"),
    ({"meta": {"$eq": {"lang": "en"}}}, "two"),
    ({"tags": ["a", "b"]}, "one"),
    ({"tags": ["a"]}, ""),
    ({"color": {"lang": "es"}}, ""),
    ({"color": "\0"}, ""),
    ({}, "one two three four"),
]


def test_filters(store: MemoryStore) -> None:
    store.batch([PutOp(DOCS, key, value) for key, value in FILTERED.items()])
    for wanted, found in CASES:
        assert set(keys(store.search(DOCS, filter=wanted))) == set(found.split()), wanted
        assert set(keys(store.search(DOCS, filter=wanted, query="red"))) == set(found.split()), wanted


def test_filters_that_cannot_be_understood(store: MemoryStore) -> None:
    bad: list[dict[str, Any]] = [
        {"n": {"$in": [1]}},
        {"$gt": 1},
        {"n": {"$gt": [1]}},
        {"n": {"$gt": None}},
        {"n": math.nan},
    ]
    for wanted in bad:
        with pytest.raises(ValueError) as caught:
            store.search(DOCS, filter=wanted)
        assert isinstance(caught.value, RecuerdoError), wanted


def test_a_query_finds_by_meaning_and_by_words(store: MemoryStore) -> None:
    store.put(DOCS, "fruit", {"text": "red apple", "color": "red"})
    store.put(DOCS, "car", {"text": "red car", "color": "red"})
    store.put(DOCS, "pear", {"text": "green pear", "color": "green"})
    found = store.search(DOCS, query="apple")
    assert keys(found)[0] == "fruit" and len(found) == 3
    scores = [item.score for item in found]
    assert scores == sorted(scores, reverse=True) and all(isinstance(score, float) for score in scores)
    assert keys(store.search(DOCS, query="apple", limit=1, offset=1)) == [found[1].key]
    assert keys(store.search(DOCS, query="car", filter={"color": "red"})) == ["car", "fruit"]
    assert store.search(("nowhere",), query="apple") == []


def test_index_says_what_is_compared(store: MemoryStore) -> None:
    store.put(DOCS, "no", {"text": "zebra"}, index=False)
    store.put(
        DOCS, "path", {"text": "zebra", "notes": [{"say": "lion"}, {"say": "tiger"}]}, index=["notes[*].say"]
    )
    store.put(DOCS, "none", {"text": "zebra"}, index=["absent"])
    store.put(DOCS, "all", {"text": "zebra"})
    assert keys(store.search(DOCS, query="tiger"))[0] == "path"
    assert set(keys(store.search(DOCS, query="zebra"))) == {"path", "all"}
    assert set(keys(store.search(DOCS))) == {"no", "path", "none", "all"}
    store.put(DOCS, "all", {"text": "zebra"}, index=False)
    assert keys(store.search(DOCS, query="zebra")) == ["path"]


def test_the_score_follows_the_text(store: MemoryStore) -> None:
    store.put(DOCS, "a", {"text": "zany zebra Xerxes"})
    store.put(DOCS, "b", {"text": "something about dogs"})
    before = store.search(DOCS, query="Zany Xerxes")[0]
    store.put(DOCS, "a", {"text": "new text about dogs"})
    after = next(item for item in store.search(DOCS, query="Zany Xerxes") if item.key == "a")
    assert before.key == "a" and after.score is not None and before.score is not None
    assert after.score < before.score


def test_many_puts_and_many_searches_embed_once(store: MemoryStore, embeddings: WordEmbeddings) -> None:
    store.batch([PutOp(DOCS, str(number), {"text": f"word{number}"}) for number in range(200)])
    assert [len(texts) for texts in embeddings.calls] == [200]
    found = store.batch([SearchOp(DOCS, query=f"word{number}", limit=1) for number in range(50)])
    assert [len(texts) for texts in embeddings.calls] == [200, 50]
    assert [keys(items) for items in found] == [[str(number)] for number in range(50)]


def test_list_namespaces(store: MemoryStore) -> None:
    spaces = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f"),
              ("b", "a", "f"), ("users", "123"), ("users", "settings")]  # fmt: skip
    store.batch([PutOp(namespace, "k", {"v": 1}) for namespace in spaces])
    assert store.list_namespaces() == sorted(spaces)
    assert store.list_namespaces(prefix=("a", "b")) == sorted(spaces)[:4]
    assert store.list_namespaces(prefix=("a",), max_depth=2) == [("a", "b"), ("a", "c")]
    assert store.list_namespaces(suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")]
    assert store.list_namespaces(prefix=("a",), suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(prefix=("*", "b")) == sorted(spaces)[:4]
    assert store.list_namespaces(prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(suffix=("*", "i")) == [("a", "b", "d", "i")]
    assert store.list_namespaces(prefix=("a", "b", "c", "d")) == []
    assert store.list_namespaces(max_depth=1) == [("a",), ("b",), ("users",)]
    assert store.list_namespaces(limit=2, offset=1) == sorted(spaces)[1:3]
    empty = ListNamespacesOp(match_conditions=(MatchCondition("prefix", ()),))
    assert store.batch([empty]) == [sorted(spaces)]


BAD_NAMESPACES: list[Any] = [
    (),
    ("a.b",),
    ("",),
    ("a", ""),
    (1,),
    ("a\0b",),
    ("langgraph", "x"),
    ("\ud800",),
    ("x" * 3_000,),
    ("x",) * 60,
]


def test_bad_namespaces(store: MemoryStore) -> None:
    for namespace in BAD_NAMESPACES:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {"v": 1})
    for namespace in BAD_NAMESPACES[1:]:
        if namespace[0] == "langgraph":
            continue
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(namespace, "k", {"v": 1})])
        with pytest.raises(InvalidNamespaceError):
            store.search(namespace)


BAD_OPS: list[Any] = [
    PutOp((), "k", {"v": 1}),
    PutOp(DOCS, "", {"v": 1}),
    PutOp(DOCS, "a\0b", {"v": 1}),
    PutOp(DOCS, "k", {"v": {1, 2}}),
    PutOp(DOCS, "k", {"v": math.inf}),
    PutOp(DOCS, "k", [1]),  # type: ignore[arg-type]
    PutOp(DOCS, "k", {"v": "x" * 1_000_001}),
    PutOp(DOCS, "k", {"v": 1}, index="text"),  # type: ignore[arg-type]
    PutOp(DOCS, "k", {"v": 1}, ttl=math.nan),
    PutOp(DOCS, "k", {"v": 1}, ttl=1e300),
    PutOp(DOCS, "k", {"v": 1}, ttl="5"),  # type: ignore[arg-type]
    SearchOp(DOCS, limit=-1),
    SearchOp(DOCS, offset=-1),
    SearchOp(DOCS, limit=2.5),  # type: ignore[arg-type]
    ListNamespacesOp(max_depth=0),
    ListNamespacesOp(limit=-1),
    ListNamespacesOp(match_conditions=(MatchCondition("infix", ("a",)),)),  # type: ignore[arg-type]
]


def test_what_cannot_be_done_says_so_and_writes_nothing(store: MemoryStore) -> None:
    for op in BAD_OPS:
        with pytest.raises(ValueError) as caught:
            store.batch([PutOp(DOCS, "good", {"v": 1}), op])
        assert isinstance(caught.value, RecuerdoError) and len(str(caught.value)) < 300
    assert store.search(DOCS) == []


def test_hostile_texts_are_kept(store: MemoryStore) -> None:
    store.put(("it's; drop table", "%s {}"), "../x\n", {"text": "a\0b \ud800 %s", "k\0": "'"})
    item = store.get(("it's; drop table", "%s {}"), "../x\n")
    assert item is not None and item.value == {"text": "a\ufffdb \ufffd %s", "k\ufffd": "'"}
    assert len(store.search((), query="'%s")) == 1


def test_rf_33_nothing_sensitive_is_kept(store: MemoryStore) -> None:
    store.put(DOCS, "a", {"text": "My card is 4111 1111 1111 1111.", "more": ["clave: hunter2secret"]})
    item = store.get(DOCS, "a")
    assert item is not None and "4111" not in str(item.value) and "hunter2secret" not in str(item.value)


def test_ttl_expires_without_a_sweep_and_reading_refreshes(store: MemoryStore, clock: Clock) -> None:
    store.put(DOCS, "short", {"text": "soon gone"}, ttl=10)
    store.put(DOCS, "stays", {"text": "stays"})
    clock.forward(minutes=9)
    assert store.get(DOCS, "short", refresh_ttl=False) is not None
    assert store.get(DOCS, "short") is not None
    clock.forward(minutes=9)
    assert keys(store.search(DOCS, query="gone", limit=1)) == ["short"]
    clock.forward(minutes=9)
    assert len(store.search(DOCS)) == 2
    assert len(store.search(DOCS, refresh_ttl=False)) == 2
    clock.forward(minutes=11)
    store.put(("gone",), "k", {"v": 1}, ttl=0)
    assert store.get(DOCS, "short") is None
    assert keys(store.search(DOCS)) == keys(store.search(DOCS, query="gone")) == ["stays"]
    assert store.list_namespaces() == [DOCS]
    store.put(DOCS, "short", {"text": "anew"})
    again = store.get(DOCS, "short")
    assert again is not None and again.created_at == clock.now


def test_an_embedder_that_is_away_loses_nothing(store: MemoryStore, embeddings: WordEmbeddings) -> None:
    embeddings.away = True
    store.put(DOCS, "a", {"text": "red apple"})
    store.put(DOCS, "b", {"text": "green pear"})
    found = store.search(DOCS, query="apple")
    assert keys(found)[0] == "a" and len(found) == 2
    embeddings.away = False
    healed = store.search(DOCS, query="apple")
    assert keys(healed)[0] == "a"
    assert healed[0].score is not None and found[0].score is not None and healed[0].score > found[0].score


def test_a_closed_store_says_so(store: MemoryStore) -> None:
    store.put(DOCS, "a", {"v": 1})
    store.close()
    store.close()
    with pytest.raises(RecuerdoError, match="closed"):
        store.get(DOCS, "a")


def test_closing_waits_for_what_has_begun(store: MemoryStore) -> None:
    store.put(DOCS, "first", {"v": 0})
    begun = threading.Barrier(5)
    outcomes: list[str] = []

    def write(number: int) -> None:
        begun.wait()
        try:
            store.batch([PutOp(DOCS, f"{number}-{each}", {"v": each}) for each in range(20)])
            outcomes.append("written")
        except RecuerdoError:
            outcomes.append("refused")

    threads = [threading.Thread(target=write, args=[number], daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    store.close()
    for thread in threads:
        thread.join(20)
    assert len(outcomes) == 4


def test_who_holds_the_memories_holds_the_store(embeddings: WordEmbeddings, clock: Clock) -> None:
    memories = InMemoryStore("t1", embeddings, clock).memories("A1")
    gc.collect()
    assert asyncio.run(memories.count("ana", clock.now)) == 0


def test_a_score_is_the_cosine_where_no_word_is_shared(
    store: MemoryStore, embeddings: WordEmbeddings
) -> None:
    store.put(DOCS, "a", {"text": "red apple"})
    store.put(DOCS, "b", {"text": "green pear"})
    by_key = {item.key: item.score or 0.0 for item in store.search(DOCS, query="red")}
    query, pear = embeddings.embed_query("red"), embeddings.embed_query("green pear")
    cosine = sum(map(operator.mul, query, pear)) / math.hypot(*query) / math.hypot(*pear)
    assert by_key["b"] == pytest.approx(cosine, abs=1e-6)
    assert by_key["b"] < by_key["a"] <= 1
