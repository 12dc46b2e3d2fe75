"""Plans in force through the real agent: what governs a turn, and what changes it (OR-20, OR-29, OR-37, C-15)."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from recuerdo.agent import Agent
from recuerdo.nodes.run_tools.toolbox import make_toolbox
from recuerdo.state.amendment import Amendment, RuleAdded, ToolDeactivated
from recuerdo.state.errors import InputError, ScopeError, SettingsError
from recuerdo.state.plan import AutoApproveRule, Condition, EvalCase, Expectation, Plan
from recuerdo.stores.plans import load_plan
from recuerdo.stores.plans import shipped as shipped_module
from tests.recuerdo.approved import approved
from tests.recuerdo.carlos import CARLOS, CONVERSATION, TENANT, House, prompt
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

CALM, STERN = "Eres amable.", "Eres seco."
DRAFT = load_plan("trading")
RULE = AutoApproveRule(id="cheap", tool="get_quote", when=(Condition(field="symbol", op="==", value="AAPL"),))


def with_role(role: str, **changes: Any) -> Plan:
    return DRAFT.model_copy(update={"role": role, **changes})


async def say(agent: Agent, text: str = "¿Cómo va AAPL?", conversation: str = CONVERSATION) -> Any:
    return await agent.send(text, user=CARLOS, conversation=conversation)


@pytest.fixture
async def governed(open_agent: OpenAgent) -> Agent:
    """An agent in a tenant with an owner and a supervisor."""
    agent = await open_agent(model=ScriptedModel(replies=["Bien."]))
    await agent.governance.roles.appoint_first_owner("olga")
    await agent.governance.roles.grant("sara", "supervisor", actor="olga")
    return agent


async def approve(agent: Agent, change: Amendment) -> None:
    """A proposal for the plan, made and approved."""
    services = agent.services
    at = services.clock()
    await approved(services.database, services.keys, TENANT, "trading", change, actor="sara", at=at)


def tools_of(turn: Any) -> set[str]:
    return {schema["function"]["name"] for schema in turn.request["tools"]}


async def test_a_36_what_ships_is_signed_at_first_use_and_named_in_the_record(governed: Agent) -> None:
    turn = await say(governed)
    assert (turn.record.plan, turn.record.draft, turn.record.revision) == ("trading", False, "r1")
    (entry,) = await governed.governance.plans.all(actor="sara")
    assert (entry.sha256, entry.compiled_by) == (turn.record.revision_sha256, "recuerdo")
    verified = await governed.governance.plans.show(actor="sara")
    assert verified.revision.plan == DRAFT


async def test_or_20_a_running_agent_changes_with_activation_and_not_before(governed: Agent) -> None:
    plans = governed.governance.plans
    stern = await plans.compile(with_role(STERN), actor="sara")
    assert (stern.label, stern.parent) == ("r2", (await plans.show("r1", actor="sara")).revision.sha256)
    before = await say(governed)
    assert before.record.revision == "r1" and STERN not in prompt(before.request)
    await plans.activate("r2", actor="sara")
    after = await say(governed)
    assert after.record.revision == "r2" and STERN in prompt(after.request)
    await plans.rollback(actor="olga")
    again = await say(governed)
    assert again.record.revision == "r1" and STERN not in prompt(again.request)
    entry = (await governed.governance.audit.entries(limit=1, actor="sara"))[0]
    assert (entry.actor, entry.action, entry.subject) == ("olga", "plan.rolled_back", "trading")


async def test_or_29_an_approved_proposal_acts_in_the_next_revision_only(governed: Agent) -> None:
    plans = governed.governance.plans
    await say(governed)
    await approve(governed, RuleAdded(rule=RULE))
    revision = await plans.compile(DRAFT, actor="sara")
    await say(governed)
    assert governed.services.plan.auto_approve_rules == ()
    await plans.activate(revision.number, actor="sara")
    await say(governed)
    assert governed.services.plan.auto_approve_rules == (RULE,)
    again = await plans.compile(DRAFT, actor="sara")
    assert again.plan.auto_approve_rules == (RULE,)


async def test_or_20_a_turn_ends_under_the_revision_that_it_began_with(open_agent: OpenAgent) -> None:
    agents: list[Agent] = []

    @tool
    async def promote() -> str:
        """Activate the other revision."""
        await agents[0].governance.plans.activate("r2", actor="olga")
        return "hecho"

    call = AIMessage("", tool_calls=[{"name": "promote", "args": {}, "id": "c1"}])
    agent = await open_agent(model=ScriptedModel(replies=[call, "Bien."]), tools=[promote])
    agents.append(agent)
    await agent.governance.roles.appoint_first_owner("olga")
    await agent.governance.plans.compile(with_role(STERN), actor="olga")
    turn = await say(agent)
    assert len(turn.requests) == 2
    assert turn.record.revision == "r1"
    assert not any(STERN in prompt(request) for request in turn.requests)
    following = await say(agent)
    assert following.record.revision == "r2" and STERN in prompt(following.request)


async def test_or_37_a_deactivated_tool_leaves_the_request_and_can_come_back(governed: Agent) -> None:
    plans = governed.governance.plans
    before = await say(governed)
    await approve(governed, ToolDeactivated(tool="get_quote"))
    await plans.activate((await plans.compile(DRAFT, actor="sara")).number, actor="sara")
    without = await say(governed, conversation="conv-2")
    assert tools_of(before) - tools_of(without) == {"get_quote"}
    assert without.record.estimate["overhead"] < before.record.estimate["overhead"]
    await plans.activate(
        (await plans.compile(DRAFT, actor="sara", without=["get_quote"])).number, actor="sara"
    )
    assert tools_of(await say(governed, conversation="conv-3")) == tools_of(before)


def test_or_37_an_apps_tool_can_be_deactivated_too() -> None:
    @tool
    def weather() -> str:
        """Sunny."""
        return "sol"

    box = make_toolbox(DRAFT.model_copy(update={"deactivated_tools": ("weather",)}), [weather])
    assert "weather" not in box.tools
    assert {schema["function"]["name"] for schema in box.schemas} == set(box.tools)


UNUSABLE: dict[str, tuple[dict[str, Any], str]] = {
    "unknown tool": ({"tools": ("get_quote", "fly")}, "fly"),
    "unknown four-eyes tool": ({"four_eyes": ("get_quotes",)}, "four_eyes.*get_quotes"),
    "unknown deactivated tool": ({"deactivated_tools": ("fly",)}, "deactivated_tools.*fly"),
    "missing pack": ({"packs": ("tarifas@aaaaaaaaaaaa",)}, "tarifas@aaaaaaaaaaaa"),
}


@pytest.mark.parametrize("fault", UNUSABLE)
async def test_or_20_a_plan_that_could_not_be_used_is_not_compiled(governed: Agent, fault: str) -> None:
    changes, message = UNUSABLE[fault]
    with pytest.raises(SettingsError, match=message):
        await governed.governance.plans.compile(with_role(CALM, **changes), actor="sara")
    assert len(await governed.governance.plans.all(actor="sara")) == 1


async def test_or_37_a_tool_that_is_off_may_still_be_named_by_a_rule(governed: Agent) -> None:
    plan = with_role(CALM, four_eyes=("get_quote",), deactivated_tools=("get_quote",))
    await approve(governed, RuleAdded(rule=RULE))
    revision = await governed.governance.plans.compile(plan, actor="sara")
    assert (revision.label, revision.plan.auto_approve_rules) == ("r2", (RULE,))


async def test_c_23_packs_over_the_budget_are_refused_at_compilation(governed: Agent, tmp_path: Path) -> None:
    folder = tmp_path / "tarifas"
    folder.mkdir()
    (folder / "reglas.md").write_text("Una regla más.\n" * 1000)
    pack = await governed.governance.packs.build(folder, actor="sara")
    assert (await governed.governance.packs.show(pack.reference, actor="sara")).pin == pack.pin
    with pytest.raises(SettingsError, match="3000"):
        await governed.governance.plans.compile(with_role(CALM, packs=(pack.reference,)), actor="sara")
    with pytest.raises(ScopeError):
        await governed.governance.packs.build(folder, actor="ana")


async def test_or_16_an_agent_under_a_pin_keeps_it_when_another_is_built(
    governed: Agent, tmp_path: Path
) -> None:
    governance, folder = governed.governance, tmp_path / "tarifas"
    folder.mkdir()
    (folder / "reglas.md").write_text("El check-out es a las 11:00.\n")
    old = await governance.packs.build(folder, actor="sara")
    revision = await governance.plans.compile(with_role(CALM, packs=(old.reference,)), actor="sara")
    await governance.plans.activate(revision.number, actor="sara")
    (folder / "reglas.md").write_text("El check-out es a las 10:00.\n")
    new = await governance.packs.build(folder, actor="sara")
    turn = await say(governed)
    assert turn.record.packs == [old.reference] and "a las 11:00" in prompt(turn.request)
    kept = await governance.packs.all(actor="sara")
    assert {entry.reference for entry in kept} == {old.reference, new.reference}


async def test_or_21_c_15_a_rule_comes_by_a_proposal_only(governed: Agent) -> None:
    with pytest.raises(InputError, match=r"cheap.*proposal"):
        await governed.governance.plans.compile(with_role(CALM, auto_approve_rules=(RULE,)), actor="olga")


async def test_c_15_the_model_can_add_a_memory_but_neither_publish_nor_govern(open_agent: OpenAgent) -> None:
    agent = await open_agent(
        plan=DRAFT.model_copy(update={"tools": (*DRAFT.tools, "memory")}),
        model=ScriptedModel(replies=["Sí."]),
    )
    turn = await say(agent)
    (memory,) = [one for one in turn.request["tools"] if "mode" in str(one)]
    assert "add" in str(memory)
    words = str(turn.request["tools"]).lower()
    assert not any(word in words for word in ("publish", "auto_approve", "activate", "compile", "four_eyes"))


@pytest.mark.parametrize("who", ["ana", "bot"])
async def test_c_32_governance_is_refused_without_the_role(governed: Agent, who: str) -> None:
    await governed.governance.roles.grant("bot", "agent", actor="olga")
    plans = governed.governance.plans
    for refused in (
        plans.compile(DRAFT, actor=who),
        plans.activate("r1", actor=who),
        plans.rollback(actor=who),
        plans.stop(actor=who),
        plans.lift(actor=who),
        plans.rotate_key(actor=who),
        governed.governance.roles.grant(who, "owner", actor=who),
    ):
        with pytest.raises(ScopeError, match=who):
            await refused
    assert (await governed.governance.audit.verify()).fault is None


async def test_im_52_an_emergency_stop_is_shown_and_lifted_by_an_owner(governed: Agent) -> None:
    plans = governed.governance.plans
    await plans.stop(actor="sara", all_tools=True)
    stopped = await plans.stopped(actor="sara")
    assert stopped and (stopped.actor, stopped.all_tools) == ("sara", True)
    with pytest.raises(ScopeError):
        await plans.lift(actor="sara")
    await plans.lift(actor="olga")
    assert await plans.stopped(actor="sara") is None


async def test_a_28_a_rotated_key_leaves_the_agent_running(governed: Agent) -> None:
    record = await governed.governance.plans.rotate_key(actor="olga")
    assert (await say(governed)).record.revision == "r1"
    revision = await governed.governance.plans.compile(with_role(STERN), actor="sara")
    shown = await governed.governance.plans.show(revision.number, actor="sara")
    assert shown.sealed.signature.key_id == record.key_id


async def test_im_50_a_revision_whose_tool_is_gone_is_not_returned_to(
    open_agent: OpenAgent, house: House
) -> None:
    @tool
    def pay() -> str:
        """Pay."""
        return "hecho"

    agent = await open_agent(model=ScriptedModel(replies=["Bien."]), tools=[pay])
    await agent.governance.roles.appoint_first_owner("olga")
    for plan in (with_role(CALM, tools=("pay",), four_eyes=("pay",)), with_role(STERN)):
        revision = await agent.governance.plans.compile(plan, actor="olga")
        await agent.governance.plans.activate(revision.number, actor="olga")
    async with house.open(model=ScriptedModel(replies=["Bien."])) as without:
        with pytest.raises(SettingsError, match=r"the tool pay.*agent.governance.plans"):
            await without.governance.plans.rollback(actor="olga")
        assert (await without.governance.plans.show(actor="olga")).revision.label == "r3"
    back = await agent.governance.plans.rollback(actor="olga")
    assert (back.label, back.against) == ("r2", None)


async def test_or_35_putting_in_force_says_what_speaks_against_it(
    governed: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    plans = governed.governance.plans
    case = EvalCase(id="salida", messages=("¿A qué hora?",), expect=Expectation(says=("11:00",)))
    r2 = await plans.compile(with_role(CALM, eval_cases=(case,)), actor="sara")
    await governed.governance.evaluations.run("trading", r2.number, actor="sara")
    done = await plans.activate(r2.number, actor="sara")
    assert done.against is not None and "salida" in done.against.en and done.against.en in caplog.text
    r3 = await plans.compile(with_role(STERN, eval_cases=(case,)), actor="sara")
    done = await plans.activate(r3.number, actor="sara")
    assert done.against is not None
    back = await plans.rollback(actor="sara")
    assert back.against is not None and "salida" in back.against.en
    entries = await governed.governance.audit.entries(subject="trading", actor="sara")
    told = [json.loads(entry.details).get("eval") for entry in entries if entry.action != "plan.compiled"]
    assert told[:3] == ["failed", "never tried", "failed"]


# Drafts


async def test_or_20_a_plan_passed_in_runs_as_a_marked_draft(open_agent: OpenAgent) -> None:
    agent = await open_agent(plan=with_role(STERN), model=ScriptedModel(replies=["Bien."]))
    turn = await say(agent)
    assert (turn.record.draft, turn.record.revision, turn.record.revision_sha256) == (True, None, None)
    await agent.governance.roles.appoint_first_owner("olga")
    assert not await agent.governance.plans.all(actor="olga")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    data = with_role(STERN, name="mine").model_dump(mode="json")
    path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    return path


async def test_or_20_a_file_runs_as_a_draft_only_where_that_is_allowed(
    house: House, open_agent: OpenAgent, file: Path
) -> None:
    with pytest.raises(SettingsError, match="RECUERDO_DRAFTS=1"):
        async with house.open(plan=str(file)):
            pass
    agent = await open_agent(
        plan=str(file), settings={"drafts": True}, model=ScriptedModel(replies=["Bien."])
    )
    assert (await say(agent)).record.draft


async def test_or_29_a_plan_of_ones_own_runs_by_its_name_once_it_is_active(
    governed: Agent, open_agent: OpenAgent, house: House, file: Path
) -> None:
    plans = governed.governance.plans
    revision = await plans.compile(str(file), actor="sara")
    with pytest.raises(SettingsError, match="recuerdo plan activate mine"):
        async with house.open(plan="mine"):
            pass
    await plans.activate(revision.number, actor="sara", name="mine")
    agent = await open_agent(plan="mine", model=ScriptedModel(replies=["Bien."]))
    turn = await say(agent)
    assert (turn.record.plan, turn.record.revision, turn.record.draft) == ("mine", "r1", False)
    assert STERN in prompt(turn.request)
    with pytest.raises(SettingsError, match=r"no plan named nothing.*mine"):
        async with house.open(plan="nothing"):
            pass


async def test_or_20_a_newer_yaml_that_ships_changes_nothing_by_itself(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.open(model=ScriptedModel(replies=["Bien."])) as agent:
        assert (await say(agent)).record.revision == "r1"
    monkeypatch.setattr(shipped_module, "read_plan", lambda text, origin: with_role(STERN))
    async with house.open(model=ScriptedModel(replies=["Bien."])) as agent:
        turn = await say(agent)
        assert turn.record.revision == "r1" and STERN not in prompt(turn.request)


async def test_or_6_another_tenant_of_the_same_process_has_its_own_revision(
    governed: Agent, house: House
) -> None:
    await governed.governance.plans.compile(with_role(STERN), actor="sara")
    await governed.governance.plans.activate("r2", actor="sara")
    async with house.open(tenant="t2", model=ScriptedModel(replies=["Bien."])) as other:
        turn = await other.send("hola", user=CARLOS, conversation=CONVERSATION)
    assert turn.record.revision == "r1" and STERN not in prompt(turn.request)
    services = await governed.services.under("t3")
    assert services.revision and (services.revision.tenant, services.revision.label) == ("t3", "r1")


async def test_or_29_an_agent_does_not_open_under_a_forged_revision(governed: Agent, house: House) -> None:
    async with governed.services.database.connection() as connection:
        await connection.execute("alter table recuerdo.plan_revisions disable trigger immutable")
        await connection.execute("update recuerdo.plan_revisions set signature = repeat('x', 64)::bytea")
    with pytest.raises(SettingsError, match=r"trading r1 is refused.*signature is wrong"):
        async with house.open():
            pass
