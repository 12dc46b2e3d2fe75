"""Auto-approve rules and eval cases of a plan (OR-31 to OR-35)."""

from decimal import Decimal
from typing import Any

import pytest

from recuerdo.state import limits
from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import AutoApproveRule, Condition, Plan, read_plan

RULE = AutoApproveRule(
    id="discounts",
    tool="apply_discount",
    when=(
        Condition(field="discount_pct", op="<=", value=10),
        Condition(field="nights", op=">", value=4),
    ),
)
PLAN = """
name: hotel
language: es
role: Recepción.
instructions: [Sé breve.]
disclaimer: {es: x, en: x}
"""


@pytest.mark.parametrize(
    ("arguments", "passes"),
    [
        ({"discount_pct": 10, "nights": 5}, True),
        ({"discount_pct": 10.0, "nights": 5}, True),
        ({"discount_pct": Decimal("10.0"), "nights": 5}, True),
        ({"discount_pct": 0, "nights": 5, "room": None}, True),
        ({"discount_pct": 0, "nights": 5, "room": "101"}, False),
        ({"discount_pct": 0, "nights": 5, "refund": 100_000}, False),
        ({"discount_pct": 10.01, "nights": 5}, False),
        ({"discount_pct": 11, "nights": 5}, False),
        ({"discount_pct": 10, "nights": 4}, False),
        ({"discount_pct": 10}, False),
        ({"discount_pct": "10", "nights": 5}, False),
        ({"discount_pct": True, "nights": 5}, False),
        ({"discount_pct": None, "nights": 5}, False),
        ({"discount_pct": float("nan"), "nights": 5}, False),
        ({"discount_pct": -0.01, "nights": 5}, False),
        ({"discount_pct": -1e308, "nights": 5}, False),
        ({}, False),
    ],
)
def test_or_33_a_rule_lets_only_calls_within_its_limits_pass(arguments: dict[str, Any], passes: bool) -> None:
    assert RULE.allows("apply_discount", arguments) is passes
    assert not RULE.allows("create_reservation", arguments)


@pytest.mark.parametrize(
    ("when", "value", "passes"),
    [
        ([("<=", 10)], -1, False),
        ([("<", 0.5)], -1, False),
        ([("<=", 10), ("!=", 5)], -1, False),
        ([("<=", 0)], 0, True),
        ([("<=", -5)], -7, True),
        ([("<=", 10), (">", -6)], -5, True),
        ([(">=", -6)], -5, True),
        ([("==", -5)], -5, True),
        ([("!=", 5)], -5, True),
    ],
)
def test_or_33_what_is_only_limited_from_above_is_no_less_than_0(
    when: list[tuple[Any, float]], value: float, passes: bool
) -> None:
    conditions = tuple(Condition(field="amount", op=op, value=limit) for op, limit in when)
    rule = AutoApproveRule(id="amounts", tool="pay", when=conditions)
    assert rule.allows("pay", {"amount": value}) is passes


def test_or_33_what_no_condition_looks_at_passes_only_where_the_rule_names_it() -> None:
    named = RULE.model_copy(update={"arguments": ("discount_pct", "nights", "reservation")})
    asked = {"discount_pct": 10, "nights": 5, "reservation": "R-1"}
    assert named.allows("apply_discount", asked) and not RULE.allows("apply_discount", asked)
    assert not named.allows("apply_discount", {"discount_pct": 10, "nights": 5})
    for more in ({"note": "x"}, {"reservation": ["R-1", "R-2"]}):
        assert not named.allows("apply_discount", {**asked, **more})


@pytest.mark.parametrize(
    ("op", "value", "given", "holds"),
    [
        ("==", "low", "low", True),
        ("==", "low", "LOW", False),
        ("!=", "low", "high", True),
        ("!=", "low", 3, False),
        (">", "a", "b", False),
        ("==", True, True, True),
        ("==", True, 1, False),
        ("!=", 3, 4, True),
        ("<", 3, 3, False),
        (">=", 3, 3, True),
    ],
)
def test_or_33_a_condition_compares_like_with_like(op: Any, value: Any, given: Any, holds: bool) -> None:
    assert Condition(field="x", op=op, value=value).holds({"x": given}) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("auto_approve_rules: [{id: a, tool: t, when: []}]", "at least 1"),
        ("auto_approve_rules: [{id: A b, tool: t, when: [{field: x, op: <, value: 1}]}]", "pattern"),
        ("auto_approve_rules: [{id: a, tool: t, when: [{field: x, op: in, value: 1}]}]", "op"),
        (
            "auto_approve_rules: [{id: a, tool: t, when: [{field: x, op: <, value: 1}]},"
            " {id: a, tool: u, when: [{field: x, op: <, value: 1}]}]",
            "there twice",
        ),
        ("eval_cases: [{id: a, messages: [hola], expect: {}}]", "expects nothing"),
        ("eval_cases: [{id: a, messages: [], expect: {says: [x]}}]", "at least 1"),
    ],
)
def test_or_26_what_is_no_rule_or_case_is_named(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_plan(f"{PLAN}{text}\n", "hotel")


def test_or_35_a_plan_holds_rules_cases_and_four_eyes_tools() -> None:
    plan = read_plan(
        PLAN + "tools: [get_quote]\nfour_eyes: [get_quote]\ndeactivated_tools: [read_tool_result]\n"
        "auto_approve_rules: [{id: a, tool: get_quote, when: [{field: symbol, op: ==, value: AAPL}]}]\n"
        "eval_cases: [{id: c, messages: [hola], expect: {says: [Buenos días], calls_not: [get_quote]}}]\n",
        "hotel",
    )
    assert plan.auto_approve_rules[0].allows("get_quote", {"symbol": "AAPL"})
    assert plan.eval_cases[0].expect.says == ("Buenos días",)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_c_31_messages_before_a_summary_and_approvals_before_a_rule_are_two_settings() -> None:
    plan = read_plan(PLAN + "memory: {summary: {after_messages: 3}}\n", "hotel")
    assert plan.memory.summary.after_messages == 3
    assert read_plan(PLAN, "hotel").memory.summary.after_messages == limits.SUMMARY_AFTER_MESSAGES == 15
    assert limits.RULE_SUGGESTION_MIN_APPROVALS == 15
