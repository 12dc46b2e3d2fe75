"""Words that change a value without naming its thing: "no son 25,000 sino 30,000", "súbelo a 175" (RF-5)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from recuerdo.state.folding import comparable, plain
from recuerdo.state.summary.reading import FIGURE, Kind, Line, cues, digits, filled

_STATED: frozenset[Kind] = frozenset({"goal", "instruction", "decision", "name", "figure"})

# Bounded, so that an endless number is not looked through from each of its digits.
_NUMBER = r"(?<!\d)\d{1,15}(?:[.,:/]\d{1,15}){0,4}(?!\d)"
_VALUES = {"old": f"(?P<old>{_NUMBER})", "new": f"(?P<new>{_NUMBER})"}


@cache
def _corrected() -> list[re.Pattern[str]]:
    return [_compiled(pattern) for pattern in cues()["corrected"]]


@cache
def _moved() -> re.Pattern[str]:
    return _compiled(cues()["moved"])


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(filled(pattern, _VALUES))


@dataclass(frozen=True)
class Change:
    """The new value that a line gives, and the digits of the old one where it says them."""

    by: Line
    value: str
    wrong: str | None


def change_in(line: Line) -> Change | None:
    """The change that a line of the user makes to a value whose thing it need not name."""
    if line.kind in ("assistant", "point", "question") or line.body.endswith("?"):
        return None
    text = comparable(plain(line.body))
    for cue in _corrected():
        if found := cue.search(text):
            return Change(line, found["new"], digits(found["old"]))
    found = _moved().search(text)
    return Change(line, found["new"], None) if found else None


def changed_line(change: Change, before: Sequence[Line], since: Sequence[Line]) -> Line | None:
    """The line that a change is about; None where that is not sure.

    ``before`` are the lines of the summary, in no order of time; ``since`` what was said after it.
    """
    if change.wrong is None:
        return _last_set(change.by, before, since)
    meant = [old for old in dict.fromkeys([*before, *since]) if _holds(old, change.wrong, change.by)]
    return meant[0] if len(meant) == 1 else None


def restated(line: Line, change: Change) -> Line:
    """The line with the new value in the place of the old."""
    wrong = change.wrong or next(iter(line.figures))
    return Line(line.kind, FIGURE.sub(lambda m: change.value if digits(m[0]) == wrong else m[0], line.body))


def _holds(old: Line, figure: str, by: Line) -> bool:
    is_of_another = by.symbols and old.symbols and not by.symbols & old.symbols
    return old.kind in _STATED and figure in old.figures and not is_of_another


def _last_set(by: Line, before: Sequence[Line], since: Sequence[Line]) -> Line | None:
    """The thing that was given a value last, unless another symbol was spoken of since."""
    places = [place for place, line in enumerate(since) if _has_value(line)]
    if places:
        old, others = since[places[-1]], since[places[-1] :]
    else:
        values = [line for line in before if _has_value(line)]
        if len(values) != 1:
            return None
        old, others = values[0], [*before, *since]
    is_same_unit = ("%" in by.body) == ("%" in old.body)
    return old if is_same_unit and _speak_of(old, others) else None


def _has_value(line: Line) -> bool:
    return line.sets is not None and len(line.figures) == 1


def _speak_of(old: Line, others: Iterable[Line]) -> bool:
    return all(line.symbols <= old.symbols for line in others)
