"""The memory tool alone, over both stores: exact texts, order of checks, isolation (ET, IM-19 to IM-29)."""

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import pytest
import yaml
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from psycopg.conninfo import make_conninfo

import recuerdo
from recuerdo.graph.services import Parts, open_services
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.nodes.run_tools.memory_tool import MemoryTool
from recuerdo.nodes.run_tools.memory_tool.operations import HasMemories
from recuerdo.nodes.run_tools.toolbox import make_toolbox
from recuerdo.nodes.services import Services
from recuerdo.stores.embeddings import BundledEmbedder
from recuerdo.stores.memory_store.postgres import PostgresMemories
from recuerdo.stores.memory_store.protocol import UserMemories
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.memories import NewMemory, StoredMemory

T = TypeVar("T")

TENANT = "t1"
USER, OTHER = "user123", "user456"
DARK = "User prefers dark theme and 24-hour time format"
CONCISE = "User likes concise responses"
SUPPLIERS = "Supplier list is in Excel"
T0 = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)
NOBODYS = "00000000-0000-4000-8000-000000000000"
_ID = re.compile(r"\(memory_id: ([0-9a-f-]{36})\)")
_assistants = count(1)


@dataclass
class Clock:
    now: datetime = T0

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Bench:
    """The tool over a store, for an assistant that nobody else uses."""

    store: HasMemories
    clock: Clock = field(default_factory=Clock)
    assistant: str = field(default_factory=lambda: f"A{next(_assistants)}")

    @property
    def tool(self) -> MemoryTool:
        return recuerdo.memory_tool(self.store, clock=self.clock)

    def scope(self, user: str | None = USER, assistant: str | None = None) -> Any:
        return {"configurable": {"assistant_id": assistant or self.assistant, "ad_user_id": user}}

    def call(self, user: str = USER, assistant: str | None = None, /, **arguments: Any) -> dict[str, str]:
        answer = self.tool.invoke(arguments, self.scope(user, assistant))
        assert isinstance(answer, str)
        return dict(json.loads(answer))

    def add(self, text: str, user: str = USER) -> str:
        """Add a memory and return its id."""
        return _ID.findall(self.call(user, mode="add", memory=text)["result"])[-1]

    def memories(self, assistant: str | None = None) -> UserMemories:
        return self.store.memories(assistant or self.assistant)

    def size(self, user: str = USER) -> int:
        return run(self.memories().count(user, self.clock()))

    def read(self, memory_id: str, user: str = USER) -> StoredMemory:
        (found,) = run(self.memories().get(user, [UUID(memory_id)], self.clock()))
        return found


def run(work: Awaitable[T]) -> T:
    async def wait() -> T:
        return await work

    return asyncio.run(wait())


@pytest.fixture(scope="module")
def database(postgres_server: str, database_template: str) -> str:
    """A database for all tests of this file: each has an assistant of its own."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"create database memory_tool template {database_template}".encode())
    return make_conninfo(postgres_server, dbname="memory_tool")


@pytest.fixture(scope="module")
def settings(database: str, tmp_path_factory: pytest.TempPathFactory) -> recuerdo.Settings:
    return recuerdo.Settings(
        _env_file=None,  # type: ignore[call-arg]
        data=tmp_path_factory.mktemp("memory_tool"),
        database_url=database,  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def postgres_store(settings: recuerdo.Settings) -> Iterator[recuerdo.MemoryStore]:
    with recuerdo.open_store(settings, tenant="t1") as store:
        yield store


@pytest.fixture(params=["memory", "postgres"])
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "postgres":
        return Bench(request.getfixturevalue("postgres_store"))
    return Bench(recuerdo.InMemoryStore())


@pytest.fixture
def in_memory() -> Bench:
    return Bench(recuerdo.InMemoryStore())


class Broken:
    """A store that is away."""

    def __init__(self, reason: str = "Database connection failed") -> None:
        self.reason = reason
        self.opened = 0

    def memories(self, assistant: str) -> UserMemories:
        self.opened += 1
        raise RuntimeError(self.reason)


@dataclass(frozen=True)
class Stores:
    """The memories of services that are open on the running loop."""

    services: Services

    def memories(self, assistant: str) -> UserMemories:
        parts = self.services
        return PostgresMemories(parts.database, parts.index, parts.embedder, TENANT, assistant)


def answer(tool: MemoryTool, scope: Any, /, **arguments: Any) -> dict[str, str]:
    return dict(json.loads(tool.invoke(arguments, scope)))


# The four modes


def test_et_3_add_search_update_and_delete_in_turn(bench: Bench) -> None:
    assert bench.size() == 0
    memory_id = bench.add("X")
    assert bench.size() == 1
    assert bench.call(mode="search", query="X")["result"] == f"- X (memory_id: {memory_id})"
    assert "result" in bench.call(mode="update", memory_id=memory_id, memory="Y")
    assert bench.size() == 1
    assert "result" in bench.call(mode="delete", memory_id=memory_id)
    assert bench.size() == 0


def test_et_4_the_memories_that_fit_the_question_are_found(bench: Bench) -> None:
    dark, _, concise = bench.add(DARK), bench.add(SUPPLIERS), bench.add(CONCISE)
    found = bench.call(mode="search", query="user preferences", k=2)["result"]
    assert set(_ID.findall(found)) == {dark, concise}


def test_a_37_the_nearest_come_back_however_far_they_are(bench: Bench) -> None:
    memory_id = bench.add(SUPPLIERS)
    assert memory_id in bench.call(mode="search", query="¿qué tiempo hará mañana en Lima?")["result"]


def test_et_5_a_memory_survives_a_restart(settings: recuerdo.Settings) -> None:
    with recuerdo.open_store(settings, tenant="restarted") as store:
        memory_id = Bench(store, assistant="A1").add(DARK)
    with recuerdo.open_store(settings, tenant="restarted") as store:
        found = Bench(store, assistant="A1").call(mode="search", query="dark theme")
    assert _ID.findall(found["result"]) == [memory_id]


def test_et_6_another_user_does_not_find_it(bench: Bench) -> None:
    bench.add(DARK)
    found = bench.call(OTHER, mode="search", query=DARK)
    assert found == {"result": f"No memories found for user_id {OTHER} with query: {DARK}"}


def test_et_7_c_38_every_memory_has_a_uuid_of_its_own(bench: Bench) -> None:
    first, second = UUID(bench.add("X")), UUID(bench.add("X"))
    assert first != second
    assert first.version == second.version == 4


def test_et_8_et_9_et_16_add_says_its_exact_text(bench: Bench) -> None:
    said = bench.call(mode="add", memory=DARK)
    memory_id = _ID.findall(said["result"])[0]
    assert said == {"result": f"Memory added for user_id user123: {DARK} (memory_id: {memory_id})"}
    assert "result" in bench.call(mode="update", memory_id=memory_id, memory="Y")
    assert "result" in bench.call(mode="delete", memory_id=memory_id)


def test_et_10_three_results_unless_it_says_how_many(bench: Bench) -> None:
    for number in range(5):
        bench.add(f"User likes report {number}")
    sizes = [
        len(bench.call(mode="search", query="report", **k)["result"].splitlines())
        for k in ({}, {"k": 5}, {"k": 10})
    ]
    assert sizes == [3, 5, 5]


def test_et_11_et_17_et_18_search_says_one_line_for_each_the_best_first(bench: Bench) -> None:
    concise, dark = bench.add(CONCISE), bench.add(DARK)
    said = bench.call(mode="search", query="user preferences dark theme", k=5)
    assert said == {"result": f"- {DARK} (memory_id: {dark})\n- {CONCISE} (memory_id: {concise})"}


def test_a_39_line_breaks_become_spaces_in_the_list_and_stay_in_the_store(bench: Bench) -> None:
    memory_id = bench.add("First line\nsecond\r\nthird\u2028fourth")
    said = bench.call(mode="search", query="line")["result"]
    assert said == f"- First line second third fourth (memory_id: {memory_id})"
    assert bench.read(memory_id).text == "First line\nsecond\r\nthird\u2028fourth"


def test_et_12_im_28_update_changes_the_text_alone(bench: Bench) -> None:
    memory = NewMemory("note", "Old words", "en", confidence=1.0, metadata={"tags": ["a", "b"], "n": 1})
    old = run(bench.memories().add(USER, memory, bench.clock()))
    bench.clock.now += timedelta(days=1)
    bench.call(mode="update", memory_id=str(old.id), memory="New words")
    new = bench.read(str(old.id))
    assert (new.text, new.updated_at) == ("New words", bench.clock.now)
    assert (new.id, new.user, new.created_at, new.metadata) == (
        old.id,
        USER,
        T0,
        {"tags": ["a", "b"], "n": 1},
    )


def test_et_13_et_19_et_20_update_says_its_exact_text_and_is_found(bench: Bench) -> None:
    memory_id = bench.add(DARK)
    text = "User prefers dark theme, 24-hour time format, and compact layout"
    said = bench.call(mode="update", memory_id=memory_id, memory=text)
    assert said == {"result": f"Memory updated for user_id user123: {text} (memory_id: {memory_id})"}
    assert bench.call(mode="search", query=DARK)["result"] == f"- {text} (memory_id: {memory_id})"


def test_et_14_et_15_et_21_et_22_delete_says_its_exact_text_and_only_once(bench: Bench) -> None:
    gone, kept = bench.add(DARK), bench.add(CONCISE)
    said = bench.call(mode="delete", memory_id=gone)
    assert said == {"result": f"Memory with memory_id {gone} deleted for user_id user123"}
    assert _ID.findall(bench.call(mode="search", query=DARK)["result"]) == [kept]
    again = bench.call(mode="delete", memory_id=gone)
    assert again == {"error": f"No memory found with memory_id {gone} for user_id user123"}


def test_et_23_a_success_has_the_one_key_result(bench: Bench) -> None:
    memory_id = bench.add("X")
    for arguments in (
        {"mode": "add", "memory": "Z"},
        {"mode": "search", "query": "X"},
        {"mode": "update", "memory_id": memory_id, "memory": "Y"},
        {"mode": "delete", "memory_id": memory_id},
    ):
        assert [*bench.call(**arguments)] == ["result"]


def test_im_22_no_hits_are_no_error(bench: Bench) -> None:
    said = bench.call(mode="search", query="nonexistent")
    assert said == {"result": "No memories found for user_id user123 with query: nonexistent"}


# Storage, vectors, isolation


def test_et_2_any_store_of_ours_does(bench: Bench) -> None:
    memory_id = bench.add(DARK)
    assert bench.read(memory_id).text == DARK


def test_et_24_the_data_of_two_users_are_found_and_deleted_apart(bench: Bench) -> None:
    mine, theirs = bench.add(DARK), bench.add(DARK, OTHER)
    assert (bench.size(USER), bench.size(OTHER)) == (1, 1)
    bench.call(mode="delete", memory_id=mine)
    assert (bench.size(USER), bench.size(OTHER)) == (0, 1)
    assert bench.read(theirs, OTHER).text == DARK


class ByLetter(Embeddings):
    """Two dimensions: how near a text is to the first and to the last letter of the alphabet."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        place = (ord(text[0].lower()) - ord("a")) / 25
        return [1 - place, place]


def test_et_25_the_order_follows_the_embedding_function() -> None:
    bench = Bench(recuerdo.InMemoryStore(embeddings=ByLetter()))
    ids = [bench.add(text) for text in ("Zebras sleep", "Mules wander", "Ants dig")]
    assert _ID.findall(bench.call(mode="search", query="Apples")["result"]) == ids[::-1]
    assert _ID.findall(bench.call(mode="search", query="Zoos")["result"]) == ids


def test_et_26_vectors_are_made_of_the_text_and_anew_with_an_update() -> None:
    bench = Bench(recuerdo.InMemoryStore(embeddings=ByLetter()))
    first, second = bench.add("Ants dig"), bench.add("Mules wander")
    bench.call(mode="update", memory_id=first, memory="Zebras sleep")
    assert _ID.findall(bench.call(mode="search", query="Apples")["result"]) == [second, first]


def test_et_27_another_assistant_of_the_same_user_does_not_find_it(bench: Bench) -> None:
    memory_id = bench.add(DARK)
    found = bench.call(USER, "another", mode="search", query=DARK)
    assert found["result"].startswith("No memories found")
    assert "error" in bench.call(USER, "another", mode="delete", memory_id=memory_id)
    assert bench.size() == 1


@pytest.mark.parametrize("name", ["user_id", "ad_user_id", "assistant_id", "self", "config", "run_manager"])
def test_et_28_arguments_that_name_somebody_else_are_ignored(bench: Bench, name: str) -> None:
    bench.add("Secret of the other", OTHER)
    found = bench.call(USER, mode="search", query="secret", **{name: OTHER})
    assert found["result"].startswith("No memories found for user_id user123")
    bench.call(USER, mode="add", memory="Mine", **{name: OTHER})
    assert (bench.size(USER), bench.size(OTHER)) == (1, 1)


def test_et_29_im_25_a_foreign_memory_is_as_one_that_is_not_there(bench: Bench) -> None:
    memory_id = bench.add(DARK)
    for mode in ("update", "delete"):
        foreign = bench.call(OTHER, mode=mode, memory_id=memory_id, memory="Mine now")
        absent = bench.call(OTHER, mode=mode, memory_id=NOBODYS, memory="Mine now")
        assert foreign == {"error": f"No memory found with memory_id {memory_id} for user_id user456"}
        assert absent["error"] == foreign["error"].replace(memory_id, NOBODYS)
    assert bench.read(memory_id).text == DARK


def test_c_17_the_index_keeps_no_vector_of_what_was_deleted(settings: recuerdo.Settings) -> None:
    """And a collection of the assistant's own name holds those that are there (ET-2, ET-27)."""

    async def vectors() -> tuple[int, int]:
        # Without the worker, which may be about to write the very vector.
        async with open_services(settings, Parts(model=OfflineResponder())) as services:
            tool, scope = recuerdo.memory_tool(Stores(services)), Bench(Broken(), assistant="A17").scope()
            said = await tool.ainvoke({"mode": "add", "memory": DARK}, scope)
            query = await services.embedder.embed_query(DARK)
            before = await services.index.query(TENANT, "A17", USER, query, 5)
            assert [hit.id for hit in before] == _ID.findall(said)
            await tool.ainvoke({"mode": "delete", "memory_id": before[0].id}, scope)
            return len(before), len(await services.index.query(TENANT, "A17", USER, query, 5))

    assert run(vectors()) == (1, 0)


def test_a_40_the_default_embedding_is_local_and_always_the_same(
    monkeypatch: pytest.MonkeyPatch, in_memory: Bench
) -> None:
    def no_network(*args: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    memory_id = in_memory.add(DARK)
    assert memory_id in in_memory.call(mode="search", query="tema oscuro")["result"]
    assert run(BundledEmbedder().embed([DARK])) == run(BundledEmbedder().embed([DARK]))


def test_a_40_the_model_is_named_beside_its_vectors(
    postgres_store: recuerdo.MemoryStore, database: str
) -> None:
    memory_id = Bench(postgres_store).add(DARK)
    with psycopg.connect(database) as connection:
        row = connection.execute(
            "select embedder from recuerdo.user_memory where id = %s", (memory_id,)
        ).fetchone()
    assert row == (BundledEmbedder.name,)


# How long


def test_c_8_a_memory_is_kept_90_days_from_its_last_write(bench: Bench) -> None:
    memory_id = bench.add(DARK)
    assert bench.read(memory_id).status == "confirmed"
    bench.clock.now = T0 + timedelta(days=89)
    assert memory_id in bench.call(mode="search", query="theme")["result"]
    bench.clock.now = T0 + timedelta(days=90)
    assert bench.call(mode="search", query="theme")["result"].startswith("No memories found")
    assert "error" in bench.call(mode="update", memory_id=memory_id, memory="Y")


def test_a_38_an_update_moves_the_expiry(bench: Bench) -> None:
    memory_id = bench.add(DARK)
    bench.clock.now = T0 + timedelta(days=60)
    bench.call(mode="update", memory_id=memory_id, memory=CONCISE)
    bench.clock.now = T0 + timedelta(days=149)
    assert memory_id in bench.call(mode="search", query="concise")["result"]


def test_c_8_a_policy_may_mark_them_inferred(bench: Bench) -> None:
    tool = recuerdo.memory_tool(bench.store, inferred=True, clock=bench.clock)
    (memory_id,) = _ID.findall(tool.invoke({"mode": "add", "memory": DARK}, bench.scope()))
    assert bench.read(memory_id).status == "low"
    bench.clock.now = T0 + timedelta(days=7)
    assert bench.size() == 0
    assert "inferred" not in json.dumps(convert_to_openai_tool(tool))


# Faults, each with its text


@pytest.mark.parametrize("mode", ["xyz", "read", "list", "", "ADD", " add", "select", 5, ["add"]])
def test_et_32_et_36_c_18_c_37_any_other_mode_is_refused_by_name(bench: Bench, mode: Any) -> None:
    said = bench.call(mode=mode, memory="X", query="X", memory_id=NOBODYS)
    assert said == {"error": f"Invalid mode '{mode}'. Use 'add', 'search', 'update', or 'delete'."}
    assert bench.size() == 0


def test_et_32_without_a_mode_nothing_is_done(bench: Bench) -> None:
    said = bench.call(memory="X")
    assert said == {"error": "Invalid mode ''. Use 'add', 'search', 'update', or 'delete'."}
    assert bench.size() == 0


MISSING_MEMORY = "The 'memory' parameter is required for 'add' mode."
MISSING_QUERY = "The 'query' parameter is required for 'search' mode."
MISSING_ID = "The 'memory_id' parameter is required for 'delete' mode."
MISSING_EITHER = "Both 'memory_id' and 'memory' are required for 'update' mode."


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"mode": "add"}, MISSING_MEMORY),
        ({"mode": "add", "memory": ""}, MISSING_MEMORY),
        ({"mode": "add", "memory": " \n\t "}, MISSING_MEMORY),
        ({"mode": "add", "memory": None}, MISSING_MEMORY),
        ({"mode": "search"}, MISSING_QUERY),
        ({"mode": "search", "query": "  "}, MISSING_QUERY),
        ({"mode": "update", "memory": "X"}, MISSING_EITHER),
        ({"mode": "update", "memory_id": NOBODYS}, MISSING_EITHER),
        ({"mode": "update"}, MISSING_EITHER),
        ({"mode": "delete"}, MISSING_ID),
        ({"mode": "delete", "memory_id": ""}, MISSING_ID),
        ({"mode": "add", "memory": 5}, "The 'memory' parameter must be text."),
        ({"mode": "search", "query": ["X"]}, "The 'query' parameter must be text."),
    ],
)
def test_et_33_et_37_im_19_im_20_im_21_im_27_a_missing_parameter_is_named(
    bench: Bench, arguments: dict[str, Any], error: str
) -> None:
    bench.add("There before")
    assert bench.call(**arguments) == {"error": error}
    assert bench.size() == 1


@pytest.mark.parametrize("mode", ["update", "delete"])
@pytest.mark.parametrize("memory_id", ["xyz", "' or 1=1 --", "../x", "550e8400-e29b-41d4-a716-44665544000"])
def test_et_38_an_id_that_is_none_is_not_found(bench: Bench, mode: str, memory_id: str) -> None:
    said = bench.call(mode=mode, memory_id=memory_id, memory="X")
    assert said == {"error": f"No memory found with memory_id {memory_id} for user_id user123"}


@pytest.mark.parametrize("mode", ["add", "search", "update", "delete"])
@pytest.mark.parametrize(
    "configurable",
    [
        {},
        {"assistant_id": "A1"},
        {"ad_user_id": USER},
        {"assistant_id": "A1", "ad_user_id": ""},
        {"assistant_id": "", "ad_user_id": USER},
        {"assistant_id": "A1", "ad_user_id": None},
        {"assistant_id": "  ", "ad_user_id": USER},
    ],
)
def test_et_30_et_31_et_34_et_39_c_18_without_context_nothing_is_opened(
    mode: str, configurable: dict[str, Any]
) -> None:
    store = Broken()
    said = answer(
        recuerdo.memory_tool(store),
        {"configurable": configurable},
        mode=mode,
        memory="X",
        query="X",
        memory_id=NOBODYS,
    )
    assert said == {"error": "assistant_id or ad_user_id not found in Payload."}
    assert store.opened == 0


def test_im_24_mode_then_context_then_store_then_parameters() -> None:
    store = Broken()
    tool, scope = recuerdo.memory_tool(store), {"configurable": {"assistant_id": "A1", "ad_user_id": USER}}
    assert answer(tool, None, mode="xyz")["error"].startswith("Invalid mode 'xyz'.")
    assert answer(tool, None, mode="add")["error"] == "assistant_id or ad_user_id not found in Payload."
    assert store.opened == 0
    assert answer(tool, scope, mode="add")["error"] == "Error in MemoryTool: Database connection failed"
    assert store.opened == 1


def test_im_24_parameters_before_ownership(bench: Bench) -> None:
    memory_id = bench.add(DARK)
    assert bench.call(OTHER, mode="update", memory_id=memory_id) == {"error": MISSING_EITHER}


@pytest.mark.parametrize("mode", ["add", "search", "update", "delete"])
def test_et_35_im_23_a_store_that_fails_is_an_answer_with_the_prefix(mode: str) -> None:
    tool = recuerdo.memory_tool(Broken())
    said = answer(
        tool,
        {"configurable": {"assistant_id": "A1", "ad_user_id": USER}},
        mode=mode,
        memory="X",
        query="X",
        memory_id=NOBODYS,
    )
    assert said == {"error": "Error in MemoryTool: Database connection failed"}


def test_et_35_a_store_that_was_closed_is_an_answer_too() -> None:
    store = recuerdo.InMemoryStore()
    store.close()
    assert Bench(store).call(mode="add", memory="X")["error"].startswith("Error in MemoryTool: ")


def test_im_23_an_error_shows_no_secret_and_at_most_500_characters() -> None:
    reason = "postgresql://bob:s3cr3t-pass@db/x refused sk-abcdefghijklmnop1234567890abcdef " + "é\n" * 2_000
    scope = {"configurable": {"assistant_id": "A1", "ad_user_id": USER}}
    said = recuerdo.memory_tool(Broken(reason)).invoke({"mode": "add", "memory": "X"}, scope)
    assert len(said) <= 500
    error = json.loads(said)["error"]
    assert error.startswith("Error in MemoryTool: postgresql://bob:[***]@db/x refused [***]")
    assert "s3cr3t" not in said
    assert "abcdefghijkl" not in said


@pytest.mark.parametrize("k", [0, -1, 51, 1000, "5", 2.5, True, None])
def test_im_27_k_is_a_whole_number_from_1_to_50(bench: Bench, k: Any) -> None:
    bench.add(DARK)
    said = bench.call(mode="search", query="theme", k=k)
    assert said == {"error": "The 'k' parameter must be a whole number from 1 to 50."}


@pytest.mark.parametrize("k", [1, 50])
def test_im_27_k_at_its_bounds(bench: Bench, k: int) -> None:
    bench.add(DARK)
    assert "result" in bench.call(mode="search", query="theme", k=k)


def test_im_30_4000_characters_are_kept_and_4001_refused(bench: Bench) -> None:
    memory_id = bench.add("x" * 4000)
    assert len(bench.read(memory_id).text) == 4000
    for arguments in ({"mode": "add"}, {"mode": "update", "memory_id": memory_id}):
        error = bench.call(memory="x" * 4001, **arguments)["error"]
        assert "4001" in error
        assert "4000" in error
        assert not error.startswith("Error in MemoryTool")
    assert bench.size() == 1
    assert len(bench.read(memory_id).text) == 4000


def test_a_memory_that_cannot_be_kept_as_it_is_loses_only_that(bench: Bench) -> None:
    memory_id = bench.add("Card 4111 1111 1111 1111, NUL \0 and half a pair \ud83d end")
    text = bench.read(memory_id).text
    assert "4111" not in text
    assert text.endswith("end")


# Names


@pytest.mark.parametrize("assistant", ["../x", "a/b\\c", "..", "con:", "ñandú 7", "x" * 200, "a.b@c.org"])
def test_im_29_any_assistant_is_a_name_and_makes_no_file_elsewhere(
    postgres_store: recuerdo.MemoryStore, settings: recuerdo.Settings, assistant: str
) -> None:
    bench, data = Bench(postgres_store, assistant=assistant), Path(settings.data)
    around = sorted(path.name for path in data.parent.iterdir())
    memory_id = bench.add(DARK)
    assert memory_id in bench.call(mode="search", query="theme")["result"]
    assert sorted(path.name for path in data.parent.iterdir()) == around
    assert not [path for path in data.rglob("*") if not path.resolve().is_relative_to(data.resolve())]


@pytest.mark.parametrize("user", ["ana@example.org", "user123", "550e8400", "O'Brien; drop table", "李"])
def test_c_19_a_user_is_an_opaque_text(bench: Bench, user: str) -> None:
    memory_id = bench.add(DARK, user)
    assert _ID.findall(bench.call(user, mode="search", query="theme")["result"]) == [memory_id]


@pytest.mark.parametrize(
    ("user", "assistant"), [("u" * 201, "A1"), ("u\0", "A1"), (5, "A1"), (USER, "a" * 201)]
)
def test_a_name_that_cannot_be_kept_is_refused_clearly(bench: Bench, user: Any, assistant: str) -> None:
    said = bench.call(user, assistant, mode="add", memory="X")
    assert "error" in said
    assert "text" in said["error"] or "long" in said["error"]


# The tool as LangChain and a model see it


def test_im_26_the_schema_has_five_properties() -> None:
    schema = convert_to_openai_tool(recuerdo.memory_tool(Broken()))["function"]
    properties = schema["parameters"]["properties"]
    assert [*properties] == ["mode", "memory", "query", "memory_id", "k"]
    assert schema["parameters"]["required"] == ["mode"]
    assert properties["mode"]["type"] == "string"
    for name in ("memory", "query", "memory_id"):
        assert properties[name]["anyOf"] == [{"type": "string"}, {"type": "null"}]
        assert properties[name]["default"] is None
    assert (properties["k"]["type"], properties["k"]["default"]) == ("integer", 3)


def test_et_1_the_description_names_the_four_modes() -> None:
    tool = recuerdo.memory_tool(Broken())
    assert tool.name == "MemoryTool"
    assert all(f"- {mode}:" in tool.description for mode in ("add", "search", "update", "delete"))


def test_c_40_the_texts_stay_english_whatever_the_memory_is_in(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "es_MX.UTF-8")
    said = bench.call(mode="add", memory="Al usuario le gusta el mate")["result"]
    assert said.startswith("Memory added for user_id user123: Al usuario le gusta el mate")


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_a_call_of_a_model_gets_a_tool_message_sync_and_async(bench: Bench, way: str) -> None:
    async def called(**arguments: Any) -> ToolMessage:
        call = {"name": "MemoryTool", "args": arguments, "id": "call-1", "type": "tool_call"}
        if way == "invoke":
            return bench.tool.invoke(call, bench.scope())  # type: ignore[no-any-return]
        return await bench.tool.ainvoke(call, bench.scope())  # type: ignore[no-any-return]

    good, bad = await called(mode="add", memory=DARK), await called(mode="add")
    assert (good.status, bad.status, bad.tool_call_id) == ("success", "error", "call-1")
    assert json.loads(str(bad.content)) == {"error": MISSING_MEMORY}


@pytest.mark.parametrize("arguments", [{"mode": "x" * 10_000}, {"mode": "delete", "memory_id": "é" * 9_000}])
def test_im_13_what_is_echoed_in_an_error_is_short(in_memory: Bench, arguments: dict[str, Any]) -> None:
    said = in_memory.tool.invoke(arguments, in_memory.scope("u" * 200))
    assert len(said) <= 500
    assert [*json.loads(said)] == ["error"]


def test_calls_from_several_threads_at_once(bench: Bench) -> None:
    async def all_at_once() -> list[str]:
        calls = ({"mode": "add", "memory": f"Fact {number}"} for number in range(8))
        return await asyncio.gather(
            *(asyncio.to_thread(bench.tool.invoke, call, bench.scope()) for call in calls)
        )

    assert len({*_ID.findall("".join(run(all_at_once())))}) == 8
    assert bench.size() == 8


async def test_et_1_it_works_in_a_langgraph_graph_of_ones_own(in_memory: Bench) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([in_memory.tool]))
    graph.add_edge(START, "tools")
    calls = [
        {"name": "MemoryTool", "args": arguments, "id": str(number)}
        for number, arguments in enumerate([{"mode": "add", "memory": DARK}, {"mode": "read"}])
    ]
    state = {"messages": [AIMessage("", tool_calls=calls)]}
    _, good, bad = (await graph.compile().ainvoke(state, in_memory.scope()))["messages"]
    assert (good.status, bad.status) == ("success", "error")
    assert len(await in_memory.memories().list(USER, in_memory.clock())) == 1


ROOT = Path(__file__).parents[3]


def documented(language: str) -> str:
    """The first example in that language of the tool's page."""
    page = (ROOT / "docs" / "MEMORY_TOOL.md").read_text()
    match = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert match is not None
    return match[1]


def test_et_40_enabled_as_documented_it_works_alone(
    settings: recuerdo.Settings, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECUERDO_DATA", str(settings.data))
    monkeypatch.setenv("DATABASE_URL", database)
    exec(documented("python"), {})
    with recuerdo.open_store(settings) as store:
        bench = Bench(store, clock=Clock(datetime.now(UTC)), assistant="A1")
        assert "User prefers dark theme" in bench.call(mode="search", query="theme")["result"]


def test_et_40_enabled_as_documented_a_plan_has_it() -> None:
    plan, given = load_plan("trading"), yaml.safe_load(documented("yaml"))
    memory = type(plan.memory).model_validate(plan.memory.model_dump() | given["memory"])
    enabled = plan.model_copy(update={"tools": tuple(given["tools"]), "memory": memory})
    assert "MemoryTool" in make_toolbox(enabled, ()).tools
    assert "MemoryTool" not in make_toolbox(enabled.model_copy(update={"tools": ()}), ()).tools


def test_et_40_it_is_in_the_release_notes() -> None:
    assert "memory tool (`add`, `search`, `update`, `delete`)" in (ROOT / "CHANGELOG.md").read_text()
