"""Card and bank numbers without a label: runs of digits, tried at the borders of their groups."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate

from recuerdo.stores.sensitive.checked_row import CLABE_SIZE, CheckedRow
from recuerdo.stores.sensitive.checks import is_iban
from recuerdo.stores.sensitive.vocabulary import words

_RUN = re.compile(r"(?<!\w)\d+(?:[ .-]{1,2}\d+)*(?!\w)")
_GROUP = re.compile(r"\d+")
_CARD_SIZES = range(13, 20)
_CARD_STARTS = "23456"
_CLABE_SIZES = (CLABE_SIZE,)
_LEAST_SPOKEN = 12
_IBAN = re.compile(
    r"(?<!\w)[A-Za-z]{2}\d{2}(?:[A-Za-z0-9]{11,30}|(?:[ -][A-Za-z0-9]{4}){2,7}(?:[ -][A-Za-z0-9]{1,4})?)(?!\w)"
)
_SHORTEST_IBAN = 15


def card_and_bank_numbers(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and kind of each card number (Luhn), CLABE and IBAN (checksums) in a plain text."""
    for run in _RUN.finditer(text):
        yield from _in_run(run.group(), run.start())
    for match in _IBAN.finditer(text):
        end = _iban_end(match.group())
        if end:
            yield match.start(), match.start() + end, "iban"


def spoken_numbers(folded_text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each number of a card or an account that is said digit by digit."""
    for match in _spoken().finditer(folded_text):
        yield match.span()


@cache
def _spoken() -> re.Pattern[str]:
    digit = words("digit_word")
    return re.compile(rf"(?<!\w){digit}(?:[ ,-]{{1,3}}{digit}){{{_LEAST_SPOKEN - 1},40}}(?!\w)")


def _in_run(run: str, offset: int) -> Iterator[tuple[int, int, str]]:
    found = list(_numbers_of(_GROUP.findall(run)))
    if found:
        places = [match.span() for match in _GROUP.finditer(run)]
        yield from (
            (offset + places[first][0], offset + places[last][1], kind) for first, last, kind in found
        )


def _numbers_of(groups: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """First group, last group and kind of each number in a row of groups of digits."""
    digits = "".join(groups)
    if len(digits) < _CARD_SIZES.start:
        return
    row = CheckedRow(digits)
    borders = list(accumulate(map(len, groups), initial=0))
    groups_before = {border: count for count, border in enumerate(borders)}
    taken = 0
    for first, start in enumerate(borders[:-1]):
        if first < taken:
            continue
        number = _number_from(row, start, groups_before)
        if number:
            taken, kind = number
            yield first, taken - 1, kind


def _number_from(row: CheckedRow, start: int, groups_before: Mapping[int, int]) -> tuple[int, str] | None:
    """The shortest number that begins with the digit at ``start``: how many groups stand before its end; its kind."""
    may_be_card = row.digits[start] in _CARD_STARTS
    for size in _CARD_SIZES if may_be_card else _CLABE_SIZES:
        end = groups_before.get(start + size)
        if end is None:
            continue
        if size == CLABE_SIZE and row.is_clabe(start):
            return end, "clabe"
        if may_be_card and row.passes_luhn(start, start + size):
            return end, "card"
    return None


def _iban_end(text: str) -> int:
    """Where the IBAN at the start of ``text`` ends, 0 when there is none: words may follow it."""
    places = [match.end() for match in re.finditer(r"[A-Za-z0-9](?![A-Za-z0-9])", text)]
    return next((end for end in reversed(places) if end >= _SHORTEST_IBAN and is_iban(text[:end])), 0)
