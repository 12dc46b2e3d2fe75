"""What let a call run is looked at again when it runs: stops, plans, and the request itself (OR-33, IM-49, IM-52)."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool

from recuerdo.agent import Agent
from recuerdo.graph.turn import TurnContext
from recuerdo.state.amendment import RuleAdded
from recuerdo.state.errors import InputError, ScopeError
from recuerdo.state.turn import TurnState
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.approvals import Approvals, NewApproval
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.roles import Roles
from tests.recuerdo.approved import approved
from tests.recuerdo.carlos import CARLOS, CONVERSATION, TENANT, House
from tests.recuerdo.conftest import OpenAgent
from tests.recuerdo.test_four_eyes import (
    DISCOUNT,
    OLGA,
    ORDER,
    SARA,
    Broker,
    asks,
    call,
    model,
    plan,
    said,
    send,
)
from tests.recuerdo.test_four_eyes import broker as broker  # a fixture
from tests.recuerdo.test_four_eyes import staff as staff  # a fixture

SMALL = DISCOUNT.model_copy(update={"arguments": ("symbol", "discount_pct", "nights")})
BY_RULE = call("place_order", "c1", symbol="SMALL", discount_pct=10, nights=5)
WAITS = call("place_order", "c2", symbol="LARGE", discount_pct=50, nights=1)
MARKED = {"four_eyes": ("place_order",)}


class Desk:
    """Notes that were taken: a tool that needs nobody."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def tools(self) -> list[BaseTool]:
        @tool
        async def take_note(text: str) -> str:
            """Take a note."""
            self.notes.append(text)
            return "noted"

        return [take_note]


@pytest.fixture
def desk() -> Desk:
    return Desk()


Signed = Callable[..., Awaitable[Agent]]


@pytest.fixture
async def signed(house: House, staff: Roles, broker: Broker, desk: Desk) -> AsyncIterator[Signed]:
    """An agent under a signed revision of the plan with these changes."""
    async with AsyncExitStack() as stack:

        async def opened(*replies: Any, **changes: Any) -> Agent:
            tools = [*broker.tools(), *desk.tools()]
            agent = await stack.enter_async_context(
                house.open(plan="trading", model=model(*replies), tools=tools)
            )
            await put_in_force(agent, **changes)
            return agent

        yield opened


async def put_in_force(agent: Agent, *, without: tuple[str, ...] = (), **changes: Any) -> None:
    plans = agent.governance.plans
    revision = await plans.compile(plan(**{"four_eyes": (), **changes}), actor=OLGA, without=without)
    await plans.activate(revision.number, actor=OLGA)


async def with_rule(signed: Signed, *calls: dict[str, Any]) -> Agent:
    """An agent under a revision that lets BY_RULE pass; it asks for these calls."""
    agent = await signed(asks(*calls), "Hecho.")
    services, change = agent.services, RuleAdded(rule=SMALL)
    at = services.clock()
    await approved(services.database, services.keys, TENANT, "trading", change, actor=SARA, at=at)
    await put_in_force(agent, **MARKED)
    return agent


def results(turn: Any) -> dict[str, str]:
    """What the model was told of each call."""
    return {m.tool_call_id: m.text for m in turn.request["messages"] if m.type == "tool"}


async def sql(agent: Agent, query: Any, *values: Any) -> Any:
    async with agent.services.database.tenant(TENANT) as connection:
        return await connection.execute(query, values)


# Stops and plans


@pytest.mark.parametrize("all_tools", [False, True])
async def test_im_52_under_a_stop_a_rule_lets_nothing_run_that_has_not_run(
    open_agent: OpenAgent, staff: Roles, broker: Broker, all_tools: bool
) -> None:
    script = model(asks(BY_RULE, WAITS), asks(BY_RULE), "Hecho.")
    agent = await open_agent(model=script, plan=plan(SMALL), tools=broker.tools())
    turn = await send(agent)
    assert turn.pending.arguments["symbol"] == "LARGE"
    await agent.governance.plans.stop(actor=SARA, all_tools=all_tools)
    again = await agent.resume(turn.pending, "reject", actor=SARA)
    assert broker.orders == [] and "does not hold any more" in results(again)["c1"]
    # Asked for again, it waits for a person.
    assert again.pending is not None and again.pending.arguments["symbol"] == "SMALL"
    done = await agent.resume(again.pending, "approve", actor=SARA)
    assert [symbol for symbol, _ in broker.orders] == ["SMALL"] and said(done) == "Hecho."
    assert (await agent.governance.audit.verify()).fault is None


async def test_im_52_a_call_that_needed_nobody_waits_under_a_stop_of_all_tools(
    signed: Signed, broker: Broker, desk: Desk
) -> None:
    agent = await signed(asks(call("take_note", text="hola"), WAITS), "Hecho.", **MARKED)
    turn = await send(agent)
    await agent.governance.plans.stop(actor=SARA, all_tools=True)
    again = await agent.resume(turn.pending, "reject", actor=SARA)
    assert again.pending is not None and again.pending.tool == "take_note" and desk.notes == []
    await agent.resume(again.pending, "reject", actor=SARA)
    assert (desk.notes, broker.orders) == ([], [])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"without": (SMALL.id,)}, "does not hold any more"),
        ({"deactivated_tools": ("place_order",)}, "deactivated"),
    ],
)
async def test_or_33_a_plan_that_was_put_in_force_meanwhile_takes_permission_away(
    signed: Signed, broker: Broker, changes: dict[str, Any], why: str
) -> None:
    agent = await with_rule(signed, BY_RULE, WAITS)
    turn = await send(agent)
    assert turn.pending.arguments["symbol"] == "LARGE"
    await put_in_force(agent, **MARKED, **changes)
    done = await agent.resume(turn.pending, "reject", actor=SARA)
    assert broker.orders == [] and why in results(done)["c1"] and done.pending is None


async def test_or_33_a_tool_that_was_taken_away_does_not_run_whoever_had_to_decide(
    signed: Signed, desk: Desk
) -> None:
    agent = await signed(asks(call("take_note", text="hola"), WAITS), "No se hizo.", **MARKED)
    turn = await send(agent)
    await put_in_force(agent, **MARKED, deactivated_tools=("take_note",))
    done = await agent.resume(turn.pending, "reject", actor=SARA)
    assert desk.notes == [] and "deactivated" in results(done)["c1"]


async def test_or_33_a_tool_that_is_marked_meanwhile_waits_too(signed: Signed, desk: Desk) -> None:
    agent = await signed(asks(call("take_note", text="hola"), WAITS), "Hecho.", **MARKED)
    turn = await send(agent)
    await put_in_force(agent, four_eyes=("place_order", "take_note"))
    again = await agent.resume(turn.pending, "reject", actor=SARA)
    assert again.pending is not None and again.pending.tool == "take_note" and desk.notes == []
    await agent.resume(again.pending, "approve", actor=SARA)
    assert desk.notes == ["hola"]


async def test_or_33_a_plan_that_only_allows_more_changes_nothing_for_a_turn_under_way(
    signed: Signed, broker: Broker, desk: Desk
) -> None:
    calls = (call("take_note", text="hola"), call("nonsense", "c3"), BY_RULE, WAITS)
    agent = await with_rule(signed, *calls)
    turn = await send(agent)
    await put_in_force(agent)
    done = await agent.resume(turn.pending, "approve", actor=SARA)
    assert sorted(symbol for symbol, _ in broker.orders) == ["LARGE", "SMALL"] and desk.notes == ["hola"]
    assert "There is no tool named nonsense" in results(done)["c3"]


async def test_or_22_what_ran_before_the_stop_is_answered_from_the_ledger(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    script = model(asks(BY_RULE), RuntimeError("gone"), asks(BY_RULE), "Hecho.")
    agent = await open_agent(model=script, plan=plan(SMALL), tools=broker.tools())
    config: RunnableConfig = {"configurable": {"thread_id": "bare"}}
    who = TurnContext(user=CARLOS, tenant=TENANT)
    text: Any = TurnState(messages=[{"role": "user", "content": "Compra", "id": "m1"}])  # type: ignore[list-item]
    await agent.graph.ainvoke(text, config, context=who)
    await agent.governance.plans.stop(actor=SARA)
    history = [state async for state in agent.graph.aget_state_history(config)]
    replayed = await agent.graph.ainvoke(text, history[-1].config, context=who)
    (result,) = [m for m in replayed["messages"] if m.type == "tool"]
    assert result.text == "order 1 of SMALL" and len(broker.orders) == 1


# The request


async def test_im_49_a_request_stands_in_the_audit_without_what_was_asked_for(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    await agent.resume(turn.pending, "approve", actor=SARA)
    entries = await agent.governance.audit.entries(actor=SARA, subject=str(turn.pending.id))
    assert [(e.action, e.actor) for e in entries] == [
        ("approval.approved", SARA),
        ("approval.requested", CARLOS),
    ]
    marks = {json.loads(entry.details)["request_sha256"] for entry in entries}
    assert len(marks) == 1 and "AAPL" not in str(entries)


ALTERED = {
    "arguments": 'update recuerdo.approvals set arguments = \'{"symbol": "AAPL", "quantity": 1}\'',
    "tool": "update recuerdo.approvals set tool = 'get_quote'",
    "requester": "update recuerdo.approvals set user_id = null",
    "plan": "update recuerdo.approvals set revision = 7",
    "turn": "update recuerdo.approvals set turn_id = gen_random_uuid()",
}


@pytest.mark.parametrize("altered", ALTERED)
async def test_im_49_a_request_that_was_altered_cannot_be_approved(
    open_agent: OpenAgent, staff: Roles, broker: Broker, altered: str
) -> None:
    agent = await open_agent(model=model(ORDER, "No se hizo."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    await sql(agent, ALTERED[altered])
    # The requester is a supervisor: what no longer names him he could approve himself.
    for actor in (SARA, CARLOS):
        with pytest.raises((InputError, ScopeError)):
            await agent.governance.approvals.decide(turn.pending.id, "approve", actor=actor)
    with pytest.raises(InputError, match="changed in the database"):
        await agent.governance.approvals.decide(turn.pending.id, "approve", actor=SARA)
    left = await agent.governance.approvals.decide(turn.pending.id, "reject", actor=SARA)
    assert left.status == "rejected" and broker.orders == []


@pytest.mark.parametrize("altered", ["arguments", "tool", "plan"])
async def test_im_49_a_request_that_was_altered_after_its_decision_does_not_run(
    open_agent: OpenAgent, staff: Roles, broker: Broker, altered: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await open_agent(model=model(ORDER, "No se hizo."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    await agent.governance.approvals.decide(turn.pending.id, "approve", actor=SARA)
    changed = "update recuerdo.approvals set revision = 7" if altered == "plan" else ALTERED[altered]
    await sql(agent, changed)
    done = await agent.resume(turn.pending.id)
    assert broker.orders == [] and "not what was asked for" in results(done)["c1"]
    assert str(turn.pending.id) in caplog.text and "AAPL" not in caplog.text


@pytest.mark.parametrize(
    "forged",
    [
        "update recuerdo.approvals set status = 'approved', decided_at = now(), decided_by = 'sara'",
        "update recuerdo.approvals set status = 'auto_approved', rule = 'small', decided_at = now(),"
        " decided_by = 'recuerdo'",
    ],
)
async def test_im_49_an_approval_that_nobody_gave_lets_nothing_run(
    open_agent: OpenAgent, staff: Roles, broker: Broker, forged: str
) -> None:
    agent = await open_agent(model=model(ORDER, "No se hizo."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    await sql(agent, forged)
    await agent.resume(turn.pending.id)
    assert broker.orders == []


@pytest.mark.parametrize("value", [1e23, 1.5e300, 1e308, 5.0, -0.0, 0.1, 5e-324, 2**53 + 1])
async def test_or_33_an_approved_call_runs_whatever_numbers_and_texts_it_has(
    open_agent: OpenAgent, staff: Roles, broker: Broker, value: float
) -> None:
    asked = asks(call("place_order", symbol="ñandú 😀 \\u0000", discount_pct=value))
    agent = await open_agent(model=model(asked, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    await agent.resume(turn.pending, "approve", actor=SARA)
    assert len(broker.orders) == 1 and (await agent.governance.audit.verify()).fault is None


async def test_im_49_a_request_from_before_there_were_marks_is_decided_and_runs(
    open_agent: OpenAgent, staff: Roles, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    with monkeypatch.context() as before:
        before.setattr("recuerdo.stores.postgres.approvals.request_mark", lambda *_: {})
        turn = await send(agent)
        await agent.governance.approvals.decide(turn.pending.id, "approve", actor=SARA)
    await agent.resume(turn.pending.id)
    assert len(broker.orders) == 1


# Who may know, and where


async def test_im_49_who_has_no_role_does_not_learn_which_requests_there_are(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "Hecho."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    desk, unknown = agent.governance.approvals, uuid4()
    for request in (turn.pending.id, unknown):
        for decision in ("approve", "reject"):
            with pytest.raises(ScopeError):
                await desk.decide(request, decision, actor="user-999")
            with pytest.raises(ScopeError):
                await agent.resume(request, decision, actor="user-999")
    for ask in (desk.decide, agent.resume):
        with pytest.raises(InputError, match=str(unknown)):
            await ask(unknown, "approve", actor=SARA)
    assert (await desk.show(turn.pending.id, actor=SARA)).status == "pending"


@pytest.mark.parametrize("decision", ["approve", "reject", None])
async def test_or_33_a_preview_neither_decides_nor_goes_on_with_a_live_turn(
    house: House, staff: Roles, broker: Broker, decision: Any
) -> None:
    parts: dict[str, Any] = {"plan": plan(), "tools": broker.tools()}
    async with house.open(model=model(ORDER, "Hecho."), **parts) as agent:
        turn = await send(agent)
        async with house.open(model=model("Nada."), mode="preview", **parts) as preview:
            with pytest.raises(InputError, match="preview"):
                await preview.resume(turn.pending, decision, actor=SARA)
        assert (await agent.governance.approvals.show(turn.pending.id, actor=SARA)).status == "pending"
        assert said(await agent.resume(turn.pending, "approve", actor=SARA)) == "Hecho."
    assert len(broker.orders) == 1


# What is left of a user


async def test_im_36_an_unknown_outcome_outlives_its_conversation(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    broker.error = ConnectionError("peer")
    agent = await open_agent(
        model=model(ORDER, "Compruébalo."), plan=plan(four_eyes=()), tools=broker.tools()
    )
    turn = await send(agent)
    await agent.conversations.clear(CONVERSATION, user=CARLOS)
    desk = agent.governance.approvals
    (lost,) = await desk.unknown_outcomes(actor=SARA)
    assert (lost.tool, lost.user, str(lost.turn)) == ("place_order", CARLOS, turn.id)
    assert (await desk.settle(lost.id, "happened", actor=SARA)).settled == "happened"
    assert await desk.unknown_outcomes(actor=SARA) == []
    assert (await agent.governance.audit.verify()).fault is None


async def test_im_43_an_unknown_outcome_outlives_its_user_without_him(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    broker.error = ConnectionError("peer")
    agent = await open_agent(
        model=model(ORDER, "Compruébalo."), plan=plan(four_eyes=()), tools=broker.tools()
    )
    turn = await send(agent)
    desk = agent.governance.approvals
    (before,) = await desk.unknown_outcomes(actor=SARA)
    await agent.memory.forget_all(user=CARLOS)
    (lost,) = await desk.unknown_outcomes(actor=SARA)
    assert (lost.id, lost.tool, lost.started_at) == (before.id, before.tool, before.started_at)
    assert (lost.user, lost.result) == (None, None) and str(lost.turn) != turn.id
    assert CONVERSATION not in str(lost) and CARLOS not in str(lost)
    assert (await desk.settle(lost.id, "did_not_happen", actor=SARA)).settled == "did_not_happen"
    assert (await agent.governance.audit.verify()).fault is None


async def test_a_22_im_43_an_anonymous_session_that_was_claimed_is_forgotten_with_its_user(
    open_agent: OpenAgent, staff: Roles, broker: Broker, database: Database
) -> None:
    secret = "NOMBRE-SECRETO"
    script = model(asks(call("place_order", symbol=secret)), "Hecho.", "Hola.")
    agent = await open_agent(model=script, plan=plan(), tools=broker.tools())
    turn = await agent.send(f"ya sabes, {secret}", conversation="anon")
    await agent.resume(turn.pending, "approve", actor=OLGA)
    await agent.send("hola", user=CARLOS, conversation="anon")
    approvals = Approvals(database, TENANT, KeyFolder(agent.services.settings.data / "keys"))
    assert (await approvals.get(turn.pending.id)).user == CARLOS
    assert {one.user for one in await agent.governance.evidence.list(actor=SARA)} == {CARLOS}
    assert (await agent.governance.audit.verify()).fault is None
    await agent.memory.forget_all(user=CARLOS)
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select table_name as name from information_schema.tables"
            " where table_schema = 'recuerdo' and table_type = 'BASE TABLE'"
        )
        for row in await cursor.fetchall():
            found = await connection.execute(f"select to_jsonb(t)::text as row from recuerdo.{row['name']} t")
            assert secret not in str(await found.fetchall()), row["name"]
    assert (await agent.governance.audit.verify()).fault is None


async def test_a_22_what_is_left_of_others_is_nobodys_who_claims_a_session_of_that_name(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(ORDER, "No.", "Hola."), plan=plan(), tools=broker.tools())
    turn = await send(agent)
    await agent.resume(turn.pending, "reject", actor=SARA)
    await agent.memory.forget_all(user=CARLOS)
    await agent.send("hola", conversation="-")
    await agent.send("hola", user="user-999", conversation="-")
    (kept,) = await agent.governance.evidence.list(actor=SARA)
    assert (kept.kind, kept.user, kept.conversation) == ("approval_decided", None, "-")


async def test_or_33_a_request_with_a_rule_is_noted_once(
    open_agent: OpenAgent, staff: Roles, broker: Broker
) -> None:
    agent = await open_agent(model=model(asks(BY_RULE), "Hecho."), plan=plan(SMALL), tools=broker.tools())
    await send(agent)
    approvals = Approvals(agent.services.database, TENANT, agent.services.keys)
    (found,) = await approvals.list("auto_approved")
    new = NewApproval(found.id, found.run, found.tool, found.arguments, agent.services.clock(), SMALL.id)
    await approvals.request([new])
    (entry,) = await agent.governance.audit.entries(actor=SARA, subject=str(found.id))
    assert entry.action == "approval.auto_approved" and SMALL.id in entry.details
