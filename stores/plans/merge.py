"""Brings approved proposals into a draft: each of them once, in every later revision, until it is taken out (IM-48).

An auto-approve rule comes in no other way: one that a draft has of its own is refused (OR-21).
"""

from collections.abc import Sequence

from recuerdo.state.amendment import ApprovedProposal, EvalCaseAdded, RuleAdded, ToolDeactivated
from recuerdo.state.errors import InputError
from recuerdo.state.plan import AutoApproveRule, Identified, Plan
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)


def merge(
    draft: Plan,
    carried: Sequence[ApprovedProposal],
    approved: Sequence[ApprovedProposal] = (),
    without: Sequence[str] = (),
) -> tuple[Plan, tuple[ApprovedProposal, ...]]:
    """The plan with the proposals that the parent carried and those approved since, and what it now carries.

    ``without`` names what is taken out again, by proposal, rule, case or tool.

    Raises InputError for a rule that no proposal brought, for two of one id that differ, and for a name in
    ``without`` that is not there.
    """
    given = tuple({one.proposal: one for one in (*carried, *approved)}.values())
    _require_known(draft, given, without)
    kept = tuple(one for one in given if not one.names & set(without))
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
    return draft.model_copy(update=update), kept


def _require_known(draft: Plan, given: Sequence[ApprovedProposal], without: Sequence[str]) -> None:
    known = {name for one in given for name in one.names}
    for name in without:
        if name not in known:
            raise InputError(
                sentences(
                    "without_unknown", plan=draft.name, name=name, known=", ".join(sorted(known)) or "–"
                )
            )


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
