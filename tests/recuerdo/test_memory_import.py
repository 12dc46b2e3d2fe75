"""Chroma folders of another memory tool come in; the folder stays as it was (ET-27, IM-29, known faults 11 to 13)."""

import json
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import recuerdo
from recuerdo.memory_import import SOURCE_ID, ImportReport, import_chroma
from recuerdo.state.errors import SettingsError, StoreError
from recuerdo.stores.postgres.memories import StoredMemory
from tests.recuerdo.carlos import SettableClock

# In a process of its own: whoever reads the folder does not know the embedding function that it was made with.
MAKE = """
import json, sys
import chromadb
from chromadb.config import Settings
from chromadb.utils.embedding_functions import register_embedding_function

@register_embedding_function
class Theirs(chromadb.EmbeddingFunction):
    def __init__(self): pass
    def __call__(self, input): return [[float(len(text)), 1.0, 2.0, 3.0, 5.0] for text in input]
    @staticmethod
    def name(): return "theirs"
    def get_config(self): return {}
    @staticmethod
    def build_from_config(config): return Theirs()

client = chromadb.PersistentClient(sys.argv[1], Settings(anonymized_telemetry=False))
for name, documents in json.loads(sys.argv[2]).items():
    collection = client.create_collection(name, embedding_function=Theirs())
    for key, text, metadata in documents:
        made = {"documents": [text]} if text is not None else {"embeddings": [[1.0, 2.0, 3.0, 4.0, 5.0]]}
        collection.add(ids=[key], metadatas=[metadata], **made)
"""

Documents = Sequence[tuple[str, str | None, dict[str, Any]]]

FIRST = "the-first"
# Its digits look like a card's.
CARDLIKE = "4cf95aa3-0d36-42d6-9bfa-dad32042915f"
CREATED = "2024-03-01T10:00:00"
DARK, CONCISE = "User prefers dark theme", "User likes concise responses"
OF_A1: Documents = [
    (FIRST, DARK, {"user_id": "user123", "memory_id": FIRST, "created_at": CREATED, "weight": 2.5}),
    (CARDLIKE, CONCISE, {"user_id": "user123"}),
    ("third", "Le gusta el mate", {"user_id": "user456"}),
]


def make(folder: Path, **collections: Documents) -> Path:
    subprocess.run([sys.executable, "-c", MAKE, str(folder), json.dumps(collections)], check=True)
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One assistant's folder as the tool of ET makes it, with an embedding function of five dimensions."""
    return make(
        tmp_path_factory.mktemp("theirs"),
        A1_memories=OF_A1,
        other_things=[("x", "Nothing of ours", {"a": 1})],
    )


@pytest.fixture
def store() -> recuerdo.MemoryStore:
    return recuerdo.InMemoryStore()


async def brought_in(
    store: recuerdo.MemoryStore, folder: Path, clock: SettableClock, **named: Any
) -> ImportReport:
    return await import_chroma(store, folder, clock=clock, **named)


async def memories(
    store: recuerdo.MemoryStore, clock: SettableClock, user: str = "user123", assistant: str = "A1"
) -> dict[str, StoredMemory]:
    return {memory.text: memory for memory in await store.memories(assistant).list(user, clock())}


def fingerprint(folder: Path) -> dict[str, tuple[str, int]]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): (sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


async def test_et_27_documents_come_in_under_their_assistant_and_user(
    store: recuerdo.MemoryStore, source: Path, clock: SettableClock
) -> None:
    report = await brought_in(store, source, clock)
    assert (report.imported, report.present, report.left_out) == (3, 0, [])
    assert (report.assistants, report.users) == (["A1"], {"user123", "user456"})
    mine = await memories(store, clock)
    assert set(mine) == {DARK, CONCISE}
    assert mine[DARK].status == "confirmed"
    assert mine[DARK].metadata | {"source_key": ""} == {
        "created_at": CREATED,
        "weight": 2.5,
        SOURCE_ID: FIRST,
        "source_key": "",
    }
    assert set(await memories(store, clock, "user456")) == {"Le gusta el mate"}
    assert not await memories(store, clock, assistant="other_things")


async def test_the_tool_finds_what_came_in(
    store: recuerdo.MemoryStore, source: Path, clock: SettableClock
) -> None:
    await brought_in(store, source, clock)
    scope: Any = {"configurable": {"assistant_id": "A1", "ad_user_id": "user123"}}
    tool = recuerdo.memory_tool(store, clock=clock)
    found = json.loads(await tool.ainvoke({"mode": "search", "query": "dark theme", "k": 1}, scope))
    assert found["result"].startswith(f"- {DARK} (memory_id: ")


async def test_im_29_the_source_stays_as_it_was(
    store: recuerdo.MemoryStore, source: Path, clock: SettableClock
) -> None:
    before = fingerprint(source)
    await brought_in(store, source, clock)
    assert fingerprint(source) == before


async def test_a_second_import_adds_nothing(
    store: recuerdo.MemoryStore, source: Path, clock: SettableClock
) -> None:
    await brought_in(store, source, clock)
    again = await brought_in(store, source, clock)
    assert (again.imported, again.present) == (0, 3)
    assert len(await memories(store, clock)) == 2


async def test_documents_that_cannot_be_memories_are_named_and_the_others_come_in(
    store: recuerdo.MemoryStore, tmp_path: Path, clock: SettableClock
) -> None:
    folder = make(
        tmp_path / "mixed",
        A1_memories=[
            ("a", "Kept", {"user_id": "user123"}),
            ("b", None, {"user_id": "user123"}),
            ("c", "Nobody's", {"tag": "x"}),
            ("d", "x" * 4_001, {"user_id": "user123"}),
            ("e", "  ", {"user_id": "user123"}),
            ("f", "Of a name too long", {"user_id": "u" * 201}),
            ("g", "Of a number", {"user_id": 1017}),
            ("h", "Tarjeta 4111 1111 1111 1111", {"user_id": "user123"}),
        ],
    )
    report = await brought_in(store, folder, clock)
    assert {document.id for document in report.left_out} == {"b", "c", "d", "e", "f"}
    assert "4001" in next(document.reason.en for document in report.left_out if document.id == "d")
    assert set(await memories(store, clock)) == {"Kept", "Tarjeta [***]"}
    assert set(await memories(store, clock, "1017")) == {"Of a number"}


async def test_im_29_the_folder_may_have_the_assistants_name(
    store: recuerdo.MemoryStore, tmp_path: Path, clock: SettableClock
) -> None:
    folder = make(tmp_path / "A7_memories.db", langchain=[("a", "Kept", {"user_id": "user123"})])
    assert (await brought_in(store, folder, clock)).assistants == ["A7"]
    assert (await brought_in(store, folder, clock, assistant="A8")).assistants == ["A8"]
    assert set(await memories(store, clock, assistant="A8")) == {"Kept"}


async def test_an_assistant_that_is_not_there_is_said_with_those_that_are(
    store: recuerdo.MemoryStore, source: Path, clock: SettableClock
) -> None:
    with pytest.raises(SettingsError, match="it has those of: A1"):
        await brought_in(store, source, clock, assistant="A2")


async def test_a_folder_without_memories_is_said(
    store: recuerdo.MemoryStore, tmp_path: Path, clock: SettableClock
) -> None:
    folder = make(tmp_path / "things", one=[("a", "X", {"u": 1})], two=[("a", "X", {"u": 1})])
    with pytest.raises(SettingsError, match="one, two"):
        await brought_in(store, folder, clock)


async def test_what_is_no_chroma_folder_is_said(
    store: recuerdo.MemoryStore, tmp_path: Path, clock: SettableClock
) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SettingsError, match=r"chroma\.sqlite3 is missing"):
            await brought_in(store, folder, clock)


async def test_a_damaged_database_is_said_and_left_alone(
    store: recuerdo.MemoryStore, tmp_path: Path, clock: SettableClock
) -> None:
    (tmp_path / "chroma.sqlite3").write_bytes(b"no database at all" * 100)
    before = fingerprint(tmp_path)
    with pytest.raises(StoreError, match="damaged"):
        await brought_in(store, tmp_path, clock)
    assert fingerprint(tmp_path) == before


def test_the_command_imports_into_postgresql_and_says_what_came_in(
    source: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recuerdo.cli.memory_import import import_memory

    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    app = typer.Typer()
    app.command()(import_memory)
    arguments = [str(source), "--tenant", "t1"]
    first = CliRunner().invoke(app, [*arguments, "--json"])
    assert json.loads(first.stdout) == {
        "assistants": ["A1"],
        "imported": 3,
        "present": 0,
        "users": 2,
        "left_out": {},
    }
    again = CliRunner().invoke(app, arguments)
    assert again.stdout.strip() == "Memories imported: 0; already there: 3; left out: 0."
