"""Four eyes: a call that the plan marks stops the turn until a second person has decided (OR-33, IM-39, IM-49).

What counts is what stands in the database: neither a memory, nor what a user says, nor the state of a thread is an
approval. A stopped node runs again from its top, so nothing here happens twice: requests are keyed by their calls.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langgraph.types import interrupt

from recuerdo.nodes.call import Call
from recuerdo.nodes.receive.message import LEASE
from recuerdo.nodes.run_tools.requested import Requested
from recuerdo.nodes.turn_log import run_of
from recuerdo.state.errors import RecuerdoError
from recuerdo.state.turn import ApprovalNote, Work
from recuerdo.stores.plans.autonomy import Autonomy, read_autonomy
from recuerdo.stores.postgres.approvals import Approval, Approvals, NewApproval
from recuerdo.stores.postgres.evidence import EvidenceLog, NewEvidence

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


async def pass_four_eyes(calls: Sequence[Requested], work: Work, call: Call) -> Passed:
    """Ask for what has to be asked for, wait until it is decided, and say what may not run.

    Waiting is a LangGraph interrupt. Its answer, where an app or Studio gives one, is ``{"approval": id, "decision":
    "approve" | "reject", "actor": name, "reason": text}``; an agent decides before it goes on.
    """
    services, caller = call.services, call.caller
    autonomy = await read_autonomy(services.database, caller.tenant, services.plan)
    runnable = [one for one in calls if one.can_run]
    if caller.mode == "preview":
        return Passed({one.id: _IN_PREVIEW.format(name=one.name) for one in _waiting(runnable, autonomy)})
    if any(one.asks_for_help for one in runnable):
        await _flag(work, call)
    approvals = approvals_of(call)
    ids = [one.id for one in calls]
    known = await approvals.of(ids)
    await _request([one for one in _waiting(runnable, autonomy) if one.id not in known], autonomy, work, call)
    decided = await _decided(approvals, ids, call)
    waited = any(approval.rule is None for approval in decided.values())
    if waited:
        await call.turns.take_up(UUID(work["turn"]["id"]), caller.user, LEASE, caller.ticket)
    return Passed(
        {one.id: why for one in calls if (why := await _refusal(one, decided.get(one.id), call))},
        [_note(approval) for approval in decided.values()],
        waited,
    )


def approvals_of(call: Call) -> Approvals:
    """The requests of the caller's tenant."""
    services = call.services
    return Approvals(services.database, call.caller.tenant, services.keys)


def _waiting(calls: Iterable[Requested], autonomy: Autonomy) -> list[Requested]:
    return [one for one in calls if autonomy.waits(one.name)]


async def _request(calls: Sequence[Requested], autonomy: Autonomy, work: Work, call: Call) -> None:
    """Write the requests; those that a rule lets pass are decided with that."""
    if not calls:
        return
    run, now = run_of(work, call), call.services.clock()
    rules = {one.id: autonomy.rule_for(one.name, one.arguments) for one in calls}
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


async def _decided(approvals: Approvals, ids: Sequence[UUID], call: Call) -> dict[UUID, Approval]:
    """The requests once none of them waits any more."""
    fault: RecuerdoError | None = None
    while True:
        found = await approvals.of(ids)
        pending = [approval for approval in found.values() if approval.status == "pending"]
        if not pending:
            return found
        fault = await _take(interrupt(_question(pending, fault)), pending, approvals, call)


def _question(pending: Sequence[Approval], fault: RecuerdoError | None) -> dict[str, Any]:
    """What whoever looks at the stopped thread is shown; plain data."""
    return {
        "approvals": [
            {"id": str(one.id), "tool": one.tool, "arguments": one.arguments, "requested_by": one.user}
            for one in pending
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


async def _refusal(one: Requested, approval: Approval | None, call: Call) -> str | None:
    if approval is None:
        return None
    if approval.status == "withdrawn":
        return f"{one.name} was not run: the user took the request back."
    if not approval.passes:
        reason = f" Reason: {approval.reason}" if approval.reason else ""
        return f"{one.name} was not run: a second person rejected it. Do not ask for the same again.{reason}"
    if approval.rule is None and not await _still_there(one, call):
        return f"{one.name} was not run: it was deactivated while the request waited."
    return None


async def _still_there(one: Requested, call: Call) -> bool:
    """A turn keeps its revision while it waits; what has been taken away since does not run all the same."""
    now = await call.services.under(call.caller.tenant, None)
    return one.name in call.services.toolbox.tools and one.name in now.toolbox.tools


def _note(approval: Approval) -> ApprovalNote:
    return ApprovalNote(
        id=str(approval.id),
        tool=approval.tool,
        status=approval.status,
        rule=approval.rule,
        decided_by=approval.decided_by,
    )


_IN_PREVIEW = "{name} was not run: it needs a second person, and a preview asks nobody."
