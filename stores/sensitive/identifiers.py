"""What in a text looks like the number of something: candidates that their cues decide on."""

import re
from collections.abc import Iterator
from functools import cache

from recuerdo.stores.sensitive.checks import digits_of, is_no_date
from recuerdo.stores.sensitive.vocabulary import Candidate, words

_RUN = re.compile(r"(?<![\w.,$€£/@+-])\d(?:[ ./-]{0,1}\d|(?<=\d) - (?=\d)){2,33}(?![\w%@]|[.,:/-]\d)")
# Letters and digits that belong to one another: G12345678, C-1234567, 0012ABX93, LOMR850314AD7.
_MIXED = re.compile(
    r"(?<![\w.,$€£/@-])(?:[a-z]{1,5}-?|[b-df-hj-np-tv-xz] )?\d[a-z0-9./-]{3,24}[a-z0-9](?![\w@]|[.,]\d)"
)
_LETTER_OR_DASH = re.compile("[a-z-]")
_CODE = re.compile(r"\d(?:[ -]?\d)*")
_GROUPED = re.compile(r"\d{1,3}(?:[. ]\d{3})+")
_SHORTEST, _LONGEST_CODE, _SHORTEST_CODE, _LONGEST_LAST = 6, 8, 3, 6
_LEAST_SPOKEN = 4


def identifiers(folded_text: str) -> Iterator[Candidate]:
    """Numbers that name something, by their form.

    ``number``: six digits or more; ``grouped``: those that may be an amount too; ``mixed``: with letters; ``code``:
    four to eight digits, ``short`` three; ``last``: the end of a number; ``spoken``: digits in words, one by one.
    """
    for match in _RUN.finditer(folded_text):
        yield from _shaped(match, folded_text)
    for match in _MIXED.finditer(folded_text):
        if (
            len(digits_of(match.group())) >= len("1234")
            and _LETTER_OR_DASH.search(match.group())
            and is_no_date(match.group())
        ):
            yield Candidate(*match.span(), "mixed")
    for match in _spoken_digits().finditer(folded_text):
        yield Candidate(*match.span(), "spoken")


def _shaped(match: re.Match[str], folded_text: str) -> Iterator[Candidate]:
    text, (start, end) = match.group(), match.span()
    if not is_no_date(text) or _amount_after().match(folded_text, end):
        return
    count = len(digits_of(text))
    if count >= _SHORTEST:
        yield Candidate(start, end, "grouped" if _is_amount_like(text) else "number")
    if _SHORTEST_CODE <= count <= _LONGEST_CODE and _CODE.fullmatch(text):
        yield Candidate(start, end, "code" if count > _SHORTEST_CODE else "short")
    if _SHORTEST_CODE <= count <= _LONGEST_LAST and text.isdigit():
        yield Candidate(start, end, "last")


def _is_amount_like(text: str) -> bool:
    return _GROUPED.fullmatch(text) is not None or (text.isdigit() and text.endswith("000"))


@cache
def _amount_after() -> re.Pattern[str]:
    return re.compile(rf" ?(?:(?:de )?{words('currency_word')}|{words('multiplier')}|%)(?!\w)")


@cache
def _spoken_digits() -> re.Pattern[str]:
    digit = words("digit_word")
    return re.compile(rf"(?<!\w){digit}(?:[ ,-]{{1,3}}{digit}){{{_LEAST_SPOKEN - 1},40}}(?!\w)")
