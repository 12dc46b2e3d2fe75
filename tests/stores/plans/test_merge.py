"""Approved proposals in a draft: once, in every later revision (OR-21, OR-29, IM-48)."""

import pytest

from recuerdo.state.amendment import ApprovedProposal, EvalCaseAdded, RuleAdded, ToolDeactivated
from recuerdo.state.errors import InputError
from recuerdo.state.plan import AutoApproveRule, Condition, EvalCase, Expectation, Plan
from recuerdo.stores.plans.merge import merge


def rule(name: str = "discounts", limit: int = 10) -> AutoApproveRule:
    return AutoApproveRule(
        id=name, tool="apply_discount", when=(Condition(field="discount_pct", op="<=", value=limit),)
    )


RULE = ApprovedProposal(proposal="p1", change=RuleAdded(rule=rule()))
CASE = EvalCase(id="late", messages=("¿Late check-out?",), expect=Expectation(says=("11:00",)))
CASE_ADDED = ApprovedProposal(proposal="p2", change=EvalCaseAdded(case=CASE))
TOOL_OFF = ApprovedProposal(proposal="p3", change=ToolDeactivated(tool="get_quote"))


def test_im_48_each_approved_proposal_is_in_once(draft: Plan) -> None:
    r8, carried = merge(draft, (), [RULE, CASE_ADDED, TOOL_OFF])
    r9, again = merge(draft, carried, [RULE])
    assert r8 == r9 and carried == again == (RULE, CASE_ADDED, TOOL_OFF)
    assert r9.auto_approve_rules == (rule(),)
    assert r9.eval_cases == (CASE,)
    assert r9.deactivated_tools == ("get_quote",)
    # The draft may hold by then what the proposals brought.
    assert merge(r9, carried)[0] == r9


def test_or_21_a_rule_without_a_proposal_is_refused(draft: Plan) -> None:
    own = draft.model_copy(update={"auto_approve_rules": (rule("mine"),)})
    with pytest.raises(InputError, match=r"mine.*proposal"):
        merge(own, ())
    widened = draft.model_copy(update={"auto_approve_rules": (rule(limit=90),)})
    with pytest.raises(InputError, match=r"discounts.*proposal"):
        merge(widened, (RULE,))


@pytest.mark.parametrize("name", ["p1", "discounts"])
def test_im_52_what_is_taken_out_is_carried_no_longer(draft: Plan, name: str) -> None:
    plan, carried = merge(draft, (RULE, CASE_ADDED), without=[name])
    assert plan.auto_approve_rules == ()
    assert carried == (CASE_ADDED,)


def test_or_37_a_tool_can_be_activated_again(draft: Plan) -> None:
    assert merge(draft, (TOOL_OFF,))[0].deactivated_tools == ("get_quote",)
    assert merge(draft, (TOOL_OFF,), without=["get_quote"])[0].deactivated_tools == ()


def test_im_48_a_name_that_is_not_carried_is_refused(draft: Plan) -> None:
    with pytest.raises(InputError, match=r"nothing.*discounts, p1"):
        merge(draft, (RULE,), without=["nothing"])


def test_im_48_two_contents_of_one_id_are_refused(draft: Plan) -> None:
    other = ApprovedProposal(proposal="p9", change=RuleAdded(rule=rule(limit=20)))
    with pytest.raises(InputError, match="discounts"):
        merge(draft, (RULE,), [other])
    changed = CASE.model_copy(update={"messages": ("Hola",)})
    with pytest.raises(InputError, match="late"):
        merge(draft.model_copy(update={"eval_cases": (changed,)}), (), [CASE_ADDED])
