"""The Learning Hub: from evidence to proposals, decisions and the next signed revision (OR-2, OR-20 to OR-37)."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.errors import CheckViolation

from recuerdo.agent import Agent
from recuerdo.graph.learning import LearningHub, build_learning_graph, learning_job
from recuerdo.nodes.services import Services
from recuerdo.state import limits
from recuerdo.state.amendment import RuleAdded
from recuerdo.state.errors import BusyError, InputError, ScopeError, SettingsError
from recuerdo.state.plan import AutoApproveRule, Condition, Plan, Summary
from recuerdo.stores.plans import read_autonomy
from recuerdo.stores.plans.standing import Standing
from recuerdo.stores.postgres.approvals import Approvals
from recuerdo.stores.postgres.evidence import EvidenceLog, NewEvidence
from recuerdo.stores.postgres.memories import Memories, NewMemory
from recuerdo.stores.postgres.retention import forget_user
from recuerdo.stores.postgres.roles import Roles
from recuerdo.stores.postgres.sweeps import Sweeps
from recuerdo.stores.worker import Worker
from tests.recuerdo.carlos import TENANT, House, SettableClock
from tests.recuerdo.conftest import OpenAgent
from tests.recuerdo.learning_house import (
    CLERK,
    GUEST,
    IDLE,
    OWNER,
    TOOL,
    appoint,
    approve_minor,
    decide,
    flag,
    minor,
    plan_of_house,
    run_of,
    sweep,
    tools,
    use,
)
from tests.scripted import ScriptedModel


@pytest.fixture
async def agent(open_agent: OpenAgent) -> Agent:
    """An agent under a signed plan that has apply_discount with four eyes."""
    agent = await open_agent(plan="trading", tools=tools(), model=ScriptedModel(replies=["Hola."]))
    await appoint(agent.services)
    plans = agent.governance.plans
    revision = await plans.compile(plan_of_house(), actor=OWNER)
    await plans.activate(revision.number, actor=OWNER)
    return agent


async def test_or_31_fourteen_approvals_give_nothing_and_fifteen_one_rule(agent: Agent) -> None:
    await approve_minor(agent.services, 14)
    assert await sweep(agent) == []
    await decide(agent.services, minor(14))
    [proposal] = await sweep(agent)
    assert (proposal.kind, proposal.status, proposal.plan) == ("rule_suggestion", "pending", "trading")
    assert isinstance(proposal.amendment, RuleAdded)


async def test_or_31_im_55_a_call_that_the_rule_would_not_let_pass_is_none_that_it_rests_on(
    agent: Agent,
) -> None:
    await approve_minor(agent.services, 15)
    await decide(agent.services, {**minor(15), "discount_pct": -1e300})
    [proposal] = await sweep(agent)
    assert proposal.sample_size == 15
    assert isinstance(proposal.amendment, RuleAdded)
    assert not proposal.amendment.rule.allows(TOOL, {**minor(15), "discount_pct": -1e300})


async def test_or_25_proposal_of_a_rule_is_readable_by_a_machine(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    assert proposal.change["rule"]["tool"] == TOOL
    assert proposal.change["rule"]["when"] == [
        {"field": "discount_pct", "op": "<=", "value": 10},
        {"field": "nights", "op": ">", "value": 4},
    ]


async def test_or_32_question_states_ten_percent_and_more_than_four_nights(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    assert "10 %" in proposal.wording["es"] and "más de 4 noches" in proposal.wording["es"]
    assert proposal.wording["es"].startswith("¿Quieres auto-aprobar")
    assert "10 %" in proposal.wording["en"] and "more than 4 nights" in proposal.wording["en"]


async def test_or_31_one_rejection_of_that_type_gives_no_rule(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    await decide(agent.services, {"discount_pct": 8, "nights": 6}, "reject")
    assert await sweep(agent) == []


async def test_a_31_one_reversal_gives_no_rule(agent: Agent) -> None:
    ids = await approve_minor(agent.services, 16)
    services = agent.services
    await Approvals(services.database, TENANT, services.keys).reverse(
        ids[3], actor=CLERK, at=services.clock()
    )
    assert await sweep(agent) == []


async def test_a_31_objections_and_approvals_older_than_the_period_do_not_count(
    agent: Agent, clock: SettableClock
) -> None:
    await decide(agent.services, {"discount_pct": 8, "nights": 6}, "reject")
    await approve_minor(agent.services, 14)
    clock.forward(days=91)
    await approve_minor(agent.services, 14)
    assert await _rule_suggestions(agent) == []
    await decide(agent.services, minor(1))
    assert [one.sample_size for one in await _rule_suggestions(agent)] == [15]


async def test_im_55_proposal_shows_its_evidence_sample_period_and_effect(
    agent: Agent, clock: SettableClock
) -> None:
    began = clock()
    ids = await approve_minor(agent.services, 14)
    clock.forward(days=2)
    last = await decide(agent.services, minor(14))
    await decide(agent.services, {"discount_pct": 30, "nights": 1}, "reject")
    [proposal] = await sweep(agent)
    links = await agent.governance.proposals.links(proposal.id, actor=CLERK)
    assert {link.approval for link in links} == {*ids, last.id}
    assert len({link.evidence for link in links}) == 15 == proposal.sample_size
    assert (proposal.period_from, proposal.period_to) == (began, clock())
    assert proposal.effect == {
        "requests_decided": 16,
        "would_have_passed": 15,
        "share": 0.938,
        "per_month": 225.0,
    }
    assert all(link.turn for link in links)


async def test_im_55_c_41_the_estimate_of_a_later_proposal_counts_what_earlier_ones_rest_on(
    agent: Agent, clock: SettableClock
) -> None:
    await approve_minor(agent.services, 15)
    [first] = await sweep(agent)
    assert first.effect == {
        "requests_decided": 15,
        "would_have_passed": 15,
        "share": 1.0,
        "per_month": 450.0,
    }
    await agent.governance.proposals.decide(first.id, "reject", actor=CLERK)
    clock.forward(days=30)
    await approve_minor(agent.services, 15)
    await decide(agent.services, {"discount_pct": 40, "nights": 1}, "reject")
    await decide(agent.services, {**minor(1), "note": "without its type"})
    [second] = await sweep(agent)
    assert second.sample_size == 15
    assert second.effect == {
        "requests_decided": 32,
        "would_have_passed": 30,
        "share": 0.938,
        "per_month": 30.0,
    }


async def test_im_55_the_estimate_counts_the_decisions_of_the_period_alone(
    agent: Agent, clock: SettableClock
) -> None:
    await approve_minor(agent.services, 14)
    clock.forward(days=91)
    await approve_minor(agent.services, 15)
    [rule] = await _rule_suggestions(agent)
    assert (rule.effect["requests_decided"], rule.effect["would_have_passed"]) == (15, 15)


async def test_im_55_sample_is_what_the_rule_would_have_let_pass_and_nothing_else(agent: Agent) -> None:
    odd: list[dict[str, Any]] = [
        {"discount_pct": "10", "nights": 5},
        {"discount_pct": 10**400, "nights": 5},
        {"discount_pct": True, "nights": 5},
        {"discount_pct": None, "nights": 5},
        {"discount_pct": [10], "nights": 5},
        {"nights": 5},
        {},
    ]
    for arguments in odd:
        await decide(agent.services, arguments)
    exact = [{"discount_pct": 0.1 + 0.2, "nights": 6, "kind": "it's 5 %", "member": True} for _ in range(15)]
    for arguments in exact:
        await decide(agent.services, arguments)
    [proposal] = await _rule_suggestions(agent)
    assert proposal.sample_size == 15 == proposal.effect["would_have_passed"]
    assert proposal.amendment.rule.allows(TOOL, exact[0])


async def test_or_24_next_sweep_on_the_same_evidence_proposes_nothing_new(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    assert len(await sweep(agent)) == 1
    assert await sweep(agent) == []
    await approve_minor(agent.services, 40)
    assert await sweep(agent) == []
    [listed] = await agent.governance.proposals.list("pending", actor=CLERK)
    assert listed.created_at and listed.kind == "rule_suggestion"


async def test_or_21_proposal_without_evidence_cannot_be_written(agent: Agent) -> None:
    with pytest.raises(CheckViolation, match="no evidence"):
        async with agent.services.database.tenant(TENANT) as connection:
            await connection.execute(
                "insert into recuerdo.proposals (tenant, id, kind, plan, subject, change, wording, effect,"
                " sample_size, period_from, period_to, created_at) values ('t1', %s, 'rule_suggestion', 'trading',"
                " 'x', '{}', '{}', '{}', 1, now(), now(), now())",
                (uuid4(),),
            )


async def test_or_21_rule_without_a_proposal_is_not_compiled(agent: Agent) -> None:
    when = (Condition(field="nights", op=">", value=4),)
    rule = AutoApproveRule(id="own", tool=TOOL, when=when)
    with pytest.raises(InputError, match="own"):
        await agent.governance.plans.compile(plan_of_house(auto_approve_rules=(rule,)), actor=OWNER)


async def test_or_22_evidence_of_runs_requests_and_uses_outlives_the_process(house: House) -> None:
    parts: dict[str, Any] = {"plan": plan_of_house(name="house"), "tools": tools()}
    run = run_of("house")
    async with house.open(model=ScriptedModel(replies=["Hola."]), **parts) as agent:
        await appoint(agent.services)
        await decide(agent.services, minor(1), run=run)
        await use(agent.services, "get_rates", agent.services.clock(), 20, plan="house")
        failed = NewEvidence("run_failed", agent.services.clock(), run, str(run.turn))
        await EvidenceLog(agent.services.database, TENANT).write(failed)
    async with house.open(model=ScriptedModel(replies=["Hola."]), **parts) as agent:
        found = await agent.governance.evidence.list(actor=CLERK)
        kinds = Counter(one.kind for one in found)
        assert (kinds["run_failed"], kinds["approval_decided"], kinds["tool_used"]) == (1, 1, 20)
        assert all(one.at == agent.services.clock() and one.turn for one in found)
        await sweep(agent)
        [swept] = [
            one for one in await agent.governance.proposals.sweeps(actor=CLERK) if one.status == "done"
        ]
        assert swept.evidence == len(found)


async def test_a_30_evidence_is_learnt_from_for_180_days_and_then_no_longer(
    agent: Agent, clock: SettableClock
) -> None:
    await use(agent.services, IDLE, clock() - timedelta(days=180) + timedelta(seconds=1))
    clock.forward(seconds=1)
    assert await sweep(agent) == []
    await use(agent.services, IDLE, clock() - timedelta(days=179))
    assert [one.subject for one in await sweep(agent)] == [IDLE]


async def test_a_35_supervisor_and_owner_decide_agent_and_user_do_not(agent: Agent) -> None:
    roles = Roles(agent.services.database, TENANT, agent.services.keys)
    await roles.grant("ada", "agent", actor=OWNER, at=agent.services.clock())
    await flag(agent.services, first := run_of(conversation="cleared"), "¿Y eso?")
    await flag(agent.services, second := run_of(conversation="cleared"), "¿Y aquello?")
    for run in (first, second):
        await decide(agent.services, minor(1), run=run)
    one, other = await sweep(agent)
    for actor in ("ada", GUEST):
        with pytest.raises(ScopeError):
            await agent.governance.proposals.decide(one.id, "approve", actor=actor)
    assert (await agent.governance.proposals.decide(one.id, "approve", actor=CLERK)).decided_by == CLERK
    assert (await agent.governance.proposals.decide(other.id, "reject", actor=OWNER)).decided_by == OWNER


async def test_a_36_signed_plan_holds_rules_cases_and_tools_that_proposals_brought(
    agent: Agent, clock: SettableClock
) -> None:
    await use(agent.services, "get_rates", clock() - timedelta(days=91))
    await approve_minor(agent.services, 15)
    await flag(agent.services, run := run_of(conversation="cleared"))
    await decide(agent.services, {"discount_pct": 50, "nights": 1}, run=run)
    found = await sweep(agent)
    assert {one.kind for one in found} == {"rule_suggestion", "eval_case_suggestion", "skill_lifecycle"}
    for one in found:
        await agent.governance.proposals.decide(one.id, "approve", actor=CLERK)
    plan = (await agent.governance.plans.compile(plan_of_house(), actor=CLERK)).plan
    assert len(plan.auto_approve_rules) == len(plan.eval_cases) == 1
    assert plan.deactivated_tools == ("get_rates",)


async def test_or_28_only_a_supervisor_decides_and_nothing_happens_by_itself(
    agent: Agent, clock: SettableClock
) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    desk = agent.governance.proposals
    for actor in (GUEST, "nobody"):
        with pytest.raises(ScopeError):
            await desk.decide(proposal.id, "approve", actor=actor)
        with pytest.raises(ScopeError):
            await desk.list(actor=actor)
    clock.forward(days=30)
    assert await sweep(agent) == []
    assert (await desk.show(proposal.id, actor=CLERK)).status == "pending"
    assert await _rules(agent) == ()


async def test_or_29_approved_proposal_acts_in_the_next_signed_revision_only(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    desk, plans = agent.governance.proposals, agent.governance.plans
    before = (await plans.show(actor=CLERK)).revision
    assert (await desk.decide(proposal.id, "approve", actor=CLERK)).status == "approved"
    assert (await plans.show(actor=CLERK)).revision == before and before.plan.auto_approve_rules == ()
    after = await plans.compile(plan_of_house(), actor=CLERK)
    assert after.number == before.number + 1 and after.parent == before.sha256
    assert [rule.tool for rule in after.plan.auto_approve_rules] == [TOOL]
    included = await desk.show(proposal.id, actor=CLERK)
    assert (included.status, included.included_in) == ("included", after.number)
    # OR-20: what runs is still the revision before.
    assert await _rules(agent) == ()
    await plans.activate(after.number, actor=CLERK)
    assert len(await _rules(agent)) == 1
    async with agent.services.database.connection() as connection:
        await connection.execute("alter table recuerdo.plan_revisions disable trigger immutable")
        await connection.execute(
            "update recuerdo.plan_revisions set document = convert_to(replace(convert_from(document, 'UTF8'),"
            " '\"value\":10', '\"value\":90'), 'UTF8') where number = %s",
            (after.number,),
        )
    with pytest.raises(SettingsError):
        await plans.show(after.number, actor=CLERK)


async def test_or_33_rule_in_force_lets_pass_what_it_says_and_nothing_more(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    revision = await agent.governance.plans.compile(plan_of_house(), actor=CLERK)
    autonomy = await read_autonomy(agent.services.database, TENANT, revision.plan)
    stay = {"reservation": "R-100"}
    assert autonomy.rule_for(TOOL, {**stay, "discount_pct": 10, "nights": 5}) is not None
    assert autonomy.rule_for(TOOL, {**stay, "discount_pct": 10.0, "nights": 5}) is not None
    assert autonomy.rule_for(TOOL, {**stay, "discount_pct": 11, "nights": 5}) is None
    assert autonomy.rule_for(TOOL, {**stay, "discount_pct": 10, "nights": 4}) is None
    assert autonomy.rule_for(TOOL, {**stay, "discount_pct": 10, "nights": 5, "to_account": "ES91"}) is None


async def test_or_31_a_piece_that_names_no_request_is_no_approval_and_stops_no_sweep(agent: Agent) -> None:
    await approve_minor(agent.services, 16)
    async with agent.services.database.connection() as connection:
        await connection.execute(
            "update recuerdo.evidence set data = jsonb_set(data, '{approval}', '\"x\"')"
            " where id = (select id from recuerdo.evidence where kind = 'approval_decided' limit 1)"
        )
    [proposal] = await sweep(agent)
    assert proposal.sample_size == 15


async def test_im_48_two_compilations_include_it_once(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    plans = agent.governance.plans
    first = await plans.compile(plan_of_house(), actor=CLERK)
    second = await plans.compile(plan_of_house(), actor=CLERK)
    assert len(first.plan.auto_approve_rules) == len(second.plan.auto_approve_rules) == 1
    assert (await agent.governance.proposals.show(proposal.id, actor=CLERK)).included_in == first.number


async def test_im_48_two_compilations_at_once_include_it_once_each(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    plans = agent.governance.plans
    both = await asyncio.gather(*(plans.compile(plan_of_house(), actor=CLERK) for _ in range(2)))
    assert [len(one.plan.auto_approve_rules) for one in both] == [1, 1]
    included = (await agent.governance.proposals.show(proposal.id, actor=CLERK)).included_in
    assert included == min(one.number for one in both)


async def test_im_48_what_is_left_out_stays_out_and_says_so_until_it_is_taken_in(agent: Agent) -> None:
    proposal = await _approved_rule(agent)
    plans, desk = agent.governance.plans, agent.governance.proposals
    assert await desk.standing(proposal, actor=CLERK) == Standing(None, "taken_in", None)
    out = await plans.compile(plan_of_house(), actor=CLERK, without=[proposal])
    later = await plans.compile(plan_of_house(), actor=CLERK)
    for revision in (out, later):
        assert (revision.included, revision.excluded) == ((), (proposal,))
    assert (await desk.show(proposal, actor=CLERK)).status == "approved"
    assert await desk.standing(proposal, actor=CLERK) == Standing(None, "excluded", out.number)
    again = await plans.compile(plan_of_house(), actor=CLERK, include=[proposal])
    assert len(again.plan.auto_approve_rules) == 1 and again.excluded == ()
    assert await desk.standing(proposal, actor=CLERK) == Standing(None, "carried", again.number)
    await plans.activate(again.number, actor=CLERK)
    assert await desk.standing(proposal, actor=CLERK) == Standing(again.number, "carried", again.number)
    dropped = await plans.compile(plan_of_house(), actor=CLERK, without=[proposal])
    wanted = Standing(again.number, "excluded", dropped.number)
    assert await desk.standing(proposal, actor=CLERK) == wanted
    assert (await agent.governance.audit.verify()).fault is None


async def test_im_50_what_a_rollback_left_behind_comes_in_again_when_asked_for(agent: Agent) -> None:
    proposal = await _approved_rule(agent)
    plans, desk = agent.governance.plans, agent.governance.proposals
    r3 = await plans.compile(plan_of_house(), actor=CLERK)
    await plans.activate(r3.number, actor=CLERK)
    await plans.rollback(actor=CLERK)
    assert (await desk.show(proposal, actor=CLERK)).status == "included"
    assert await desk.standing(proposal, actor=CLERK) == Standing(None, "left_behind", r3.number)
    assert (await plans.compile(plan_of_house(), actor=CLERK)).included == ()
    r5 = await plans.compile(plan_of_house(), actor=CLERK, include=[proposal])
    assert r5.plan.auto_approve_rules == r3.plan.auto_approve_rules != ()
    assert (await plans.compile(plan_of_house(), actor=CLERK)).included == r5.included
    await plans.activate(r5.number, actor=CLERK)
    assert len(await _rules(agent)) == 1
    assert (await agent.governance.audit.verify()).fault is None


async def test_im_48_what_was_rolled_back_does_not_come_in_by_itself_whatever_its_row_says(
    agent: Agent,
) -> None:
    proposal = await _approved_rule(agent)
    plans = agent.governance.plans
    r3 = await plans.compile(plan_of_house(), actor=CLERK)
    await plans.activate(r3.number, actor=CLERK)
    await plans.rollback(actor=CLERK)
    async with agent.services.database.tenant(TENANT) as connection:
        await connection.execute(
            "update recuerdo.proposals set status = 'approved', included_in = null, included_at = null"
        )
    with pytest.raises(InputError, match=r"recuerdo audit verify.*--include"):
        await plans.compile(plan_of_house(), actor=CLERK)
    assert (await plans.compile(plan_of_house(), actor=CLERK, include=[proposal])).included != ()


@pytest.mark.parametrize("decision", ["reject", None])
async def test_im_48_what_nobody_approved_cannot_be_taken_in(agent: Agent, decision: Any) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    desk, plans = agent.governance.proposals, agent.governance.plans
    if decision:
        await desk.decide(proposal.id, decision, actor=CLERK)
    for key in (str(proposal.id), "nothing"):
        with pytest.raises(InputError, match=rf"{key}.*These can: –"):
            await plans.compile(plan_of_house(), actor=CLERK, include=[key])
    assert await desk.standing(proposal.id, actor=CLERK) is None
    # By hand in the database it is no approval either.
    async with agent.services.database.tenant(TENANT) as connection:
        await connection.execute(
            "update recuerdo.proposals set status = 'included', decided_at = now(), decided_by = %s,"
            " included_in = 1, included_at = now()",
            (CLERK,),
        )
    with pytest.raises(InputError, match="audit does not hold"):
        await plans.compile(plan_of_house(), actor=CLERK, include=[str(proposal.id)])


async def test_or_29_a_proposal_of_another_plan_cannot_be_taken_in(agent: Agent) -> None:
    proposal = await _approved_rule(agent)
    with pytest.raises(InputError, match="not of this plan"):
        await agent.governance.plans.compile(plan_of_house(name="house"), actor=CLERK, include=[proposal])


async def test_im_48_rejected_proposal_is_never_compiled(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    await agent.governance.proposals.decide(proposal.id, "reject", actor=CLERK)
    revision = await agent.governance.plans.compile(plan_of_house(), actor=CLERK)
    assert revision.plan.auto_approve_rules == () and revision.included == ()


@pytest.mark.parametrize("first", ["approve", "reject"])
async def test_im_47_decided_proposal_cannot_be_decided_again(agent: Agent, first: Any) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    desk = agent.governance.proposals
    decided = await desk.decide(proposal.id, first, actor=CLERK)
    for decision in ("approve", "reject"):
        with pytest.raises(InputError, match="not pending"):
            await desk.decide(proposal.id, decision, actor=OWNER)  # type: ignore[arg-type]
    assert await desk.show(proposal.id, actor=CLERK) == decided


async def test_im_47_included_proposal_cannot_be_decided(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    desk = agent.governance.proposals
    await desk.decide(proposal.id, "approve", actor=CLERK)
    await agent.governance.plans.compile(plan_of_house(), actor=CLERK)
    with pytest.raises(InputError, match="not pending"):
        await desk.decide(proposal.id, "reject", actor=OWNER)


async def test_im_47_of_two_decisions_at_once_one_counts(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    desk = agent.governance.proposals
    ends = await asyncio.gather(
        desk.decide(proposal.id, "approve", actor=CLERK),
        desk.decide(proposal.id, "reject", actor=OWNER),
        return_exceptions=True,
    )
    assert [isinstance(end, InputError) for end in ends].count(True) == 1


async def test_or_30_rejected_proposal_is_archived_with_who_when_and_why(
    agent: Agent, clock: SettableClock
) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    desk = agent.governance.proposals
    reason = "Prefiero verlos; mi tarjeta es 4111 1111 1111 1111."
    rejected = await desk.decide(proposal.id, "reject", actor=CLERK, reason=reason)
    assert rejected.status == "rejected" and "4111" not in str(rejected.reason)
    assert await desk.list(actor=CLERK) == []
    assert [one.id for one in await desk.list(actor=CLERK, archived=True)] == [proposal.id]
    entry, _ = await agent.governance.audit.entries(subject=str(proposal.id), actor=CLERK)
    assert (entry.actor, entry.at, entry.action) == (CLERK, clock(), "proposal.rejected")
    [archived] = await desk.list(actor=CLERK, archived=True)
    assert "Prefiero verlos" in str(archived.reason)
    assert "reason_sha256" in entry.details and "Prefiero" not in entry.details
    assert await sweep(agent) == []


async def test_c_41_rejected_rule_comes_back_with_fifteen_new_approvals(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    await agent.governance.proposals.decide(proposal.id, "reject", actor=CLERK)
    await approve_minor(agent.services, 14)
    assert await sweep(agent) == []
    await decide(agent.services, minor(14))
    [again] = await sweep(agent)
    assert again.id != proposal.id and again.subject == proposal.subject and again.sample_size == 15


async def test_a_31_stopped_rule_is_not_suggested_again(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    plans = agent.governance.plans
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    revision = await plans.compile(plan_of_house(), actor=CLERK)
    await plans.activate(revision.number, actor=CLERK)
    await plans.stop(actor=CLERK)
    await approve_minor(agent.services, 20)
    assert await sweep(agent) == []


async def test_or_34_ambiguous_run_that_a_person_ended_becomes_a_case(agent: Agent) -> None:
    text = "¿Me lo dejas como la otra vez? Mi tarjeta es 4111 1111 1111 1111"
    turn = await agent.send(text, user=GUEST, conversation="conv-456")
    run = run_of(turn=UUID(turn.id))
    await flag(agent.services, run)
    assert await sweep(agent) == []
    await decide(agent.services, minor(1), run=run)
    [proposal] = await sweep(agent)
    assert proposal.kind == "eval_case_suggestion"
    case = proposal.change["case"]
    assert case["messages"][-1].startswith("¿Me lo dejas como la otra vez?")
    assert "4111" not in str(proposal.change) and "4111" not in str(proposal.wording)
    assert case["expect"]["calls"] == [TOOL]
    [link] = await agent.governance.proposals.links(proposal.id, actor=CLERK)
    assert str(link.turn) == turn.id and link.approval
    assert await sweep(agent) == []


async def test_or_34_a_case_holds_nobodys_name_and_is_what_the_supervisor_saw(agent: Agent) -> None:
    memory = NewMemory("note", "Mi socia Nora Paz decide conmigo", "es", 1.0)
    now = agent.services.clock()
    await Memories(agent.services.database, TENANT).add("trading", GUEST, memory, now)
    await agent.send("Vendo AAPL y Santander.", user=GUEST, conversation="conv-456")
    text = "Como dijo Nora: descuento a nombre de Eva Ruiz, eva@x.example. Carlos lo sabe."
    turn = await agent.send(text, user=GUEST, conversation="conv-456")
    run = run_of(turn=UUID(turn.id))
    await flag(agent.services, run)
    await decide(agent.services, minor(1), run=run)
    [proposal] = await sweep(agent)
    assert proposal.change["case"]["messages"] == [
        "Vendo AAPL y Santander.",
        "Como dijo [persona 1]: descuento a nombre de [persona 2], [correo 1]. [persona 3] lo sabe.",
    ]
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    revision = await agent.governance.plans.compile(plan_of_house(), actor=CLERK)
    assert revision.plan.eval_cases[0].model_dump(mode="json") == proposal.change["case"]
    sealed = (await agent.governance.plans.show(revision.number, actor=CLERK)).sealed
    for name in ("Carlos", "Nora", "Eva", "eva@", GUEST):
        assert name not in sealed.document.decode() and name not in str(proposal.wording)


async def test_c_16_a_case_holds_no_part_of_a_card_that_stood_where_it_is_cut(agent: Agent) -> None:
    text = "Descuento. " + "x" * 1973 + " 4111 1111 1111 1111, de Eva Ruiz"
    turn = await agent.send(text, user=GUEST, conversation="conv-456")
    run = run_of(turn=UUID(turn.id))
    await flag(agent.services, run)
    await decide(agent.services, minor(1), run=run)
    [proposal] = await sweep(agent)
    (message,) = proposal.change["case"]["messages"]
    assert message.startswith("Descuento.") and len(message) <= 2000 and "4111" not in message


async def test_or_26_case_has_input_expected_outcome_and_source_run(agent: Agent) -> None:
    run = run_of(conversation="cleared")
    await flag(agent.services, run, "¿Y para el grupo?")
    await decide(agent.services, minor(1), "reject", run=run)
    [proposal] = await sweep(agent)
    assert proposal.kind == "eval_case_suggestion"
    case = proposal.change["case"]
    assert case["messages"] == ["¿Y para el grupo?"]
    assert case["expect"]["calls_not"] == [TOOL] and case["expect"]["calls"] == []
    [link] = await agent.governance.proposals.links(proposal.id, actor=CLERK)
    assert link.turn == run.turn


async def test_or_34_the_same_case_is_one_however_often_it_comes(agent: Agent) -> None:
    async def ambiguous(count: int) -> None:
        for _ in range(count):
            run = run_of(conversation=str(uuid4()))
            await flag(agent.services, run, "Lo de siempre.")
            await decide(agent.services, minor(1), "reject", run=run)

    await ambiguous(3)
    [proposal] = await sweep(agent)
    assert proposal.sample_size == 3
    await ambiguous(2)
    assert await sweep(agent) == []
    assert (await agent.governance.proposals.show(proposal.id, actor=CLERK)).sample_size == 5
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    await ambiguous(1)
    assert await sweep(agent) == []
    assert (await agent.governance.proposals.show(proposal.id, actor=CLERK)).sample_size == 5
    await agent.governance.plans.compile(plan_of_house(), actor=CLERK)
    await ambiguous(1)
    assert await sweep(agent) == []


async def test_c_31_one_setting_changes_the_hub_and_leaves_the_summary(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RULE_SUGGESTION_MIN_APPROVALS", 3)
    await approve_minor(agent.services, 2)
    assert await _rule_suggestions(agent) == []
    await approve_minor(agent.services, 1)
    [proposal] = await _rule_suggestions(agent)
    assert proposal.sample_size == 3
    assert Summary().after_messages == limits.SUMMARY_AFTER_MESSAGES == 15


async def test_a_33_run_without_a_flag_or_without_a_person_is_no_case(agent: Agent) -> None:
    await flag(agent.services, run_of())
    await decide(agent.services, minor(1), run=run_of())
    assert await sweep(agent) == []


async def test_im_43_case_goes_with_the_user_whose_words_it_holds(agent: Agent, clock: SettableClock) -> None:
    run = run_of(conversation="cleared")
    await flag(agent.services, run)
    await decide(agent.services, minor(1), run=run)
    assert len(await sweep(agent)) == 1
    await forget_user(agent.services.database, TENANT, GUEST, clock())
    assert await agent.governance.proposals.list(actor=CLERK) == []
    assert await sweep(agent) == []


async def test_or_36_tool_unused_for_91_days_is_named_and_one_used_10_days_ago_is_not(
    agent: Agent, clock: SettableClock
) -> None:
    now = clock()
    await use(agent.services, IDLE, now - timedelta(days=91), 3)
    await use(agent.services, "get_rates", now - timedelta(days=100))
    await use(agent.services, "get_rates", now - timedelta(days=10))
    [proposal] = await sweep(agent)
    assert (proposal.kind, proposal.change) == ("skill_lifecycle", {"kind": "tool", "tool": IDLE})
    assert proposal.sample_size == 3 and proposal.effect["tokens_less_per_request"] > 20
    assert IDLE in (await agent.services.under(TENANT)).toolbox.tools
    assert await sweep(agent) == []


async def test_or_36_tools_with_four_eyes_and_those_the_engine_needs_stay(
    agent: Agent, clock: SettableClock
) -> None:
    old = clock() - timedelta(days=100)
    for tool in (TOOL, "read_tool_result", IDLE):
        await use(agent.services, tool, old)
    assert {one.subject for one in await sweep(agent)} == {IDLE}


async def test_or_23_a_refused_revision_of_one_plan_does_not_stop_the_sweep(agent: Agent) -> None:
    plans = agent.governance.plans
    other = plan_of_house(name="other")
    revision = await plans.compile(other, actor=OWNER)
    await plans.activate(revision.number, actor=OWNER, name="other")
    await use(agent.services, TOOL, agent.services.clock(), plan="other")
    async with agent.services.database.connection() as connection:
        await connection.execute("alter table recuerdo.plan_revisions disable trigger immutable")
        await connection.execute(
            "update recuerdo.plan_revisions set signature = repeat('x', 64)::bytea where name = 'other'"
        )
    await approve_minor(agent.services, 15)
    [proposal] = await _rule_suggestions(agent)
    assert proposal.plan == "trading"


async def test_a_34_boundary_of_ninety_days(agent: Agent, clock: SettableClock) -> None:
    await use(agent.services, IDLE, clock() - timedelta(days=90) + timedelta(seconds=1))
    assert await sweep(agent) == []
    clock.forward(seconds=1)
    assert len(await sweep(agent)) == 1


async def test_a_34_tool_that_was_never_used_is_named_once_it_is_old(
    agent: Agent, clock: SettableClock
) -> None:
    clock.forward(days=89)
    assert await sweep(agent) == []
    clock.forward(days=2)
    named = {one.subject for one in await sweep(agent)}
    assert {IDLE, "get_rates"} <= named
    assert await sweep(agent) == []


async def test_a_34_tool_of_a_younger_revision_is_left_alone(agent: Agent, clock: SettableClock) -> None:
    plans = agent.governance.plans
    clock.forward(days=1)
    without = await plans.compile(plan_of_house(deactivated_tools=("get_rates",)), actor=OWNER)
    await plans.activate(without.number, actor=OWNER)
    clock.forward(days=50)
    again = await plans.compile(plan_of_house(), actor=OWNER)
    await plans.activate(again.number, actor=OWNER)
    clock.forward(days=60)
    named = {one.subject for one in await sweep(agent)}
    assert IDLE in named and "get_rates" not in named


async def test_c_41_rejected_deactivation_does_not_come_back(agent: Agent, clock: SettableClock) -> None:
    await use(agent.services, IDLE, clock() - timedelta(days=91))
    [proposal] = await sweep(agent)
    await agent.governance.proposals.decide(proposal.id, "reject", actor=CLERK)
    await use(agent.services, IDLE, clock(), 14)
    clock.forward(days=91)
    assert IDLE not in {one.subject for one in await sweep(agent)}


async def test_or_27_or_37_deactivated_tool_leaves_the_requests_and_can_come_back(
    agent: Agent, clock: SettableClock
) -> None:
    await use(agent.services, IDLE, clock() - timedelta(days=91))
    [proposal] = await sweep(agent)
    before = await agent.send("Hola", user=GUEST)
    assert IDLE in _tools(before) and proposal.change["tool"] == IDLE
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    plans = agent.governance.plans
    revision = await plans.compile(plan_of_house(), actor=CLERK)
    assert IDLE in _tools(await agent.send("Hola", user=GUEST))
    await plans.activate(revision.number, actor=CLERK)
    after = await agent.send("Hola", user=GUEST)
    assert IDLE not in _tools(after)
    assert after.record.estimate["overhead"] < before.record.estimate["overhead"]
    back = await plans.compile(plan_of_house(), actor=CLERK, without=[IDLE])
    await plans.activate(back.number, actor=CLERK)
    assert IDLE in _tools(await agent.send("Hola", user=GUEST))


async def test_or_23_worker_runs_four_sweeps_in_a_day(agent: Agent, clock: SettableClock) -> None:
    worker = _worker(agent)
    start = clock()
    for hour in range(25):
        await worker.run_due(start + timedelta(hours=hour))
    done = [one for one in await agent.governance.proposals.sweeps(actor=CLERK) if one.status == "done"]
    assert [one.due_at - start for one in done] == [timedelta(hours=hour) for hour in (24, 18, 12, 6)]


async def test_or_23_two_workers_at_one_tick_propose_once(agent: Agent, clock: SettableClock) -> None:
    await approve_minor(agent.services, 15)
    workers = [_worker(agent) for _ in range(2)]
    for hours in (0, 6):
        now = clock() + timedelta(hours=hours)
        await asyncio.gather(*(worker.run_due(now) for worker in workers))
    done = [one for one in await agent.governance.proposals.sweeps(actor=CLERK) if one.status == "done"]
    assert [one.proposals for one in done] == [1]
    assert len(await agent.governance.proposals.list(actor=CLERK)) == 1


async def test_or_23_hub_serves_every_tenant_but_the_spared(agent: Agent, clock: SettableClock) -> None:
    services = agent.services
    for tenant in ("t2", "t3"):
        await appoint(services, tenant)
        await approve_minor(services, 15, tenant=tenant)
    hub = LearningHub(services)
    await hub.run_due(clock(), spared=["t3"])
    assert await hub.run_due(clock() + timedelta(hours=6), spared=["t3"]) >= 1
    ran = [[one.status for one in await Sweeps(services.database, t).list()] for t in ("t2", "t3")]
    assert ran == [["due", "done"], []]


async def test_c_33_expired_evidence_is_not_learnt_from_before_it_is_swept(
    agent: Agent, clock: SettableClock
) -> None:
    await approve_minor(agent.services, 15)
    async with agent.services.database.operator() as connection:
        # Kept for a shorter time than the period looks back.
        await connection.execute(
            "insert into recuerdo.evidence select tenant, gen_random_uuid(), kind, at, turn_id, conversation,"
            " assistant, user_id, plan, revision, tool, data, %s from recuerdo.evidence",
            (clock() + timedelta(minutes=30),),
        )
        await connection.execute(
            "delete from recuerdo.evidence where expires_at > %s", (clock() + timedelta(days=1),)
        )
    clock.forward(minutes=31)
    assert await sweep(agent) == []


async def test_sweep_fails_for_one_tenant_only(
    agent: Agent, clock: SettableClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = LearningHub(agent.services)
    await hub.run_due(clock(), tenant=TENANT)

    class Broken:
        async def ainvoke(self, state: Any) -> Any:
            raise RuntimeError("secret words")

    monkeypatch.setattr(hub, "_graph", Broken())
    assert await hub.run_due(clock() + timedelta(hours=6), tenant=TENANT) == 1
    newest, failed = await Sweeps(agent.services.database, TENANT).list(limit=2)
    assert (failed.status, failed.error, newest.status) == ("failed", "RuntimeError", "due")
    assert "secret words" not in caplog.text


async def test_sweep_at_once_is_refused_while_another_runs(agent: Agent, clock: SettableClock) -> None:
    sweeps = Sweeps(agent.services.database, TENANT)
    await sweeps.prepare(clock())
    assert await sweeps.claim(clock(), early=True)
    with pytest.raises(BusyError):
        await sweep(agent)


async def test_or_20_sweep_during_an_activation_changes_nothing_of_it(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    plans = agent.governance.plans
    revision = await plans.compile(plan_of_house(), actor=OWNER)
    found, active = await asyncio.gather(sweep(agent), plans.activate(revision.number, actor=OWNER))
    assert len(found) == 1 and active.plan.auto_approve_rules == ()
    assert (await plans.show(actor=CLERK)).revision.sha256 == revision.sha256


async def test_or_2_hub_lists_evidence_proposals_and_decisions(agent: Agent) -> None:
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    evidence = await agent.governance.evidence.list(actor=CLERK)
    assert {one.kind for one in evidence} == {"approval_requested", "approval_decided"}
    [listed] = await agent.governance.proposals.list(actor=CLERK)
    assert (listed.decided_by, listed.status) == (CLERK, "approved")


async def test_learning_graph_has_its_three_steps_drawn(agent: Agent) -> None:
    async def provide() -> Services:
        return agent.services

    drawn = build_learning_graph(provide).get_graph()
    assert [(edge.source, edge.target) for edge in drawn.edges] == [
        ("__start__", "collect"),
        ("collect", "distil"),
        ("distil", "propose"),
        ("propose", "__end__"),
    ]


async def test_learning_graph_run_twice_on_the_same_findings_writes_once(agent: Agent) -> None:
    from recuerdo.nodes.learning import collect, distil, propose
    from recuerdo.state.learning import LearningState

    await approve_minor(agent.services, 15)
    state = LearningState(tenant=TENANT)
    state = {**state, **await collect(state, agent.services)}
    state = {**state, **await distil(state, agent.services)}
    made = await asyncio.gather(*(propose(state, agent.services) for _ in range(3)))
    assert sorted(len(one["proposals"]) for one in made) == [0, 0, 1]


async def test_draft_learns_too(house: House) -> None:
    plan = plan_of_house(name="house")
    async with house.open(plan=plan, tools=tools(), model=ScriptedModel(replies=["Hola."])) as agent:
        await appoint(agent.services)
        for number in range(15):
            await decide(agent.services, minor(number), run=run_of("house"))
        [proposal] = await sweep(agent)
    assert (proposal.plan, proposal.revision) == ("house", None)


async def test_unknown_proposal_is_an_error_of_one_sentence(agent: Agent) -> None:
    for key in (uuid4(), "x", ""):
        with pytest.raises(InputError):
            await agent.governance.proposals.show(key, actor=CLERK)
    with pytest.raises(InputError):
        await agent.governance.proposals.decide(uuid4(), "approve", actor=CLERK)


def _worker(agent: Agent) -> Worker:
    services = agent.services
    jobs = [learning_job(services, tenant=TENANT)]
    return Worker(services.database, services.index, services.embedder, services.clock, jobs=jobs)


async def _rule_suggestions(agent: Agent) -> list[Any]:
    return [one for one in await sweep(agent) if one.kind == "rule_suggestion"]


async def _approved_rule(agent: Agent) -> str:
    """The id of a proposal of a rule that a person has approved."""
    await approve_minor(agent.services, 15)
    [proposal] = await sweep(agent)
    await agent.governance.proposals.decide(proposal.id, "approve", actor=CLERK)
    return str(proposal.id)


async def _rules(agent: Agent) -> Any:
    plan: Plan = (await agent.services.under(TENANT)).plan
    return plan.auto_approve_rules


def _tools(turn: Any) -> set[str]:
    return {tool["function"]["name"] for tool in turn.request["tools"]}
