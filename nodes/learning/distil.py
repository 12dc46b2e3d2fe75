"""Step 2 of a sweep: what the evidence says (OR-31 to OR-36). Pieces are read in batches and not kept."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from recuerdo.nodes.learning.collect import window_of
from recuerdo.nodes.learning.in_force import plan_in_force
from recuerdo.nodes.learning.limits import ApprovedTypes, Limits, change_id, let_pass, without_objections
from recuerdo.nodes.learning.wording import ask_for_case, ask_for_deactivation, ask_for_rule
from recuerdo.nodes.services import Services
from recuerdo.state import limits
from recuerdo.state.amendment import Amendment, EvalCaseAdded, RuleAdded, ToolDeactivated
from recuerdo.state.folding import comparable
from recuerdo.state.learning import AmbiguousTurn, ApprovedTool, Finding, IdleTool, LearningState
from recuerdo.state.plan import AutoApproveRule, EvalCase, Expectation
from recuerdo.state.sentences import Sentence
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.learning_evidence import (
    Window,
    approved_arguments,
    decided_arguments,
    decided_requests,
    objected_arguments,
)
from recuerdo.stores.postgres.proposals import ProposalKind

_DAY = timedelta(days=1)
_MONTH = timedelta(days=30)


async def distil(state: LearningState, services: Services) -> LearningState:
    """Find rules in approved calls, cases in ambiguous runs, and tools that can go."""
    window = window_of(state, services)
    findings = [await _rules(tool, window, services) for tool in state.get("approved", [])]
    return LearningState(
        findings=[
            *(finding for found in findings for finding in found),
            *_cases(state.get("ambiguous", [])),
            *(_deactivation(idle) for idle in state.get("idle", [])),
        ]
    )


async def _rules(tool: ApprovedTool, window: Window, services: Services) -> list[Finding]:
    found = await plan_in_force(services, window.tenant, tool["plan"])
    if found is None:
        return []
    rules = found.plan.auto_approve_rules
    async with services.database.tenant(window.tenant, snapshot=True) as connection:
        standing = await _limits(connection, tool, window, rules)
        effects = await _effects(connection, tool, window, standing)
    return [_rule(one, effects[one.rule.id], tool, found.number) for one in standing]


async def _limits(
    connection: Connection, tool: ApprovedTool, window: Window, rules: Sequence[AutoApproveRule]
) -> list[Limits]:
    """The limits of each type of approved call, without those that something speaks against."""
    place = (connection, window, tool["plan"], tool["tool"])
    types = ApprovedTypes(tool["tool"], rules)
    async for batch in approved_arguments(*place):
        await asyncio.to_thread(types.add_all, batch)
    found = types.limits(limits.RULE_SUGGESTION_MIN_APPROVALS)
    async for batch in objected_arguments(*place):
        found = await asyncio.to_thread(without_objections, found, batch)
    return found


async def _effects(
    connection: Connection, tool: ApprovedTool, window: Window, found: Sequence[Limits]
) -> Mapping[str, dict[str, float]]:
    """The estimate for each rule, by its id: how many of all the requests that people decided in the period would not
    have waited, those too that another proposal rests on (IM-55). ``per_month`` is what that comes to in 30 days: the
    time from the first of those decisions until now counts, a day at least.
    """
    if not found:
        return {}
    place = (connection, window, tool["plan"], tool["tool"])
    decided, passed = await decided_requests(*place), Counter[str]()
    async for batch in decided_arguments(*place):
        passed += await asyncio.to_thread(let_pass, found, batch)
    time = max(window.now - (decided.first or window.now), _DAY)
    return {
        one.rule.id: {
            "requests_decided": decided.requests,
            "would_have_passed": passed[one.rule.id],
            "share": round(passed[one.rule.id] / max(decided.requests, 1), 3),
            "per_month": round(passed[one.rule.id] * (_MONTH / time), 1),
        }
        for one in found
    }


def _rule(found: Limits, effect: dict[str, float], tool: ApprovedTool, revision: int | None) -> Finding:
    change = RuleAdded(rule=found.rule)
    wording = ask_for_rule(found)
    return _finding("rule_suggestion", tool["plan"], revision, found.subject, change, wording, effect)


def _cases(runs: Sequence[AmbiguousTurn]) -> list[Finding]:
    """The cases of these runs; those in which the same was said and decided are one."""
    found: dict[tuple[str, str], Finding] = {}
    for run in runs:
        if run["messages"]:
            case = _case(run)
            found.setdefault((case["plan"], case["subject"]), case)["ambiguous"].append(run)
    return list(found.values())


def _case(run: AmbiguousTurn) -> Finding:
    """The user's words as the case, what the person decided as what is expected."""
    refused = tuple(tool for tool in run["refused"] if tool not in run["called"])
    expect = Expectation(calls=tuple(run["called"]), calls_not=refused)
    messages = tuple(run["messages"])
    key = change_id("ambiguous", [[comparable(text) for text in messages], expect.model_dump()])
    change = EvalCaseAdded(case=EvalCase(id=key, messages=messages, expect=expect))
    finding = _finding(
        "eval_case_suggestion",
        run["plan"],
        run["revision"],
        key,
        change,
        ask_for_case(messages[-1], expect),
        {"cases_added": 1},
    )
    finding["user"], finding["ambiguous"] = run["user"], []
    return finding


def _deactivation(idle: IdleTool) -> Finding:
    """The estimate: tokens that each request has less."""
    since = datetime.fromisoformat(str(idle["last_used"] or idle["in_force_since"])).date()
    finding = _finding(
        "skill_lifecycle",
        idle["plan"],
        idle["revision"],
        idle["tool"],
        ToolDeactivated(tool=idle["tool"]),
        ask_for_deactivation(idle["tool"], since, idle["tokens"], used=idle["last_used"] is not None),
        {"tokens_less_per_request": idle["tokens"], "uses_in_period": 0},
    )
    finding["idle"] = idle
    return finding


def _finding(
    kind: ProposalKind,
    plan: str,
    revision: int | None,
    subject: str,
    change: Amendment,
    wording: Sentence,
    effect: dict[str, float],
) -> Finding:
    return Finding(
        kind=kind,
        plan=plan,
        revision=revision,
        subject=subject,
        change=change.model_dump(mode="json"),
        es=wording.es,
        en=wording.en,
        effect=effect,
        user=None,
    )
