"""The words and patterns that stand beside a symbol or a name and say what it is (cues.yaml)."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from recuerdo.state.tables import read_table


@dataclass(frozen=True)
class Cues:
    """The groups of cues.yaml; words are folded to lower case without accents."""

    stock_before: frozenset[str]
    stock_after: frozenset[str]
    market_before: frozenset[str]
    market_after: frozenset[str]
    market_after_capital: frozenset[str]
    market_talk: frozenset[str]
    fillers: frozenset[str]
    one_of: frozenset[str]
    of_company: frozenset[str]
    joiner: re.Pattern[str]
    called: re.Pattern[str]
    priced: re.Pattern[str]
    abroad: re.Pattern[str]
    used_before: re.Pattern[str]
    used_after: re.Pattern[str]
    opening: re.Pattern[str]
    market_prefixes: frozenset[str]
    market_suffixes: frozenset[str]
    home_marks: frozenset[str]
    not_symbols: frozenset[str]
    mostly_companies: frozenset[str]
    elsewhere: dict[str, list[re.Pattern[str]]]


@cache
def load_cues() -> Cues:
    """Read the file once."""
    raw: dict[str, Any] = read_table(__package__, "cues.yaml")
    joiners = "|".join(map(re.escape, raw["joiners"]))
    words = (
        *("stock_before", "stock_after", "market_before", "market_after", "market_after_capital"),
        *("market_talk", "fillers", "not_symbols", "one_of", "of_company"),
    )
    lists = ("market_prefixes", "market_suffixes", "home_marks", "mostly_companies")
    patterns = ("called", "priced", "abroad", "used_before", "used_after", "opening")
    groups: dict[str, Any] = {
        **{group: frozenset(raw[group].split()) for group in words},
        **{group: frozenset(raw[group]) for group in lists},
        **{group: re.compile(raw[group]) for group in patterns},
    }
    return Cues(
        **groups,
        joiner=re.compile(rf" ?[,;/&+(] ?(?:(?:{joiners}) )?| (?:{joiners}) "),
        elsewhere={
            name: [re.compile(pattern) for pattern in patterns] for name, patterns in raw["elsewhere"].items()
        },
    )
