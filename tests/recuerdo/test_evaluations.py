"""Plans tried with their eval cases (OR-34, OR-35)."""

import asyncio
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from typer.testing import CliRunner

from recuerdo.agent import Agent
from recuerdo.cli import app
from recuerdo.graph.evaluation import judge
from recuerdo.state.errors import InputError, ScopeError
from recuerdo.state.plan import EvalCase, Expectation
from tests.recuerdo.carlos import TENANT, House
from tests.recuerdo.conftest import OpenAgent
from tests.recuerdo.learning_house import (
    CLERK,
    GUEST,
    OWNER,
    TOOL,
    appoint,
    decide,
    flag,
    minor,
    plan_of_house,
    run_of,
    sweep,
    tools,
)
from tests.scripted import ScriptedModel

GREETS = EvalCase(id="greets", messages=("Hola",), expect=Expectation(says=("buenos dias",)))
CALLS = EvalCase(
    id="calls",
    messages=("Hola", "Hazme un descuento"),
    expect=Expectation(calls=(TOOL,), says_not=("no puedo",)),
)


def asks(tool: str = TOOL, **arguments: Any) -> AIMessage:
    call = {"name": tool, "args": arguments or {"discount_pct": 5, "nights": 9}, "id": "call-1"}
    return AIMessage("", tool_calls=[call])


async def opened(open_agent: OpenAgent, *replies: Any, **parts: Any) -> Agent:
    model = ScriptedModel(replies=list(replies))
    agent = await open_agent(**{"plan": "trading", "tools": tools(), "model": model, **parts})
    await appoint(agent.services)
    return agent


async def test_or_35_run_gives_pass_and_fail(open_agent: OpenAgent) -> None:
    plan = plan_of_house(eval_cases=(GREETS, CALLS))
    agent = await opened(open_agent, "Buenos días.", "No puedo.", plan=plan)
    run = await agent.governance.evaluations.run(actor=CLERK)
    assert [(one.case, one.passed, one.failures) for one in run.results] == [
        ("greets", True, ()),
        ("calls", False, ("says_not: no puedo", f"calls: {TOOL}")),
    ]
    assert run.tried.revision is None and run.failed == (run.results[1],)


async def test_or_35_approved_case_is_in_the_next_suite_and_reported_before_activation(
    open_agent: OpenAgent,
) -> None:
    agent = await opened(open_agent, "No sé.")
    plans, evaluations = agent.governance.plans, agent.governance.evaluations
    run = run_of(conversation="cleared")
    await flag(agent.services, run, "¿Me lo dejas como la otra vez?")
    await decide(agent.services, minor(1), run=run)
    [proposal] = await sweep(agent)
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    revision = await plans.compile(plan_of_house(), actor=CLERK)
    [case] = revision.plan.eval_cases
    assert case.messages == ("¿Me lo dejas como la otra vez?",)
    untried = await evaluations.before_activation(revision, actor=CLERK)
    assert untried is not None and "Nobody has tried" in untried.en
    tried = await evaluations.run(number=revision.number, actor=CLERK)
    assert [one.failures for one in tried.failed] == [(f"calls: {TOOL}",)]
    warned = await evaluations.before_activation(revision, actor=CLERK)
    assert warned is not None and "fails (1 of 1)" in warned.en and case.id in warned.es
    assert (await plans.show(actor=CLERK)).revision.number < revision.number


async def test_or_35_candidate_is_tried_and_not_the_revision_in_force(open_agent: OpenAgent) -> None:
    agent = await opened(open_agent, "Buenos días.")
    draft = plan_of_house(eval_cases=(GREETS,), role="Eres el portero.")
    revision = await agent.governance.plans.compile(draft, actor=OWNER)
    run = await agent.governance.evaluations.run(number=revision.number, actor=CLERK)
    assert not run.failed and run.tried.sha256 == revision.sha256
    model: Any = agent.services.model
    assert "Eres el portero." in str(model.calls[-1]["messages"][0].content)
    assert await agent.governance.evaluations.before_activation(revision, actor=CLERK) is None
    with pytest.raises(InputError, match="no eval case"):
        await agent.governance.evaluations.run(actor=CLERK)


async def test_or_35_trial_remembers_nothing_asks_nobody_and_changes_nothing(open_agent: OpenAgent) -> None:
    ran: list[str] = []

    async def send_mail(to: str) -> str:
        """Send a mail."""
        ran.append(to)
        return "sent"

    case = EvalCase(
        id="mail", messages=("Me llamo Ana y prefiero velas de 4h",), expect=Expectation(calls=("send_mail",))
    )
    plan = plan_of_house(eval_cases=(case,), four_eyes=())
    mail = StructuredTool.from_function(coroutine=send_mail)
    agent = await opened(open_agent, asks("send_mail", to="x"), "Hecho.", plan=plan, tools=[mail])
    run = await agent.governance.evaluations.run(actor=CLERK)
    assert not run.failed and ran == []
    assert await agent.governance.evidence.list(actor=CLERK) == []
    assert await agent.governance.approvals.list(actor=CLERK) == []
    assert await agent.conversations.list(user=GUEST) == []


async def test_or_35_tool_with_four_eyes_counts_as_called_and_asks_nobody(open_agent: OpenAgent) -> None:
    agent = await opened(open_agent, asks(), "Lo pido.", plan=plan_of_house(eval_cases=(CALLS,)))
    run = await agent.governance.evaluations.run(actor=CLERK)
    assert not run.failed
    assert await agent.governance.approvals.list(actor=CLERK) == []


async def test_or_35_model_sees_the_whole_conversation_of_a_case(open_agent: OpenAgent) -> None:
    agent = await opened(open_agent, "Lo pido.", plan=plan_of_house(eval_cases=(CALLS, GREETS)))
    await agent.governance.evaluations.run(actor=CLERK)
    model: Any = agent.services.model
    said = [str(m.text) for call in model.calls for m in call["messages"] if m.type == "human"]
    assert said[0].index("Hola") < said[0].index("Hazme un descuento")
    assert said[1] == "Hola"


async def test_or_35_only_a_supervisor_tries(open_agent: OpenAgent) -> None:
    agent = await opened(open_agent, "Hola.", plan=plan_of_house(eval_cases=(GREETS,)))
    with pytest.raises(ScopeError):
        await agent.governance.evaluations.run(actor=GUEST)


def turn(*messages: AnyMessage) -> list[AnyMessage]:
    return [HumanMessage("x"), *messages]


@pytest.mark.parametrize(
    ("expect", "failures"),
    [
        (Expectation(says=("SESIÓN",)), ()),
        (Expectation(says=("adios",)), ("says: adios",)),
        (Expectation(says_not=("sesion   cerrada",)), ("says_not: sesion   cerrada",)),
        (Expectation(calls=("a",), calls_not=("b",)), ()),
        (Expectation(calls=("b",), calls_not=("a",)), ("calls: b", "calls_not: a")),
    ],
)
def test_or_35_judging_of_a_turn(expect: Expectation, failures: tuple[str, ...]) -> None:
    messages = turn(asks("a", x=1), ToolMessage("r", tool_call_id="call-1"), AIMessage("Sesión\ncerrada."))
    assert judge(expect, messages) == failures


def test_or_35_turn_without_an_answer_says_nothing() -> None:
    assert judge(Expectation(says=("x",)), []) == ("says: x",)


def cli(house: House, *arguments: str) -> Any:
    environment = {
        "RECUERDO_DATA": str(house.data),
        "DATABASE_URL": house.database_url,
        "RECUERDO_TENANT": TENANT,
        "LANG": "en_US.UTF-8",
    }
    return CliRunner().invoke(app, list(arguments), env=environment)


async def prepared(house: House) -> str:
    """A proposal that is pending; returns its id."""
    model = ScriptedModel(replies=["Hola."])
    async with house.open(plan="trading", tools=tools(), model=model) as agent:
        await appoint(agent.services)
        run = run_of(conversation="cleared")
        await flag(agent.services, run, "¿Me lo dejas como la otra vez?")
        await decide(agent.services, minor(1), run=run)
        [proposal] = await sweep(agent)
        return str(proposal.id)


async def in_thread(house: House, *arguments: str) -> Any:
    return await asyncio.to_thread(cli, house, *arguments)


async def test_or_24_command_line_lists_shows_and_decides(house: House) -> None:
    key = await prepared(house)
    listed = json.loads((await in_thread(house, "proposals", "list", "--actor", CLERK, "--json")).stdout)
    assert [(one["id"], one["status"], one["kind"]) for one in listed] == [
        (key, "pending", "eval_case_suggestion")
    ]
    shown = await in_thread(house, "proposals", "show", key, "--actor", CLERK)
    assert "Do you want to add this case" in shown.stdout and "approval" in shown.stdout
    sweeps = await in_thread(house, "proposals", "sweeps", "--actor", CLERK)
    assert "done" in sweeps.stdout and "due" in sweeps.stdout
    by_clock = await in_thread(house, "proposals", "sweep", "--actor", CLERK)
    # By this machine's clock the tools of the revision of December 2025 have long been unused.
    assert "deactivate tool" in by_clock.stdout
    approved = await in_thread(house, "proposals", "approve", key, "--actor", CLERK)
    assert "next signed revision" in approved.stdout
    again = await in_thread(house, "proposals", "reject", key, "--actor", CLERK)
    assert isinstance(again.exception, InputError) and "not pending" in str(again.exception)
    stranger = await in_thread(house, "proposals", "list", "--actor", GUEST)
    assert isinstance(stranger.exception, ScopeError)


async def test_or_35_command_line_tries_the_draft_of_a_file(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepared(house)
    text = (files("recuerdo.stores.plans") / "trading.yaml").read_text(encoding="utf-8")
    case = {"id": "greets", "messages": ["Hola"], "expect": {"says": ["xyzzy"]}}
    path = tmp_path / "mine.yaml"
    path.write_text(text + f"\neval_cases: {json.dumps([case])}\n", encoding="utf-8")
    monkeypatch.setenv("RECUERDO_DRAFTS", "1")
    result = await in_thread(house, "eval", "--actor", CLERK, "--plan", str(path), "--json")
    document = json.loads(result.stdout)
    assert (document["draft"], document["passed"], document["cases"]) == (True, 0, 1)
    assert document["results"][0]["failures"] == ["says: xyzzy"]
    assert isinstance(result.exception, InputError) and "Cases that fail: 1 of 1" in str(result.exception)


async def test_or_35_command_line_refuses_what_is_no_revision(house: House) -> None:
    result = await in_thread(house, "eval", "--actor", CLERK, "--revision", "newest")
    assert isinstance(result.exception, InputError) and "r8" in str(result.exception)
