from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from recuerdo.state.errors import ScopeError
from recuerdo.stores.postgres.checkpoints import delete_thread, open_saver, prune, remove_leftovers, thread_of
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.platform import EconomicEvent
from recuerdo.stores.postgres.turns import NewTurn, TurnLog, TurnOutcome

from .conftest import AT_ONCE, LEASE, NOW, PlayTurn

NewTurnBuilder = Callable[..., NewTurn]


class State(TypedDict, total=False):
    text: str
    work: Any
    window: list[str]


async def receive(state: State) -> State:
    return {"work": {"secret": state["text"]}}


async def act(state: State) -> State:
    if state["text"].startswith("ask"):
        interrupt("may I?")
    if state["text"].startswith("fail"):
        raise RuntimeError("broken")
    return {}


async def remember(state: State) -> State:
    return {"window": [*state.get("window", []), state["text"]], "work": None}


@pytest.fixture
async def saver(database: Database) -> AsyncPostgresSaver:
    return await open_saver(database)


@pytest.fixture
def graph(saver: AsyncPostgresSaver) -> Any:
    builder = StateGraph(State)
    builder.add_node("receive", receive)
    builder.add_node("act", act)
    builder.add_node("remember", remember)
    builder.add_edge(START, "receive")
    builder.add_edge("receive", "act")
    builder.add_edge("act", "remember")
    builder.add_edge("remember", END)
    return builder.compile(checkpointer=saver)


def thread(conversation: str = "conv-456", tenant: str = "t1") -> RunnableConfig:
    return {"configurable": {"thread_id": thread_of(tenant, conversation)}}


async def states(graph: Any, config: RunnableConfig) -> list[list[str]]:
    return [state.values.get("window", []) async for state in graph.aget_state_history(config)]


async def rows_with(database: Database, text: str) -> int:
    """Rows of LangGraph's tables that hold ``text``."""
    found = 0
    async with database.connection() as connection:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            for row in await (await connection.execute(f"select * from {table}")).fetchall():
                found += text.encode() in b" ".join(
                    bytes(value) if isinstance(value, bytes) else str(value).encode()
                    for value in row.values()
                )
    return found


def test_threads_of_different_conversations_differ() -> None:
    names = [("a", "b:c"), ("a:b", "c"), ("1:a", "b"), ("a", "b"), ("", "x")]
    assert len({thread_of(*name) for name in names[:-1]}) == 4
    with pytest.raises(ScopeError):
        thread_of(*names[-1])


@pytest.mark.parametrize("tenant", ["t1", "mañana:ß🎉"])
async def test_prune_keeps_the_newest_and_what_they_use(
    database: Database, graph: Any, new_turn: NewTurnBuilder, tenant: str
) -> None:
    log, turn = TurnLog(database, tenant), new_turn()
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    await log.finish(TurnOutcome(turn.id, NOW, []))
    config = thread(tenant=tenant)
    for number in range(6):
        await graph.ainvoke({"text": str(number)}, config, durability="exit")
    before = await states(graph, config)
    assert await prune(database, keep=3) == 1
    assert await states(graph, config) == before[:3]
    assert before[0] == ["0", "1", "2", "3", "4", "5"]
    async with database.connection() as connection:
        unused = await connection.execute(
            "select b.channel from checkpoint_blobs b where not exists (select 1 from checkpoints c"
            " where c.checkpoint -> 'channel_versions' ->> b.channel = b.version)"
        )
        assert await unused.fetchall() == []
    await graph.ainvoke({"text": "6"}, config, durability="exit")
    assert (await states(graph, config))[0] == [*before[0], "6"]


async def test_prune_leaves_threads_of_other_graphs_alone(database: Database, graph: Any) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "somebody-else"}}
    for number in range(4):
        await graph.ainvoke({"text": str(number)}, config, durability="exit")
    await prune(database, keep=1)
    await remove_leftovers(database)
    assert len(await states(graph, config)) == 4


async def test_c_12_no_level_1_row_after_an_approved_turn(
    database: Database, graph: Any, log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    turn = new_turn()
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    await graph.ainvoke({"text": "ask-hush"}, thread(), durability="exit")
    assert await rows_with(database, "secret") > 0
    assert await remove_leftovers(database) == 0, "a turn that runs or waits keeps its state"
    await graph.ainvoke(Command(resume=True), thread(), durability="exit")
    await log.finish(TurnOutcome(turn.id, NOW, []))
    assert await remove_leftovers(database) == 1
    assert await rows_with(database, "secret") == 0
    assert await states(graph, thread()) == [["ask-hush"]]


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
async def test_c_12_failed_turn_leaves_the_thread_at_its_last_whole_turn(
    database: Database, graph: Any, log: TurnLog, play: PlayTurn, new_turn: NewTurnBuilder, durability: str
) -> None:
    await play("M1", "R1")
    await graph.ainvoke({"text": "good"}, thread(), durability=durability)
    turn = new_turn()
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    with pytest.raises(RuntimeError):
        await graph.ainvoke({"text": "fail-hush"}, thread(), durability=durability)
    await log.fail(turn.id, NOW, "broken")
    await remove_leftovers(database)
    assert await rows_with(database, "hush") == 0
    assert await states(graph, thread()) == [["good"]]
    await graph.ainvoke({"text": "next"}, thread(), durability=durability)
    assert (await graph.aget_state(thread())).values["window"] == ["good", "next"]


async def test_delete_thread_leaves_others(database: Database, graph: Any) -> None:
    for conversation in ("a", "b"):
        await graph.ainvoke({"text": conversation}, thread(conversation), durability="exit")
    await delete_thread(database, "t1", "a")
    assert await states(graph, thread("a")) == []
    assert await states(graph, thread("b")) == [["b"]]


async def test_only_plain_data_and_messages_are_loaded(saver: AsyncPostgresSaver) -> None:
    plain = {"at": NOW, "id": UUID(int=1), "messages": [HumanMessage("hola"), AIMessage("qué tal")]}
    assert saver.serde.loads_typed(saver.serde.dumps_typed(plain)) == plain
    row = EconomicEvent(event="e", date=NOW.date(), impact="low")
    assert not isinstance(saver.serde.loads_typed(saver.serde.dumps_typed(row)), EconomicEvent)


async def test_saver_opens_again_without_setup(database: Database) -> None:
    first, second = await open_saver(database), await open_saver(database)
    assert first is not second
    async with database.connection() as connection:
        jobs = await (await connection.execute("select name from recuerdo.jobs")).fetchall()
    assert jobs == []
