"""The hotel: its rules, its tables, rules that let small discounts pass (C-39, OR-1, OR-13, OR-33, IM-52, IM-54)."""

import asyncio
import io
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage

import recuerdo
from recuerdo.agent import Agent
from recuerdo.cli import main
from recuerdo.demo.hotel import (
    HOTEL_TENANT,
    Agreed,
    HotelAnswered,
    HotelAsked,
    InForce,
    Kept,
    Proposed,
    Refused,
    Stopped,
    Waits,
    play_hotel,
)
from recuerdo.governance import EvidenceFilter
from recuerdo.nodes.run_tools.toolbox import own_tools
from recuerdo.state.amendment import Amendment, RuleAdded, ToolDeactivated
from recuerdo.state.plan import AutoApproveRule, Condition
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.evidence import EvidenceLog
from recuerdo.stores.postgres.hotel import Hotel, Reservation, Room
from recuerdo.stores.postgres.roles import Roles
from recuerdo.stores.postgres.tool_calls import ToolCalls
from tests.recuerdo.approved import approved
from tests.recuerdo.carlos import TENANT, House, prompt
from tests.scripted import ScriptedModel

OLGA, SARA, LEO = "olga", "sara", "leo"
CHECK_IN = "2026-01-10"
ROOMS = [Room("doble", Decimal("95.00"), "EUR", 1), Room("suite", Decimal("160.00"), "EUR", 2)]

RULE = AutoApproveRule(
    id="discounts",
    tool="apply_discount",
    when=(Condition(field="discount_pct", op="<=", value=10), Condition(field="nights", op=">", value=4)),
    arguments=("discount_pct", "nights", "reservation"),
)


def asks(name: str, key: str = "c1", **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": key}])


def reserve(key: str = "c1", nights: int = 5, room: str = "doble") -> AIMessage:
    return asks("create_reservation", key, room=room, guest="Eva Ruiz", check_in=CHECK_IN, nights=nights)


@pytest.fixture
async def hotel(house: House) -> AsyncIterator[Callable[..., Any]]:
    """Opens the hotel's agent with replies, its rooms and its people in place."""
    async with AsyncExitStack() as stack:

        async def opened(*replies: Any) -> Agent:
            model = ScriptedModel(replies=[*replies])
            agent = await stack.enter_async_context(house.open(plan="hotel", model=model))
            roles = agent.governance.roles
            if not await Roles(agent.services.database, TENANT, agent.services.keys).all():
                await roles.appoint_first_owner(OLGA)
                await roles.grant(SARA, "supervisor", actor=OLGA)
            await Hotel(agent.services.database, TENANT).load(ROOMS)
            return agent

        yield opened


async def say(agent: Agent, text: str = "Hola", conversation: str = "c-1") -> Any:
    return await agent.send(text, user=LEO, conversation=conversation)


async def reservations(agent: Agent) -> list[Reservation]:
    return list(await Hotel(agent.services.database, TENANT).reservations())


async def approve(agent: Agent, change: Amendment) -> None:
    """A proposal for the hotel, made and approved by a supervisor."""
    services = agent.services
    at = services.clock()
    await approved(services.database, services.keys, TENANT, "hotel", change, actor=SARA, at=at)


async def rule_in_force(agent: Agent, *, without: tuple[str, ...] = ()) -> int:
    """A revision that takes the rule in, or out again, by a supervisor's decision."""
    plans = agent.governance.plans
    if not without:
        await approve(agent, RuleAdded(rule=RULE))
    revision = await plans.compile("hotel", actor=SARA, without=without)
    await plans.activate(revision.number, actor=SARA)
    return revision.number


def tool_results(request: Any) -> list[str]:
    return [str(m.text) for m in request["messages"] if m.type == "tool"]


# Rules


async def test_or_13_the_packs_are_in_the_prompt_and_cited_by_pin(hotel: Any) -> None:
    agent = await hotel("A las 11:00.")
    turn = await say(agent, "¿A qué hora es el check-out?")
    assert "- Check-out: 11:00, sin excepciones." in prompt(turn.request)
    assert [pack.partition("@")[0] for pack in turn.record.packs] == ["tarifas", "politicas"]
    assert (turn.record.plan, turn.record.revision, turn.record.draft) == ("hotel", "r1", False)


async def test_c_39_a_house_without_quotes_says_nothing_of_markets(hotel: Any) -> None:
    agent = await hotel("Buenos días.")
    turn = await say(agent)
    assert "Ahora" in prompt(turn.request)
    assert "XNYS" not in prompt(turn.request)
    assert "status" not in turn.context["market"]


async def test_or_1_im_54_the_rule_prevails_over_a_memory_and_it_is_evidence_once(hotel: Any) -> None:
    agent = await hotel("A las 11:00: prevalece la norma.")
    memory = await agent.memory.remember("El check-out acordado es a las 12:00", user=LEO)
    turn = await say(agent, "¿A qué hora es mi check-out?")
    sent = prompt(turn.request)
    assert "prevalece la norma del paquete" in sent
    (line,) = [line for line in sent.splitlines() if "acordado es a las 12:00" in line]
    politicas = turn.record.packs[1]
    assert f"contradice la norma de {politicas}" in line and "Check-out: 11:00" in line
    assert turn.reply.startswith("A las 11:00")
    await say(agent, "¿Seguro que el check-out no es a otra hora?")
    (found,) = await agent.governance.evidence.list(EvidenceFilter(("pack_conflict",)), actor=SARA)
    assert (found.data["memory"], found.data["pack"]) == (str(memory.id), politicas)
    assert (found.data["memory_says"], found.data["rule_says"]) == ("12:00", "11:00")
    assert str(found.turn) == turn.id


async def test_im_54_a_memory_that_agrees_is_no_conflict(hotel: Any) -> None:
    agent = await hotel("A las 11:00.")
    await agent.memory.remember("El check-out acordado es a las 11:00", user=LEO)
    turn = await say(agent, "¿A qué hora es mi check-out?")
    assert "acordado es a las 11:00" in prompt(turn.request) and "contradice" not in prompt(turn.request)
    assert await agent.governance.evidence.list(EvidenceFilter(("pack_conflict",)), actor=SARA) == []


# Tools on real tables


async def test_c_39_prices_and_a_reservation(hotel: Any) -> None:
    rates = asks("get_rates", check_in=CHECK_IN, nights=5)
    agent = await hotel(rates, reserve(), "Reservada.", rates, "No queda doble.")
    turn = await say(agent, "Reserva una doble")
    (made,) = await reservations(agent)
    assert (made.room, made.guest, made.nights, made.total) == ("doble", "Eva Ruiz", 5, Decimal("475.00"))
    listed, reserved = tool_results(turn.request)
    assert "doble: 95.00 EUR a night, 475.00 EUR for 5 nights, 1 free" in listed and made.id in reserved
    assert "0 free" in tool_results((await say(agent, "¿y otra?")).request)[-1]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (reserve(room="palacio"), "There is no room"),
        (reserve(nights=0), "1 to 60 nights"),
        (asks("apply_discount", reservation="R-0", discount_pct=5, nights=5), None),
        (asks("create_reservation", room="doble", guest=" ", check_in=CHECK_IN, nights=1), "guest's name"),
        (asks("create_reservation", room="doble", guest="Eva", check_in="ayer", nights=1), "check_in"),
    ],
)
async def test_c_39_what_cannot_be_is_said_to_the_model(
    hotel: Any, asked: AIMessage, answer: str | None
) -> None:
    agent = await hotel(asked, "No se puede.")
    turn = await say(agent)
    if answer is None:
        turn = await agent.resume(turn.pending, "approve", actor=SARA)
        answer = "There is no reservation"
    (result,) = tool_results(turn.request)
    assert answer in result
    assert await reservations(agent) == []


async def test_c_39_the_last_room_goes_to_one_of_two(hotel: Any) -> None:
    agent = await hotel(reserve(), "Primera.", reserve(), "Segunda.")
    await say(agent, "una doble", "c-1")
    turn = await say(agent, "otra doble", "c-2")
    assert "No room" in tool_results(turn.request)[0] and len(await reservations(agent)) == 1


async def test_or_22_an_effect_in_our_own_transaction_happens_exactly_once(
    hotel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await hotel(reserve(), "Reservada.")
    complete, ended = ToolCalls.complete, asyncio.Event()

    async def lost(self: ToolCalls, *args: Any) -> Any:
        """The process goes away between the effect and the note that it ended."""
        ended.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(ToolCalls, "complete", lost)
    running = asyncio.create_task(say(agent, "Reserva una doble"))
    await ended.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    monkeypatch.setattr(ToolCalls, "complete", complete)
    assert len(await reservations(agent)) == 1
    assert await agent.governance.approvals.unknown_outcomes(actor=SARA) == []


# Four eyes, rules, revisions


@pytest.mark.parametrize(
    ("discount_pct", "nights", "passes"), [(10, 5, True), (11, 5, False), (10, 4, False)]
)
async def test_or_33_under_the_revision_with_the_rule_small_discounts_pass_and_others_wait(
    hotel: Any, discount_pct: int, nights: int, passes: bool
) -> None:
    agent = await hotel(reserve(nights=nights), "Reservada.")
    await say(agent, "Reserva")
    (made,) = await reservations(agent)
    number = await rule_in_force(agent)
    discount = asks("apply_discount", reservation=made.id, discount_pct=discount_pct, nights=nights)
    agent.services.model.replies = [None, None, discount, "Hecho."]  # type: ignore[attr-defined]
    turn = await say(agent, "Un descuento")
    assert (turn.pending is None) == passes and turn.record.revision == f"r{number}"
    audited = await agent.governance.audit.entries(actor=SARA)
    entries = [e for e in audited if e.action == "approval.auto_approved"]
    said = [(json.loads(e.details)["rule"], json.loads(e.details)["revision"]) for e in entries]
    assert said == ([(RULE.id, f"r{number}")] if passes else [])
    (after,) = await reservations(agent)
    assert after.discount_pct == (discount_pct if passes else 0)


async def test_or_33_a_rule_does_not_pass_what_only_says_that_it_is_within_its_limits(hotel: Any) -> None:
    agent = await hotel(reserve(nights=2), "Reservada.")
    await say(agent, "Reserva")
    (made,) = await reservations(agent)
    await rule_in_force(agent)
    lie = asks("apply_discount", reservation=made.id, discount_pct=10, nights=5)
    agent.services.model.replies = [None, None, lie, "No."]  # type: ignore[attr-defined]
    turn = await say(agent, "Un descuento")
    assert "is of 2 nights, not of 5" in tool_results(turn.request)[-1]
    assert (await reservations(agent))[0].discount_pct == 0


async def test_im_52_a_revoked_rule_and_an_emergency_stop_let_everything_wait(hotel: Any) -> None:
    agent = await hotel(reserve(), "Reservada.")
    await say(agent, "Reserva")
    (made,) = await reservations(agent)
    await rule_in_force(agent)
    discount = asks("apply_discount", reservation=made.id, discount_pct=10, nights=5)
    agent.services.model.replies = [None, None, discount, "Hecho."]  # type: ignore[attr-defined]
    await agent.governance.plans.stop(actor=SARA)
    stopped = await say(agent, "Un descuento")
    assert stopped.pending is not None
    await agent.resume(stopped.pending, "reject", actor=SARA)
    await agent.governance.plans.lift(actor=OLGA)
    model = agent.services.model
    model.replies = [*[None] * len(model.calls), discount, "Hecho.", discount, "Hecho."]  # type: ignore[attr-defined]
    assert (await say(agent, "Un descuento")).pending is None
    await rule_in_force(agent, without=(RULE.id,))
    assert (await say(agent, "Otro descuento")).pending is not None


async def test_or_33_a_waiting_turn_keeps_its_revision_but_runs_no_tool_that_was_taken_away(
    hotel: Any,
) -> None:
    agent = await hotel(reserve(), "Reservada.")
    await say(agent, "Reserva")
    (made,) = await reservations(agent)
    discount = asks("apply_discount", reservation=made.id, discount_pct=10, nights=5)
    agent.services.model.replies = [None, None, discount, "Ya no."]  # type: ignore[attr-defined]
    turn = await say(agent, "Un descuento")
    await approve(agent, ToolDeactivated(tool="apply_discount"))
    revision = await agent.governance.plans.compile("hotel", actor=SARA)
    await agent.governance.plans.activate(revision.number, actor=SARA)
    done = await agent.resume(turn.pending, "approve", actor=SARA)
    assert done.record.revision == "r1" and "deactivated" in tool_results(done.request)[-1]
    assert (await reservations(agent))[0].discount_pct == 0


# Ambiguity


async def test_or_34_a_clear_request_that_waits_is_not_flagged(hotel: Any) -> None:
    agent = await hotel(reserve(), "Reservada.")
    await say(agent, "Reserva")
    (made,) = await reservations(agent)
    discount = asks("apply_discount", reservation=made.id, discount_pct=10, nights=5)
    agent.services.model.replies = [None, None, discount, "Hecho."]  # type: ignore[attr-defined]
    turn = await say(agent, f"Aplícale un 10 % de descuento a {made.id}")
    await agent.resume(turn.pending, "approve", actor=SARA)
    assert await agent.governance.evidence.list(EvidenceFilter(("ambiguity",)), actor=SARA) == []
    assert await agent.governance.proposals.sweep(actor=SARA) == []


async def test_a_33_the_models_request_for_help_that_a_person_ends_becomes_a_case(hotel: Any) -> None:
    help_ = asks("ask_for_help", question="¿Se admite un perro de 30 kg?")
    agent = await hotel(help_, "Sí, con suplemento.")
    turn = await say(agent, "¿Puede venir mi perro, que pesa 30 kg?")
    assert turn.pending is not None and turn.pending.tool == "ask_for_help"
    done = await agent.resume(turn.pending, "approve", actor=SARA, reason="con suplemento de 20 EUR")
    assert "con suplemento de 20 EUR" in tool_results(done.request)[0]
    (flagged,) = await agent.governance.evidence.list(EvidenceFilter(("ambiguity",)), actor=SARA)
    assert str(flagged.turn) == turn.id
    (proposal,) = await agent.governance.proposals.sweep(actor=SARA)
    case = proposal.amendment.case
    assert (proposal.kind, case.expect.calls) == ("eval_case_suggestion", ("ask_for_help",))
    assert case.messages == ("¿Puede venir mi perro, que pesa 30 kg?",)


async def test_a_33_a_request_for_help_that_nobody_answers_only_flags_the_run(house: House) -> None:
    plan = load_plan("hotel").model_copy(update={"four_eyes": (), "packs": ()})
    help_ = asks("ask_for_help", question="¿Y esto?")
    async with house.open(plan=plan, model=ScriptedModel(replies=[help_, "Lo pregunto."])) as agent:
        turn = await say(agent)
        assert turn.pending is None and "Nobody has answered yet" in tool_results(turn.request)[0]
        log = EvidenceLog(agent.services.database, TENANT)
        assert len(await log.list(agent.services.clock(), EvidenceFilter(("ambiguity",)))) == 1


# The demo and the command line


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], house: House) -> Iterator[Any]:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("DATABASE_URL", house.database_url)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def run_main(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["recuerdo", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(), "utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    yield run_main
    for number, handler in before.items():
        signal.signal(number, handler)


def test_c_39_the_demo_plays_rules_four_eyes_and_evidence(run: Any, house: House) -> None:
    settings = recuerdo.Settings(_env_file=None, data=house.data, database_url=house.database_url)
    events = list(play_hotel(settings=settings, clock=house.clock))
    assert len([e for e in events if isinstance(e, Waits)]) == 2 + 14 + 2
    assert [e.actor for e in events if isinstance(e, Refused)] == [LEO]
    replies = [e.turn.reply for e in events if isinstance(e, HotelAnswered)]
    assert replies[0].startswith("A las 11:00") and "10 %" in replies[2]
    (kept,) = [e for e in events if isinstance(e, Kept)]
    kinds = {one.kind for one in kept.evidence}
    assert kinds >= {"pack_conflict", "approval_requested", "approval_decided", "tool_used"}
    (proposed,) = [e.proposal for e in events if isinstance(e, Proposed)]
    assert (proposed.kind, proposed.sample_size) == ("rule_suggestion", 15)
    assert "hasta 10 % y más de 4 noches" in proposed.wording["es"]
    # Nothing waits for the decision on a proposal: it acts with the next revision.
    assert events[events.index(Proposed(proposed)) + 1] == Agreed("marta")
    after, back = [e.revision for e in events if isinstance(e, InForce)]
    assert (after.number, back.number) == (2, 1)
    assert proposed.amendment.rule in after.plan.auto_approve_rules and not back.plan.auto_approve_rules
    place = events.index(InForce(after, "marta"))
    asked, answered = events[place + 1 : place + 3]
    assert isinstance(asked, HotelAsked) and isinstance(answered, HotelAnswered)
    assert answered.turn.record.revision == "r2"
    assert [(one["status"], one["rule"]) for one in answered.turn.record.approvals] == [
        ("auto_approved", proposed.amendment.rule.id)
    ]
    place = next(n for n, e in enumerate(events) if isinstance(e, Stopped))
    assert isinstance(events[place + 2], Waits)
    assert isinstance(events[events.index(InForce(back, "marta")) + 2], Waits)
    kept = next(e for e in play_hotel(settings=settings, clock=house.clock) if isinstance(e, Kept))
    assert "pack_conflict" in {one.kind for one in kept.evidence}
    code, out, err = run("demo", "hotel")
    assert code == 0, err
    assert "marta approves it: it acts with the next signed revision" in out
    assert "marta puts hotel r3 in force" in out and "marta puts hotel r1 in force" in out
    assert "marta approves it" in out and "leo may not decide it" in out


def test_im_49_the_command_line_lists_shows_and_decides(run: Any, house: House) -> None:
    with house.open(plan="hotel", model=ScriptedModel(replies=[reserve(), "Reservada."])) as agent:
        roles = agent.governance.roles
        agent.run_sync(roles.appoint_first_owner(OLGA))
        agent.run_sync(roles.grant(SARA, "supervisor", actor=OLGA))
        agent.run_sync(Hotel(agent.services.database, TENANT).load(ROOMS))
        agent.send_sync("Reserva", user=LEO, conversation="c-1")
        (made,) = agent.run_sync(reservations(agent))
    discount = asks("apply_discount", reservation=made.id, discount_pct=10, nights=5)
    with house.open(plan="hotel", model=ScriptedModel(replies=[discount])) as agent:
        pending = agent.send_sync("Un descuento", user=LEO, conversation="c-1").pending
    assert pending is not None
    at = ("--tenant", TENANT)
    code, out, err = run("approvals", "list", "--actor", SARA, *at, "--json")
    assert code == 0, err
    assert [one["id"] for one in json.loads(out)["approvals"]] == [str(pending.id)]
    assert run("approvals", "list", "--actor", LEO, *at)[0] == 1
    code, out, _ = run("approvals", "show", str(pending.id), "--actor", SARA, *at)
    assert code == 0 and "discount_pct: 10" in out and "Un descuento" in out
    for actor in (LEO, "nobody"):
        code, out, err = run("approvals", "approve", str(pending.id), "--actor", actor, *at)
        assert code == 1 and err.count("\n") == 1 and "Traceback" not in err
    assert run("approvals", "approve", "xyz", "--actor", SARA, *at)[0] == 1
    code, out, err = run("approvals", "approve", str(pending.id), "--actor", SARA, *at, "--json")
    assert code == 0, err
    assert json.loads(out)["pending"] is None
    assert run("approvals", "approve", str(pending.id), "--actor", SARA, *at)[0] == 1
    assert run("approvals", "reverse", str(pending.id), "--actor", OLGA, *at)[0] == 0
    with house.open(plan="hotel", model=ScriptedModel(replies=["x"])) as agent:
        assert agent.run_sync(reservations(agent))[0].discount_pct == 10


def test_c_39_the_demo_has_a_tenant_of_its_own() -> None:
    assert HOTEL_TENANT not in {"demo", "default", TENANT}
    assert {"get_rates", "apply_discount", "create_reservation"} <= set(own_tools())
