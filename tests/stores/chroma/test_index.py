"""What every vector index does."""

import pytest

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import Sentence
from recuerdo.stores.chroma import Hit, MemoryIndex, NoIndex, VectorItem, open_index


@pytest.fixture(params=["folder", "server", "memory"])
async def index(request, tmp_path, embedder):
    if request.param == "memory":
        opened = MemoryIndex()
    else:
        url = request.getfixturevalue("chroma_server") if request.param == "server" else None
        opened = await open_index(tmp_path / "v", embedder(), url)
    yield opened
    for tenant in ("t1", "t2"):  # the server is every test's
        for assistant in ("A1", "A2"):
            await opened.reset(tenant, assistant)
    await opened.close()


async def ids(index, user, embedding, limit=10, tenant="t1", assistant="A1"):
    return [hit.id for hit in await index.query(tenant, assistant, user, embedding, limit)]


async def test_et_27_the_nearest_come_first_with_their_cosine(index):
    await index.upsert(
        "t1",
        "A1",
        [VectorItem("far", "u", [0, 1]), VectorItem("near", "u", [1, 0]), VectorItem("mid", "u", [3, 4])],
    )
    hits = await index.query("t1", "A1", "u", [1, 0], 10)
    assert [hit.id for hit in hits] == ["near", "mid", "far"]
    assert [hit.similarity for hit in hits] == pytest.approx([1, 0.6, 0], abs=1e-6)
    assert isinstance(hits[0], Hit)


async def test_fault_5_a_user_never_sees_anothers(index, vector):
    await index.upsert("t1", "A1", [VectorItem("a", "A", vector(1)), VectorItem("b", "B", vector(2))])
    assert await ids(index, "B", vector(1)) == ["b"]
    assert await ids(index, "nobody", vector(1)) == []
    assert await ids(index, "", vector(1)) == []


async def test_et_27_assistants_and_tenants_are_apart(index, vector):
    await index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    assert await ids(index, "u", vector(1), assistant="A2") == []
    assert await ids(index, "u", vector(1), tenant="t2") == []
    assert await ids(index, "u", vector(1)) == ["m"]


async def test_fault_7_c_17_forgetting_a_user_leaves_the_others(index, vector):
    await index.upsert(
        "t1", "A1", [VectorItem(f"{user}{n}", user, vector(n)) for user in "AB" for n in range(5)]
    )
    await index.delete_user("t1", "A1", "A")
    assert await ids(index, "A", vector(1)) == []
    assert len(await ids(index, "B", vector(1))) == 5
    assert await index.count("t1", "A1") == 5


async def test_fault_8_what_is_deleted_is_not_found(index, vector):
    await index.upsert("t1", "A1", [VectorItem(str(n), "u", vector(n)) for n in range(5)])
    await index.delete("t1", "A1", ["3"])
    assert "3" not in await ids(index, "u", vector(3))
    assert await index.count("t1", "A1") == 4


async def test_et_26_an_update_replaces_the_vector(index):
    await index.upsert("t1", "A1", [VectorItem("m", "u", [1, 0])])
    await index.upsert("t1", "A1", [VectorItem("m", "u", [0, 1])])
    assert await index.count("t1", "A1") == 1
    assert (await index.query("t1", "A1", "u", [0, 1], 1))[0].similarity == pytest.approx(1)


async def test_the_last_of_an_id_counts(index):
    await index.upsert("t1", "A1", [VectorItem("m", "u", [1, 0]), VectorItem("m", "u", [0, 1])])
    assert (await index.query("t1", "A1", "u", [0, 1], 1))[0].similarity == pytest.approx(1)


async def test_nothing_to_do_is_no_error(index, vector):
    await index.upsert("t1", "A1", [])
    await index.delete("t1", "A1", ["x"])
    await index.delete("t1", "A1", [])
    await index.delete_user("t1", "A1", "u")
    await index.reset("t1", "A1")
    assert await index.count("t1", "A1") == 0
    assert await ids(index, "u", vector(1)) == []


async def test_limits_below_one_and_above_the_count(index, vector):
    await index.upsert("t1", "A1", [VectorItem(str(n), "u", vector(n)) for n in range(3)])
    await index.delete("t1", "A1", ["unknown", "unknown"])
    assert len(await ids(index, "u", vector(1), limit=1_000)) == 3
    assert await ids(index, "u", vector(1), limit=0) == []
    assert await ids(index, "u", vector(1), limit=-1) == []


async def test_a_reset_empties_one_assistant_and_can_be_filled_again(index, vector):
    await index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    await index.upsert("t1", "A2", [VectorItem("m", "u", vector(1))])
    await index.reset("t1", "A1")
    assert (await index.count("t1", "A1"), await index.count("t1", "A2")) == (0, 1)
    await index.upsert("t1", "A1", [VectorItem("n", "u", vector(1))])
    assert await ids(index, "u", vector(1)) == ["n"]


async def test_fault_15_after_much_churn_every_live_vector_is_found(index, vector):
    live = {}
    for turn in range(40):
        items = [VectorItem(f"{turn}-{n}", "u", vector(turn * 30 + n)) for n in range(30)]
        await index.upsert("t1", "A1", items)
        live.update({item.id: item for item in items})
        gone = list(live)[turn % 2 :: 2] if turn % 3 else list(live)[: len(live) // 2]
        await index.delete("t1", "A1", gone)
        live = {item_id: item for item_id, item in live.items() if item_id not in gone}
    assert await index.count("t1", "A1") == len(live)
    for item in live.values():
        assert await ids(index, "u", item.embedding, limit=1) == [item.id]
    assert set(await ids(index, "u", vector(0), limit=10_000)) == set(live)


async def test_no_index_says_why_to_every_call(vector):
    none = NoIndex(Sentence("porque sí", "because"))
    assert none.unavailable.en == "because"
    calls = [
        none.upsert("t1", "A1", [VectorItem("m", "u", vector(1))]),
        none.delete("t1", "A1", ["m"]),
        none.delete_user("t1", "A1", "u"),
        none.query("t1", "A1", "u", vector(1), 3),
        none.count("t1", "A1"),
        none.reset("t1", "A1"),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="because"):
            await call
    await none.close()
