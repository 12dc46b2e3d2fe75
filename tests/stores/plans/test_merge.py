"""Approved proposals in a draft: once, in every later revision (OR-21, OR-29, IM-48)."""

import pytest

from recuerdo.state.amendment import ApprovedProposal, EvalCaseAdded, RuleAdded, ToolDeactivated
from recuerdo.state.errors import InputError
from recuerdo.state.plan import AutoApproveRule, Condition, EvalCase, Expectation, Plan
from recuerdo.stores.plans.merge import Carried, Changes, merge, without_carried


def rule(name: str = "discounts", limit: int = 10) -> AutoApproveRule:
    return AutoApproveRule(
        id=name, tool="apply_discount", when=(Condition(field="discount_pct", op="<=", value=limit),)
    )


RULE = ApprovedProposal(proposal="p1", change=RuleAdded(rule=rule()))
CASE = EvalCase(id="late", messages=("¿Late check-out?",), expect=Expectation(says=("11:00",)))
CASE_ADDED = ApprovedProposal(proposal="p2", change=EvalCaseAdded(case=CASE))
TOOL_OFF = ApprovedProposal(proposal="p3", change=ToolDeactivated(tool="get_quote"))


NOTHING = Carried()


def test_im_48_each_approved_proposal_is_in_once(draft: Plan) -> None:
    r8, carried = merge(draft, NOTHING, Changes([RULE, CASE_ADDED, TOOL_OFF]))
    r9, again = merge(draft, carried, Changes([RULE], [CASE_ADDED], include=["p1", "p2"]))
    assert r8 == r9 and carried == again == Carried((RULE, CASE_ADDED, TOOL_OFF))
    assert r9.auto_approve_rules == (rule(),)
    assert r9.eval_cases == (CASE,)
    assert r9.deactivated_tools == ("get_quote",)
    # The draft may hold by then what the proposals brought.
    assert merge(r9, carried, Changes())[0] == r9


def test_or_21_a_rule_without_a_proposal_is_refused(draft: Plan) -> None:
    own = draft.model_copy(update={"auto_approve_rules": (rule("mine"),)})
    with pytest.raises(InputError, match=r"mine.*proposal"):
        merge(own, NOTHING, Changes())
    widened = draft.model_copy(update={"auto_approve_rules": (rule(limit=90),)})
    with pytest.raises(InputError, match=r"discounts.*proposal"):
        merge(widened, Carried((RULE,)), Changes())


@pytest.mark.parametrize("name", ["p1", "discounts"])
def test_im_52_what_is_taken_out_is_carried_no_longer(draft: Plan, name: str) -> None:
    plan, carried = merge(draft, Carried((RULE, CASE_ADDED)), Changes(without=[name]))
    assert plan.auto_approve_rules == ()
    assert carried == Carried((CASE_ADDED,), ("p1",))


@pytest.mark.parametrize("name", ["p1", "discounts"])
def test_im_48_what_is_taken_out_before_it_was_in_stays_out(draft: Plan, name: str) -> None:
    _, first = merge(draft, NOTHING, Changes([RULE, CASE_ADDED], without=[name]))
    assert first == Carried((CASE_ADDED,), ("p1",))
    # Left out again, or not named at all: it is out; by its id alone it comes back.
    for changes in (Changes([RULE]), Changes([RULE], without=[name])):
        assert merge(draft, first, changes) == (merge(draft, first, Changes())[0], first)
    plan, again = merge(draft, first, Changes([RULE], include=["p1"]))
    assert again == Carried((CASE_ADDED, RULE)) and plan.auto_approve_rules == (rule(),)


def test_im_50_what_an_earlier_revision_had_comes_in_by_its_id_alone(draft: Plan) -> None:
    assert merge(draft, NOTHING, Changes(earlier=[RULE]))[1] == NOTHING
    assert merge(draft, NOTHING, Changes(earlier=[RULE], include=["p1"]))[1] == Carried((RULE,))


def test_im_48_the_excluded_are_sorted_and_each_once(draft: Plan) -> None:
    out = Changes([TOOL_OFF, RULE], without=["get_quote", "discounts", "p1"])
    assert merge(draft, Carried(excluded=("p2",)), out)[1] == Carried((), ("p1", "p2", "p3"))


def test_or_21_what_cannot_be_taken_in_is_refused_with_what_can(draft: Plan) -> None:
    changes = Changes([RULE], [CASE_ADDED, TOOL_OFF], include=["p9"])
    with pytest.raises(InputError, match=r"p9.*hotel.*These can: p1 \(discounts\), p2 \(late\)\.$"):
        merge(draft, Carried((TOOL_OFF,)), changes)
    with pytest.raises(InputError, match="These can: –"):
        merge(draft, NOTHING, Changes(include=["discounts"]))
    with pytest.raises(InputError, match="at once"):
        merge(draft, NOTHING, Changes([RULE], without=["discounts"], include=["p1"]))


def test_or_37_a_tool_can_be_activated_again(draft: Plan) -> None:
    off = Carried((TOOL_OFF,))
    assert merge(draft, off, Changes())[0].deactivated_tools == ("get_quote",)
    assert merge(draft, off, Changes(without=["get_quote"]))[0].deactivated_tools == ()


def test_im_48_a_name_that_is_not_carried_is_refused(draft: Plan) -> None:
    with pytest.raises(InputError, match=r"nothing.*discounts, p1"):
        merge(draft, Carried((RULE,)), Changes(without=["nothing"]))


def test_im_48_two_contents_of_one_id_are_refused(draft: Plan) -> None:
    other = ApprovedProposal(proposal="p9", change=RuleAdded(rule=rule(limit=20)))
    with pytest.raises(InputError, match="discounts"):
        merge(draft, Carried((RULE,)), Changes([other]))
    changed = CASE.model_copy(update={"messages": ("Hola",)})
    with pytest.raises(InputError, match="late"):
        merge(draft.model_copy(update={"eval_cases": (changed,)}), NOTHING, Changes([CASE_ADDED]))


def test_im_48_what_a_plan_says_by_itself_is_what_it_was_compiled_from(draft: Plan) -> None:
    own_case = CASE.model_copy(update={"id": "own"})
    own = draft.model_copy(update={"eval_cases": (own_case,), "deactivated_tools": ("get_rates",)})
    plan, carried = merge(own, NOTHING, Changes([RULE, CASE_ADDED, TOOL_OFF]))
    assert without_carried(plan, carried) == own
    assert merge(without_carried(plan, carried), carried, Changes()) == (plan, carried)
