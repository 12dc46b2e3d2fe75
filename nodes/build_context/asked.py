"""Which kinds of data a message asks for by name (A-5): what is relevant then, whatever it is about."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, get_args

from recuerdo.state.folding import comparable, plain
from recuerdo.state.tables import read_table

AskedKind = Literal["education", "alerts", "signals"]

_READ = 2000
"""Characters of a message that are read: the patterns are for questions, not for a document pasted into one."""


def asked_kinds(text: str) -> frozenset[AskedKind]:
    """The kinds that ``text`` names, in Spanish or English."""
    folded = comparable(plain(text[:_READ])).replace("-", " ")
    return frozenset(kind for kind, pattern in _patterns().items() if pattern.search(folded))


def tells_of_signals(text: str) -> bool:
    """Whether a sentence of a reply to a request with signals speaks of one."""
    folded = comparable(plain(text)).replace("-", " ")
    return bool(_patterns()["signals"].search(folded) or _any_of("signals_told").search(folded))


@cache
def _patterns() -> Mapping[AskedKind, re.Pattern[str]]:
    return {kind: _any_of(kind) for kind in get_args(AskedKind)}


@cache
def _any_of(group: str) -> re.Pattern[str]:
    raw = read_table(__package__, "asked.yaml")
    return re.compile("|".join(f"(?:{one})" for one in raw[group]))
