"""Limits found in approved calls (OR-31, OR-32, A-31, A-32)."""

import json
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import pytest

from recuerdo.nodes.learning.fields import field_of
from recuerdo.nodes.learning.limits import ApprovedTypes, Limits, kinds_in, without_objections
from recuerdo.nodes.learning.wording import ask_for_deactivation, ask_for_rule
from recuerdo.state.plan import Condition

Arguments = Mapping[str, Any]


def found(
    approved: Iterable[Arguments], objected: Iterable[Arguments] = (), tool: str = "apply_discount"
) -> list[Limits]:
    types = ApprovedTypes(tool)
    types.add_all([json.dumps(arguments) for arguments in approved])
    return without_objections(types.limits(15), [json.dumps(arguments) for arguments in objected])


def discounts(count: int = 15, **also: Any) -> list[dict[str, Any]]:
    """At most 10 %, at least 5 nights."""
    return [
        {"reservation": f"R-{n}", "discount_pct": 10 - n % 4, "nights": 5 + n % 5, **also}
        for n in range(count)
    ]


def conditions(limits: Limits) -> list[str]:
    return [f"{one.field} {one.op} {one.value}" for one in limits.rule.when]


def test_or_32_rule_has_the_greatest_discount_and_one_night_less_than_the_fewest() -> None:
    [limits] = found(discounts())
    assert conditions(limits) == ["discount_pct <= 10", "nights > 4"]
    assert limits.rule.tool == "apply_discount" and limits.calls == 15


def test_or_32_question_states_the_limits_in_both_languages() -> None:
    [limits] = found(discounts())
    asked = ask_for_rule(limits)
    assert asked.es.startswith(
        "¿Quieres auto-aprobar apply_discount con descuento de hasta 10 % y más de 4 noches?"
    )
    assert asked.en.startswith(
        "Do you want to auto-approve apply_discount with discount of at most 10 % and more than 4 nights?"
    )
    assert asked.es.endswith("La regla no mira: reservation.")
    assert asked.en.endswith("The rule does not look at: reservation.")


@pytest.mark.parametrize(("count", "rules"), [(0, 0), (1, 0), (14, 0), (15, 1), (16, 1), (200, 1)])
def test_or_31_rule_needs_fifteen_approvals(count: int, rules: int) -> None:
    assert len(found(discounts(count))) == rules


@pytest.mark.parametrize(
    "objected",
    [
        {"discount_pct": 10, "nights": 5},
        {"discount_pct": 10.0, "nights": 5},
        {"discount_pct": 3, "nights": 5},
        {"discount_pct": 1, "nights": 40},
        {"discount_pct": 10, "nights": 5, "reservation": "R-1", "note": "more than was asked"},
    ],
)
def test_or_31_one_rejection_of_that_type_is_enough(objected: Arguments) -> None:
    assert found(discounts(40), [objected]) == []


@pytest.mark.parametrize(
    "objected",
    [
        {"discount_pct": 11, "nights": 5},
        {"discount_pct": 10.01, "nights": 5},
        {"discount_pct": 10, "nights": 4},
        {"discount_pct": 40, "nights": 1},
        {"discount_pct": "10", "nights": 5},
        {"nights": 5},
        {},
    ],
)
def test_or_31_rejection_of_another_type_shows_that_the_limits_separate(objected: Arguments) -> None:
    assert len(found(discounts(), [objected])) == 1


@pytest.mark.parametrize(
    ("arguments", "passes"),
    [
        ({"discount_pct": 10.0, "nights": 5}, True),
        ({"discount_pct": 10, "nights": 5}, True),
        ({"discount_pct": 0, "nights": 365}, True),
        ({"discount_pct": 10.0000001, "nights": 5}, False),
        ({"discount_pct": 10.0, "nights": 4}, False),
        ({"discount_pct": 11, "nights": 5}, False),
        ({"discount_pct": 10}, False),
        ({"discount_pct": True, "nights": 5}, False),
    ],
)
def test_a_32_at_most_includes_the_limit_and_more_than_does_not(arguments: Arguments, passes: bool) -> None:
    [limits] = found(discounts())
    assert limits.rule.allows("apply_discount", {"reservation": "R-99", **arguments}) is passes


@pytest.mark.parametrize(
    ("also", "passes"),
    [
        ({}, True),
        ({"to_account": None}, True),
        ({"to_account": "ES9121000418450200051332"}, False),
        ({"waive_check": True}, False),
        ({"waive_check": False}, False),
        ({"reservation": {"all": True}}, False),
        ({"reservation": ["R-1", "R-2"]}, False),
        ({"reservation": True}, False),
        ({"reservation": None}, False),
    ],
)
def test_or_33_a_rule_passes_only_the_arguments_that_people_approved(also: Arguments, passes: bool) -> None:
    [limits] = found(discounts())
    assert limits.rule.arguments == ("discount_pct", "nights", "reservation")
    assert limits.rule.allows("apply_discount", {**discounts(1)[0], **also}) is passes


def test_a_31_calls_with_an_optional_argument_are_a_type_of_their_own() -> None:
    assert found([*discounts(10), *discounts(10, waive_check=True)]) == []
    plain, waiving = found([*discounts(15), *discounts(15, waive_check=True)])
    assert "waive_check" not in (plain.rule.arguments or ())
    assert "waive_check == True" in conditions(waiving)


@pytest.mark.parametrize(
    "varying",
    [
        {"iban": "ES{n:022d}"},
        {"note": "text number {n}"},
        {"account_id": "A-{n}"},
        {"to_account": 60000000},
        {"account_id": 60000000},
        {"rooms": []},
    ],
)
def test_or_32_no_rule_looks_away_from_what_is_another_thing_each_time(varying: Arguments) -> None:
    [(name, value)] = varying.items()

    def nth(n: int) -> Any:
        return value.format(n=n) if isinstance(value, str) else [n] if isinstance(value, list) else value + n

    assert found([{**one, name: nth(n)} for n, one in enumerate(discounts(40))]) == []


def test_or_32_an_account_that_repeats_is_a_condition() -> None:
    [limits] = found(discounts(15, to_account="ES91"))
    assert "to_account == ES91" in conditions(limits)
    assert not limits.rule.allows("apply_discount", {**discounts(1)[0], "to_account": "ES92"})


def test_a_31_mixed_types_of_discount_do_not_add_up() -> None:
    assert found([*discounts(10, kind="loyalty"), *discounts(5, kind="season")]) == []


def test_a_31_each_type_has_a_rule_of_its_own() -> None:
    limits = found([*discounts(15, kind="loyalty"), *discounts(20, kind="season")])
    assert [conditions(one)[-1] for one in limits] == ["kind == loyalty", "kind == season"]
    assert len({one.rule.id for one in limits}) == len({one.subject for one in limits}) == 2


def test_a_31_rejection_of_one_type_leaves_the_other() -> None:
    approved = [*discounts(15, kind="loyalty"), *discounts(20, kind="season")]
    limits = found(approved, [{"kind": "season", "discount_pct": 5, "nights": 7}])
    assert [conditions(one)[-1] for one in limits] == ["kind == loyalty"]


def test_yes_and_no_are_types_too() -> None:
    [limits] = found(discounts(15, member=True))
    assert conditions(limits)[-1] == "member == True"
    assert not limits.rule.allows("apply_discount", {"discount_pct": 5, "nights": 9, "member": 1})


@pytest.mark.parametrize(
    "calls",
    [
        [{} for _ in range(20)],
        [{"reservation": f"R-{n}"} for n in range(20)],
        [{"reservation_id": n} for n in range(20)],
        [{"rooms": [n], "guest": None} for n in range(20)],
        [{"text": ""} for _ in range(20)],
        [{"text": " loyal "} for _ in range(20)],
        [{"card": "[***]"} for _ in range(20)],
        [{"amount": 2**60} for _ in range(20)],
        [{"kind": "x" * 500} for _ in range(20)],
    ],
)
def test_or_31_no_rule_where_nothing_can_be_a_limit(calls: list[dict[str, Any]]) -> None:
    assert found(calls) == []


def test_a_31_number_whose_name_says_nothing_keeps_to_what_was_seen_on_both_sides() -> None:
    [limits] = found([{"level": 3 + n % 2} for n in range(15)])
    assert conditions(limits) == ["level > 2", "level <= 4"]
    [fractions] = found([{"level": 2.5 + n % 2} for n in range(15)])
    assert conditions(fractions) == ["level >= 2.5", "level <= 3.5"]
    [alike] = found([{"level": 7} for _ in range(15)])
    assert conditions(alike) == ["level == 7"]


def test_or_25_or_32_a_number_below_0_passes_only_where_such_were_approved() -> None:
    [limits] = found(discounts())
    assert not limits.rule.allows(
        "apply_discount", {"reservation": "R-1", "discount_pct": -1e308, "nights": 5}
    )
    [below] = found([*discounts(), {"reservation": "R-1", "discount_pct": -5, "nights": 5}])
    assert conditions(below) == ["discount_pct > -6", "discount_pct <= 10", "nights > 4"]
    passing = {-6: False, -5: True, 0: True, 10: True, 11: False}
    for pct, passes in passing.items():
        given = {"reservation": "R-2", "discount_pct": pct, "nights": 5}
        assert below.rule.allows("apply_discount", given) is passes
    assert "-6 %" in ask_for_rule(below).es


def test_a_31_call_without_a_field_is_another_type() -> None:
    assert found([*discounts(14), {"discount_pct": 5}]) == []


def test_names_are_no_kinds_and_types_stay_few_whatever_comes() -> None:
    calls: list[Mapping[str, Any]] = [{"guest": f"guest {n}", "kind": "loyalty"} for n in range(500)]
    assert kinds_in(calls) == {"kind"}
    types = ApprovedTypes("apply_discount")
    types.add_all([json.dumps({"kind": "loyalty"}) for _ in range(20)])
    types.add_all([json.dumps({"kind": f"kind {n}"}) for n in range(3000)])
    assert len(types._types) <= 500


def test_rule_of_the_same_limits_has_the_same_id_and_a_valid_one() -> None:
    first, again = found(discounts())[0].rule, found(list(reversed(discounts())))[0].rule
    assert first == again and first.id.startswith("apply-discount-")
    [other] = found([{"discount_pct": 5} for _ in range(15)], tool="¡Ñandú!")
    assert other.rule.id.startswith("and-")


@pytest.mark.parametrize(
    ("name", "es", "unit", "limit"),
    [
        ("discount_pct", "descuento", "%", "at_most"),
        ("discountPct", "descuento", "%", "at_most"),
        ("descuento_porcentaje", "descuento", "%", "at_most"),
        ("nights", "", "noches", "at_least"),
        ("noches", "", "noches", "at_least"),
        ("refund_amount", "reembolso importe", "", "at_most"),
        ("loyalty_level", "loyalty_level", "", None),
        ("días", "", "días", None),
        ("", "", "", None),
    ],
)
def test_name_of_a_field_says_what_it_is(name: str, es: str, unit: str, limit: str | None) -> None:
    field = field_of(name)
    assert (field.noun.es, field.unit.es, field.limit) == (es, unit, limit)


def test_wording_of_a_tool_that_nobody_uses_names_the_day() -> None:
    asked = ask_for_deactivation("get_rates", date(2025, 9, 5), 120, used=True)
    assert "2025-09-05" in asked.es and "120 tokens" in asked.en


def test_condition_values_are_exact() -> None:
    [limits] = found([{"discount_pct": 10.0, "nights": 5} for _ in range(15)])
    assert limits.rule.when[0] == Condition(field="discount_pct", op="<=", value=10)
