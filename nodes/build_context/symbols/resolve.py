"""What a message speaks of: the symbols in it, those spoken of before, or all that the user holds (RF-25, RF-27)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Literal

import yaml

from recuerdo.nodes.build_context.symbols.matcher import find_symbols
from recuerdo.state.folding import comparable, plain

How = Literal["mentioned", "follow_up", "portfolio", "none"]

# The patterns are for questions; a document pasted into one is not read through for them.
_LONGEST_READ = 2000


@dataclass(frozen=True)
class Resolution:
    """The symbols of a turn and how they were found.

    ``unsure`` are symbols that may be plain words, to be asked about; ``unknown`` are written as symbols but
    stand in no table. Neither is in ``symbols``.
    """

    symbols: tuple[str, ...]
    how: How
    unsure: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def resolve_symbols(text: str, recent: Sequence[Sequence[str]], held: Sequence[str]) -> Resolution:
    """The symbols that ``text`` speaks of.

    ``recent`` holds the symbols of the turns before, newest first; ``held`` those of the user's positions.
    Symbols in the text come first, then a question about the portfolio, then a follow-up of the newest turn
    that had symbols.
    """
    mentions = find_symbols(text)
    unsure = _once(one.symbol for one in mentions if not one.certain)
    unknown = _once(one.symbol for one in mentions if one.certain and not one.known)
    mentioned = _once(one.symbol for one in mentions if one.certain and one.known)
    if mentioned or unknown:
        return Resolution(mentioned, "mentioned", unsure, unknown)
    symbols, how = _spoken_of(comparable(plain(text[:_LONGEST_READ])), recent, held)
    return Resolution(symbols, how, unsure)


def _spoken_of(
    text: str, recent: Sequence[Sequence[str]], held: Sequence[str]
) -> tuple[tuple[str, ...], How]:
    phrases = _load_phrases()
    if phrases.portfolio.search(text):
        return _once(held), "portfolio"
    turns = [turn for turn in map(_once, recent) if turn]
    if not turns:
        return (), "none"
    for number, pattern in phrases.several.items():
        if pattern.search(text):
            return _newest(turns, number), "follow_up"
    if phrases.other.search(text):
        return _other(turns), "follow_up"
    if phrases.general.search(text) or not phrases.follow_up.search(text):
        return (), "none"
    return turns[0], "follow_up"


def _newest(turns: Sequence[tuple[str, ...]], number: int) -> tuple[str, ...]:
    """The last ``number`` symbols that were spoken of."""
    return _once(chain.from_iterable(turns))[:number]


def _other(turns: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What was spoken of before the newest symbol; the newest when there is nothing else."""
    spoken = _once(chain.from_iterable(turns))
    return spoken[1:2] or spoken


def _once(symbols: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(symbols))


@dataclass(frozen=True)
class _Phrases:
    portfolio: re.Pattern[str]
    general: re.Pattern[str]
    other: re.Pattern[str]
    follow_up: re.Pattern[str]
    several: dict[int, re.Pattern[str]]


@cache
def _load_phrases() -> _Phrases:
    raw = yaml.safe_load((files(__package__) / "phrases.yaml").read_text(encoding="utf-8"))
    return _Phrases(
        portfolio=_any_of(raw["portfolio"]),
        general=_any_of(raw["general"]),
        other=_any_of(raw["other"]),
        follow_up=_any_of(raw["follow_up"]),
        several={number: re.compile(pattern) for number, pattern in raw["several"].items()},
    )


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
