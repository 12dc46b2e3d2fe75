"""Exchanges that a message names: "¿está abierta la bolsa mexicana?" (RF-18, C-35)."""

import re
from functools import cache

from recuerdo.state.folding import comparable, plain
from recuerdo.state.tables import read_table

_READ = 2000
"""Characters of a message that are read."""


def named_exchanges(text: str) -> frozenset[str]:
    """The calendar codes of the exchanges and markets that ``text`` names, in Spanish or English."""
    pattern, codes = _names()
    return frozenset(codes[match.group()] for match in pattern.finditer(comparable(plain(text[:_READ]))))


@cache
def _names() -> tuple[re.Pattern[str], dict[str, str]]:
    raw = read_table(__package__, "exchanges.yaml")
    codes = {name: code for code, names in raw.items() for name in names}
    longest_first = sorted(codes, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"), codes
