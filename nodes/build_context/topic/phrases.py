"""How a message stands towards what was spoken of: markers, small talk, words that lean on the last reply (A-2)."""

import re
from dataclasses import dataclass, fields
from functools import cache

from recuerdo.state.tables import read_table


@dataclass(frozen=True)
class Patterns:
    """The groups of patterns.yaml, each as one pattern over a folded text."""

    change: re.Pattern[str]
    turn_to: re.Pattern[str]
    back: re.Pattern[str]
    before: re.Pattern[str]
    small_talk: re.Pattern[str]
    aside: re.Pattern[str]
    explains: re.Pattern[str]
    go_on: re.Pattern[str]
    opening: re.Pattern[str]
    leaning: re.Pattern[str]
    security: re.Pattern[str]
    comparison: re.Pattern[str]
    request: re.Pattern[str]


@cache
def patterns() -> Patterns:
    """Read the file once."""
    raw: dict[str, list[str]] = read_table(__package__, "patterns.yaml")
    return Patterns(**{group.name: _any_of(raw[group.name]) for group in fields(Patterns)})


def _any_of(alternatives: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in alternatives))
