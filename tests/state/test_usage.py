"""Usage and its cost: cached and uncached apart, exact, and silent about nothing (RF-21, OR-19, A-29)."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Price, read_plan
from recuerdo.state.usage import CallUsage, Usage, usage_of

MINI = Price(input=Decimal("0.40"), cached_input=Decimal("0.10"), output=Decimal("1.60"))
PLAN = "name: a\nlanguage: es\nrole: r\ninstructions: [i]\ndisclaimer: {es: a, en: b}\nprices:\n  m: "


def call(family: str = "gpt-4.1-mini", **tokens: int) -> CallUsage:
    counts = {"estimated": 0, "reported": 0, "cached": 0, "output": 0, **tokens}
    total = counts["reported"] + counts["output"]
    return CallUsage(**counts, family=family, total=total, measured=True)  # type: ignore[typeddict-item]


def test_rf_21_two_calls_are_summed() -> None:
    usage = usage_of([call(reported=1200, output=300), call(reported=1500, output=250)], {})
    assert (usage.input, usage.output, usage.total) == (2700, 550, 3250)


def test_or_19_cached_and_uncached_input_are_told_apart_and_so_is_their_cost() -> None:
    usage = usage_of([call(reported=1000, cached=800, output=100)], {"gpt-4.1-mini": MINI})
    assert (usage.cached, usage.uncached) == (800, 200)
    assert usage.units == Decimal("0.00032")
    assert usage.units_without_cache == Decimal("0.00056")
    assert usage.saved_share == 1 - Decimal("0.00032") / Decimal("0.00056")


def test_or_19_without_cached_tokens_nothing_is_saved() -> None:
    usage = usage_of([call(reported=1000, output=100)], {"gpt-4.1-mini": MINI})
    assert usage.units == usage.units_without_cache
    assert usage.saved_share == 0


def test_a_29_a_model_without_a_price_is_named_and_costs_nothing_known() -> None:
    usage = usage_of([call("other", reported=10), call(reported=1_000_000)], {"gpt-4.1-mini": MINI})
    assert usage.unpriced == ("other",)
    assert usage.units == Decimal("0.40")
    assert usage_of([call("other", reported=10)], {}).units is None
    assert usage_of([call("other", reported=10)], {}).saved_share is None


def test_a_29_a_price_for_a_dated_model_is_its_family_s() -> None:
    assert usage_of([call(reported=10)], {"gpt-4.1-mini-2025-04-14": MINI}).unpriced == ()


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**5)), max_size=20))
def test_a_29_costs_add_up_exactly(tokens: list[tuple[int, int, int]]) -> None:
    calls = [call(reported=new + old, cached=old, output=output) for new, old, output in tokens]
    whole = usage_of(calls, {"gpt-4.1-mini": MINI})
    parts = [usage_of([one], {"gpt-4.1-mini": MINI}) for one in calls]
    assert (whole.units or 0) == sum(part.units or 0 for part in parts)
    assert (whole.units_without_cache or 0) >= (whole.units or 0)


def test_what_is_kept_has_units_as_text_and_only_where_there_are_any() -> None:
    assert Usage(1, 2, 3, 0).as_json() == {"input": 1, "output": 2, "total": 3, "cached": 0}
    kept = Usage(1, 2, 3, 0, Decimal("5.6E-7"), Decimal("0.000001"), ("other",)).as_json()
    assert kept["units"] == "0.00000056" and kept["unpriced"] == ["other"]


def test_a_29_prices_are_read_as_they_are_written() -> None:
    plan = read_plan(PLAN + "{input: 0.1, cached_input: 0, output: '1.60'}", "test")
    assert plan.prices["m"] == Price(input=Decimal("0.1"), cached_input=Decimal(0), output=Decimal("1.60"))


@pytest.mark.parametrize("price", ["-1", ".inf", ".nan", "true", "dear", "[1]"])
def test_a_29_what_is_no_price_is_refused(price: str) -> None:
    with pytest.raises(SettingsError, match=r"prices\.m\.input: it must be a number of 0 or more"):
        read_plan(PLAN + f"{{input: {price}, cached_input: 0, output: 0}}", "test")
