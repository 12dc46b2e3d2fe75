"""``fit`` keeps the limit, whatever the context (RF-34, RF-48, RF-56 to RF-62, C-3, C-24)."""

import copy
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recuerdo.state.blocks import Block, Rung, Tier, current, make_block, total_tokens
from recuerdo.state.fit import Budget, Fitted, fit

CHEAPEST_FIRST: list[Tier] = ["low", "medium", "high"]
PLAN = Budget(target=6000, limit=8000)


def rung(tokens: int, *, floor: bool = False) -> Rung:
    return Rung(name=f"{tokens} tokens", text="x" if tokens else "", messages=[], tokens=tokens, floor=floor)


def block(
    name: str, tier: Tier, *tokens: int, floor: int | None = None, order: int = 0, relevance: float = 0.0
) -> Block:
    """A block whose ladder has these tokens; ``floor`` is the index of the rung so marked."""
    ladder = [rung(size, floor=place == floor) for place, size in enumerate(tokens)]
    return make_block(name, tier, "turn", ladder, source="test", order=order, relevance=relevance)


@st.composite
def contexts(draw: st.DrawFn) -> list[Block]:
    made = []
    for number in range(draw(st.integers(0, 9))):
        tokens = draw(st.lists(st.integers(0, 900), min_size=1, max_size=5))
        made.append(
            block(
                f"b{number}",
                draw(st.sampled_from([*CHEAPEST_FIRST, "high", "critical"])),
                *tokens,
                *draw(st.sampled_from([(0,), ()])),
                floor=draw(st.one_of(st.none(), st.integers(0, len(tokens) - 1))),
                order=draw(st.integers(0, 2)),
                relevance=draw(st.sampled_from([0.0, 0.5, 1.0])),
            )
        )
    return made


overheads = st.integers(0, 300)
budgets = st.tuples(st.integers(1, 3000), st.integers(0, 1500)).map(lambda b: Budget(b[0], b[0] + b[1]))


def rungs_of(fitted: Fitted) -> list[int]:
    return [b["rung"] for b in fitted.blocks]


def floor_of(b: Block) -> int:
    marked = [place for place, r in enumerate(b["rungs"]) if r["floor"]]
    return marked[0] if marked and b["tier"] == "high" else len(b["rungs"]) - 1


def least(blocks: Sequence[Block], overhead: int) -> int:
    """Tokens of the request when all that may give way has given way."""
    return overhead + sum(b["rungs"][0 if b["tier"] == "critical" else -1]["tokens"] for b in blocks)


def vanishing(b: Block) -> Block:
    return {**b, "rungs": [*b["rungs"], rung(0)]}


@given(contexts(), overheads, budgets)
def test_rf_34_never_over_the_limit_unless_nothing_is_left_to_give(
    blocks: list[Block], overhead: int, budget: Budget
) -> None:
    fitted = fit(blocks, overhead, budget)
    assert fitted.tokens == total_tokens(fitted.blocks, overhead)
    assert fitted.tokens <= max(budget.limit, least(blocks, overhead))


@given(contexts(), overheads, budgets)
def test_rf_34_over_the_limit_only_when_critical_alone_is_if_all_else_may_vanish(
    blocks: list[Block], overhead: int, budget: Budget
) -> None:
    may_vanish = [b if b["tier"] == "critical" else vanishing(b) for b in blocks]
    fitted = fit(may_vanish, overhead, budget)
    critical = overhead + sum(current(b)["tokens"] for b in blocks if b["tier"] == "critical")
    assert (fitted.tokens > budget.limit) == (critical > budget.limit)


@given(contexts(), overheads, budgets)
def test_rf_56_critical_blocks_are_untouched(blocks: list[Block], overhead: int, budget: Budget) -> None:
    fitted = fit(blocks, overhead, budget)
    before = [b for b in blocks if b["tier"] == "critical"]
    assert [b for b in fitted.blocks if b["tier"] == "critical"] == before
    assert all(step["tier"] != "critical" for step in fitted.steps)


@given(contexts(), overheads, budgets)
def test_rf_62_c_24_steps_go_low_medium_high_then_floors_of_high(
    blocks: list[Block], overhead: int, budget: Budget
) -> None:
    by_name = {b["name"]: b for b in blocks}
    ranks = []
    place = dict.fromkeys(by_name, 0)
    for step in fit(blocks, overhead, budget).steps:
        b = by_name[step["block"]]
        below_floor = place[b["name"]] >= floor_of(b)
        place[b["name"]] += 1
        ranks.append((below_floor, CHEAPEST_FIRST.index(step["tier"]), b["order"], b["relevance"], b["name"]))
    assert ranks == sorted(ranks)


@given(contexts(), overheads, budgets)
def test_rf_48_c_3_stops_as_soon_as_it_fits_and_not_before(
    blocks: list[Block], overhead: int, budget: Budget
) -> None:
    fitted = fit(blocks, overhead, budget)
    place = {b["name"]: 0 for b in blocks}
    floors = {b["name"]: floor_of(b) for b in blocks}
    for step in fitted.steps:
        bound = budget.limit if place[step["block"]] >= floors[step["block"]] else budget.target
        assert step["tokens_before"] > bound
        assert step["reason"] == f"{step['tokens_before']} > {bound}"
        place[step["block"]] += 1
    yielding = [b for b in fitted.blocks if b["tier"] != "critical"]
    at_floors = all(b["rung"] >= floors[b["name"]] for b in yielding)
    at_the_end = all(b["rung"] == len(b["rungs"]) - 1 for b in yielding)
    assert fitted.tokens <= budget.target or (at_floors and fitted.tokens <= budget.limit) or at_the_end


@given(contexts(), overheads, budgets)
def test_the_record_adds_up_to_the_token(blocks: list[Block], overhead: int, budget: Budget) -> None:
    fitted = fit(blocks, overhead, budget)
    replayed = {b["name"]: b for b in copy.deepcopy(blocks)}
    tokens = total_tokens(blocks, overhead)
    for step in fitted.steps:
        b = replayed[step["block"]]
        assert (step["tokens_before"], step["from_rung"]) == (tokens, current(b)["name"])
        b["rung"] += 1
        tokens = total_tokens(replayed.values(), overhead)
        assert (step["tokens_after"], step["to_rung"]) == (tokens, current(b)["name"])
        assert (step["action"] == "removed") == (current(b)["tokens"] == 0)
    assert fitted.tokens == tokens
    assert list(replayed.values()) == fitted.blocks


@given(contexts(), overheads, budgets, st.randoms(use_true_random=False))
def test_same_input_same_output_and_nothing_of_it_changed(
    blocks: list[Block], overhead: int, budget: Budget, random: Random
) -> None:
    before = copy.deepcopy(blocks)
    first = fit(blocks, overhead, budget)
    assert blocks == before
    assert fit(blocks, overhead, budget) == first
    shuffled = list(blocks)
    random.shuffle(shuffled)
    again = fit(shuffled, overhead, budget)
    assert again.steps == first.steps
    assert sorted(again.blocks, key=lambda b: b["name"]) == sorted(first.blocks, key=lambda b: b["name"])


@given(contexts(), overheads, budgets, st.integers(0, 900), st.integers(0, 900))
def test_a_smaller_target_or_limit_never_keeps_more(
    blocks: list[Block], overhead: int, budget: Budget, less_target: int, less_limit: int
) -> None:
    target = max(budget.target - less_target, 1)
    smaller = Budget(target, max(budget.limit - less_limit, target))
    wide, narrow = fit(blocks, overhead, budget), fit(blocks, overhead, smaller)
    assert all(a <= b for a, b in zip(rungs_of(wide), rungs_of(narrow), strict=True))
    assert narrow.steps[: len(wide.steps)] == [
        {**step, "reason": narrow.steps[place]["reason"]} for place, step in enumerate(wide.steps)
    ]


@given(contexts(), overheads, budgets)
def test_fitting_twice_changes_nothing_more(blocks: list[Block], overhead: int, budget: Budget) -> None:
    once = fit(blocks, overhead, budget)
    twice = fit(once.blocks, overhead, budget)
    assert (twice.blocks, twice.steps, twice.tokens) == (once.blocks, [], once.tokens)


@pytest.mark.parametrize(("tokens", "compressed"), [(5999, False), (6000, False), (6001, True)])
def test_rf_48_compression_starts_above_6000(tokens: int, compressed: bool) -> None:
    blocks = [block("message", "critical", tokens - 1100), block("memories", "low", 100, 0)]
    fitted = fit(blocks, 1000, PLAN)
    assert bool(fitted.steps) == compressed
    assert fitted.tokens == (tokens - 100 if compressed else tokens)


def test_c_3_critical_of_7000_is_sent_without_loss() -> None:
    fitted = fit([block("message", "critical", 6500)], 500, PLAN)
    assert (fitted.tokens, fitted.steps) == (7000, [])


def test_rf_34_critical_of_8001_stays_over_the_limit_and_whole() -> None:
    fitted = fit([block("message", "critical", 7501), block("user", "high", 90, 40, 0, floor=1)], 500, PLAN)
    assert fitted.tokens == 8001
    assert current(fitted.blocks[0])["tokens"] == 7501


def test_c_3_floors_of_high_may_stand_between_6000_and_8000() -> None:
    blocks = [
        block("message", "critical", 5900),
        block("preferences", "high", 600, 150, 0, floor=1, order=10),
        block("history", "high", 4000, 1000, 100, 0, floor=2, order=40),
        block("education", "medium", 300, 50, 0, floor=1),
    ]
    fitted = fit(blocks, 0, PLAN)
    assert fitted.tokens == 6150
    assert [current(b)["tokens"] for b in fitted.blocks] == [5900, 150, 100, 0]


def test_c_3_beyond_8000_the_floors_go_in_cutting_order_history_last() -> None:
    def names_gone(critical: int) -> list[str]:
        blocks = [
            block("message", "critical", critical),
            block("history", "high", 900, 100, 0, floor=1, order=40),
            block("market", "high", 700, 100, 0, floor=1, order=30),
            block("preferences", "high", 300, 100, 0, floor=1, order=20),
            block("events", "high", 500, 100, 0, floor=1, order=10),
        ]
        return [step["block"] for step in fit(blocks, 0, PLAN).steps if step["action"] == "removed"]

    assert names_gone(7600) == []
    assert names_gone(7601) == ["events"]
    assert names_gone(7701) == ["events", "preferences"]
    assert names_gone(7801) == ["events", "preferences", "market"]
    assert names_gone(8000) == ["events", "preferences", "market", "history"]


def test_rf_62_100_tokens_over_change_only_low() -> None:
    blocks = [
        block("history", "high", 4000, 1500, 0, order=40),
        block("education", "medium", 500, 50, 0),
        block("memories", "low", 300, 0),
        block("message", "critical", 1300),
    ]
    fitted = fit(blocks, 0, PLAN)
    assert [(step["block"], step["action"]) for step in fitted.steps] == [("memories", "removed")]


def test_rf_62_rf_61_1000_tokens_over_go_low_medium_high() -> None:
    blocks = [
        block("history", "high", 4000, 1500, 0, order=40),
        block("education", "medium", 500, 50, 0),
        block("memories", "low", 300, 0),
        block("other_positions", "low", 100, 0),
        block("message", "critical", 2100),
    ]
    fitted = fit(blocks, 0, PLAN)
    assert [(s["tier"], s["action"]) for s in fitted.steps] == [
        ("low", "removed"),
        ("low", "removed"),
        ("medium", "compressed"),
        ("medium", "removed"),
        ("high", "compressed"),
    ]


def test_c_24_within_a_tier_the_least_relevant_goes_first() -> None:
    blocks = [
        block("relevant", "low", 500, 0, relevance=0.9),
        block("idle", "low", 500, 0, relevance=0.1),
        block("message", "critical", 5200),
    ]
    assert [step["block"] for step in fit(blocks, 0, PLAN).steps] == ["idle"]
