"""The command line beside an app that has a plan and a tool of its own (OR-29, OR-33, OR-35, IM-50, IM-52)."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool

from recuerdo.agent import Agent
from recuerdo.governance import Governance
from recuerdo.state.amendment import Amendment, EvalCaseAdded, RuleAdded
from recuerdo.state.errors import ScopeError
from recuerdo.state.plan import AutoApproveRule, Condition, EvalCase, Expectation, Plan
from recuerdo.stores.plans import load_plan
from tests.recuerdo.approved import approved
from tests.recuerdo.carlos import House
from tests.recuerdo.command import Command
from tests.recuerdo.test_governance_cli import change, one_line
from tests.recuerdo.test_governance_cli import file as file  # a fixture
from tests.recuerdo.test_governance_cli import run as run  # a fixture
from tests.scripted import ScriptedModel

TENANT, LEO, SARA, OLGA = "t9", "leo", "sara", "olga"
SHOP = load_plan("trading").model_copy(update={"name": "shop", "four_eyes": ("refund",)})
RULE = RuleAdded(
    rule=AutoApproveRule(
        id="small", tool="refund", when=(Condition(field="amount", op="<=", value=20),), arguments=("amount",)
    )
)
CASE = EvalCaseAdded(case=EvalCase(id="late", messages=("¿Y eso?",), expect=Expectation(says_not=("xyzzy",))))
REFUND = AIMessage("", tool_calls=[{"name": "refund", "args": {"amount": 15}, "id": "c1"}])


@tool
def refund(amount: float) -> str:
    """Give money back."""
    return "done"


def shop(
    house: House, *replies: Any, plan: str | Plan = "shop", tools: tuple[BaseTool, ...] = (refund,)
) -> Any:
    """The app: it brings the tool."""
    return house.open(plan=plan, tenant=TENANT, tools=tools, model=ScriptedModel(replies=[*replies]))


def in_shop(house: House, work: Any, **parts: Any) -> Any:
    with shop(house, "Bien.", **parts) as agent:
        return agent.run_sync(work(agent))


async def _two_revisions(agent: Agent) -> None:
    plans = agent.governance.plans
    for role in ("Eres amable.", "Eres seca."):
        revision = await plans.compile(SHOP.model_copy(update={"role": role}), actor=SARA)
        await plans.activate(revision.number, actor=SARA, name="shop")


def two_revisions(house: House) -> None:
    """r1 and r2 of the shop's plan, compiled where its tool is."""
    in_shop(house, _two_revisions, plan=SHOP)


def add(house: House, plan: str, amendment: Amendment) -> str:
    """A proposal that was approved; returns its id."""

    async def work(agent: Agent) -> str:
        services = agent.services
        one = await approved(
            services.database, services.keys, TENANT, plan, amendment, actor=SARA, at=services.clock()
        )
        return one.proposal

    return str(in_shop(house, work, plan=SHOP))


def rows(house: House, table: str, tenant: str) -> int:
    with psycopg.connect(house.database_url, autocommit=True) as connection:
        found = connection.execute(f"select count(*) from recuerdo.{table} where tenant = %s", (tenant,))
        return int((found.fetchone() or (0,))[0])


# A candidate is tried before it is in force


def test_or_35_the_first_revision_of_a_plan_is_tried_before_it_was_ever_in_force(
    run: Command, file: Path
) -> None:
    change(file, eval_cases=[CASE.case.model_dump(mode="json")])
    compiled = run("plan", "compile", str(file))
    told = "recuerdo eval --plan mine --revision r1"
    assert compiled.code == 0 and told in compiled.err
    assert "plan activate mine" in run("eval", "--plan", "mine").err
    tried = run(*told.removeprefix("recuerdo ").split(), "--json")
    assert tried.code == 0, tried.err
    assert (tried.document["revision"], tried.document["draft"], tried.document["passed"]) == ("r1", False, 1)
    assert run("plan", "activate", "mine", "r1").err == ""
    entries = run("audit", "list", "--subject", "mine", "--json").document
    assert (entries[0]["action"], entries[0]["details"]["eval"]) == ("plan.activated", "passed")
    assert run("eval", "--plan", "mine", "--json").document["sha256"] == tried.document["sha256"]


def test_or_35_a_plan_that_ships_is_tried_in_the_revision_that_is_in_force(
    run: Command, house: House
) -> None:
    assert "trading has no signed revision" in run("eval", "--plan", "trading").err
    add(house, "trading", CASE)
    assert run("plan", "compile", "trading", "--activate").code == 0
    tried = run("eval", "--plan", "trading", "--json").document
    assert (tried["revision"], tried["cases"]) == ("r1", 1)


# The way back, for a plan whose tools an app brings


def test_im_50_a_plan_with_a_tool_of_the_app_is_rolled_back_and_activated_where_the_app_is_not(
    run: Command, house: House
) -> None:
    two_revisions(house)
    back = run("plan", "rollback", "shop")
    assert back.code == 0 and "shop r1" in back.out
    assert "shop r2" in run("plan", "activate", "shop", "r2").out
    assert run("plan", "rollback", "shop", "r1", "--json").document["active"] is True
    with shop(house, "Hola.") as agent:
        assert agent.services.plan.role == "Eres amable."


def test_or_33_a_slip_in_a_file_is_refused_and_what_was_checked_before_is_not(
    run: Command, house: House, file: Path
) -> None:
    two_revisions(house)
    change(file, name="shop", four_eyes=["refund", "refnud"])
    refused = run("plan", "compile", str(file))
    assert one_line(refused) and "“refnud”" in refused.err and "agent.governance.plans" in refused.err
    change(file, four_eyes=["refund"], deactivated_tools=["refund"])
    assert "“refund”" in run("plan", "compile", str(file)).err
    change(file, deactivated_tools=[])
    assert run("plan", "compile", str(file)).code == 0
    change(file, name="other")
    assert "four_eyes" in run("plan", "compile", str(file)).err


def test_or_29_im_48_an_own_plan_is_compiled_by_its_name_as_the_hint_says(run: Command, house: House) -> None:
    two_revisions(house)
    rule, case = add(house, "shop", RULE), add(house, "shop", CASE)
    assert "recuerdo plan compile shop" in run("proposals", "show", rule).out
    r3 = run("plan", "compile", "shop", "--activate", "--json").document
    assert (r3["revision"], set(r3["included"])) == ("r3", {rule, case})
    shown = run("plan", "show", "shop", "--json").document["plan"]
    assert (shown["role"], shown["four_eyes"]) == ("Eres seca.", ["refund"])
    assert [one["id"] for one in shown["auto_approve_rules"]] == ["small"]
    assert [one["id"] for one in shown["eval_cases"]] == ["late"]
    r4 = run("plan", "compile", "shop", "--without", "late", "--json").document
    assert (r4["included"], r4["excluded"]) == ([rule], [case])
    differs = run("plan", "diff", "shop", "r3", "r4", "--json").document
    assert differs and all(one["field"].startswith("eval_cases") for one in differs)
    unknown = run("plan", "compile", "shp")
    assert one_line(unknown) and "shop" in unknown.err and "hotel" in unknown.err


# Nothing is written for somebody who may not


COMMANDS = [
    ("approvals", "list"),
    ("approvals", "show", "KEY"),
    ("approvals", "approve", "KEY"),
    ("approvals", "reject", "KEY"),
    ("approvals", "resume", "KEY"),
    ("approvals", "reverse", "KEY"),
    ("approvals", "settle", "KEY", "--outcome", "happened"),
    ("eval",),
    ("eval", "--plan", "hotel", "--revision", "r1"),
    ("evidence", "list"),
    ("proposals", "list"),
    ("memory", "publish", "KEY", "--reason", "y"),
    ("plan", "list"),
    ("plan", "compile", "trading"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_or_11_a_command_that_is_refused_has_written_nothing_into_the_tenant(
    run: Command, house: House, command: tuple[str, ...]
) -> None:
    key = "00000000-0000-4000-8000-000000000000"
    refused = run(*(key if part == "KEY" else part for part in command), "--tenant", "typo", "--actor", LEO)
    assert one_line(refused) and LEO in refused.err
    assert [
        rows(house, table, "typo") for table in ("plan_revisions", "governance_audit", "memory_audit")
    ] == [0] * 3


@pytest.mark.parametrize("command", [("events", "list"), ("memory", "list", "--user", LEO)], ids=" ".join)
def test_or_20_looking_signs_no_plan(run: Command, house: House, command: tuple[str, ...]) -> None:
    assert run(*command, "--tenant", "typo").code == 0
    assert [rows(house, table, "typo") for table in ("plan_revisions", "governance_audit")] == [0] * 2


def test_or_28_requests_are_listed_whatever_plan_is_set(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECUERDO_PLAN", "nope")
    listed = run("approvals", "list", "--json").document
    assert listed == {"approvals": [], "not_gone_on": [], "unknown_outcomes": []}


@pytest.mark.parametrize("verb", ["show", "approve", "reject", "resume", "reverse"])
def test_or_28_what_is_no_id_is_told_where_the_ids_are(run: Command, verb: str) -> None:
    refused = run("approvals", verb, "x")
    assert one_line(refused) and "recuerdo approvals list" in refused.err
    assert "recuerdo proposals list" in run("proposals", "show", "x").err


# A request of an app's turn, decided on the command line


def waiting(house: House, plan: str | Plan = "shop", asks: AIMessage = REFUND) -> str:
    """A turn of the app that waits for a person; returns the request's id."""
    with shop(house, asks, plan=plan) as agent:
        pending = agent.send_sync("Devuélveme 15", user=LEO, conversation="c-1").pending
    assert pending is not None
    return str(pending.id)


@pytest.mark.parametrize(("verb", "status"), [("approve", "approved"), ("reject", "rejected")])
@pytest.mark.parametrize("drafted", [False, True])
def test_or_33_what_was_decided_and_has_not_gone_on_is_listed_until_the_app_goes_on(
    run: Command, house: House, verb: str, status: str, drafted: bool
) -> None:
    if not drafted:
        two_revisions(house)
    plan: str | Plan = SHOP if drafted else "shop"
    key = waiting(house, plan)
    assert run("approvals", "list", "--json").document["not_gone_on"] == []
    decided = run("approvals", verb, key, "--json")
    assert decided.code == 0, decided.err
    assert (decided.document["approval"]["status"], decided.document["gone_on"]) == (status, False)
    assert decided.err.count("\n") == 1 and "stands" in decided.err
    assert [one["id"] for one in run("approvals", "list", "--json").document["not_gone_on"]] == [key]
    said = run("approvals", "list").out
    assert key in said and "has not gone on yet" in said
    assert one_line(run("approvals", "resume", key))

    async def go_on(agent: Agent) -> str:
        with pytest.raises(ScopeError):
            await agent.governance.approvals.not_gone_on(actor=LEO)
        [left] = await agent.governance.approvals.not_gone_on(actor=SARA)
        turn = await agent.resume(left)
        assert not await agent.governance.approvals.not_gone_on(actor=SARA)
        return turn.reply

    assert in_shop(house, go_on, plan=plan) == "Bien."
    assert run("approvals", "list", "--json").document["not_gone_on"] == []


def test_or_33_a_turn_that_waits_for_another_decision_still_is_not_told_as_decided(
    run: Command, house: House
) -> None:
    two = AIMessage(
        "",
        tool_calls=[{"name": "refund", "args": {"amount": 15 + n}, "id": f"c{n}"} for n in range(2)],
    )
    key = waiting(house, SHOP, two)
    assert run("approvals", "approve", key).code == 0
    listed = run("approvals", "list", "--json").document
    assert listed["not_gone_on"] == []
    [other] = listed["approvals"]
    assert run("approvals", "reject", other["id"]).code == 0
    listed = run("approvals", "list", "--json").document
    assert {one["id"] for one in listed["not_gone_on"]} == {key, other["id"]} and not listed["approvals"]


def test_or_33_the_decision_is_told_in_words_too(run: Command, house: House) -> None:
    two_revisions(house)
    key = waiting(house)
    decided = run("approvals", "approve", key)
    assert (decided.code, decided.out) == (0, f"{key} approved by sara\n")
    assert run("approvals", "approve", key).code == 1


@pytest.mark.parametrize("other", [("--plan", "trading"), ("--assistant", "nobody")])
def test_or_33_nothing_is_decided_for_another_plan_than_the_named_one(
    run: Command, house: House, other: tuple[str, str]
) -> None:
    two_revisions(house)
    key = waiting(house)
    refused = run("approvals", "approve", key, *other)
    assert one_line(refused) and "of the plan shop" in refused.err
    assert [one["id"] for one in run("approvals", "list", "--json").document["approvals"]] == [key]
    level = run("approvals", "show", key, "--json").document["level_1"]
    assert level["status"] == "waiting" and level["calls"] == [
        {"tool": "refund", "arguments": {"amount": 15}}
    ]


# What is in force, and what holds it back


def test_im_52_an_emergency_stop_is_seen_where_plans_are_looked_at(
    run: Command, house: House, file: Path
) -> None:
    two_revisions(house)
    assert run("plan", "list", "shop", "--json").document[0]["stop"] is None
    assert run("plan", "stop", "shop", "--all-tools").code == 0
    listed = run("plan", "list").out
    assert "active, stopped" in listed and "Emergency stop of shop: every tool waits" in listed
    newest, oldest = run("plan", "list", "shop", "--json").document
    assert newest["stop"]["all_tools"] is True and oldest["stop"]["actor"] == SARA
    assert run("plan", "show", "shop", "--revision", "active", "--json").document["stop"]["all_tools"] is True
    assert "Emergency stop of shop" in run("plan", "show", "shop").err
    assert run("plan", "stop", str(file)).code == 0
    draft = [one for one in run("plan", "list", "--json").document if one["name"] == "mine"]
    assert [(one["revision"], one["stop"]["all_tools"]) for one in draft] == [(None, False)]
    assert run("plan", "lift", "shop", "--actor", OLGA).code == 0
    assert "shop" not in run("plan", "list", "mine").out
    assert run("plan", "show", "shop").err == ""


def test_or_20_a_draft_is_shown_as_one_and_an_own_plan_as_it_is_in_force(
    run: Command, house: House, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_revisions(house)
    assert (
        "what was signed and is in force is shown with --revision active"
        in run("plan", "show", "trading").err
    )
    assert run("plan", "show", "shop", "--json").document["revision"] == "r2"
    assert one_line(run("plan", "show", "shp"))
    change(file, name="shop")
    signed = run("plan", "show", str(file), "--revision", "active", "--json").document
    assert (signed["name"], signed["revision"]) == ("shop", "r2")
    monkeypatch.delenv("RECUERDO_ACTOR")
    assert one_line(run("plan", "show", "shop")) and "--actor NAME" in run("plan", "show", "shop").err
    change(file, four_eyes=["refnud"])
    shown = run("plan", "show", str(file))
    assert shown.code == 0 and "“refnud”" in shown.err and "valid" not in shown.err


def test_or_12_the_audit_says_what_changed_in_words(run: Command) -> None:
    assert run("plan", "stop", "trading", "--all-tools").code == 0
    said = run("audit", "list").out
    assert "none → all_tools" in said and "user → supervisor" in said and "{}" not in said
    assert run("plan", "compile", "trading").code == 0
    compiled = run("audit", "list", "--json").document[0]
    assert compiled["details"]["revision"] == "r1" and compiled["after"] not in run("audit", "list").out
    assert "revision r1" in run("audit", "list", "--limit", "1").out


def test_or_11_a_role_that_somebody_has_already_is_not_written_again(run: Command, house: House) -> None:
    before = rows(house, "governance_audit", TENANT), rows(house, "memory_audit", TENANT)
    for command in (("revoke", "nobody"), ("grant", "ana", "user"), ("grant", SARA, "supervisor")):
        told = run("roles", *command, "--actor", OLGA)
        assert told.code == 0 and "as before" in told.out
    assert run("roles", "revoke", "nobody", "--actor", OLGA, "--json").document["changed"] is False
    assert (rows(house, "governance_audit", TENANT), rows(house, "memory_audit", TENANT)) == before
    assert "needs the role owner" in run("roles", "revoke", "nobody").err


def test_or_11_a_call_without_an_actor_is_told_to_name_one(run: Command, house: House) -> None:
    async def work(agent: Agent) -> str:
        nobody: Any = None
        with pytest.raises(ScopeError) as refused:
            await Governance(agent.services, TENANT).plans.all(actor=nobody)
        return str(refused.value)

    assert "who acts" in in_shop(house, work, plan=SHOP)


# Proposals and packs


@pytest.mark.parametrize(
    ("language", "told"),
    [("C.UTF-8", "share of those decided: 50%"), ("es_ES.UTF-8", "parte de las decididas: 50 %")],
)
def test_im_55_the_effect_is_told_in_words(
    run: Command, house: House, monkeypatch: pytest.MonkeyPatch, language: str, told: str
) -> None:
    key = add(house, "shop", RULE)
    monkeypatch.setenv("LC_ALL", language)
    assert told in run("proposals", "show", key).out


def test_or_23_a_sweep_by_hand_is_not_told_as_one_that_was_due(run: Command) -> None:
    assert run("proposals", "sweep").code == 0
    assert "by hand" in run("proposals", "sweeps").out


def test_or_14_a_pack_without_its_pin_is_asked_for_it(run: Command, tmp_path: Path) -> None:
    folder = tmp_path / "rates"
    folder.mkdir()
    pins = []
    for price in ("95", "99"):
        (folder / "rates.md").write_text(f"- Doble: {price} EUR\n", encoding="utf-8")
        pins.append(run("pack", "build", str(folder), "--json").document["pack"])
    for verb in ("show", "verify"):
        refused = run("pack", verb, "rates")
        assert one_line(refused) and all(pin in refused.err for pin in pins)
    assert "has no pack nothing" in run("pack", "show", "nothing").err


def test_c_23_a_pack_that_no_default_budget_holds_is_told_so(run: Command, tmp_path: Path) -> None:
    folder = tmp_path / "big"
    folder.mkdir()
    rules = "\n".join(f"- Norma {number}: la salida es a las {number % 24}:00." for number in range(400))
    (folder / "rules.md").write_text(rules, encoding="utf-8")
    built = run("pack", "build", str(folder))
    assert built.code == 0 and "limits.packs" in built.err and "(3000)" in built.err
    (folder / "rules.md").write_text("- Salida: 11:00\n", encoding="utf-8")
    assert run("pack", "build", str(folder)).err == ""
