"""Embedded Chroma: one folder, one writing process, nothing fetched."""

import asyncio
import fcntl
import os
import struct
import subprocess
import sys
import threading

import pytest

from recuerdo.state.errors import StoreError
from recuerdo.stores.chroma import ChromaIndex, EmbedderChanged, NoIndex, VectorItem, open_index
from recuerdo.stores.chroma import folder as folder_module
from tests.stores.chroma.conftest import DIMENSIONS

SCRIPT_HEAD = """
import asyncio, os, random, socket, sys
from pathlib import Path
from recuerdo.stores.chroma import VectorItem, open_index

class Embedder:
    name, dimensions = "model-a", 16

def vector(number):
    values = random.Random(number)
    return [values.gauss(0, 1) for _ in range(16)]

folder = Path(sys.argv[1])
"""


def start(script, folder):
    command = [sys.executable, "-c", SCRIPT_HEAD + script, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(process):
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output


def lock_is_free(folder):
    with (folder / "writer.lock").open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.fixture
async def opened(tmp_path, embedder):
    """Opens indexes on one folder and closes them all."""
    indexes = []

    async def open_one(name="model-a", folder=tmp_path / "vectors"):
        index = await open_index(folder, embedder(name))
        indexes.append(index)
        return index

    yield open_one
    for index in indexes:
        await index.close()


async def test_vectors_outlive_the_index_and_deletions_too(opened, vector):
    index = await opened()
    await index.upsert("t1", "A1", [VectorItem(str(n), "u", vector(n)) for n in range(5)])
    await index.delete("t1", "A1", ["3"])
    await index.close()
    again = await opened()
    assert await again.count("t1", "A1") == 4
    assert [hit.id for hit in await again.query("t1", "A1", "u", vector(4), 1)] == ["4"]
    assert "3" not in [hit.id for hit in await again.query("t1", "A1", "u", vector(3), 10)]


@pytest.mark.parametrize(("name", "dimensions"), [("model-b", 16), ("model-a", 8), ("model-b", 8)])
async def test_fault_11_another_embedder_is_told_and_rebuilt(opened, vector, name, dimensions):
    first = await opened()
    await first.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    await first.close()
    index = await opened(name)
    with pytest.raises(EmbedderChanged, match="rebuilt") as caught:
        await index.query("t1", "A1", "u", vector(1, dimensions), 3)
    assert "model-a (16)" in str(caught.value)
    assert f"{name} ({dimensions})" in caught.value.sentence.es
    item = VectorItem("m", "u", vector(1, dimensions))
    with pytest.raises(EmbedderChanged):
        await index.upsert("t1", "A1", [item])
    assert await index.count("t1", "A1") == 1
    await index.reset("t1", "A1")
    await index.upsert("t1", "A1", [item])
    assert [hit.id for hit in await index.query("t1", "A1", "u", item.embedding, 3)] == ["m"]


async def test_fault_12_a_collection_with_chromas_own_function_is_reset_too(opened, vector):
    index = await opened()

    def foreign():
        index._chroma.server().create_database("tenant-t1")
        index._chroma.server().create_collection(
            "A1_memories",
            configuration={"embedding_function": DefaultEmbeddingFunction()},
            database="tenant-t1",
        )

    from chromadb.utils.embedding_functions import DefaultEmbeddingFunction

    await index._chroma.run(foreign)
    with pytest.raises(EmbedderChanged):
        await index.query("t1", "A1", "u", vector(1), 3)
    await index.reset("t1", "A1")
    await index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    assert await index.count("t1", "A1") == 1


def test_fault_13_nothing_is_fetched_and_no_model_is_loaded(tmp_path):
    output = finish(
        start(
            """
def refuse(*_):
    raise AssertionError("the network was used")

socket.socket.connect = socket.getaddrinfo = refuse

async def main():
    assert "chromadb" not in sys.modules
    index = await open_index(folder, Embedder())
    await index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    await index.query("t1", "A1", "u", vector(1), 3)
    await index.delete("t1", "A1", ["m"])
    await index.close()
    print(index.unavailable, {"onnxruntime", "posthog", "kubernetes"} & set(sys.modules))

asyncio.run(main())
""",
            tmp_path / "vectors",
        )
    )
    assert output == "None set()\n"


def test_opening_a_folder_takes_its_lock_and_loads_no_chroma(tmp_path):
    script = """
async def main():
    index = await open_index(folder, Embedder())
    second = await open_index(folder, Embedder())
    await index.purge()
    await index.close()
    await second.close()
    print(index.unavailable, (folder / "writer.lock").exists(), "chromadb" in sys.modules)

asyncio.run(main())
"""
    assert finish(start(script, tmp_path / "vectors")) == "None True False\n"


HOLDER = """
async def main():
    index = await open_index(folder, Embedder())
    await index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    print("ready", flush=True)
    sys.stdin.readline()
    await index.close()

asyncio.run(main())
"""


async def test_fault_14_a_second_process_is_refused_at_once_and_clearly(opened, tmp_path, vector):
    folder = tmp_path / "vectors"
    holder = start(HOLDER, folder)
    assert await asyncio.to_thread(holder.stdout.readline) == "ready\n"
    second = await opened()
    assert isinstance(second, NoIndex)
    assert "Another process" in second.unavailable.en
    assert "PostgreSQL" in second.unavailable.es
    assert str(folder) in second.unavailable.en
    with pytest.raises(StoreError, match="Another process"):
        await second.query("t1", "A1", "u", vector(1), 3)
    await asyncio.to_thread(holder.communicate, "\n", 60)
    third = await opened()
    assert await third.count("t1", "A1") == 1


async def test_fault_14_a_killed_process_leaves_the_lock_free_and_the_vectors_whole(opened, tmp_path, vector):
    holder = start(HOLDER, tmp_path / "vectors")
    assert await asyncio.to_thread(holder.stdout.readline) == "ready\n"
    holder.kill()
    holder.communicate()
    index = await opened()
    assert index.unavailable is None
    assert [hit.id for hit in await index.query("t1", "A1", "u", vector(1), 3)] == ["m"]


def test_fault_14_a_forked_child_neither_hangs_nor_writes(tmp_path):
    output = finish(
        start(
            """
async def child(index):
    try:
        await index.count("t1", "A1")
    except Exception as error:
        print(type(error).__name__, flush=True)
    second = await open_index(folder, Embedder())
    print(type(second).__name__, flush=True)
    await index.close()

index = asyncio.run(open_index(folder, Embedder()))
pid = os.fork()
if pid == 0:
    asyncio.run(child(index))
    os._exit(0)
os.waitpid(pid, 0)
asyncio.run(index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))]))
print(asyncio.run(index.count("t1", "A1")))
asyncio.run(index.close())
""",
            tmp_path / "vectors",
        )
    )
    assert output.split() == ["StoreError", "NoIndex", "1"]


async def test_two_agents_of_a_process_share_the_folder(opened, tmp_path, vector):
    folder = tmp_path / "vectors"
    one = await opened()
    (tmp_path / "link").symlink_to(folder)
    two = await opened(folder=tmp_path / "link")
    await one.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    assert await two.count("t1", "A1") == 1
    await one.close()
    await one.close()
    assert await two.count("t1", "A1") == 1
    assert not lock_is_free(folder)
    await two.close()
    assert lock_is_free(folder)
    assert folder_module._open == {}


async def test_many_agents_open_at_once(opened, vector):
    indexes = await asyncio.gather(*(opened() for _ in range(8)))
    assert {type(index) for index in indexes} == {ChromaIndex}
    await asyncio.gather(
        *(index.upsert("t1", f"A{n}", [VectorItem("m", "u", vector(n))]) for n, index in enumerate(indexes))
    )
    assert [await indexes[0].count("t1", f"A{n}") for n in range(8)] == [1] * 8


async def test_a_reset_through_one_agent_is_seen_by_the_other(opened, vector):
    one, two = await opened(), await opened("model-b")
    await one.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    await two.reset("t1", "A1")
    assert await one.count("t1", "A1") == 0
    await two.upsert("t1", "A1", [VectorItem("n", "u", vector(1))])
    with pytest.raises(EmbedderChanged):
        await one.query("t1", "A1", "u", vector(1), 3)


def test_an_index_serves_several_event_loops(tmp_path, embedder, vector):
    index = asyncio.run(open_index(tmp_path / "v", embedder()))
    asyncio.run(index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))]))
    assert asyncio.run(index.count("t1", "A1")) == 1
    asyncio.run(index.close())


async def test_a_closed_index_says_so(opened):
    other = await opened()
    index = await opened()
    await index.close()
    with pytest.raises(StoreError, match="closed"):
        await index.count("t1", "A1")
    assert await other.count("t1", "A1") == 0


async def test_chroma_runs_in_its_own_thread(opened):
    index = await opened()
    names = {await index._chroma.run(lambda: threading.current_thread().name) for _ in range(5)}
    assert names == {"recuerdo-chroma_0"}


async def test_a_panic_in_chroma_is_a_store_error(opened):
    class PanicException(BaseException):
        pass

    def panic():
        raise PanicException

    index = await opened()
    with pytest.raises(StoreError, match="PanicException"):
        await index._chroma.run(panic)
    assert await index.count("t1", "A1") == 0


async def test_a_damaged_database_gives_no_index_and_can_be_deleted(opened, tmp_path, vector):
    folder = tmp_path / "vectors"
    index = await opened()
    await index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    await index.close()
    (folder / "chroma.sqlite3").write_bytes(b"not a database" * 1_000)
    broken = await opened()
    assert isinstance(broken, NoIndex)
    assert "delete that folder" in broken.unavailable.en
    assert lock_is_free(folder)
    for path in folder.glob("chroma.sqlite3*"):
        path.unlink()
    mended = await opened()
    assert (mended.unavailable, await mended.count("t1", "A1")) == (None, 0)


async def test_a_damaged_collection_is_a_store_error_and_a_reset_mends_it(opened, tmp_path, vector):
    index = await opened()
    # Chroma writes an index to disk at its 1,000th vector.
    await index.upsert("t1", "A1", [VectorItem(str(n), "u", vector(n)) for n in range(1_100)])
    await index.upsert("t1", "A2", [VectorItem("m", "u", vector(1))])
    await index.close()
    (saved,) = (tmp_path / "vectors").glob("*/index_metadata.pickle")
    saved.write_bytes(b"")
    index = await opened()
    with pytest.raises(StoreError, match="does not answer"):
        await index.query("t1", "A1", "u", vector(1), 3)
    assert len(await index.query("t1", "A2", "u", vector(1), 3)) == 1
    await index.reset("t1", "A1")
    await index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    assert len(await index.query("t1", "A1", "u", vector(1), 3)) == 1


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(30, "Read-only file system")]
)
async def test_a_folder_that_cannot_be_written_gives_no_index(opened, monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(folder_module, "_take_lock", refuse)
    index = await opened()
    assert isinstance(index, NoIndex)
    assert error.strerror in index.unavailable.en
    assert "RECUERDO_DATA" in index.unavailable.es


async def test_a_file_in_the_folders_place_gives_no_index(opened, tmp_path):
    (tmp_path / "vectors").write_text("")
    index = await opened()
    assert isinstance(index, NoIndex)
    assert "File exists" in index.unavailable.en


@pytest.mark.parametrize("text", ["../x", "", "a/b", "ñandú", "\ud800", "x" * 5_000, "\x00"])
async def test_im_29_any_tenant_and_assistant_stay_in_the_folder(opened, tmp_path, vector, text):
    index = await opened()
    await index.upsert(text, text, [VectorItem("m", "u", vector(1))])
    assert [hit.id for hit in await index.query(text, text, "u", vector(1), 3)] == ["m"]
    assert await index.count("t1", text) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["vectors"]
    assert all(path.is_relative_to(tmp_path / "vectors") for path in tmp_path.glob("*/**"))


async def test_et_27_the_collection_has_the_assistants_name_and_holds_no_text(opened, vector):
    index = await opened()
    await index.upsert("t1", "A1", [VectorItem("m", "user123", vector(1))])

    def look():
        server = index._chroma.server()
        names = [found.name for found in server.list_collections(database="tenant-t1")]
        return names, index._chroma.find("t1", "A1").get(include=["metadatas", "documents"])

    names, held = await index._chroma.run(look)
    assert names == ["A1_memories"]
    ((metadata,), documents) = held["metadatas"], held["documents"]
    assert list(metadata) == ["user"]
    assert "user123" not in str(held)
    assert documents == [None]


def written_in(folder, *needles):
    """Which of the needles stand in which file."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [(path.name, needle) for path in files for needle in needles if needle in path.read_bytes()]


def as_bytes(values):
    return struct.pack(f"<{len(values)}f", *values)


async def test_im_43_c_17_what_memory_held_before_is_cleared_from_free_places(opened, tmp_path, vector):
    index = await opened()
    await index.upsert("t1", "A1", [VectorItem(f"of-{n}", "beto", vector(n)) for n in range(5)])
    (data,) = (tmp_path / "vectors").rglob("data_level0.bin")
    stale, size = as_bytes(vector(5_000)), data.stat().st_size
    with data.open("r+b") as file:
        file.seek(-len(stale), os.SEEK_END)
        file.write(stale)
    await index.delete("t1", "A1", ["of-0"])
    await index.purge()
    assert written_in(tmp_path / "vectors", stale) == []
    assert data.stat().st_size == size
    hits = await index.query("t1", "A1", "beto", vector(3), 1)
    assert [hit.id for hit in hits] == ["of-3"] and await index.count("t1", "A1") == 4


async def test_im_43_what_stands_in_taken_places_stays(opened, tmp_path, vector):
    index = await opened()
    await index.upsert("t1", "A1", [VectorItem(f"of-{n}", "beto", vector(n)) for n in range(1_100)])
    (data,) = (tmp_path / "vectors").rglob("data_level0.bin")
    held = data.read_bytes()
    assert any(held)
    await index.delete("t1", "A1", ["of-0"])
    await index.purge()
    assert data.read_bytes() == held
    hits = await index.query("t1", "A1", "beto", vector(3), 1)
    assert [hit.id for hit in hits] == ["of-3"] and await index.count("t1", "A1") == 1_099


@pytest.mark.parametrize("then", ["open", "close"])
async def test_im_43_c_17_nothing_of_a_forgotten_user_is_left_in_any_file(opened, tmp_path, vector, then):
    index = await opened()
    await index.upsert("t1", "A1", [VectorItem(f"id-{n}", "ana@mail.example", vector(n)) for n in range(5)])
    await index.upsert("t1", "A1", [VectorItem(f"of-{n}", "beto", vector(100 + n)) for n in range(5)])
    gone = [as_bytes(vector(n)) for n in range(5)]
    assert written_in(tmp_path / "vectors", b"ana@mail.example", b"beto") == []
    assert {needle for _, needle in written_in(tmp_path / "vectors", *gone)} == set(gone)
    await index.delete_user("t1", "A1", "ana@mail.example")
    if then == "close":
        await index.close()
    assert written_in(tmp_path / "vectors", *gone) == []
    again = await opened()
    assert await again.count("t1", "A1") == 5
    assert await again.query("t1", "A1", "ana@mail.example", vector(1), 9) == []
    assert [hit.id for hit in await again.query("t1", "A1", "beto", vector(103), 1)] == ["of-3"]


async def test_im_43_a_forgotten_memorys_vector_leaves_the_disk_with_the_purge(opened, tmp_path, vector):
    index = await opened()
    items = [VectorItem("gone", "u", vector(1)), VectorItem("stays", "u", vector(2))]
    await index.upsert("t1", "A1", items)
    await index.upsert("t1", "A1", [VectorItem("stays", "u", vector(3))])
    await index.delete("t1", "A1", ["gone"])
    await index.purge()
    old = [as_bytes(vector(1)), as_bytes(vector(2))]
    assert written_in(tmp_path / "vectors", *old) == []
    hits = await index.query("t1", "A1", "u", vector(3), 9)
    assert [(hit.id, round(hit.similarity, 4)) for hit in hits] == [("stays", 1.0)]


async def test_im_43_a_collection_written_anew_leaves_nothing_of_the_old_one(opened, tmp_path, vector):
    """More than Chroma keeps in its queue: then vectors stand in files of their own as well."""
    index = await opened()
    await index.upsert("t1", "A1", [VectorItem(str(n), "u", vector(n)) for n in range(1_200)])
    old = as_bytes(vector(7))
    await index.delete("t1", "A1", ["7"])
    await index.reset("t1", "A1")
    await index.upsert("t1", "A1", [VectorItem("1", "u", vector(1))])
    await index.purge()
    assert written_in(tmp_path / "vectors", old) == []
    assert await index.count("t1", "A1") == 1


async def test_im_43_after_much_is_purged_every_live_vector_is_found(opened, vector):
    index = await opened()
    await index.upsert("t1", "A1", [VectorItem(str(n), f"u{n % 3}", vector(n)) for n in range(2_500)])
    await index.delete_user("t1", "A1", "u0")
    await index.upsert("t1", "A1", [VectorItem(str(n), "u1", vector(n)) for n in range(2_500, 2_600)])
    await index.delete("t1", "A1", [str(n) for n in range(1, 600, 3)])
    await index.close()
    again = await opened()
    kept = {n for n in range(2_500) if n % 3} - set(range(1, 600, 3)) | set(range(2_500, 2_600))
    assert await again.count("t1", "A1") == len(kept)
    for n in sorted(kept)[::50]:
        user = f"u{n % 3}" if n < 2_500 else "u1"
        assert [hit.id for hit in await again.query("t1", "A1", user, vector(n), 1)] == [str(n)]


async def test_a_collection_that_names_its_users_is_made_anew(opened, vector):
    index = await opened()

    def of_before():
        about = {"embedder": "model-a", "dimensions": DIMENSIONS}
        index._chroma.create("t1", "A1", about).upsert(
            ids=["m"], embeddings=[vector(1)], metadatas=[{"user_id": "u"}]
        )

    await index._chroma.run(of_before)
    with pytest.raises(EmbedderChanged):
        await index.query("t1", "A1", "u", vector(1), 3)
    with pytest.raises(EmbedderChanged):
        await index.upsert("t1", "A1", [VectorItem("m", "u", vector(1))])
    await index.delete_user("t1", "A1", "u")
    assert await index.count("t1", "A1") == 0


async def test_a_look_makes_no_database(opened, vector):
    index = await opened()
    await index.query("stranger", "A1", "u", vector(1), 3)
    await index.count("stranger", "A1")
    await index.delete("stranger", "A1", ["m"])
    databases = await index._chroma.run(lambda: index._chroma.server().list_databases())
    assert [database["name"] for database in databases] == ["default_database"]


def test_more_collections_than_chroma_keeps_open(tmp_path):
    output = finish(
        start(
            """
import resource

# Chroma keeps about a fifth as many collections in memory.
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))

async def main():
    index = await open_index(folder, Embedder())
    for number in range(100):
        await index.upsert(f"t{number}", "A1", [VectorItem("m", "u", vector(number))])
    found = [await index.query(f"t{number}", "A1", "u", vector(number), 3) for number in range(100)]
    print(sum(len(hits) for hits in found))
    await index.close()

asyncio.run(main())
""",
            tmp_path / "vectors",
        )
    )
    assert output == "100\n"


async def test_more_vectors_than_chroma_takes_at_once(opened, vector):
    index = await opened()
    await index.upsert("t1", "A1", [VectorItem(str(n), "u", vector(n, 4)) for n in range(6_000)])
    assert await index.count("t1", "A1") == 6_000
    await index.delete("t1", "A1", [str(n) for n in range(5_999)])
    assert [hit.id for hit in await index.query("t1", "A1", "u", vector(1, 4), 10)] == ["5999"]


def test_the_folder_is_its_owners_alone(tmp_path, embedder):
    folder = tmp_path / "deep" / "vectors"
    index = asyncio.run(open_index(folder, embedder()))
    asyncio.run(index.close())
    assert [path.stat().st_mode & 0o077 for path in (folder, folder / "writer.lock")] == [0, 0]
