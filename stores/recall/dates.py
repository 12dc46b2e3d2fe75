"""Dates that a question names, and how near to them a memory was written."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache

import numpy as np
from numpy.typing import NDArray

from recuerdo.stores.recall.analysis import MAX_QUERY_CHARACTERS, fold, table

Floats = NDArray[np.float64]

_NUMBER = r"(?:\d{1,2})(?:st|nd|rd|th|o)?"
# Beside these an ambiguous name is a month.
_BEFORE = r"(?:in|on|of|since|until|by|last|this|next|early|late|mid)\s+"
_ISO = re.compile(r"\b(\d{4})-(\d{2})(?:-(\d{2}))?\b")

# Someone tells on the day, or within the days after it.
_SAME_DAY, _TOLD_WITHIN_DAYS = 1, 7


@dataclass(frozen=True)
class NamedDate:
    """A month, with the year and the day when they are said."""

    month: int
    year: int | None = None
    day: int | None = None


def named_dates(question: str) -> list[NamedDate]:
    """The months and days that ``question`` names, in Spanish, English or as 2025-12-05."""
    text = fold(question[:MAX_QUERY_CHARACTERS])
    found = [
        NamedDate(
            _months()[match["name"]], _number(match["year"]), _number(match["before"] or match["after"])
        )
        for match in _pattern().finditer(text)
        if not _is_other_word(match)
    ]
    found += [NamedDate(int(m[2]), int(m[1]), _number(m[3])) for m in _ISO.finditer(text)]
    return [named for named in found if _exists(named)]


def nearness(named: Sequence[NamedDate], written: Sequence[datetime]) -> Floats:
    """For each memory 1 when it was written in a named month, up to 2 when near a named day; else 0."""
    days = np.array([moment.date() for moment in written], "datetime64[D]")
    months = days.astype("datetime64[M]").astype(int)
    best = np.zeros(len(written))
    for each in named:
        of_year = months % 12 + 1 == each.month
        if each.year is not None:
            of_year &= months // 12 + 1970 == each.year
        best = np.maximum(best, of_year + _day_nearness(each, days))
    return best


def _day_nearness(named: NamedDate, days: NDArray[np.datetime64]) -> Floats:
    if named.day is None or named.year is None:
        return np.zeros(len(days))
    gap = (days - np.datetime64(date(named.year, named.month, named.day))).astype(int)
    same, told = np.abs(gap) <= _SAME_DAY, (gap >= 0) & (gap <= _TOLD_WITHIN_DAYS)
    return np.where(same, 1.0, np.where(told, 0.5, 0.0))


@cache
def _months() -> dict[str, int]:
    return {name: number for number, names in enumerate(table("months"), 1) for name in names.split()}


@cache
def _pattern() -> re.Pattern[str]:
    names = "|".join(_months())
    return re.compile(
        rf"(?P<lead>\b{_BEFORE})?(?:\b(?P<before>{_NUMBER})\s+(?:of\s+|de\s+)?)?\b(?P<name>{names})\b"
        rf"(?:\s+(?P<after>{_NUMBER})\b)?(?:,?\s+(?:of\s+|del?\s+)?(?P<year>\d{{4}})\b)?"
    )


def _is_other_word(match: re.Match[str]) -> bool:
    spoken_of_time = match["lead"] or match["before"] or match["after"] or match["year"]
    return not spoken_of_time and match["name"] in table("ambiguous_months").split()


def _number(text: str | None) -> int | None:
    return int(re.sub(r"\D", "", text)) if text else None


def _exists(named: NamedDate) -> bool:
    """Whether the calendar has it: of a day without a year, any leap year will do."""
    try:
        date(named.year or 2000, named.month, named.day or 1)
    except ValueError:
        return False
    return True
