"""Pairs of currencies by their names: "euro dólar", "dollar against the yen", "peso mexicano / dólar"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import yaml

from recuerdo.nodes.build_context.symbols.table import load_table

_NAMED: Final = re.compile(r"dol|eur|pes|yen|libr|pound|franc|real|sterl|dollar")
"""What any two names of currencies have; most messages have none."""


@dataclass(frozen=True)
class NamedPair:
    """A pair with its place in the text."""

    symbol: str
    start: int
    end: int


def named_pairs(folded: str) -> Iterator[NamedPair]:
    """Pairs of two names side by side in a folded text, each in the order in which it is quoted."""
    if not _NAMED.search(folded):
        return
    names = _load()
    for match in names.pattern.finditer(folded):
        codes = sorted({names.codes[match["one"]], names.codes[match["other"]]}, key=names.order.index)
        found = load_table().pair(*codes) if len(codes) == 2 else None
        if found is not None:
            yield NamedPair(found.symbol, match.start(), match.end())


@dataclass(frozen=True)
class _Names:
    codes: dict[str, str]
    order: list[str]
    pattern: re.Pattern[str]


@cache
def _load() -> _Names:
    raw = yaml.safe_load((files(__package__) / "currencies.yaml").read_text(encoding="utf-8"))
    codes = {name: code for code, names in raw["names"].items() for name in names}
    name = "|".join(map(re.escape, sorted(codes, key=len, reverse=True)))
    between = "|".join(raw["between"])
    pattern = rf"(?<!\w)(?P<one>{name})(?: ?/ ?| (?:(?:{between}) )?)(?P<other>{name})(?!\w)"
    return _Names(codes, raw["order"], re.compile(pattern))
