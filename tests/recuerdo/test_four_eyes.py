"""Four eyes through the real agent: who decides, what runs, and how often (OR-5, OR-22, OR-33, IM-39, IM-49)."""

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langchain_core.tools.base import ToolException
from langgraph.types import Command

from recuerdo.agent import Agent
from recuerdo.graph.turn import TurnContext
from recuerdo.nodes.run_tools.ledger import IDEMPOTENCY_KEY
from recuerdo.state.errors import BusyError, InputError, ModelError, ScopeError
from recuerdo.state.plan import AutoApproveRule, Condition, Plan
from recuerdo.state.turn import TurnState
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.approvals import Approvals
from recuerdo.stores.postgres.checkpoints import delete_thread, prune, remove_leftovers
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.evidence import EvidenceFilter, EvidenceLog
from recuerdo.stores.postgres.memories import Memories, NewMemory
from recuerdo.stores.postgres.platform import Platform
from recuerdo.stores.postgres.roles import SYSTEM, Roles
from recuerdo.stores.postgres.tool_calls import ToolCalls
from recuerdo.stores.postgres.turns import fail_abandoned
from tests.recuerdo.carlos import CARLOS, CONVERSATION, TENANT, House, prompt, sample
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

OLGA = "olga"
SARA = "sara"

DISCOUNT = AutoApproveRule(
    id="small-discounts",
    tool="place_order",
    when=(Condition(field="discount_pct", op="<=", value=10), Condition(field="nights", op=">", value=4)),
)


def call(name: str, key: str = "c1", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": key}


def asks(*calls: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=list(calls))


ORDER = asks(call("place_order", symbol="AAPL", quantity=5))


class Broker:
    """A service elsewhere that counts its orders."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, str]] = []
        self.error: BaseException | None = None
        self.began = asyncio.Event()
        self.waits = asyncio.Event()
        self.waits.set()

    def tools(self) -> list[BaseTool]:
        @tool
        async def place_order(
            config: RunnableConfig,
            symbol: str = "-",
            quantity: int = 0,
            discount_pct: float = 0,
            nights: int = 0,
        ) -> str:
            """Place an order."""
            self.orders.append((symbol, config["configurable"][IDEMPOTENCY_KEY]))
            self.began.set()
            await self.waits.wait()
            if self.error:
                raise self.error
            return f"order {len(self.orders)} of {symbol}"

        return [place_order]


def plan(*rules: AutoApproveRule, **changes: Any) -> Plan:
    return load_plan("trading").model_copy(
        update={"four_eyes": ("place_order",), "auto_approve_rules": rules, **changes}
    )


@pytest.fixture
async def staff(database: Database, house: House) -> Roles:
    """Olga owns the tenant, Sara supervises, as does the user who asks."""
    roles = Roles(database, TENANT, KeyFolder(house.data / "keys"))
    await roles.appoint_first_owner(OLGA, house.clock())
    for user in (SARA, CARLOS):
        await roles.grant(user, "supervisor", actor=OLGA, at=house.clock())
    return roles


@pytest.fixture
def broker() -> Broker:
    return Broker()


def model(*replies: Any) -> ScriptedModel:
    return ScriptedModel(replies=[*replies])


async def send(agent: Agent, text: str = "Compra 5 AAPL") -> Any:
    return await agent.send(text, user=CARLOS, conversation=CONVERSATION)


def said(turn: Any) -> str:
    """The reply without the sentence that the plan adds."""
    return str(turn.reply).split("\n\n")[0]


async def evidence(agent: Agent, *kinds: Any) -> list[Any]:
    log = EvidenceLog(agent.services.database, TENANT)
    return list(await log.list(agent.services.clock(), EvidenceFilter(kinds)))


async def ledger(agent: Agent, turn: str | UUID) -> list[tuple[str, str]]:
    calls = await ToolCalls(agent.services.database, TENANT).of_turn(UUID(str(turn)))
    return [(one.tool, one.status) for one in calls]


# The turn stops, and goes on


async def test_or_33_a_marked_tool_waits_for_a_second_person_and_the_same_turn_goes_on(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    assert turn.pending is not None and broker.orders == []
    assert (turn.pending.tool, turn.pending.arguments) == ("place_order", {"symbol": "AAPL", "quantity": 5})
    assert (turn.pending.user, turn.pending.status, turn.record.status) == (CARLOS, "pending", "waiting")
    assert "place_order" in turn.reply
    done = await agent.resume(turn.pending, "approve", actor=SARA)
    assert (done.id, said(done), done.pending) == (turn.id, "Hecho.", None)
    assert [symbol for symbol, _ in broker.orders] == ["AAPL"]
    assert [(n["status"], n["decided_by"]) for n in done.record.approvals] == [("approved", SARA)]
    assert await ledger(agent, turn.id) == [("place_order", "done")]
    texts = [m.content for m in await agent.conversations.get(CONVERSATION, user=CARLOS)]
    assert texts == ["Compra 5 AAPL", "", "order 1 of AAPL", done.reply]
    after = await send(agent, "gracias")
    assert after.pending is None and after.record.number == 2


async def test_im_49_who_asked_cannot_approve_and_nor_can_anybody_without_the_role(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    for actor in (CARLOS, "user-999"):
        with pytest.raises(ScopeError):
            await agent.resume(turn.pending, "approve", actor=actor)
    with pytest.raises(InputError):
        await agent.resume(turn.pending, "approve")
    with pytest.raises(InputError):
        await agent.resume(turn.pending)
    assert broker.orders == []
    done = await agent.resume(str(turn.pending.id), "approve", actor=OLGA)
    assert len(broker.orders) == 1 and said(done) == "Hecho."


async def test_or_33_a_rejected_call_does_not_run_and_the_model_is_told_why(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    script = model(ORDER, "No se hizo.")
    agent = await open_agent(model=script, plan=plan(), tools=broker.tools())
    turn = await send(agent)
    done = await agent.resume(turn.pending, "reject", actor=SARA, reason="demasiado riesgo")
    assert broker.orders == [] and said(done) == "No se hizo."
    (result,) = [m for m in done.request["messages"] if m.type == "tool"]
    assert result.status == "error" and "demasiado riesgo" in result.text
    assert await ledger(agent, turn.id) == []


async def test_or_33_a_waiting_turn_outlives_its_process(house: House, staff: Roles, broker: Broker) -> None:
    async with house.open(model=model(ORDER), plan=plan(), tools=broker.tools()) as agent:
        turn = await send(agent)
    later = model("Hecho.")
    async with house.open(model=later, plan=plan(), tools=broker.tools()) as agent:
        (found,) = await agent.governance.approvals.list("pending", actor=SARA)
        assert found == turn.pending
        done = await agent.resume(found.id, "approve", actor=SARA)
    assert (done.id, said(done), len(broker.orders)) == (turn.id, "Hecho.", 1)
    # The new process called the model once: what came before stands in the checkpoint.
    assert len(later.calls) == 1


async def test_or_33_of_two_who_approve_at_once_in_two_processes_one_wins(
    house: House, staff: Roles, broker: Broker
) -> None:
    parts: dict[str, Any] = {"plan": plan(), "tools": broker.tools()}
    async with (
        house.open(model=model(ORDER, "Hecho."), **parts) as one,
        house.open(model=model("Hecho."), **parts) as other,
    ):
        turn = await send(one)
        ended = await asyncio.gather(
            one.resume(turn.pending, "approve", actor=SARA),
            other.resume(turn.pending, "approve", actor=OLGA),
            return_exceptions=True,
        )
        assert len([e for e in ended if isinstance(e, InputError)]) == 1
        assert [said(e) for e in ended if not isinstance(e, BaseException)] == ["Hecho."]
        assert len(broker.orders) == 1
        with pytest.raises(InputError):
            await one.resume(turn.pending)
        assert len(await evidence(one, "approval_decided")) == 1


async def test_or_33_while_a_turn_waits_a_new_message_is_refused_with_what_it_waits_for(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Aparte.", "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    with pytest.raises(BusyError, match=str(turn.pending.id)):
        await send(agent, "¿y bien?")
    assert said(await agent.send("Hola", user=CARLOS, conversation="otra")) == "Aparte."
    await agent.resume(turn.pending, "approve", actor=SARA)
    first, *_ = await agent.conversations.get(CONVERSATION, user=CARLOS)
    assert first.content == "Compra 5 AAPL"


async def test_or_33_who_asked_may_take_it_back(
    open_agent: OpenAgent, database: Database, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "De acuerdo."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    done = await agent.resume(turn.pending, "reject", actor=CARLOS)
    assert broker.orders == [] and said(done) == "De acuerdo."
    assert [note["status"] for note in done.record.approvals] == ["withdrawn"]


async def test_or_33_calls_of_one_message_are_all_decided_before_any_runs(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    both = asks(call("place_order", "c1", symbol="AAPL"), call("place_order", "c2", symbol="TSLA"))
    agent = await open_agent(model=model(both, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    between = await agent.resume(turn.pending, "approve", actor=SARA)
    assert between.pending is not None and between.pending.id != turn.pending.id and broker.orders == []
    done = await agent.resume(between.pending, "reject", actor=OLGA)
    symbols = {"AAPL", "TSLA"} - {between.pending.arguments["symbol"]}
    assert {symbol for symbol, _ in broker.orders} == symbols
    assert sorted(note["status"] for note in done.record.approvals) == ["approved", "rejected"]


async def test_or_33_the_turn_goes_on_with_the_present_market(
    open_agent: OpenAgent, staff: Roles, broker: Broker, house: House
) -> None:
    script = model(ORDER, "Hecho.")
    agent = await open_agent(model=script, plan=plan(), tools=broker.tools())
    turn = await send(agent)
    assert ", 10:30 (" in prompt(turn.request)
    house.clock.forward(hours=3)
    done = await agent.resume(turn.pending, "approve", actor=SARA)
    assert ", 13:30 (" in prompt(done.request) and ", 10:30 (" not in prompt(done.request)


async def test_or_33_a_tool_that_was_deactivated_meanwhile_does_not_run(
    house: House, staff: Roles, broker: Broker
) -> None:
    async with house.open(model=model(ORDER), plan=plan(), tools=broker.tools()) as agent:
        turn = await send(agent)
    script = model("Ya no se puede.")
    off = plan(deactivated_tools=("place_order",))
    async with house.open(model=script, plan=off, tools=broker.tools()) as agent:
        done = await agent.resume(turn.pending, "approve", actor=SARA)
    assert broker.orders == [] and said(done) == "Ya no se puede."
    (result,) = [m for m in done.request["messages"] if m.type == "tool"]
    assert "deactivated" in result.text and result.status == "error"


async def test_or_33_a_preview_asks_nobody_and_runs_nothing(open_agent: OpenAgent, broker: Broker) -> None:
    agent = await open_agent(model=model(ORDER, "Nada."), plan=plan(), tools=broker.tools(), mode="preview")
    turn = await send(agent)
    assert turn.pending is None and broker.orders == []
    approvals = Approvals(agent.services.database, TENANT, agent.services.keys)
    assert await approvals.list() == [] and await ledger(agent, turn.id) == []


async def test_or_33_a_turn_whose_stop_was_not_kept_fails_and_frees_its_conversation(
    open_agent: OpenAgent, staff: Roles, broker: Broker, database: Database
) -> None:
    agent = await open_agent(model=model(ORDER, "Hola."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    async with database.connection() as connection:
        await connection.execute("delete from checkpoints")
    with pytest.raises(InputError):
        await agent.resume(turn.pending, "approve", actor=SARA)
    assert broker.orders == [] and len(await evidence(agent, "run_failed")) == 1
    assert said(await send(agent, "hola")) == "Hola."


async def test_or_33_the_worker_leaves_a_waiting_turn_alone(
    open_agent: OpenAgent, staff: Roles, broker: Broker, database: Database
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    assert await remove_leftovers(database) == 0
    await prune(database, keep=1)
    await fail_abandoned(database, agent.services.clock() + timedelta(days=2))
    assert said(await agent.resume(turn.pending, "approve", actor=SARA)) == "Hecho."
    assert await remove_leftovers(database) == 1


async def test_im_36_clearing_a_conversation_takes_back_what_waits_in_it(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hola."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    await agent.conversations.clear(CONVERSATION, user=CARLOS)
    (found,) = await agent.governance.approvals.list(actor=SARA)
    assert (found.status, found.decided_by) == ("withdrawn", CARLOS)
    (piece,) = await evidence(agent, "approval_decided")
    assert piece.data["status"] == "withdrawn"
    entries = await agent.governance.audit.entries(actor=SARA, subject=str(found.id))
    assert [(entry.action, entry.actor) for entry in entries] == [
        ("approval.withdrawn", CARLOS),
        ("approval.requested", CARLOS),
    ]
    assert (await agent.governance.audit.verify()).fault is None
    with pytest.raises(InputError):
        await agent.resume(turn.pending, "approve", actor=SARA)
    assert said(await send(agent, "hola")) == "Hola." and broker.orders == []


async def test_or_22_a_turn_that_cannot_go_on_asks_nobody_any_more(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    two = asks(call("place_order", symbol="AAPL"), call("place_order", "c2", symbol="TSLA"))
    agent = await open_agent(model=model(two, "Hecho."), plan=plan(), tools=broker.tools())
    await send(agent)
    first, second = await agent.governance.approvals.list("pending", actor=SARA)
    # As if the process had died before it wrote where the turn stopped.
    await delete_thread(agent.services.database, TENANT, CONVERSATION)
    with pytest.raises(InputError):
        await agent.resume(first, "approve", actor=SARA)
    left = await agent.governance.approvals.show(second.id, actor=SARA)
    assert (left.status, left.decided_by) == ("withdrawn", SYSTEM)
    assert await agent.governance.approvals.list("pending", actor=SARA) == []
    assert (await agent.governance.audit.verify()).fault is None and broker.orders == []


# What counts as an approval


async def test_im_39_neither_a_memory_nor_the_users_word_is_a_confirmation(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    memory = NewMemory("note", "siempre compra sin preguntar", "es", 1.0)
    await Memories(agent.services.database, TENANT).add("trading", CARLOS, memory, agent.services.clock())
    turn = await send(agent, "Sí, confirmo: compra AAPL como siempre, sin preguntar")
    assert "siempre compra sin preguntar" in prompt(turn.request)
    assert turn.pending is not None and broker.orders == []


@pytest.mark.parametrize(
    ("discount_pct", "nights", "passes"),
    [(10, 5, True), (10.0, 5, True), (9.99, 60, True), (11, 5, False), (10, 4, False), (10.01, 5, False)],
)
async def test_or_33_a_rule_lets_pass_what_is_within_its_limits(
    open_agent: OpenAgent, staff: Roles, broker: Broker, discount_pct: float, nights: int, passes: bool
) -> None:
    asked = asks(call("place_order", discount_pct=discount_pct, nights=nights))
    agent = await open_agent(model=model(asked, "Hecho."), plan=plan(DISCOUNT), tools=broker.tools())
    turn = await send(agent)
    assert (turn.pending is None, len(broker.orders)) == (passes, int(passes))
    entries = await agent.governance.audit.entries(actor=SARA)
    of_rule = [e for e in entries if e.action == "approval.auto_approved"]
    assert [DISCOUNT.id in e.details for e in of_rule] == ([True] if passes else [])
    assert len(await evidence(agent, "auto_approved")) == int(passes)


async def test_or_33_what_was_approved_is_what_runs(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    config: RunnableConfig = {"configurable": {"thread_id": f"{len(TENANT)}:{TENANT}:{CONVERSATION}"}}
    state = await agent.graph.aget_state(config)
    asked = state.values["messages"][-1]
    other = [call("place_order", symbol="AAPL", quantity=5000)]
    changed = asked.model_copy(update={"tool_calls": other})
    await agent.graph.aupdate_state(config, {"messages": [changed]}, as_node="call_llm")
    who = TurnContext(user=CARLOS, tenant=TENANT, conversation=CONVERSATION)
    # Edited in the thread, it is another call, which nobody has approved.
    await agent.governance.approvals.decide(turn.pending.id, "approve", actor=SARA)
    again = await agent.graph.ainvoke(None, config, context=who)
    (asked_now,) = again["__interrupt__"][0].value["approvals"]
    assert asked_now["arguments"]["quantity"] == 5000 and broker.orders == []


# The bare graph


async def test_im_49_a_resume_of_the_bare_graph_names_who_decides(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    config: RunnableConfig = {"configurable": {"thread_id": "bare"}}
    who = TurnContext(user=CARLOS, tenant=TENANT)
    text: Any = TurnState(messages=[("user", "Compra 5 AAPL")])  # type: ignore[list-item]
    stopped = await agent.graph.ainvoke(text, config, context=who)
    (asked,) = stopped["__interrupt__"][0].value["approvals"]
    for actor in (CARLOS, "user-999", ""):
        answer = {"approval": asked["id"], "decision": "approve", "actor": actor}
        again = await agent.graph.ainvoke(Command(resume=answer), config, context=who)
        assert again["__interrupt__"][0].value["fault"] is not None
    assert broker.orders == []
    answer = {"approval": asked["id"], "decision": "approve", "actor": SARA}
    with pytest.raises(ScopeError):
        await agent.graph.ainvoke(Command(resume=answer), config, context=TurnContext(tenant=TENANT))
    done = await agent.graph.ainvoke(Command(resume=True), config, context=who)
    assert str(done["messages"][-1].text).startswith("Hecho.") and len(broker.orders) == 1


# Level 1


async def test_or_5_level_1_of_a_waiting_turn_shows_thread_arguments_and_intent(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent, "Quiero comprar 5 AAPL")
    level = await agent.level_1(CONVERSATION, user=CARLOS)
    assert level is not None and (level.turn, level.status, level.intent) == (turn.id, "waiting", "trade")
    assert level.calls == [{"tool": "place_order", "arguments": {"symbol": "AAPL", "quantity": 5}}]
    assert {"role": "human", "text": "Quiero comprar 5 AAPL"} in level.thread
    assert await agent.level_1(CONVERSATION, user="user-999") is None
    await agent.resume(turn.pending, "approve", actor=SARA)
    assert await agent.level_1(CONVERSATION, user=CARLOS) is None


async def test_or_5_level_1_of_a_run_in_progress(open_agent: OpenAgent, broker: Broker) -> None:
    broker.waits.clear()
    free = plan(four_eyes=())
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=free, tools=broker.tools())
    running = asyncio.create_task(send(agent, "Quiero comprar 5 AAPL"))
    await broker.began.wait()
    level = await agent.level_1(CONVERSATION, user=CARLOS)
    assert level is not None and (level.status, level.intent, level.symbols) == ("running", "trade", ["AAPL"])
    assert level.calls == [{"tool": "place_order", "arguments": {"symbol": "AAPL", "quantity": 5}}]
    assert level.thread[0] == {"role": "human", "text": "Quiero comprar 5 AAPL"}
    broker.waits.set()
    await running
    assert await agent.level_1(CONVERSATION, user=CARLOS) is None


# The ledger


async def test_or_22_a_call_that_is_broken_off_has_an_unknown_outcome_and_is_not_repeated(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    broker.waits.clear()
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(four_eyes=()), tools=broker.tools())
    running = asyncio.create_task(send(agent))
    await broker.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (lost,) = await agent.governance.approvals.unknown_outcomes(actor=SARA)
    assert (lost.tool, lost.status, lost.conversation) == ("place_order", "unknown", CONVERSATION)
    (found,) = await evidence(agent, "outcome_unknown")
    assert found.data["call"] == str(lost.id) == broker.orders[0][1]
    desk, orders = agent.governance.approvals, list(broker.orders)
    with pytest.raises(ScopeError):
        await desk.settle(lost.id, "happened", actor="user-999")
    settled = await desk.settle(str(lost.id), "happened", actor=SARA, reason="El broker lo confirma")
    assert (settled.settled, settled.settled_by, settled.status) == ("happened", SARA, "unknown")
    assert not await desk.unknown_outcomes(actor=SARA) and broker.orders == orders
    with pytest.raises(InputError, match="settled before"):
        await desk.settle(lost.id, "did_not_happen", actor=OLGA)
    with pytest.raises(InputError, match="nonsense"):
        await desk.settle("nonsense", "did_not_happen", actor=OLGA)


async def test_or_22_a_tool_that_is_late_has_an_unknown_outcome(
    open_agent: OpenAgent, broker: Broker
) -> None:
    broker.error = TimeoutError()
    agent = await open_agent(
        model=model(ORDER, "Compruébalo."), plan=plan(four_eyes=()), tools=broker.tools()
    )
    turn = await send(agent)
    assert await ledger(agent, turn.id) == [("place_order", "unknown")]
    (result,) = [m for m in turn.request["messages"] if m.type == "tool"]
    assert "outcome is unknown" in result.text


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConnectionResetError("peer"), "unknown"),
        (OSError("network"), "unknown"),
        (RuntimeError("500"), "unknown"),
        (json.JSONDecodeError("no JSON", "<html>", 0), "unknown"),
        (ToolException("no funds"), "failed"),
        (ValueError("quantity"), "failed"),
    ],
)
async def test_or_22_only_a_foreign_tool_that_says_no_has_failed(
    open_agent: OpenAgent, broker: Broker, error: Exception, status: str
) -> None:
    broker.error = error
    agent = await open_agent(
        model=model(ORDER, "Compruébalo."), plan=plan(four_eyes=()), tools=broker.tools()
    )
    turn = await send(agent)
    assert await ledger(agent, turn.id) == [("place_order", status)]
    (result,) = [m for m in turn.request["messages"] if m.type == "tool"]
    assert ("outcome is unknown" in result.text) == (status == "unknown")
    assert len(await evidence(agent, "outcome_unknown")) == (status == "unknown")


async def test_or_22_a_turn_that_is_replayed_does_not_run_its_call_again(
    open_agent: OpenAgent, broker: Broker
) -> None:
    script = model(ORDER, RuntimeError("gone"), ORDER, "Hecho.")
    agent = await open_agent(model=script, plan=plan(four_eyes=()), tools=broker.tools())
    config: RunnableConfig = {"configurable": {"thread_id": "bare"}}
    who = TurnContext(user=CARLOS, tenant=TENANT)
    text: Any = TurnState(messages=[{"role": "user", "content": "Compra 5 AAPL", "id": "m1"}])  # type: ignore[list-item]
    first = await agent.graph.ainvoke(text, config, context=who)
    assert first["error"] is not None and len(broker.orders) == 1
    history = [state async for state in agent.graph.aget_state_history(config)]
    again: RunnableConfig = history[-1].config
    replayed = await agent.graph.ainvoke(text, again, context=who)
    assert str(replayed["messages"][-1].text).startswith("Hecho.")
    assert len(broker.orders) == 1
    (result,) = [m for m in replayed["messages"] if m.type == "tool"]
    assert result.text == "order 1 of AAPL"


# Evidence


async def test_or_22_failed_runs_decisions_and_uses_of_tools_are_there_after_a_restart(
    house: House, staff: Roles, broker: Broker
) -> None:
    uses = [reply for _ in range(4) for reply in (_five_quotes(), "Ahí van.")]
    script = model(RuntimeError("gone"), *uses, ORDER, "Hecho.")
    async with house.open(model=script, plan=plan(), tools=broker.tools()) as agent:
        await Platform(agent.services.database, TENANT).load(sample())
        with pytest.raises(ModelError):
            await send(agent, "Hola")
        for _ in range(4):
            await send(agent, "precios")
        turn = await send(agent)
        await agent.resume(turn.pending, "approve", actor=SARA, reason="mi tarjeta es 4111 1111 1111 1111")
    async with house.open(model=model("Hola"), plan=plan(), tools=broker.tools()) as agent:
        found = await agent.governance.evidence.list(actor=SARA)
        with pytest.raises(ScopeError):
            await agent.governance.evidence.list(actor="user-999")
    kinds = [one.kind for one in found]
    assert (kinds.count("run_failed"), kinds.count("approval_decided")) == (1, 1)
    assert len([one for one in found if one.kind == "tool_used" and one.tool == "get_quote"]) == 20
    assert all(one.turn and one.at for one in found)
    (decided,) = [one for one in found if one.kind == "approval_decided"]
    assert (decided.data["status"], decided.data["actor"], decided.turn) == ("approved", SARA, UUID(turn.id))
    assert decided.data["arguments"] == {"symbol": "AAPL", "quantity": 5}
    assert "4111 1111" not in str(found)
    later = house.clock() + timedelta(days=180)
    async with house.open(model=model("Hola"), plan=plan(), tools=broker.tools()) as agent:
        assert await EvidenceLog(agent.services.database, TENANT).list(later) == []


async def test_or_22_an_unexpected_exception_is_a_failed_run_and_evidence(
    open_agent: OpenAgent, staff: Roles, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(four_eyes=()), tools=broker.tools())

    async def broken(*_: Any) -> Any:
        raise ZeroDivisionError("quotes what the user wrote")

    monkeypatch.setattr(ToolCalls, "claim", broken)
    with pytest.raises(ZeroDivisionError):
        await send(agent)
    (failed,) = await evidence(agent, "run_failed")
    assert failed.data == {"error": "ZeroDivisionError"} and failed.conversation == CONVERSATION
    async with agent.services.database.operator() as connection:
        cursor = await connection.execute("select status from recuerdo.turns where id = %s", (failed.turn,))
        assert await cursor.fetchone() == {"status": "failed"}
    monkeypatch.undo()
    agent.services.model.replies = [None] * len(agent.services.model.calls) + ["Hola."]  # type: ignore[attr-defined]
    assert said(await send(agent, "Hola")).startswith("Hola")


def _five_quotes() -> AIMessage:
    return asks(*(call("get_quote", f"q{n}", symbol="AAPL") for n in range(5)))


async def test_or_34_a_run_of_unclear_intent_that_stops_for_a_person_is_flagged(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    await agent.send("Quiero comprar AAPL", user=CARLOS, conversation="clara")
    assert await evidence(agent, "ambiguity") == []
    turn = await send(agent, "ya sabes qué toca")
    (flagged,) = await evidence(agent, "ambiguity")
    assert flagged.turn == UUID(turn.id) and flagged.data["message"] == "ya sabes qué toca"
    assert flagged.data["confidence"] < 0.5


async def test_a_31_a_reversal_is_noted_once_and_only_of_what_passed(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    desk = agent.governance.approvals
    with pytest.raises(InputError):
        await desk.reverse(turn.pending.id, actor=SARA)
    await agent.resume(turn.pending, "approve", actor=SARA)
    with pytest.raises(ScopeError):
        await desk.reverse(turn.pending.id, actor="user-999")
    reversed_one = await desk.reverse(turn.pending.id, actor=OLGA, reason="cliente equivocado")
    assert reversed_one.reversed_by == OLGA
    with pytest.raises(InputError):
        await desk.reverse(turn.pending.id, actor=OLGA)
    (found,) = await evidence(agent, "reversal")
    assert found.data["reason"] == "cliente equivocado"
    assert (await agent.governance.audit.verify()).fault is None
