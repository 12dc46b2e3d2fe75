"""Four eyes: a call that the plan marks stops the turn until a second person has decided (OR-33, IM-39, IM-49).

What counts is what stands in the database: neither a memory, nor what a user says, nor the state of a thread is an
approval. A stopped node runs again from its top, so nothing here happens twice: requests are keyed by their calls.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from langgraph.types import interrupt

from recuerdo.nodes.call import Call
from recuerdo.nodes.receive.message import LEASE
from recuerdo.nodes.run_tools.fitting import misfit
from recuerdo.nodes.run_tools.requested import Requested
from recuerdo.nodes.turn_log import run_of
from recuerdo.state.errors import RecuerdoError
from recuerdo.state.plan import AutoApproveRule
from recuerdo.state.turn import ApprovalNote, Work
from recuerdo.stores.plans.autonomy import Autonomy, read_autonomy
from recuerdo.stores.postgres.approvals import Approval, Approvals, NewApproval
from recuerdo.stores.postgres.evidence import EvidenceLog, NewEvidence
from recuerdo.stores.postgres.marks import canonical_arguments
from recuerdo.stores.postgres.tool_calls import ToolCalls

_log = logging.getLogger(__name__)

UNSURE = 0.5
"""Confidence of the intent below which a run that stops for a person counts as ambiguous (A-33)."""

_MARKET = "quotes"
"""Source of a plan that deals with the market."""


@dataclass(frozen=True)
class Passed:
    """What came of the calls that needed a second person.

    ``refused`` says by call id why one does not run. ``waited``: a person has decided, so time has passed.
    """

    refused: dict[UUID, str] = field(default_factory=dict)
    notes: list[ApprovalNote] = field(default_factory=list)
    waited: bool = False


@dataclass(frozen=True)
class _Gate:
    """What holds at this moment: the rules and stops of the turn's plan and, once time has passed, of the plan in
    force too; and the tools that there still are. Each only narrows the others.
    """

    autonomies: Sequence[Autonomy]
    tools: Collection[str]

    def waits(self, one: Requested) -> bool:
        """Whether a call needs a second person, unless a rule lets it pass."""
        return any(autonomy.waits(one.name) for autonomy in self.autonomies)

    def rule_for(self, one: Requested) -> AutoApproveRule | None:
        """The rule that lets a call pass that waits; None: wherever it waits one has to, and does not."""
        waiting = [autonomy for autonomy in self.autonomies if autonomy.waits(one.name)]
        rules = [autonomy.rule_for(one.name, one.arguments) for autonomy in waiting]
        return rules[0] if all(rules) else None


async def pass_four_eyes(calls: Sequence[Requested], work: Work, call: Call) -> Passed:
    """Ask for what has to be asked for, wait until it is decided, and say what may not run.

    Waiting is a LangGraph interrupt. Its answer, where an app or Studio gives one, is ``{"approval": id, "decision":
    "approve" | "reject", "actor": name, "reason": text}``; an agent decides before it goes on.
    """
    caller = call.caller
    runnable = [one for one in calls if one.can_run]
    if caller.mode == "preview":
        gate = await _gate(call, later=False)
        return Passed({one.id: _IN_PREVIEW.format(name=one.name) for one in runnable if gate.waits(one)})
    if any(one.asks_for_help for one in runnable):
        await _flag(work, call)
    approvals = approvals_of(call)
    ids = [one.id for one in calls]
    known = await approvals.of(ids)
    gate = await _gate(call, later=bool(known))
    new = [one for one in runnable if gate.waits(one) and one.id not in known]
    unfit = {one.id: why for one in new if one.tool and (why := misfit(one.tool, one.arguments))}
    await _request([one for one in new if one.id not in unfit], gate, work, call)
    decided = await _decided(approvals, calls, call)
    waited = any(approval.rule is None for approval in decided.values())
    if known or waited:
        await call.turns.take_up(UUID(work["turn"]["id"]), caller.user, LEASE, caller.ticket)
    refused = await _refusals(calls, decided, gate, work, call) | unfit
    return Passed(refused, [_note(approval) for approval in decided.values()], waited)


async def _gate(call: Call, *, later: bool) -> _Gate:
    """``later``: requests were made before, so time may have passed since the turn began."""
    services, tenant = call.services, call.caller.tenant
    autonomy = await read_autonomy(services.database, tenant, services.plan)
    tools = services.toolbox.tools
    if not later:
        return _Gate([autonomy], tools)
    now = await services.under(tenant, None)
    return _Gate([autonomy, replace(autonomy, plan=now.plan)], tools.keys() & now.toolbox.tools.keys())


def approvals_of(call: Call) -> Approvals:
    """The requests of the caller's tenant."""
    services = call.services
    return Approvals(services.database, call.caller.tenant, services.keys)


async def _request(calls: Sequence[Requested], gate: _Gate, work: Work, call: Call) -> None:
    """Write the requests; those that a rule lets pass are decided with that."""
    if not calls:
        return
    run, now = run_of(work, call), call.services.clock()
    rules = {one.id: gate.rule_for(one) for one in calls}
    new = [
        NewApproval(one.id, run, one.name, one.arguments, now, rule.id if rule else None)
        for one in calls
        for rule in [rules[one.id]]
    ]
    if not all(rules.values()) and _is_unclear(work, call):
        await _flag(work, call)
    await approvals_of(call).request(new)


def _is_unclear(work: Work, call: Call) -> bool:
    """What the confidence says is known of the market's intents alone: elsewhere nothing but the model's request
    for help flags a run.
    """
    return _MARKET in call.services.plan.sources and work["intent_confidence"] < UNSURE


async def _flag(work: Work, call: Call) -> None:
    """Note that the run is ambiguous (A-33): before it waits, so that it is there whoever decides, and when."""
    run = run_of(work, call)
    data = {
        "intent": work["intent"],
        "confidence": work["intent_confidence"],
        "message": work["turn"]["redacted"],
    }
    ambiguous = NewEvidence("ambiguity", call.services.clock(), run, str(run.turn), data=data)
    await EvidenceLog(call.services.database, call.caller.tenant).write(ambiguous)


async def _decided(approvals: Approvals, calls: Sequence[Requested], call: Call) -> dict[UUID, Approval]:
    """The requests once none of them waits any more."""
    fault: RecuerdoError | None = None
    while True:
        found = await approvals.of([one.id for one in calls])
        pending = [approval for approval in found.values() if approval.status == "pending"]
        if not pending:
            return found
        question = _question([one for one in calls if one.id in {each.id for each in pending}], fault, call)
        fault = await _take(interrupt(question), pending, approvals, call)


def _question(waiting: Sequence[Requested], fault: RecuerdoError | None, call: Call) -> dict[str, Any]:
    """What whoever looks at the stopped thread is shown: the calls themselves, as plain data."""
    return {
        "approvals": [
            {
                "id": str(one.id),
                "tool": one.name,
                "arguments": one.arguments,
                "requested_by": call.caller.user,
            }
            for one in waiting
        ],
        "fault": {"es": fault.sentence.es, "en": fault.sentence.en} if fault else None,
    }


async def _take(
    answer: object, pending: Sequence[Approval], approvals: Approvals, call: Call
) -> RecuerdoError | None:
    """Take a decision that came with the resume. One that names nothing which waits is none: a node that runs
    again is given its earlier answers again.
    """
    if not isinstance(answer, Mapping) or "decision" not in answer:
        return None
    asked = next((one for one in pending if str(one.id) == str(answer.get("approval"))), None)
    if asked is None:
        return None
    reason = answer.get("reason")
    try:
        await approvals.decide(
            asked.id,
            answer["decision"],
            actor=str(answer.get("actor") or ""),
            at=call.services.clock(),
            reason=str(reason) if reason else None,
        )
    except RecuerdoError as error:
        return error
    return None


async def _refusals(
    calls: Sequence[Requested], decided: Mapping[UUID, Approval], gate: _Gate, work: Work, call: Call
) -> dict[UUID, str]:
    """Why calls do not run: as was decided, or because what let them run does not hold any more.

    What ran before, in a turn that is replayed, is answered from the ledger.
    """
    altered = await _altered(calls, decided, call)
    refused: dict[UUID, str] = {}
    for one in calls:
        approval = decided.get(one.id)
        why = _decided_against(one, approval, altered) or _no_longer(one, approval, gate)
        if why is not None:
            refused[one.id] = why
    if refused:
        ledger = ToolCalls(call.services.database, call.caller.tenant)
        for entered in await ledger.of_turn(UUID(work["turn"]["id"])):
            if entered.is_final:
                refused.pop(entered.id, None)
    return refused


async def _altered(calls: Sequence[Requested], decided: Mapping[UUID, Approval], call: Call) -> set[UUID]:
    """Calls that were let pass as something else than what they are: their request was changed in the database."""
    passing = [one for one in calls if one.id in decided and decided[one.id].passes]
    if not passing:
        return set()
    others = {one.id for one in passing if not _is_of(decided[one.id], one, call)}
    return others | await approvals_of(call).altered([decided[one.id] for one in passing])


def _is_of(approval: Approval, one: Requested, call: Call) -> bool:
    """Whether a request is of this call: its id alone does not say so."""
    asked = (one.name, canonical_arguments(one.arguments), call.caller.user)
    return (approval.tool, canonical_arguments(approval.arguments), approval.user) == asked


def _decided_against(one: Requested, approval: Approval | None, altered: Collection[UUID]) -> str | None:
    if approval is None:
        return None
    if approval.status == "withdrawn":
        return f"{one.name} was not run: the user took the request back."
    if not approval.passes:
        reason = f" Reason: {approval.reason}" if approval.reason else ""
        return f"{one.name} was not run: a second person rejected it. Do not ask for the same again.{reason}"
    if one.id in altered:
        _log.error("the request %s was changed in the database: its call does not run", one.id)
        return f"{one.name} was not run: what was approved is not what was asked for. Tell the user so."
    return None


def _no_longer(one: Requested, approval: Approval | None, gate: _Gate) -> str | None:
    """A turn keeps its revision while it waits; what has been taken away since does not run all the same."""
    if approval is None and one.tool is None:
        # The model is told that there is no such tool.
        return None
    if one.name not in gate.tools:
        return f"{one.name} was not run: it was deactivated while the turn waited."
    by_rule = approval is not None and approval.rule is not None
    if by_rule and gate.waits(one) and gate.rule_for(one) is None:
        return (
            f"{one.name} was not run: a rule let it pass that does not hold any more. If it is still wanted, call it"
            " again: then a second person decides."
        )
    return None


def _note(approval: Approval) -> ApprovalNote:
    return ApprovalNote(
        id=str(approval.id),
        tool=approval.tool,
        status=approval.status,
        rule=approval.rule,
        decided_by=approval.decided_by,
    )


_IN_PREVIEW = "{name} was not run: it needs a second person, and a preview asks nobody."
