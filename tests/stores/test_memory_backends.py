"""What a store of memories does, over both: PostgreSQL with an index, and memory alone (ET-2)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.chroma import MemoryIndex
from recuerdo.stores.memory_store.in_memory import InMemoryMemories
from recuerdo.stores.memory_store.postgres import PostgresMemories
from recuerdo.stores.memory_store.protocol import UserMemories
from recuerdo.stores.postgres.memories import NewMemory

DAY_0 = datetime(2025, 12, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SECRET = "mi tarjeta es 4111 1111 1111 1111"


class Colours:
    """An embedder for which texts that name one colour mean the same, whatever else they say."""

    name, dimensions = "colours", 3

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(colour in text) + 0.01 for colour in ("rojo", "verde", "azul")] for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        return (await self.embed([text]))[0]


class Reversed(Colours):
    """Sees a red text where the other sees a blue one."""

    name = "reversed"

    async def embed_query(self, text: str) -> list[float]:
        return (await super().embed_query(text))[::-1]


@pytest.fixture(params=["postgres", "in_memory"])
def kind_of_store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(kind_of_store: str, request: pytest.FixtureRequest) -> Any:
    """Makes a store with an embedder; of one assistant and, of PostgreSQL, one tenant."""

    database = request.getfixturevalue("database") if kind_of_store == "postgres" else None

    def made(embedder: Any = None, assistant: str = "A1", tenant: str = "t1") -> UserMemories:
        if database is None:
            return InMemoryMemories(embedder or Colours(), assistant=assistant)
        return PostgresMemories(database, MemoryIndex(), embedder or Colours(), tenant, assistant)

    return made


@pytest.fixture
def store(make: Any) -> UserMemories:
    made: UserMemories = make()
    return made


def fact(text: str = "Prefiere velas de 4h", **fields: Any) -> NewMemory:
    return NewMemory(**{"kind": "fact", "text": text, "language": "es", "confidence": 1.0, **fields})


async def texts(store: UserMemories, now: datetime = DAY_0, user: str = "u1") -> set[str]:
    return {memory.text for memory in await store.list(user, now)}


@pytest.mark.parametrize(("confidence", "days"), [(1.0, 90), (0.6, 90), (0.59, 7), (None, 7)])
async def test_rf_32_or_8_c_6_im_53_fault_10_expiry_counts_on_every_read(
    store: UserMemories, confidence: float | None, days: int
) -> None:
    added = await store.add("u1", fact(confidence=confidence), DAY_0)
    assert added.status == ("low" if days == 7 else "confirmed")
    end = DAY_0 + timedelta(days=days)
    for now, found in ((end - SECOND, 1), (end, 0)):
        assert len(await store.get("u1", [added.id], now)) == found
        assert len(await store.list("u1", now)) == found
        assert len(await store.search("u1", "velas", now, 5)) == found
        assert await store.count("u1", now) == found
    assert await store.update("u1", added.id, "otra", end) is None
    assert await store.supersede("u1", added.id, fact("otra"), end) is None
    assert not await store.confirm("u1", added.id, end)


async def test_c_6_or_10_confirmed_on_day_5_it_is_gone_on_day_95(store: UserMemories) -> None:
    kept = await store.add("u1", fact("F", confidence=0.3), DAY_0)
    await store.add("u1", fact("G", confidence=0.3), DAY_0)
    assert await store.confirm("u1", kept.id, DAY_0 + timedelta(days=5))
    assert await texts(store, DAY_0 + timedelta(days=8)) == {"F"}
    assert await texts(store, DAY_0 + timedelta(days=95) - SECOND) == {"F"}
    assert await texts(store, DAY_0 + timedelta(days=95)) == set()


async def test_et_12_a_38_fault_4_update_keeps_all_but_the_text_and_the_dates(store: UserMemories) -> None:
    memory = fact(metadata={"tags": ["swing"], "n": 1}, conversation="c1", quote="uso 4h", message_id="m1")
    added = await store.add("u1", memory, DAY_0)
    later = DAY_0 + timedelta(days=30)
    updated = await store.update("u1", added.id, "Prefiere velas diarias", later)
    assert updated is not None
    assert updated.text == "Prefiere velas diarias"
    for name in ("id", "user", "kind", "metadata", "created_at", "conversation", "status"):
        assert getattr(updated, name) == getattr(added, name), name
    assert updated.updated_at == later
    assert updated.expires_at == later + timedelta(days=90)
    # The message said the old text, not this one.
    assert (updated.quote, updated.message_id) == (None, None)
    assert await store.get("u1", [added.id], later) == [updated]


async def test_c_8_update_of_an_inferred_one_gives_7_days_from_then(store: UserMemories) -> None:
    added = await store.add("u1", fact(confidence=None), DAY_0)
    updated = await store.update("u1", added.id, "otra", DAY_0 + timedelta(days=6))
    assert updated is not None
    assert (updated.status, updated.expires_at) == ("low", DAY_0 + timedelta(days=13))


async def test_et_26_the_new_vector_is_searched_after_an_update(store: UserMemories) -> None:
    first = await store.add("u1", fact("un coche rojo"), DAY_0)
    second = await store.add("u1", fact("un coche verde"), DAY_0)
    assert [r.memory.id for r in await store.search("u1", "rojo", DAY_0, 1)] == [first.id]
    await store.update("u1", first.id, "un coche azul", DAY_0)
    await store.update("u1", second.id, "un coche rojo", DAY_0)
    assert [r.memory.id for r in await store.search("u1", "rojo", DAY_0, 1)] == [second.id]


async def test_et_25_search_order_follows_the_embedding_function(make: Any) -> None:
    orders = []
    for embedder in (Colours(), Reversed()):
        store = make(embedder, assistant=embedder.name)
        for text in ("pintura azul", "pintura roja", "pintura rojo vivo"):
            await store.add("u1", fact(text), DAY_0)
        found = await store.search("u1", "algo de color rojo", DAY_0, 3)
        orders.append([one.memory.text for one in found])
        scores = [one.score for one in found]
        assert scores == sorted(scores, reverse=True)
    assert orders[0][0] == "pintura rojo vivo"
    assert orders[0] != orders[1]


async def test_fault_3_superseded_never_comes_back_but_stays_in_the_history(store: UserMemories) -> None:
    old = await store.add("u1", fact("Trabaja en Acme", message_id="m1"), DAY_0)
    old_again = await store.update("u1", old.id, "Trabaja en Acme desde 2020", DAY_0 + timedelta(days=1))
    assert old_again is not None
    later = DAY_0 + timedelta(days=2)
    new = await store.supersede("u1", old.id, fact("Trabaja en Globex"), later)
    assert new is not None
    assert new.id != old.id
    assert await texts(store, later) == {"Trabaja en Globex"}
    assert [r.memory.text for r in await store.search("u1", "¿Trabaja en Acme?", later, 9)] == [new.text]
    assert await store.get("u1", [old.id], later) == []
    assert not await store.confirm("u1", old.id, later)
    history = await store.history("u1", new.id, later)
    assert [(r.text, r.reason, r.message_id) for r in history] == [
        ("Trabaja en Acme", "updated", "m1"),
        ("Trabaja en Acme desde 2020", "superseded", None),
    ]
    assert [r.at for r in history] == [DAY_0 + timedelta(days=1), later]
    assert await store.history("u1", old.id, later) == history
    assert await store.history("u2", new.id, later) == []


async def test_rf_32_old_texts_expire_too(store: UserMemories) -> None:
    added = await store.add("u1", fact("uno", confidence=None), DAY_0)
    await store.update("u1", added.id, "dos", DAY_0 + timedelta(days=3))
    await store.confirm("u1", added.id, DAY_0 + timedelta(days=4))
    assert len(await store.history("u1", added.id, DAY_0 + timedelta(days=7) - SECOND)) == 1
    assert await store.history("u1", added.id, DAY_0 + timedelta(days=7)) == []


async def test_a_memory_in_the_place_of_several_has_all_their_histories(store: UserMemories) -> None:
    ids = [(await store.add("u1", fact(text), DAY_0)).id for text in ("uno", "dos")]
    new = await store.add("u1", fact("tres", supersedes=[*ids, uuid4()]), DAY_0)
    assert await texts(store) == {"tres"}
    assert [r.text for r in await store.history("u1", new.id, DAY_0)] == ["uno", "dos"]


async def test_fault_2_the_same_words_again_confirm(store: UserMemories) -> None:
    first = await store.add("u1", fact("Le gusta el RSI", confidence=0.3), DAY_0)
    later = DAY_0 + timedelta(days=3)
    again = await store.add("u1", fact("le gusta  el rsi.", once=True), later)
    assert (again.id, again.text) == (first.id, "Le gusta el RSI")
    assert (again.status, again.expires_at) == ("confirmed", later + timedelta(days=90))
    other = [fact("le gusta el MACD", once=True), fact("Le gusta el RSI", kind="qa", once=True)]
    for memory in other:
        assert (await store.add("u1", memory, later)).id != first.id
    assert (await store.add("u2", fact("Le gusta el RSI", once=True), later)).id != first.id
    assert await store.count("u1", later) == 3


async def test_a_25_the_model_repeating_it_does_not_revalidate(store: UserMemories) -> None:
    first = await store.add("u1", fact(confidence=0.3), DAY_0)
    again = await store.add("u1", fact(confidence=0.5, once=True), DAY_0 + timedelta(days=3))
    assert again == first


async def test_im_30_4000_characters_and_not_one_more(store: UserMemories) -> None:
    added = await store.add("u1", fact("a" * 4000), DAY_0)
    for text, reason in (("a" * 4001, "4001"), ("", "empty"), (" \n ", "empty")):
        with pytest.raises(InputError, match=reason):
            await store.add("u1", fact(text), DAY_0)
        with pytest.raises(InputError, match=reason):
            await store.update("u1", added.id, text, DAY_0)
        with pytest.raises(InputError, match=reason):
            await store.supersede("u1", added.id, fact(text), DAY_0)
    assert await texts(store) == {"a" * 4000}


@pytest.mark.parametrize("confidence", [-0.1, 1.1])
async def test_confidence_goes_from_0_to_1(store: UserMemories, confidence: float) -> None:
    with pytest.raises(InputError, match="0 to 1"):
        await store.add("u1", fact(confidence=confidence), DAY_0)


async def test_rf_33_no_sensitive_text_is_kept(store: UserMemories) -> None:
    added = await store.add("u1", fact(SECRET, quote=SECRET, metadata={"k": [SECRET]}), DAY_0)
    changed = await store.update("u1", added.id, "sí, " + SECRET, DAY_0)
    other = await store.supersede("u1", added.id, fact("no, " + SECRET), DAY_0)
    assert other is not None
    for kept in (added, changed, other, await store.history("u1", other.id, DAY_0)):
        assert "4111" not in repr(kept)
    assert "[***]" in added.text


async def test_et_27_fault_5_fault_6_no_path_gives_another_users_memory(make: Any) -> None:
    store = make()
    added = await store.add("u1", fact("un coche rojo"), DAY_0)
    for other, user in ((store, "u2"), (make(assistant="A2"), "u1")):
        assert await other.get(user, [added.id], DAY_0) == []
        assert await other.list(user, DAY_0) == []
        assert await other.search(user, "rojo", DAY_0, 9) == []
        assert await other.history(user, added.id, DAY_0) == []
        assert await other.count(user, DAY_0) == 0
        assert await other.update(user, added.id, "mío", DAY_0) is None
        assert await other.supersede(user, added.id, fact("mío"), DAY_0) is None
        assert not await other.confirm(user, added.id, DAY_0)
        assert not await other.forget(user, added.id, DAY_0)
        await other.add(user, fact("mío", supersedes=[added.id]), DAY_0)
    assert await store.get("u1", [added.id], DAY_0) == [added]


async def test_c_11_no_call_without_a_user(store: UserMemories) -> None:
    for call in (
        lambda: store.add("", fact(), DAY_0),
        lambda: store.get("", [], DAY_0),
        lambda: store.list("", DAY_0),
        lambda: store.search("", "q", DAY_0, 3),
        lambda: store.history("", uuid4(), DAY_0),
        lambda: store.count("", DAY_0),
        lambda: store.forget("", uuid4(), DAY_0),
    ):
        with pytest.raises(ScopeError):
            await call()


async def test_fault_19_naive_dates_are_refused_and_zones_compared(store: UserMemories) -> None:
    naive = datetime(2025, 12, 5)
    added = await store.add("u1", fact(), DAY_0)
    for call in (
        lambda: store.add("u1", fact(), naive),
        lambda: store.get("u1", [added.id], naive),
        lambda: store.list("u1", naive),
        lambda: store.search("u1", "q", naive, 3),
        lambda: store.update("u1", added.id, "x", naive),
        lambda: store.confirm("u1", added.id, naive),
        lambda: store.forget("u1", added.id, naive),
        lambda: store.history("u1", added.id, naive),
    ):
        with pytest.raises(InputError, match="time zone"):
            await call()
    in_mexico = timezone(timedelta(hours=-6))
    end = (DAY_0 + timedelta(days=90)).astimezone(in_mexico)
    assert await store.count("u1", end - SECOND) == 1
    assert await store.count("u1", end) == 0


async def test_a_memory_dated_in_the_future_is_not_lost(store: UserMemories) -> None:
    added = await store.add("u1", fact("un coche rojo"), DAY_0 + timedelta(days=400))
    assert [m.id for m in await store.list("u1", DAY_0)] == [added.id]
    assert [r.memory.id for r in await store.search("u1", "rojo", DAY_0, 1)] == [added.id]


async def test_fault_8_fault_9_deleted_is_gone_at_once(store: UserMemories) -> None:
    kept, gone = [await store.add("u1", fact(text), DAY_0) for text in ("coche rojo", "moto rojo")]
    assert await store.forget("u1", gone.id, DAY_0)
    assert not await store.forget("u1", gone.id, DAY_0)
    assert [r.memory.id for r in await store.search("u1", "moto rojo", DAY_0, 9)] == [kept.id]
    assert await store.history("u1", gone.id, DAY_0) == []


async def test_list_pages_by_last_change_and_kind(store: UserMemories) -> None:
    ids = []
    for number in range(5):
        memory = fact(str(number), kind="even" if number % 2 == 0 else "odd")
        ids.append((await store.add("u1", memory, DAY_0 + timedelta(minutes=number))).id)
    now = DAY_0 + timedelta(hours=1)
    await store.update("u1", ids[0], "again", now)
    order = [ids[0], ids[4], ids[3], ids[2], ids[1]]
    assert [m.id for m in await store.list("u1", now)] == order
    assert [m.id for m in await store.list("u1", now, limit=2, offset=1)] == order[1:3]
    assert [m.id for m in await store.list("u1", now, kind="odd")] == [ids[3], ids[1]]


async def test_get_keeps_the_order_of_the_ids(store: UserMemories) -> None:
    first, second = [(await store.add("u1", fact(text), DAY_0)).id for text in ("a", "b")]
    found = await store.get("u1", [second, uuid4(), first, second], DAY_0)
    assert [memory.id for memory in found] == [second, first]


async def test_search_of_none_and_of_no_limit(store: UserMemories) -> None:
    assert await store.search("u1", "rojo", DAY_0, 3) == []
    await store.add("u1", fact(), DAY_0)
    assert await store.search("u1", "rojo", DAY_0, 0) == []
