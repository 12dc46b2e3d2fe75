"""Pairs of currencies by their names: "euro dólar", "dollar against the yen", "peso mexicano / dólar"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from recuerdo.nodes.build_context.symbols.table import load_table
from recuerdo.state.tables import read_table

_RATE: Final = re.compile(r"tipo de cambio|exchange rate|tasa de cambio")
_LIKELY: Final = ("USD", "EUR", "MXN")
_MOST_LIKELY: Final = 2
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


def asked_currency(folded: str) -> str | None:
    """The code of the one currency whose price a folded text asks for: "¿a cuánto está el dólar?"; else None.

    An exchange rate of no currency by name is that of the dollar.
    """
    if not _NAMED.search(folded) and not _RATE.search(folded):
        return None
    names = _load()
    match = names.asked.search(folded)
    if match is None:
        return None
    named = next((match[group] for group in names.asked.groupindex if match[group]), "")
    return names.codes.get(named, "USD")


def pairs_of(code: str, home: str) -> tuple[str, ...]:
    """The pair of a currency with the user's own, in the order in which it is quoted.

    Where the user's is not known, or that very one, those that may be meant.
    """
    order = _load().order
    likely = [other for other in _LIKELY if other != code][:_MOST_LIKELY]
    others = [home] if home in order and home != code else likely
    found = (load_table().pair(*sorted((code, other), key=order.index)) for other in others)
    return tuple(pair.symbol for pair in found if pair)


@dataclass(frozen=True)
class _Names:
    codes: dict[str, str]
    order: list[str]
    pattern: re.Pattern[str]
    asked: re.Pattern[str]


@cache
def _load() -> _Names:
    raw = read_table(__package__, "currencies.yaml")
    codes = {name: code for code, names in raw["names"].items() for name in names}
    name = "|".join(map(re.escape, sorted(codes, key=len, reverse=True)))
    between = "|".join(raw["between"])
    pattern = rf"(?<!\w)(?P<one>{name})(?: ?/ ?| (?:(?:{between}) )?)(?P<other>{name})(?!\w)"
    places = (one.replace("NAME", rf"(?P<n{at}>{name})(?:e?s)?") for at, one in enumerate(raw["asked"]))
    asked = "|".join(f"(?:{one})" for one in places)
    return _Names(codes, raw["order"], re.compile(pattern), re.compile(asked))
