"""Brings approved proposals into a draft: each of them once, in every later revision, until it is taken out (IM-48).

What was taken out stays out, in every later revision, until it is taken in again by its id. An auto-approve rule comes
in no other way: one that a draft has of its own is refused (OR-21).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recuerdo.state.amendment import ApprovedProposal, EvalCaseAdded, RuleAdded, ToolDeactivated
from recuerdo.state.errors import InputError
from recuerdo.state.plan import AutoApproveRule, Identified, Plan
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)


@dataclass(frozen=True)
class Carried:
    """What a revision has of approved proposals, and the ids of those that were taken out, sorted."""

    included: tuple[ApprovedProposal, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Changes:
    """What a compilation is to take in and leave out.

    ``approved`` comes in by itself: approved, in no revision yet. ``earlier`` are those that some revision has had.
    ``without`` names what is taken out, by proposal, rule, case or tool; ``include`` gives the ids of those of both
    kinds that are taken in, also where they were taken out or rolled back.
    """

    approved: Sequence[ApprovedProposal] = ()
    earlier: Sequence[ApprovedProposal] = ()
    without: Sequence[str] = ()
    include: Sequence[str] = ()


def merge(draft: Plan, parent: Carried, changes: Changes) -> tuple[Plan, Carried]:
    """The plan with the proposals that the parent carried and those that come in, and what it now carries.

    Raises InputError for a rule that no proposal brought, for two of one id that differ, for a name in ``without``
    that is not there, and for an id in ``include`` that cannot come in.
    """
    given = _given(draft, parent, changes)
    out = {one.proposal for one in given if one.names & set(changes.without)}
    kept = tuple(one for one in given if one.proposal not in out)
    left = sorted({*parent.excluded, *out}.difference(one.proposal for one in kept))
    return _with(draft, kept), Carried(kept, tuple(left))


def without_carried(plan: Plan, carried: Carried) -> Plan:
    """What a plan says by itself: without what the proposals that it carries brought."""
    changes = [one.change for one in carried.included]
    cases = {change.case.id for change in changes if isinstance(change, EvalCaseAdded)}
    off = {change.tool for change in changes if isinstance(change, ToolDeactivated)}
    update = {
        # A rule comes in by a proposal alone.
        "auto_approve_rules": (),
        "eval_cases": tuple(case for case in plan.eval_cases if case.id not in cases),
        "deactivated_tools": tuple(tool for tool in plan.deactivated_tools if tool not in off),
    }
    return plan.model_copy(update=update)


def _given(draft: Plan, parent: Carried, changes: Changes) -> tuple[ApprovedProposal, ...]:
    """All that could be in the revision, each once: what the parent carried, what is new, what is asked for."""
    known = {one.proposal: one for one in (*changes.earlier, *changes.approved, *parent.included)}
    again = _asked_for(draft, parent, changes, known)
    new = [one for one in changes.approved if one.proposal not in parent.excluded]
    given = {one.proposal: one for one in (*parent.included, *new, *again)}
    out = [one for key, one in known.items() if key in parent.excluded]
    names = {name for one in (*given.values(), *out) for name in one.names}
    for name in changes.without:
        if name not in names:
            raise InputError(sentences("without_unknown", plan=draft.name, name=name, known=_listed(names)))
    return tuple(given.values())


def _asked_for(
    draft: Plan, parent: Carried, changes: Changes, known: dict[str, ApprovedProposal]
) -> list[ApprovedProposal]:
    carried = {one.proposal for one in parent.included}
    for key in changes.include:
        if key not in known:
            may = _listed(
                f"{one.proposal} ({one.change.name})" for one in known.values() if one.proposal not in carried
            )
            raise InputError(sentences("include_unknown", plan=draft.name, id=key, known=may))
        if known[key].names & set(changes.without):
            raise InputError(sentences("include_without", plan=draft.name, id=key))
    return [known[key] for key in changes.include]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "–"


def _with(draft: Plan, kept: Sequence[ApprovedProposal]) -> Plan:
    changes = [one.change for one in kept]
    rules = _once(draft, [change.rule for change in changes if isinstance(change, RuleAdded)])
    _refuse_own_rules(draft, rules)
    added = [change.case for change in changes if isinstance(change, EvalCaseAdded)]
    cases = _once(draft, (*draft.eval_cases, *added))
    off = [change.tool for change in changes if isinstance(change, ToolDeactivated)]
    update = {
        "auto_approve_rules": rules,
        "eval_cases": cases,
        "deactivated_tools": tuple(dict.fromkeys((*draft.deactivated_tools, *off))),
    }
    return draft.model_copy(update=update)


def _once(draft: Plan, every: Sequence[Identified]) -> tuple[Identified, ...]:
    """Each id once; two different parts of one id are an error."""
    parts = {part.id: part for part in every}
    for part in every:
        if parts[part.id] != part:
            raise InputError(sentences("amendment_differs", plan=draft.name, id=part.id))
    return tuple(parts.values())


def _refuse_own_rules(draft: Plan, rules: Sequence[AutoApproveRule]) -> None:
    for rule in draft.auto_approve_rules:
        if rule not in rules:
            raise InputError(sentences("rule_without_proposal", plan=draft.name, rule=rule.id))
