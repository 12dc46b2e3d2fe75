"""``agent.store`` and ``open_store``: the same memories as the agent's, for apps and other people's graphs."""

import asyncio

import pytest

import recuerdo
from recuerdo import memories_namespace
from recuerdo.state.errors import StoreError
from recuerdo.stores.postgres.memories import Memories, NewMemory
from tests.recuerdo.carlos import CARLOS, TENANT, House, SettableClock
from tests.scripted import ScriptedModel
from tests.stores.memory_store.conftest import WordEmbeddings


def settings(house: House) -> recuerdo.Settings:
    return recuerdo.Settings(_env_file=None, data=house.data, database_url=house.database_url)  # type: ignore[call-arg]


async def test_the_agent_recalls_what_its_store_was_given(house: House) -> None:
    model = ScriptedModel(replies=["Claro."])
    async with house.open(model=model) as agent:
        mine = memories_namespace(agent.assistant, CARLOS)
        await agent.store.aput(mine, "dog", {"content": "El perro de Carlos se llama Toby"})
        agent.store.put(("app",), "k", {"v": 1})
        assert agent.store is agent.store
        await agent.send("¿Cómo se llama mi perro?", user=CARLOS)
        assert "Toby" in str(model.calls[0]["messages"])
        assert "Toby" not in str(await agent.store.asearch(("app",)))
        store = agent.store
    with pytest.raises(StoreError):
        store.get(("app",), "k")


async def test_the_store_has_what_the_agent_remembers(house: House) -> None:
    async with house.open(model=ScriptedModel(replies=["Claro."])) as agent:
        note = NewMemory("fact", "Vive en Lima", "es", 0.9)
        written = await Memories(agent.services.database, TENANT).add(
            agent.assistant, CARLOS, note, house.clock()
        )
        item = await agent.store.aget(memories_namespace(agent.assistant, CARLOS), str(written.id))
        assert item is not None and item.value["content"] == "Vive en Lima"
        assert item.created_at == house.clock()


def test_the_store_of_a_sync_agent(house: House) -> None:
    with house.open(model=ScriptedModel(replies=["Claro."])) as agent:
        agent.store.put(("app",), "k", {"v": 1})
        found = agent.store.get(("app",), "k")
    assert found is not None and found.value == {"v": 1}


async def test_open_store_stands_alone(house: House, clock: SettableClock) -> None:
    embeddings = WordEmbeddings()
    async with recuerdo.open_store(
        settings(house), tenant=TENANT, embeddings=embeddings, clock=clock
    ) as store:
        assert isinstance(store, recuerdo.MemoryStore)
        await store.aput(memories_namespace("A1", CARLOS), "k", {"content": "Vive en Lima"})
        assert [m.text for m in await store.memories("A1").list(CARLOS, clock())] == ["Vive en Lima"]
    with recuerdo.open_store(settings(house), tenant=TENANT, embeddings=embeddings, clock=clock) as again:
        (item,) = again.search(memories_namespace("A1", CARLOS), query="Lima")
    assert item.value["content"] == "Vive en Lima" and item.created_at == clock()


async def test_open_store_beside_an_agent(house: House) -> None:
    async with house.open(model=ScriptedModel(replies=["Claro."])) as agent:
        with recuerdo.open_store(settings(house), tenant=TENANT) as store:
            store.put(("app",), "k", {"text": "una manzana roja"})
        found = await agent.store.asearch(("app",), query="red apple")
        assert [item.key for item in found] == ["k"]


def test_open_store_that_cannot_be_opened_says_why(house: House) -> None:
    bad = recuerdo.Settings(
        _env_file=None, data=house.data, database_url="postgresql://nobody:secret-word@127.0.0.1:1/no"
    )  # type: ignore[call-arg]
    with pytest.raises(StoreError) as caught, recuerdo.open_store(bad):
        raise AssertionError
    assert "secret-word" not in str(caught.value)


def test_the_store_in_memory_needs_nothing() -> None:
    with_embeddings = recuerdo.InMemoryStore(embeddings=WordEmbeddings())
    with_embeddings.put(("app",), "k", {"text": "red apple"})
    assert asyncio.run(with_embeddings.asearch(("app",), query="apple"))[0].key == "k"
    assert recuerdo.InMemoryStore().get(("app",), "k") is None
