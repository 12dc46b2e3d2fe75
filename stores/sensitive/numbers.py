"""Card and bank numbers without a label: runs of digits, tried at the borders of their groups."""

import re
from collections.abc import Callable, Iterator
from functools import cache

from recuerdo.stores.sensitive.checks import is_card, is_clabe, is_iban
from recuerdo.stores.sensitive.vocabulary import words

_RUN = re.compile(r"(?<!\w)\d+(?:[ .-]{1,2}\d+)*(?!\w)")
_GROUP = re.compile(r"\d+")
_LONGEST = 19
_LEAST_SPOKEN = 12
_IBAN = re.compile(
    r"(?<!\w)[A-Za-z]{2}\d{2}(?:[A-Za-z0-9]{11,30}|(?:[ -][A-Za-z0-9]{4}){2,7}(?:[ -][A-Za-z0-9]{1,4})?)(?!\w)"
)
_SHORTEST_IBAN = 15
_CHECKS: tuple[tuple[str, Callable[[str], bool]], ...] = (("clabe", is_clabe), ("card", is_card))


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
    groups = [(match.start(), match.end()) for match in _GROUP.finditer(run)]
    taken = 0
    for first in range(len(groups)):
        if first < taken:
            continue
        for last, kind in _window(run, groups, first):
            yield offset + groups[first][0], offset + groups[last][1], kind
            taken = last + 1
            break


def _window(run: str, groups: list[tuple[int, int]], first: int) -> Iterator[tuple[int, str]]:
    """The groups from ``first`` on that together make a number: index of the last one, and the kind."""
    digits = ""
    for last in range(first, len(groups)):
        start, end = groups[last]
        if len(digits) + end - start > _LONGEST:
            return
        digits += run[start:end]
        yield from ((last, kind) for kind, is_right in _CHECKS if is_right(digits))


def _iban_end(text: str) -> int:
    """Where the IBAN at the start of ``text`` ends, 0 when there is none: words may follow it."""
    places = [match.end() for match in re.finditer(r"[A-Za-z0-9](?![A-Za-z0-9])", text)]
    return next((end for end in reversed(places) if end >= _SHORTEST_IBAN and is_iban(text[:end])), 0)
