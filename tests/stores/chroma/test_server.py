"""A Chroma server: two writers at once, a server that goes away and comes back."""

import socket

import pytest

from recuerdo.state.errors import SettingsError, StoreError
from recuerdo.stores.chroma import EmbedderChanged, VectorItem, open_index

from .conftest import ChromaProcess


@pytest.fixture
async def pair(chroma_server, tmp_path, embedder):
    """Two indexes with a client each, as in two processes."""
    indexes = [await open_index(tmp_path, embedder(), chroma_server) for _ in range(2)]
    yield indexes
    for index in indexes:
        await index.close()


async def test_two_clients_write_one_collection(pair, vector, tenant):
    one, other = pair
    await one.upsert(tenant, "A1", [VectorItem("a", "u", vector(1))])
    await other.upsert(tenant, "A1", [VectorItem("b", "u", vector(2))])
    assert await one.count(tenant, "A1") == await other.count(tenant, "A1") == 2
    assert [hit.id for hit in await one.query(tenant, "A1", "u", vector(2), 1)] == ["b"]


async def test_a_collection_that_the_other_client_made_anew_is_found_again(pair, vector, tenant):
    one, other = pair
    await one.upsert(tenant, "A1", [VectorItem("a", "u", vector(1))])
    await other.reset(tenant, "A1")
    await other.upsert(tenant, "A1", [VectorItem("b", "u", vector(2))])
    await one.upsert(tenant, "A1", [VectorItem("c", "u", vector(3))])
    assert {hit.id for hit in await one.query(tenant, "A1", "u", vector(2), 9)} == {"b", "c"}


async def test_fault_11_another_embedder_is_told_from_the_first(
    chroma_server, tmp_path, embedder, vector, tenant
):
    first = await open_index(tmp_path, embedder("model-a"), chroma_server)
    await first.upsert(tenant, "A1", [VectorItem("a", "u", vector(1))])
    second = await open_index(tmp_path, embedder("model-b"), chroma_server)
    with pytest.raises(EmbedderChanged, match="model-b"):
        await second.query(tenant, "A1", "u", vector(1), 1)
    await first.close()
    await second.close()


async def test_a_server_that_is_away_is_an_error_and_is_used_when_it_is_back(tmp_path, embedder, vector):
    process = ChromaProcess(tmp_path / "server")
    index = await open_index(tmp_path, embedder(), process.url)
    with pytest.raises(StoreError, match="CHROMA_URL"):
        await index.query("t1", "A1", "u", vector(1), 1)
    process.start()
    try:
        await index.upsert("t1", "A1", [VectorItem("a", "u", vector(1))])
        process.stop()
        with pytest.raises(StoreError, match=str(process.port)):
            await index.count("t1", "A1")
        process.start()
        assert await index.count("t1", "A1") == 1
    finally:
        process.stop()
        await index.close()
    with pytest.raises(StoreError, match="closed"):
        await index.count("t1", "A1")


async def test_something_else_at_the_address_is_an_error(tmp_path, embedder, vector):
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.listen()
        index = await open_index(tmp_path, embedder(), f"https://127.0.0.1:{other.getsockname()[1]}")
        other.close()
        with pytest.raises(StoreError, match="does not answer"):
            await index.query("t1", "A1", "u", vector(1), 1)
        await index.close()


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://x", "http://", "http://x:port", "http://me:hush@x:8000", "http://x/path"],
)
async def test_no_address_is_refused_without_saying_it_again(tmp_path, embedder, url):
    with pytest.raises(SettingsError, match="CHROMA_URL") as refused:
        await open_index(tmp_path, embedder(), url)
    assert "hush" not in str(refused.value)
