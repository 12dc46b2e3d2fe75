"""Card and bank numbers in rows of digits: what is found is what trying every part one by one would find."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from stdnum import luhn

from recuerdo.stores.sensitive.amounts import _PRICE_BEFORE, _stands_as_a_price
from recuerdo.stores.sensitive.checked_row import CLABE_SIZE, CheckedRow
from recuerdo.stores.sensitive.numbers import card_and_bank_numbers

CARD, CARD_OF_19, CLABE = "4532015112830366", "6304000000000000000", "032180000118359719"
Group = tuple[int, int]


def passes_as_clabe(digits: str) -> bool:
    """The rule as the bank states it: each digit times 3, 7 or 1, its last figure, added up, taken from ten."""
    total = sum(int(digit) * (3, 7, 1)[place % 3] % 10 for place, digit in enumerate(digits[:-1]))
    return (10 - total % 10) % 10 == int(digits[-1])


def number_in(digits: str) -> str | None:
    if len(digits) == CLABE_SIZE and passes_as_clabe(digits):
        return "clabe"
    return "card" if 13 <= len(digits) <= 19 and digits[0] in "23456" and luhn.is_valid(digits) else None


def every_part_tried(groups: list[str], separator: str) -> Iterator[tuple[int, int, str]]:
    """From each group on the shortest number that ends with a group; the next begins after it."""
    places = [sum(len(group) + len(separator) for group in groups[:index]) for index in range(len(groups))]
    first = 0
    while first < len(groups):
        for last in range(first, len(groups)):
            kind = number_in("".join(groups[first : last + 1]))
            if kind:
                yield places[first], places[last] + len(groups[last]), kind
                first = last
                break
        first += 1


digits = st.text("0123456789", min_size=1, max_size=24)
numbers = st.sampled_from([CARD, CARD_OF_19, CLABE])
pieces = st.one_of(digits, st.text("0123456789", min_size=1, max_size=4), numbers)


@st.composite
def cut_numbers(draw: st.DrawFn) -> list[str]:
    """A number that is right, cut into groups."""
    number, size = draw(numbers), draw(st.integers(1, 6))
    return [number[start : start + size] for start in range(0, len(number), size)]


rows = st.lists(st.one_of(pieces.map(lambda one: [one]), cut_numbers()), min_size=1, max_size=8)


@given(rows, st.sampled_from([" ", "-", ".", "  ", ". "]))
@example([["1"] * 40], " ")
@example([["4"] * 40], " ")
@example([[CARD, CLABE, CARD]], " ")
@example([[CARD[:4], CARD[4:8], CARD[8:12], CARD[12:] + CLABE]], "-")
def test_rf_33_what_is_found_in_a_row_is_what_trying_every_part_finds(
    row: list[list[str]], separator: str
) -> None:
    groups = [group for part in row for group in part]
    text = separator.join(groups)
    assert list(card_and_bank_numbers(text)) == list(every_part_tried(groups, separator))


@given(st.text("0123456789", min_size=1, max_size=40), st.data())
def test_rf_33_any_part_of_a_row_is_checked_as_by_itself(row: str, data: st.DataObject) -> None:
    checked = CheckedRow(row)
    start = data.draw(st.integers(0, len(row) - 1))
    end = data.draw(st.integers(start + 1, len(row)))
    assert checked.passes_luhn(start, end) == luhn.is_valid(row[start:end])
    for first in range(len(row) - CLABE_SIZE + 1):
        assert checked.is_clabe(first) == passes_as_clabe(row[first : first + CLABE_SIZE])


@pytest.mark.parametrize(
    ("group", "most"), [("1", 1), ("4", 8), ("45", 8), ("4532", 8), ("12345678901234567890", 0)]
)
def test_rf_33_a_long_row_of_digits_takes_few_checks_for_each_group(
    group: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pasted table holds nothing up: only parts as long as a number are checked, and only what may begin one."""
    asked: list[int] = []

    def noted(self: CheckedRow, start: int, *end: int) -> bool:
        asked.append(start)
        return False

    monkeypatch.setattr(CheckedRow, "is_clabe", noted)
    monkeypatch.setattr(CheckedRow, "passes_luhn", noted)
    assert list(card_and_bank_numbers(f"{group} " * 1000)) == []
    assert len(asked) <= most * 1000


def test_a_row_too_short_for_a_number_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: CheckedRow, row: str) -> Any:
        raise AssertionError(row)

    monkeypatch.setattr(CheckedRow, "__init__", refuse)
    assert list(card_and_bank_numbers("2026-05-01 12.50, 1 2 3 y 4,500.00")) == []


@given(st.lists(st.sampled_from([*"aáx1:@ \n", "precio de", "at", "por", "un", "of", "4"]), max_size=12))
def test_rf_33_a_price_is_told_by_the_words_before_it(before: list[str]) -> None:
    text = "".join(before)
    assert _stands_as_a_price(text) == (_PRICE_BEFORE.search(text) is not None)
