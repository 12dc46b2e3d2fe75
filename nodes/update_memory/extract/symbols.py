"""A lasting interest in symbols, said outright, and its end (RF-8, A-3); mentions are counted elsewhere."""

import re
from collections.abc import Collection, Sequence
from functools import cache

from recuerdo.nodes.build_context.symbols import find_indicators, find_symbols, instrument
from recuerdo.nodes.update_memory.extract.clauses import Clause
from recuerdo.nodes.update_memory.extract.patterns import load_patterns
from recuerdo.nodes.update_memory.extract.preferences import Verdict
from recuerdo.nodes.update_memory.extract.protocol import Item

_LIST_WORDS = 4
_LIMIT = re.compile(
    r"\b(?:earnings|options|short|stop|alertas?|alerts?|grafico|chart|at \d|a \d|si |if |cuando|when)\b"
)


def read_symbols(clause: Clause, sentence: Sequence[Clause], followed: Collection[str] = ()) -> list[Verdict]:
    """Symbols that a clause says the user follows, or follows no more.

    ``sentence`` are the clauses of the same sentence: "I sold Tesla, take it off my list" names it before.
    ``followed`` are those that he follows: they are meant where a plain word could be.
    """
    if _has("drops", clause.folded):
        named = _followed(clause.text, followed) or [
            symbol for one in sentence for symbol in _followed(one.text, followed)
        ]
        return [("forget", _item(symbol, clause)) for symbol in dict.fromkeys(named)]
    if _has("follows", clause.folded) and not _LIMIT.search(clause.folded):
        named = [*_symbols(clause.text), *_listed_after(clause, sentence)] or _just_before(clause, sentence)
        return [("learn", _item(symbol, clause)) for symbol in dict.fromkeys(named)]
    return []


def _just_before(clause: Clause, sentence: Sequence[Clause]) -> list[str]:
    """ "NVDA and AMD, keep an eye on them"."""
    if not re.search(r"\b(?:them|it|las|los|les|las dos|ellas?)\b", clause.folded):
        return []
    before = [one for one in sentence if one.end <= clause.start]
    return _symbols(before[-1].text) if before else []


def _listed_after(clause: Clause, sentence: Sequence[Clause]) -> list[str]:
    """The rest of a list: "I follow Apple, Microsoft and Google"."""
    if not _symbols(clause.text):
        return []
    after = [one for one in sentence if one.start >= clause.end and len(one.text.split()) <= _LIST_WORDS]
    return [symbol for one in after for symbol in _symbols(one.text)]


def _followed(text: str, followed: Collection[str]) -> list[str]:
    """Symbols that a clause takes off: those that are certain, and those that the user follows."""
    meant = [one.symbol for one in find_symbols(text) if one.symbol in followed]
    return meant or _symbols(text)


def _symbols(text: str) -> list[str]:
    indicators = set(find_indicators(text))
    found = [one for one in find_symbols(text) if one.known and instrument(one.symbol)]
    return [
        one.symbol
        for one in found
        # Who follows "COST" writes it so; "cost" is a word.
        if (one.certain or one.text == one.symbol) and one.symbol not in indicators
    ]


def _item(symbol: str, clause: Clause) -> Item:
    return Item("symbol", symbol, symbol, clause.text, clause.confidence)


def _has(cue: str, text: str) -> bool:
    return _pattern(cue).search(text) is not None


@cache
def _pattern(cue: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in load_patterns("symbols.yaml")[cue]))
