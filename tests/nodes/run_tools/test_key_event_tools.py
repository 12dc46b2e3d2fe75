"""The three tools alone, over a store in memory and over PostgreSQL (LA-19 to LA-33, IM-1 to IM-5, IM-13)."""

import asyncio
import json
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from psycopg.rows import dict_row

import recuerdo
from recuerdo.nodes.run_tools.key_events import KEY_EVENT_TOOLS
from recuerdo.nodes.run_tools.key_events.tools import CALL_ID
from recuerdo.state.errors import StoreError
from recuerdo.state.key_events import KeyEvent, Owner
from recuerdo.state.plan import EventType, KeyEventSettings, Plan
from recuerdo.state.sentences import Sentence
from recuerdo.stores.memory_store.events import (
    InMemoryKeyEvents,
    KeptEvents,
    KeyEvents,
    PreviewKeyEvents,
)
from recuerdo.stores.memory_store.home import Backend
from recuerdo.stores.memory_store.opening import postgres_backend
from recuerdo.stores.memory_store.store import MemoryStore
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.key_events.rows import COLUMNS, event_of

NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)
TYPES = (
    EventType(name="procesamiento de reembolso", description="El cliente espera que se le devuelva dinero."),
    EventType(name="anomalía de la cuenta", description="Algo en la cuenta no es suyo."),
)
REFUND: dict[str, Any] = {"event_type": TYPES[0].name, "summary": "El pedido 4471 no llegó"}


class Store:
    """A store of one tenant; its events can fail."""

    def __init__(self) -> None:
        self.kept = KeptEvents()
        self.failure: Exception | None = None

    def events(self, assistant: str, *, shared: bool = False, closed_days: int = 90) -> KeyEvents:
        if self.failure:
            raise self.failure
        return InMemoryKeyEvents("t1", assistant, shared=shared, closed_days=closed_days, kept=self.kept)

    @property
    def all(self) -> list[KeyEvent]:
        return list(self.kept.events.values())

    def close(self) -> None:
        """Nothing is open."""


class PostgresStore(Store):
    """The same over PostgreSQL."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.real = MemoryStore(self._open)

    async def _open(self, stack: AsyncExitStack) -> Backend:
        database = await Database.open(self._url)
        stack.push_async_callback(database.close)
        unused: Any = None
        return postgres_backend(database, unused, unused, lambda: NOW, "t1")

    def events(self, assistant: str, *, shared: bool = False, closed_days: int = 90) -> KeyEvents:
        if self.failure:
            raise self.failure
        return self.real.events(assistant, shared=shared, closed_days=closed_days)

    @property
    def all(self) -> list[KeyEvent]:
        with psycopg.connect(self._url, row_factory=dict_row) as connection:
            rows = connection.execute(f"select {COLUMNS} from recuerdo.key_events order by created_at, id")
            return [event_of(row) for row in rows.fetchall()]

    def close(self) -> None:
        self.real.close()


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    kept = Store() if request.param == "memory" else PostgresStore(request.getfixturevalue("database_url"))
    yield kept
    kept.close()


def plan_with(types: Sequence[EventType] = TYPES, agent_type: str = "loop", **given: Any) -> Plan:
    settings = KeyEventSettings(types=tuple(types), **{"enabled": True, **given})
    return load_plan("trading").model_copy(update={"key_events": settings, "agent_type": agent_type})


class Tools:
    """The tools of a plan, called as a model calls them."""

    def __init__(self, store: Store, plan: Plan | None = None, at: datetime = NOW) -> None:
        self.at = at
        tools = recuerdo.key_event_tools(store, plan or plan_with(), clock=lambda: self.at)
        self.by_name: dict[str, BaseTool] = {tool.name: tool for tool in tools}

    async def call(self, name: str, args: dict[str, Any], **configurable: Any) -> ToolMessage:
        scope = {"assistant_id": "A1", "ad_user_id": "U", "thread_id": "S1", **configurable}
        given = {key: value for key, value in scope.items() if value is not None}
        call = {"type": "tool_call", "id": "call-0", "name": f"{name}_key_event", "args": args}
        message = await self.by_name[f"{name}_key_event"].ainvoke(call, {"configurable": given})
        assert isinstance(message, ToolMessage)
        return message

    async def answer(self, name: str, args: dict[str, Any], **configurable: Any) -> Any:
        message = await self.call(name, args, **configurable)
        assert message.status == "success", message.text
        return json.loads(str(message.text))

    async def error(self, name: str, args: dict[str, Any], **configurable: Any) -> str:
        message = await self.call(name, args, **configurable)
        assert message.status == "error" and len(message.text) <= 500
        return str(message.text)


@pytest.fixture
def tools(store: Store) -> Tools:
    return Tools(store)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("types", [TYPES, ()])
@pytest.mark.parametrize("agent_type", ["loop", "agent", "flow"])
def test_la_27_la_28_im_4_three_tools_or_none(
    store: Store, enabled: bool, types: tuple[EventType, ...], agent_type: str
) -> None:
    names = [t.name for t in recuerdo.key_event_tools(store, plan_with(types, agent_type, enabled=enabled))]
    expected = KEY_EVENT_TOOLS if enabled and types and agent_type == "loop" else ()
    assert tuple(names) == expected
    assert KEY_EVENT_TOOLS == ("create_key_event", "update_key_event", "query_key_event")


def test_im_5_the_schema_has_the_exact_names_with_their_descriptions(tools: Tools) -> None:
    schema = convert_to_openai_tool(tools.by_name["create_key_event"])["function"]
    properties = schema["parameters"]["properties"]
    assert properties["event_type"]["enum"] == [kind.name for kind in TYPES]
    for kind in TYPES:
        assert f"- '{kind.name}': {kind.description}" in schema["description"]
    assert properties["severity"]["enum"] == ["low", "normal", "high", "urgent"]
    assert schema["parameters"]["required"] == ["event_type", "summary"]
    assert set(properties) == {"event_type", "summary", "severity", "entities", "confidence"}


async def test_la_19_im_1_create_update_query_in_one_conversation(store: Store, tools: Tools) -> None:
    made = (await tools.answer("create", REFUND))["event"]
    assert (made["status"], made["priority"], made["confidence"]) == ("PENDING", "MEDIUM", 1)
    assert (made["user"], made["session"], made["identity_resolved"]) == ("U", "S1", True)
    assert (made["entities"], made["type_removed"]) == ([], False)
    assert made["created_at"] == made["updated_at"] == NOW.isoformat()
    assert [entry["action"] for entry in made["history"]] == ["created"]
    args = {
        "event_id": made["id"],
        "status": "IN_PROGRESS",
        "severity": "urgent",
        "entities": ["pedido 4471"],
    }
    after = (await tools.answer("update", args))["event"]
    assert (after["status"], after["priority"], after["entities"]) == (
        "IN_PROGRESS",
        "CRITICAL",
        ["pedido 4471"],
    )
    (stored,) = store.all
    assert (stored.status, stored.priority, str(stored.id)) == ("IN_PROGRESS", "CRITICAL", made["id"])
    other = (await tools.answer("create", {**REFUND, "event_type": TYPES[1].name}))["event"]
    found = await tools.answer("query", {"event_type": TYPES[1].name})
    assert [event["id"] for event in found["events"]] == [other["id"]] and found["total"] == 1
    changes = after["history"][1]["changes"]["status"]
    assert changes == {"from": "PENDING", "to": "IN_PROGRESS"}


async def test_la_20_la_21_every_session_of_the_user_and_no_other_user(tools: Tools) -> None:
    made = (await tools.answer("create", REFUND))["event"]
    after = await tools.answer("update", {"event_id": made["id"], "summary": "Devuelto"}, thread_id="S2")
    assert [entry["session"] for entry in after["event"]["history"]] == ["S1", "S2"]
    assert (await tools.answer("query", {}, thread_id="S3"))["total"] == 1
    stranger = {"ad_user_id": "V"}
    assert (await tools.answer("query", {"include_closed": True}, **stranger))["events"] == []
    absent = "00000000-0000-0000-0000-000000000000"
    for name, more in (("update", {"status": "CLOSED"}), ("query", {})):
        foreign = await tools.error(name, {"event_id": made["id"], **more}, **stranger)
        missing = await tools.error(name, {"event_id": absent, **more}, **stranger)
        no_id = await tools.error(name, {"event_id": "42", **more}, **stranger)
        assert foreign.replace(made["id"], "X") == missing.replace(absent, "X") == no_id.replace("42", "X")


async def test_la_23_pages_and_closed_ones_if_asked_for(tools: Tools) -> None:
    made = [(await tools.answer("create", {**REFUND, "summary": f"n {n}"}))["event"] for n in range(9)]
    for event in made[:2]:
        await tools.answer("update", {"event_id": event["id"], "status": "CLOSED"})
    first = await tools.answer("query", {"limit": 4})
    second = await tools.answer("query", {"limit": 4, "offset": first["next_offset"]})
    assert first["total"] == 7 and second["next_offset"] is None
    ids = {event["id"] for page in (first, second) for event in page["events"]}
    assert ids == {event["id"] for event in made[2:]}
    assert (await tools.answer("query", {"include_closed": True}))["total"] == 9
    assert (await tools.answer("query", {"status": "CLOSED"}))["total"] == 2
    assert set(first["events"][0]) >= {"id", "type", "status", "summary", "priority"}


@pytest.mark.parametrize(
    "wrong", ["Queja", "Procesamiento de reembolso", f"{TYPES[0].name} ", f" {TYPES[0].name}"]
)
async def test_la_30_la_31_a_21_a_type_that_is_not_in_the_dictionary(
    store: Store, tools: Tools, wrong: str
) -> None:
    said = await tools.error("create", {**REFUND, "event_type": wrong})
    assert said == (
        f"Invalid event_type '{wrong}'. Allowed types: 'procesamiento de reembolso', 'anomalía de la cuenta'."
    )
    assert store.all == []


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("create", {"severity": "alta"}, "Invalid severity 'alta'. Allowed values: 'low', 'normal'"),
        ("create", {"summary": ""}, "summary must have 1 to 1000 characters."),
        ("create", {"summary": "x" * 5000}, "summary must have 1 to 1000 characters."),
        ("create", {"confidence": 7}, "confidence must be a number from 0 to 1."),
        ("create", {"entities": "pedido"}, "Invalid entities: "),
        ("update", {"status": "DONE"}, "Invalid status 'DONE'. Allowed values: 'PENDING'"),
        ("update", {}, "There is nothing to change"),
        ("update", {"summary": " "}, "summary must have 1 to 1000 characters."),
        ("query", {"status": "OPEN"}, "Invalid status 'OPEN'."),
        ("query", {"limit": 1000}, "Invalid limit: "),
        ("query", {"offset": -1}, "Invalid offset: "),
        ("query", {"offset": 10**30}, "Invalid offset: "),
        ("query", {"event_type": "Queja\0"}, "event_type must be a text of characters that can be kept"),
        ("query", {"event_type": "Queja\ud800"}, "event_type must be a text of characters that can be kept"),
        ("create", {"confidence": float("nan")}, "confidence must be a number from 0 to 1."),
        ("create", {"confidence": float("inf")}, "confidence must be a number from 0 to 1."),
        ("create", {"event_type": "Queja\0"}, "Invalid event_type"),
        ("create", {"event_type": None}, "Invalid event_type: Field required"),
    ],
)
async def test_im_2_im_3_im_13_wrong_arguments_are_short_errors_and_change_nothing(
    store: Store, tools: Tools, name: str, args: dict[str, Any], said: str
) -> None:
    made = (await tools.answer("create", REFUND))["event"]
    before = store.all
    given = {"create": REFUND, "update": {"event_id": made["id"]}, "query": {}}[name]
    assert said in await tools.error(name, {**given, **args})
    assert store.all == before


async def test_im_13_many_types_or_a_long_failure_stay_within_500_characters(store: Store) -> None:
    many = [EventType(name=f"tipo número {n}" + "x" * 60) for n in range(50)]
    said = await Tools(store, plan_with(many)).error("create", {**REFUND, "event_type": "Queja"})
    assert said.startswith("Invalid event_type 'Queja'. Allowed types: 'tipo número 0") and said.endswith("…")
    store.failure = StoreError(Sentence("x" * 2000, "y" * 2000))
    assert len(await Tools(store).error("create", REFUND)) == 500
    store.failure = RuntimeError("password=hunter2")
    assert await Tools(store).error("query", {}) == "Key events are not available now (RuntimeError)."


async def test_la_32_la_33_c_29_without_a_user_the_event_is_the_sessions(store: Store, tools: Tools) -> None:
    made = (await tools.answer("create", REFUND, ad_user_id=None))["event"]
    assert (made["user"], made["session"], made["identity_resolved"]) == (None, "S1", False)
    assert (await tools.answer("query", {}, ad_user_id=None))["total"] == 1
    assert (await tools.answer("query", {}, ad_user_id=None, thread_id="S2"))["total"] == 0
    assert (await tools.answer("query", {}, thread_id="S2"))["total"] == 0
    assert [event.identity_resolved for event in store.all] == [False]


async def test_a_22_the_user_who_is_known_later_in_the_session_has_its_events(tools: Tools) -> None:
    made = (await tools.answer("create", REFUND, ad_user_id=None))["event"]
    await tools.answer("query", {})
    adopted = (await tools.answer("query", {"event_id": made["id"]}, thread_id="S2"))["event"]
    assert (adopted["user"], adopted["identity_resolved"]) == ("U", True)
    assert [(entry["action"], entry["actor"]) for entry in adopted["history"]] == [
        ("created", "S1"),
        ("adopted", "U"),
    ]


@pytest.mark.parametrize(
    "scope", [{"assistant_id": None}, {"ad_user_id": None, "thread_id": None}, {"ad_user_id": ""}]
)
async def test_c_11_without_a_scope_the_model_is_told_and_nothing_is_written(
    store: Store, tools: Tools, scope: dict[str, Any]
) -> None:
    await tools.error("create", REFUND, **scope)
    assert store.all == []


async def test_a_23_c_34_sharing_is_a_setting(store: Store, tools: Tools) -> None:
    made = (await tools.answer("create", REFUND, assistant_id="flow-1"))["event"]
    assert (await tools.answer("query", {}))["events"] == []
    shared = Tools(store, plan_with(shared_across_assistants=True))
    assert [event["id"] for event in (await shared.answer("query", {}))["events"]] == [made["id"]]


async def test_c_9_closed_days_are_a_setting(store: Store) -> None:
    tools = Tools(store, plan_with(closed_days=3))
    made = (await tools.answer("create", REFUND))["event"]
    await tools.answer("update", {"event_id": made["id"], "status": "CLOSED"})
    tools.at = NOW + timedelta(days=3)
    assert (await tools.answer("query", {"include_closed": True}))["total"] == 0
    assert "no key event" in await tools.error("update", {"event_id": made["id"], "status": "PENDING"})


async def test_im_18_events_of_a_removed_type_stay_and_are_marked(store: Store, tools: Tools) -> None:
    made = (await tools.answer("create", REFUND))["event"]
    without = Tools(store, plan_with(TYPES[1:]))
    (found,) = (await without.answer("query", {}))["events"]
    assert (found["type"], found["type_removed"]) == (TYPES[0].name, True)
    after = await without.answer("update", {"event_id": made["id"], "status": "RESOLVED"})
    assert (after["event"]["type"], after["event"]["status"]) == (TYPES[0].name, "RESOLVED")
    assert (await without.answer("query", {"event_type": TYPES[0].name}))["total"] == 1


async def test_c_16_a_card_number_is_in_no_event(store: Store, tools: Tools) -> None:
    await tools.answer("create", {**REFUND, "summary": "Tarjeta 4111 1111 1111 1111 cobrada dos veces"})
    assert "4111" not in repr(store.all) and "cobrada dos veces" in store.all[0].summary


def test_the_tools_work_without_async_too(store: Store, tools: Tools) -> None:
    config: Any = {"configurable": {"assistant_id": "A1", "ad_user_id": "U"}}
    made = json.loads(tools.by_name["create_key_event"].invoke(REFUND, config))["event"]
    assert (made["session"], made["user"]) == (None, "U")

    async def inside_a_loop() -> str:
        return str(tools.by_name["query_key_event"].invoke({}, config))

    assert json.loads(asyncio.run(inside_a_loop()))["total"] == 1


async def test_im_3_im_13_null_is_left_out_in_every_tool(store: Store, tools: Tools) -> None:
    nothing = {"severity": None, "entities": None, "confidence": None}
    made = (await tools.answer("create", {**REFUND, **nothing}))["event"]
    assert (made["priority"], made["entities"], made["confidence"]) == ("MEDIUM", [], 1)
    after = await tools.answer("update", {"event_id": made["id"], "status": "RESOLVED", "entities": None})
    assert (after["event"]["status"], after["event"]["entities"]) == ("RESOLVED", [])
    whatever = {"event_id": None, "event_type": None, "status": None, "include_closed": None, "limit": None}
    assert (await tools.answer("query", {**whatever, "offset": None}))["total"] == 1


async def test_la_31_a_type_in_another_encoding_is_found_as_it_was_made(store: Store, tools: Tools) -> None:
    decomposed = unicodedata.normalize("NFD", TYPES[1].name)
    assert decomposed != TYPES[1].name
    made = (await tools.answer("create", {**REFUND, "event_type": decomposed}))["event"]
    assert made["type"] == TYPES[1].name
    found = await tools.answer("query", {"event_type": decomposed})
    assert [event["id"] for event in found["events"]] == [made["id"]]


async def test_im_13_a_call_id_that_no_database_takes_is_no_fault(tools: Tools) -> None:
    for call_id in ("call\0", "call\ud800", "x" * 5000):
        given = {"checkpoint_ns": "tools:1", CALL_ID: call_id}
        call = {"type": "tool_call", "id": call_id, "name": "create_key_event", "args": REFUND}
        scope = {"assistant_id": "A1", "ad_user_id": "U", "thread_id": "S1", **given}
        tool = tools.by_name["create_key_event"]
        made = [await tool.ainvoke(call, {"configurable": scope}) for _ in range(2)]
        ids = {json.loads(message.content)["event"]["id"] for message in made}
        assert len(ids) == 1, "the same step again writes nothing twice"


async def test_c_14_a_preview_has_no_events_and_says_so() -> None:
    class Preview(Store):
        def events(self, assistant: str, *, shared: bool = False, closed_days: int = 90) -> KeyEvents:
            return PreviewKeyEvents()

    tools = Tools(Preview())
    assert "preview" in await tools.error("create", REFUND)
    assert "preview" in await tools.error("update", {"event_id": str(uuid4()), "status": "CLOSED"})
    assert (await tools.answer("query", {}, thread_id=None))["total"] == 0


@pytest.mark.parametrize("kept", ["memory", "postgres"])
async def test_la_19_in_a_graph_with_a_tool_node_and_over_our_stores(
    kept: str, request: pytest.FixtureRequest
) -> None:
    store = (
        recuerdo.InMemoryStore("t1", clock=lambda: NOW)
        if kept == "memory"
        else PostgresStore(request.getfixturevalue("database_url")).real
    )
    tools = recuerdo.key_event_tools(store, plan_with(), clock=lambda: NOW)
    calls = iter(
        [
            AIMessage("", tool_calls=[{"name": "create_key_event", "args": REFUND, "id": "call_0"}]),
            AIMessage("", tool_calls=[{"name": "create_key_event", "args": REFUND, "id": "call_0"}]),
        ]
    )
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [next(calls)]})
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    graph.add_edge("tools", END)
    compiled = graph.compile(store=store)
    config: Any = {"configurable": {"assistant_id": "A1", "ad_user_id": "U", "thread_id": "S1"}}
    for _ in range(2):
        state = await compiled.ainvoke({"messages": []}, config)
        assert json.loads(state["messages"][-1].content)["event"]["user"] == "U"
    # Two answers of a model that counts its calls anew each time are two events.
    assert len(await store.events("A1").open(Owner("U", None), 5)) == 2
    await store.aclose()
