"""Whole stories of governance through the public API: a rule from fifteen approvals to its end, a tool that nobody
uses, runs that break down, what a model may not do (OR, IM, C).
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool

from recuerdo.agent import Agent
from recuerdo.graph import turn as turn_graph
from recuerdo.graph.learning import learning_job
from recuerdo.state import limits
from recuerdo.state.errors import InputError, SettingsError
from recuerdo.state.key_events import NewEvent, Origin, Owner
from recuerdo.state.plan import EventType, KeyEventSettings, Plan
from recuerdo.state.turn import TurnState
from recuerdo.stores.plans import Revision, load_plan
from recuerdo.stores.postgres.evidence import EvidenceFilter, EvidenceLog
from recuerdo.stores.postgres.hotel import Hotel, Room
from recuerdo.stores.postgres.key_events import PostgresKeyEvents
from recuerdo.stores.postgres.proposals import Proposal
from recuerdo.stores.postgres.turns import fail_abandoned
from recuerdo.stores.worker import Worker
from tests.recuerdo.carlos import CARLOS, CONVERSATION, TENANT, House, SettableClock, prompt
from tests.recuerdo.learning_house import CLERK, OWNER, decide, minor, run_of
from tests.scripted import ScriptedModel

OLGA, SARA, LEO = OWNER, CLERK, "leo"
ARRIVAL = date(2026, 3, 10)

OpenHotel = Callable[..., Awaitable[Agent]]


def asks(name: str, key: str = "c1", **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": key}])


@pytest.fixture
async def open_hotel(house: House) -> AsyncIterator[OpenHotel]:
    """Opens the hotel under its signed plan, with rooms, an owner and a supervisor."""
    async with AsyncExitStack() as stack:

        async def opened(*replies: Any, **parts: Any) -> Agent:
            model = ScriptedModel(replies=[*replies])
            agent = await stack.enter_async_context(house.open(**{"plan": "hotel", "model": model, **parts}))
            await agent.governance.roles.appoint_first_owner(OLGA)
            await agent.governance.roles.grant(SARA, "supervisor", actor=OLGA)
            await Hotel(agent.services.database, TENANT).load([Room("doble", Decimal(95), "EUR", 99)])
            return agent

        yield opened


def answers(agent: Agent, *replies: Any) -> None:
    """What the model says next."""
    model: Any = agent.services.model
    model.replies = [*[None] * len(model.calls), *replies]


async def govern(agent: Agent, plan: Plan) -> Revision:
    """Put a plan in force."""
    revision = await agent.governance.plans.compile(plan, actor=SARA)
    return await agent.governance.plans.activate(revision.number, actor=SARA)


async def say(agent: Agent, text: str, *replies: Any, user: str = LEO) -> Any:
    """A turn of a conversation of its own, with what the model says in it."""
    answers(agent, *replies)
    return await agent.send(text, user=user, conversation=str(uuid4()))


async def reserved(agent: Agent, nights: int) -> str:
    """Code of a new reservation."""
    database = agent.services.database
    async with database.tenant(TENANT) as connection:
        made = await Hotel(database, TENANT).reserve(
            connection, uuid4(), "doble", "Eva Ruiz", ARRIVAL, nights, agent.services.clock()
        )
    return made.id


async def discount(agent: Agent, pct: float, nights: int) -> Any:
    """A discount on a stay of so many nights is asked for."""
    code = await reserved(agent, nights)
    call = asks("apply_discount", reservation=code, discount_pct=pct, nights=nights)
    return await say(agent, f"Aplica un {pct} % a {code}", call, "Hecho.")


async def approved_by_hand(agent: Agent, pct: float, nights: int) -> UUID:
    """It waits, the supervisor approves it, and it is in the books."""
    turn = await discount(agent, pct, nights)
    done = await agent.resume(turn.pending, "approve", actor=SARA)
    assert done.pending is None and await discount_of(agent, turn) == pct
    return UUID(str(turn.pending.id))


async def approved_before(agent: Agent, count: int) -> None:
    """So many discounts were approved by hand, without their turns."""
    for number in range(count):
        await decide(agent.services, minor(number), run=run_of("hotel"))


async def discount_of(agent: Agent, turn: Any) -> Decimal:
    """What the reservation has that the call of this turn was about."""
    asked = (
        turn.pending.arguments if turn.pending else turn.requests[-1]["messages"][-2].tool_calls[0]["args"]
    )
    return (await Hotel(agent.services.database, TENANT).reservation(asked["reservation"])).discount_pct


async def six_hours_later(agent: Agent, clock: SettableClock) -> Sequence[Proposal]:
    """A worker has swept; returns what is open for decision."""
    services, desk = agent.services, agent.governance.proposals
    worker = Worker(
        services.database,
        services.index,
        services.embedder,
        clock,
        tenant=TENANT,
        jobs=[learning_job(services, tenant=TENANT)],
    )
    before = await _swept(agent)
    clock.forward(hours=6)
    await worker.run_due(clock())
    await until(lambda: _has_swept(agent, before))
    return await desk.list("pending", actor=SARA)


async def until(reached: Callable[[], Awaitable[bool]]) -> None:
    """What was due may have been taken by the agent's own worker, which is at it."""
    for _ in range(600):
        if await reached():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("no worker has done it")


async def _has_swept(agent: Agent, before: int) -> bool:
    return await _swept(agent) > before


async def _swept(agent: Agent) -> int:
    sweeps = await agent.governance.proposals.sweeps(actor=SARA, limit=100)
    return len([one for one in sweeps if one.status == "done"])


async def auto_approvals(agent: Agent) -> list[tuple[str, str]]:
    """Rule and revision of every call that passed without a person, newest first."""
    entries = await agent.governance.audit.entries(actor=SARA, limit=1000)
    details = [json.loads(entry.details) for entry in entries if entry.action == "approval.auto_approved"]
    return [(one["rule"], one["revision"]) for one in details]


async def start_of_sweeps(agent: Agent, clock: SettableClock) -> None:
    """The first look of a worker says when the first sweep is due."""
    await learning_job(agent.services, tenant=TENANT).run(clock())


async def test_or_20_or_29_or_33_im_50_im_52_a_rule_from_fifteen_approvals_to_its_end(
    open_hotel: OpenHotel, clock: SettableClock
) -> None:
    agent = await open_hotel("Hola.")
    plans, desk = agent.governance.plans, agent.governance.proposals
    await start_of_sweeps(agent, clock)

    # OR-31, OR-32, IM-55: fourteen approvals by hand are too few, fifteen make a question.
    approvals = [await approved_by_hand(agent, 10 - number % 3, 5 + number % 4) for number in range(14)]
    assert await six_hours_later(agent, clock) == []
    approvals.append(await approved_by_hand(agent, 10, 5))
    [proposal] = await six_hours_later(agent, clock)
    assert (proposal.kind, proposal.plan, proposal.sample_size) == ("rule_suggestion", "hotel", 15)
    assert "10 %" in proposal.wording["es"] and "más de 4 noches" in proposal.wording["es"]
    links = await desk.links(proposal.id, actor=SARA)
    assert {link.approval for link in links} == set(approvals)

    # OR-20, OR-29, IM-47: approved, nothing changes: neither what is signed nor what the next message meets.
    r1 = (await plans.show(actor=SARA)).revision
    quiet = await say(agent, "Hola", "Hola.")
    assert (await desk.decide(proposal.id, "approve", actor=SARA)).status == "approved"
    assert (await plans.show(actor=SARA)).revision == r1
    await waits_under(agent, "r1", quiet)

    # OR-29: the next revision has it, signed, with its parent; still nothing acts.
    r2 = await plans.compile("hotel", actor=SARA)
    assert (r2.label, r2.parent) == ("r2", r1.sha256)
    [rule] = r2.plan.auto_approve_rules
    assert {(one.field, one.op, one.value) for one in rule.when} == {
        ("discount_pct", "<=", 10),
        ("nights", ">", 4),
    }
    included = await desk.show(proposal.id, actor=SARA)
    assert (included.status, included.included_in) == ("included", 2)
    await waits_under(agent, "r1", quiet)

    # OR-33: in force it lets pass what it says, and the audit names rule and revision.
    await plans.activate("r2", actor=SARA)
    for pct, nights in ((10, 5), (10.0, 5), (0.5, 30)):
        turn = await discount(agent, pct, nights)
        assert turn.pending is None and turn.record.revision == "r2"
        assert await discount_of(agent, turn) == Decimal(str(pct))
    assert await auto_approvals(agent) == [(rule.id, "r2")] * 3
    for pct, nights in ((11, 5), (10.01, 5), (10, 4)):
        turn = await discount(agent, pct, nights)
        assert turn.pending is not None and await discount_of(agent, turn) == 0

    # IM-52: the emergency stop at once, its end, and a revision without the rule.
    await plans.stop(actor=SARA)
    assert (await discount(agent, 10, 5)).pending is not None
    await plans.lift(actor=OLGA)
    assert (await discount(agent, 10, 5)).pending is None
    r3 = await plans.compile("hotel", actor=SARA, without=[rule.id])
    await plans.activate(r3.number, actor=SARA)
    assert (await discount(agent, 10, 5)).pending is not None

    # IM-50: back to the first; the audit names who.
    await plans.activate("r2", actor=SARA)
    await plans.rollback("r1", actor=OLGA)
    back = await discount(agent, 10, 5)
    assert back.pending is not None and back.record.revision == "r1"
    [newest] = await agent.governance.audit.entries(actor=SARA, limit=1, subject="hotel")
    assert (newest.actor, newest.action) == (OLGA, "plan.rolled_back")
    assert len(await auto_approvals(agent)) == 4
    assert (await agent.governance.audit.verify()).fault is None

    # OR-29: an altered revision fails.
    async with agent.services.database.connection() as connection:
        await connection.execute("alter table recuerdo.plan_revisions disable trigger immutable")
        await connection.execute(
            "update recuerdo.plan_revisions set document = convert_to(replace(convert_from(document, 'UTF8'),"
            " '\"value\":10', '\"value\":90'), 'UTF8') where number = 2"
        )
    with pytest.raises(SettingsError, match="hotel r2"):
        await plans.activate("r2", actor=SARA)


async def waits_under(agent: Agent, revision: str, before: Any) -> None:
    """Behaviour, rules, tools and prompt are those that the turn ``before`` had."""
    turn = await discount(agent, 10, 5)
    assert turn.pending is not None and turn.record.revision == revision
    assert turn.request["tools"] == before.request["tools"]
    assert stable_part(turn.request) == stable_part(before.request)


def stable_part(request: Any) -> str:
    """Role, instructions and packs."""
    head, closed, _ = str(request["messages"][0].text).rpartition("</pack ")
    assert closed
    return head


def tools_of(turn: Any) -> set[str]:
    return {one["function"]["name"] for one in turn.request["tools"]}


async def test_or_20_or_36_or_37_a_tool_that_nobody_uses_goes_by_decision_and_can_come_back(
    open_hotel: OpenHotel, clock: SettableClock
) -> None:
    agent = await open_hotel("Hola.")
    plans, desk = agent.governance.plans, agent.governance.proposals
    await start_of_sweeps(agent, clock)
    await say(agent, "¿Precios?", asks("get_rates", check_in=ARRIVAL.isoformat(), nights=5), "95 EUR.")
    clock.forward(days=81)
    room = {"room": "doble", "guest": "Eva Ruiz", "check_in": ARRIVAL.isoformat()}
    await say(agent, "Reserva", asks("create_reservation", **room, nights=5), "Reservada.")
    clock.forward(days=9, hours=18)
    # 91 days after the one, 10 after the other.
    [proposal] = await six_hours_later(agent, clock)
    assert (proposal.kind, proposal.change) == ("skill_lifecycle", {"kind": "tool", "tool": "get_rates"})
    before = await say(agent, "Hola", "Hola.")
    assert {"get_rates", "create_reservation"} <= tools_of(before)
    await desk.decide(proposal.id, "approve", actor=SARA)
    assert tools_of(await say(agent, "Hola", "Hola.")) == tools_of(before)
    revision = await plans.compile("hotel", actor=SARA)
    assert tools_of(await say(agent, "Hola", "Hola.")) == tools_of(before)
    await plans.activate(revision.number, actor=SARA)
    after = await say(agent, "Hola", "Hola.")
    assert tools_of(before) - tools_of(after) == {"get_rates"}
    saved = before.record.estimate["overhead"] - after.record.estimate["overhead"]
    assert saved == proposal.effect["tokens_less_per_request"] > 0
    back = await plans.compile("hotel", actor=SARA, without=["get_rates"])
    await plans.activate(back.number, actor=SARA)
    assert tools_of(await say(agent, "Hola", "Hola.")) == tools_of(before)


# Runs that break down


STEPS = ("receive", "build_context", "check_tokens", "build_prompt", "call_llm", "run_tools", "update_memory")
SECRET = "quotes what the user wrote"


class Breakdown:
    """Lets one step of the turn break down after its work, until it is mended."""

    def __init__(self, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken = False
        whole = getattr(turn_graph, step)

        async def step_that_breaks(state: Any, call: Any) -> Any:
            update = await whole(state, call)
            if self.broken:
                raise ZeroDivisionError(SECRET)
            return update

        step_that_breaks.__name__ = step
        monkeypatch.setattr(turn_graph, step, step_that_breaks)


async def failures(agent: Agent) -> list[Any]:
    log = EvidenceLog(agent.services.database, TENANT)
    return list(await log.list(agent.services.clock(), EvidenceFilter(("run_failed",))))


async def statuses(agent: Agent) -> list[str]:
    """Of all turns, oldest first."""
    async with agent.services.database.operator() as connection:
        cursor = await connection.execute("select status from recuerdo.turns order by conversation, number")
        return [row["status"] for row in await cursor.fetchall()]


@pytest.mark.parametrize("step", STEPS)
async def test_or_22_a_step_that_breaks_down_ends_the_turn_as_failed_with_evidence(
    open_hotel: OpenHotel, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    breakdown = Breakdown(step, monkeypatch)
    rates = asks("get_rates", check_in=ARRIVAL.isoformat(), nights=5)
    agent = await open_hotel(rates, "95 EUR.")
    breakdown.broken = True
    with pytest.raises(ZeroDivisionError):
        await agent.send("¿Precios?", user=LEO, conversation="c-1")
    assert await statuses(agent) == (["done"] if step == "update_memory" else ["failed"])
    if step == "update_memory":
        return
    (failed,) = await failures(agent)
    assert failed.conversation == "c-1" and failed.turn and SECRET not in str(failed.data)
    breakdown.broken = False
    answers(agent, "Hola.")
    assert (await agent.send("Hola", user=LEO, conversation="c-1")).reply.startswith("Hola.")


async def test_or_22_a_turn_that_breaks_down_after_its_approval_has_failed_and_its_call_has_run_once(
    open_hotel: OpenHotel, monkeypatch: pytest.MonkeyPatch
) -> None:
    breakdown = Breakdown("run_tools", monkeypatch)
    agent = await open_hotel("Hola.")
    turn = await discount(agent, 10, 5)
    breakdown.broken = True
    with pytest.raises(ZeroDivisionError):
        await agent.resume(turn.pending, "approve", actor=SARA)
    breakdown.broken = False
    assert await discount_of(agent, turn) == 10
    (failed,) = await failures(agent)
    assert str(failed.turn) == turn.id and await statuses(agent) == ["failed"]
    with pytest.raises(InputError):
        await agent.resume(turn.pending)
    answers(agent, "Hola.")
    after = await agent.send("Hola", user=LEO, conversation=turn.conversation)
    assert after.reply.startswith("Hola.")


async def test_or_22_what_breaks_down_in_a_bare_graph_is_failed_by_a_worker(
    open_hotel: OpenHotel, monkeypatch: pytest.MonkeyPatch
) -> None:
    breakdown = Breakdown("build_context", monkeypatch)
    agent = await open_hotel("Hola.")
    breakdown.broken = True
    who = turn_graph.TurnContext(user=LEO, tenant=TENANT, conversation="c-1")
    config: RunnableConfig = {"configurable": {"thread_id": "c-1"}}
    with pytest.raises(ZeroDivisionError):
        await agent.graph.ainvoke(TurnState(messages=[HumanMessage("Hola")]), config, context=who)
    database = agent.services.database
    async with database.operator() as connection:
        await connection.execute("update recuerdo.conversations set lease_until = clock_timestamp()")
    await fail_abandoned(database, agent.services.clock())
    (failed,) = await failures(agent)
    assert (failed.conversation, failed.user) == ("c-1", LEO) and SECRET not in str(failed.data)
    assert await statuses(agent) == ["failed"]


async def test_or_22_a_turn_that_is_stopped_while_it_begins_is_over(
    open_hotel: OpenHotel, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, whole = asyncio.Event(), getattr(turn_graph, "receive")  # noqa: B009

    async def receive(state: Any, call: Any) -> Any:
        await whole(state, call)
        begun.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(turn_graph, "receive", receive)
    agent = await open_hotel("Hola.")
    running = asyncio.create_task(agent.send("Hola", user=LEO, conversation="c-1"))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await statuses(agent) == ["cancelled"] and await failures(agent) == []


async def test_or_22_a_tool_that_cancels_itself_is_a_call_that_broke_off(house: House) -> None:
    @tool
    async def call_taxi() -> str:
        """Call a taxi."""
        raise asyncio.CancelledError

    tools: list[BaseTool] = [call_taxi]
    plan = load_plan("trading")
    model = ScriptedModel(replies=[asks("call_taxi"), "No se sabe."])
    async with house.open(plan=plan, model=model, tools=tools) as agent:
        turn = await agent.send("Un taxi", user=CARLOS, conversation=CONVERSATION)
        (result,) = [one for one in turn.request["messages"] if one.type == "tool"]
        assert "outcome is unknown" in result.text


# What a model may not do


async def test_c_15_a_model_adds_a_memory_and_neither_publishes_nor_governs(open_hotel: OpenHotel) -> None:
    agent = await open_hotel("Hola.")
    other = await agent.memory.remember("Prefiere los pisos altos", user=LEO)
    plan = load_plan("hotel").model_copy(update={"tools": (*load_plan("hotel").tools, "memory")})
    revision = await govern(agent, plan)
    before = await agent.governance.audit.entries(actor=OLGA)
    rule = {"id": "mine", "tool": "apply_discount", "when": []}
    attempts = [
        ("MemoryTool", {"mode": "publish", "memory_id": str(other.id)}),
        ("memory_publish", {"memory_id": str(other.id)}),
        ("memory.publish", {"memory_id": str(other.id), "actor": SARA}),
        ("plan_compile", {"auto_approve_rules": [rule]}),
        ("add_rule", rule),
        ("approve", {"approval": str(uuid4()), "actor": SARA}),
    ]
    calls = [{"name": name, "args": args, "id": f"c{place}"} for place, (name, args) in enumerate(attempts)]
    added = asks("MemoryTool", "m1", mode="add", memory="Viaja con un perro")
    turn = await say(agent, "Hazlo", AIMessage("", tool_calls=calls), added, "Hecho.")
    results = [one for one in turn.request["messages"] if one.type == "tool"]
    assert [one.status for one in results] == ["error"] * len(attempts) + ["success"]
    kept = await agent.memory.list(user=LEO)
    assert {one.text for one in kept} == {"Prefiere los pisos altos", "Viaja con un perro"}
    assert all(one.status != "published" and one.expires_at for one in kept)
    assert await agent.governance.audit.entries(actor=OLGA) == before
    assert (await agent.governance.plans.show(actor=OLGA)).revision.sha256 == revision.sha256


# Packs, settings, clocks


async def test_c_23_a_plan_with_packs_of_3000_tokens_is_compiled_and_one_of_3001_is_not(
    open_hotel: OpenHotel, tmp_path: Path
) -> None:
    agent = await open_hotel("Hola.")
    plans, packs = agent.governance.plans, agent.governance.packs
    (folder := tmp_path / "normas").mkdir()
    for tokens in (3000, 3001):
        text = "hola" + " hola" * (tokens - 1)
        assert agent.services.counter.count(text) == tokens
        (folder / "normas.md").write_text(text)
        pack = await packs.build(folder, actor=SARA)
        plan = load_plan("hotel").model_copy(update={"packs": (pack.reference,)})
        if tokens == 3000:
            assert (await plans.compile(plan, actor=SARA)).plan.packs == (pack.reference,)
            continue
        with pytest.raises(SettingsError, match="3001"):
            await plans.compile(plan, actor=SARA)
    assert [one.number for one in await plans.all("hotel", actor=SARA)] == [2, 1]


@pytest.mark.parametrize(("changed", "messages", "approvals"), [("summary", 3, 15), ("hub", 15, 3)])
async def test_c_31_one_setting_changes_and_the_other_stays(
    open_hotel: OpenHotel,
    monkeypatch: pytest.MonkeyPatch,
    clock: SettableClock,
    changed: str,
    messages: int,
    approvals: int,
) -> None:
    plan = load_plan("hotel")
    if changed == "summary":
        summary = plan.memory.summary.model_copy(update={"after_messages": messages})
        plan = plan.model_copy(update={"memory": plan.memory.model_copy(update={"summary": summary})})
    else:
        monkeypatch.setattr(limits, "RULE_SUGGESTION_MIN_APPROVALS", approvals)
    agent = await open_hotel("Hola.")
    await govern(agent, plan)
    said = 0
    while True:
        turn = await agent.send("Hola", user=LEO, conversation="c-1")
        said += 2
        if turn.record.summary_covers:
            break
    assert said - 2 <= messages < said
    await approved_before(agent, approvals - 1)
    assert await agent.governance.proposals.sweep(actor=SARA) == []
    await approved_before(agent, 1)
    [proposal] = await agent.governance.proposals.sweep(actor=SARA)
    assert proposal.sample_size == approvals


async def test_im_46_the_record_names_packs_memories_and_events_of_the_prompt(open_hotel: OpenHotel) -> None:
    events = KeyEventSettings(enabled=True, types=(EventType(name="queja", description="Una queja."),))
    plan = load_plan("hotel").model_copy(update={"key_events": events})
    agent = await open_hotel("A las 11:00.")
    await govern(agent, plan)
    mine = await agent.memory.remember("Prefiere el check-out a las 11:00 en punto", user=LEO)
    other = await agent.memory.remember("Prefiere el check-out a las 10:00", user=CARLOS)
    store = PostgresKeyEvents(agent.services.database, TENANT, agent.assistant)
    now = agent.services.clock()
    made = [
        await store.create(
            Owner(user, "s-0"), NewEvent("queja", f"Ruido de {user}"), Origin(now, user, "s-0")
        )
        for user in (LEO, CARLOS)
    ]
    turn = await agent.send("¿A qué hora es el check-out?", user=LEO, conversation="c-1")
    record = await agent.conversations.newest_record("c-1", user=LEO)
    assert record is not None
    assert record.packs == list(plan.packs)
    assert (record.memories, record.events) == ([str(mine.id)], [str(made[0].id)])
    text = prompt(turn.request)
    assert mine.text in text and "Ruido de leo" in text
    assert other.text not in text and "Ruido de user-123" not in text


# Two processes


DECIDE = """
import asyncio, sys
from datetime import datetime
from pathlib import Path
from uuid import UUID
from recuerdo.state.errors import InputError
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.approvals import Approvals
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.proposals import Proposals

async def decide(url, keys, tenant, what, key, actor, decision, at):
    database = await Database.open(url)
    desk = {"approval": Approvals, "proposal": Proposals}[what](database, tenant, KeyFolder(Path(keys)))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        await desk.decide(UUID(key), decision, actor=actor, at=datetime.fromisoformat(at))
    except InputError:
        return 3
    finally:
        await database.close()
    return 0

sys.exit(asyncio.run(decide(*sys.argv[1:])))
"""


def decided_at_once(house: House, what: str, key: UUID) -> dict[str, int]:
    """Two processes decide, one for and one against; how each ended, by its decision."""
    processes = {}
    for actor, decision in ((SARA, "approve"), (OLGA, "reject")):
        at = house.clock().isoformat()
        scope = (house.database_url, str(house.data / "keys"), TENANT, what, str(key), actor, decision, at)
        processes[decision] = subprocess.Popen(
            [sys.executable, "-c", DECIDE, *scope],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    for process in processes.values():
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes.values():
        process.communicate(timeout=60)
    return {decision: process.returncode for decision, process in processes.items()}


async def test_im_47_im_49_of_two_processes_that_decide_at_once_one_counts(
    open_hotel: OpenHotel, house: House
) -> None:
    agent = await open_hotel("Hola.")
    await approved_before(agent, 15)
    [proposal] = await agent.governance.proposals.sweep(actor=SARA)
    turn = await discount(agent, 11, 5)
    for what, key in (("approval", turn.pending.id), ("proposal", proposal.id)):
        ended = await asyncio.to_thread(decided_at_once, house, what, key)
        assert sorted(ended.values()) == [0, 3]
        [decision] = [name for name, code in ended.items() if code == 0]
        status = {"approve": "approved", "reject": "rejected"}[decision]
        entries = await agent.governance.audit.entries(actor=SARA, subject=str(key))
        first = {"approval.requested", "proposal.made"}
        decisions = [entry.action for entry in entries if entry.action not in first]
        assert decisions == [f"{what}.{status}"]
        if what == "approval":
            done = await agent.resume(turn.pending)
            assert [note["status"] for note in done.record.approvals] == [status]
