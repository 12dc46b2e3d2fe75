"""What a message without a symbol refers to: what was spoken of before, or what the user holds (RF-25, IM-42)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, Literal

import yaml

from recuerdo.nodes.build_context.symbols.table import instrument
from recuerdo.state.folding import comparable, plain

How = Literal["mentioned", "follow_up", "holding", "portfolio", "none"]
"""``holding``: some of the positions, by their size or kind; ``portfolio``: all of them."""
Referred = tuple[tuple[str, ...], How]

_NOTHING: Referred = ((), "none")


@dataclass(frozen=True)
class Spoken:
    """What a reference may mean: symbols of the turns before, newest first, and what the user holds."""

    turns: tuple[tuple[str, ...], ...]
    held: tuple[str, ...]
    by_value: tuple[str, ...]

    @classmethod
    def of(cls, recent: Sequence[Sequence[str]], held: Sequence[str], by_value: Sequence[str]) -> "Spoken":
        """Each symbol once, turns without any left out."""
        turns = tuple(turn for turn in map(_once, recent) if turn)
        return cls(turns, _once(held), _once(by_value))

    @property
    def newest_first(self) -> tuple[str, ...]:
        """Every symbol once."""
        return _once(chain.from_iterable(self.turns))

    @property
    def group(self) -> tuple[str, ...]:
        """What was named side by side, in its order: by the newest turn, or by one before it that holds that."""
        newest = set(self.turns[0])
        several = (turn for turn in self.turns if len(turn) > 1 and newest <= set(turn))
        return next(several, self.newest_first[::-1])


def referred_to(folded: str, spoken: Spoken) -> Referred:
    """What a folded text refers to; each kind of reference is tried in turn, the narrower first."""
    phrases = _phrases()
    for pattern, chosen in (
        (phrases.rank, _ranked),
        (phrases.other_held, _not_newest),
        (phrases.portfolio, _of_kind),
    ):
        if pattern.search(folded):
            return _held(chosen(folded, spoken), spoken)
    if not spoken.turns or _is_closing(folded):
        return _NOTHING
    return _of_turns(folded, spoken)


def asks_for_rank(text: str) -> bool:
    """Whether ``text`` asks for a position by its size: only then its market value is needed."""
    return _phrases().rank.search(comparable(plain(text))) is not None


def is_yes(folded: str) -> bool:
    """Whether a folded text says yes and names nothing."""
    return _phrases().agreement.fullmatch(folded) is not None


def _of_turns(folded: str, spoken: Spoken) -> Referred:
    phrases = _phrases()
    if (place := _place(folded)) is not None:
        return spoken.group[place], "follow_up"
    for number, pattern in phrases.several.items():
        if pattern.search(folded):
            return _newest(spoken, number), "follow_up"
    if phrases.other.search(folded):
        return _other(spoken), "follow_up"
    if phrases.general.search(folded) or not phrases.follow_up.search(folded):
        return _NOTHING
    return spoken.turns[0], "follow_up"


def _is_closing(folded: str) -> bool:
    """Thanks and goodbyes ask for nothing, whatever else they say."""
    return _phrases().closing.search(folded) is not None and "?" not in folded


def _held(symbols: tuple[str, ...], spoken: Spoken) -> Referred:
    """Some of what is held; all of it where none is the one that was asked for, so that the answer can say so."""
    is_part = 0 < len(symbols) < len(spoken.held)
    return (symbols, "holding") if is_part else (spoken.held, "portfolio")


def _ranked(folded: str, spoken: Spoken) -> tuple[str, ...]:
    """The largest or smallest positions; none where their values are not known."""
    phrases = _phrases()
    match = phrases.rank.search(folded)
    assert match is not None, "asked before"
    words = match.group().split()
    ordered = spoken.by_value[::-1] if phrases.smallest.search(match.group()) else spoken.by_value
    skip = next((phrases.ordinals[word] for word in words if word in phrases.ordinals), 0)
    count = next((phrases.numbers[word] for word in words if word in phrases.numbers), 1)
    return ordered[skip : skip + count]


def _not_newest(_: str, spoken: Spoken) -> tuple[str, ...]:
    newest = set(spoken.turns[0]) if spoken.turns else set()
    return tuple(symbol for symbol in spoken.held if symbol not in newest)


def _of_kind(folded: str, spoken: Spoken) -> tuple[str, ...]:
    """ "Mis criptos": the instruments of the kind that is named; else all."""
    kinds = [kind for kind, pattern in _phrases().kinds.items() if pattern.search(folded)]
    known = ((symbol, instrument(symbol)) for symbol in spoken.held)
    return tuple(symbol for symbol, found in known if not kinds or (found and found.kind in kinds))


def _place(folded: str) -> slice | None:
    """ "El primero", "the last one": where it stands among what was named."""
    named = ((start, pattern) for start, pattern in _phrases().places.items() if pattern.search(folded))
    start, _ = next(named, (None, None))
    if start is None:
        return None
    return slice(start, None) if start < 0 else slice(start, start + 1)


def _newest(spoken: Spoken, number: int) -> tuple[str, ...]:
    """All that the newest turn named if it is enough, else the last ``number`` symbols that were spoken of."""
    newest = spoken.turns[0]
    return newest if len(newest) >= number else spoken.newest_first[:number]


def _other(spoken: Spoken) -> tuple[str, ...]:
    """The one named beside the newest symbol, or spoken of before it; the newest when there is nothing else."""
    newest = set(spoken.turns[0])
    beside = tuple(symbol for symbol in spoken.group if symbol not in newest)
    if len(spoken.turns[0]) == 1 and beside:
        return beside[-1:] if spoken.group == spoken.newest_first[::-1] else beside[:1]
    return spoken.newest_first[1:2] or spoken.newest_first


def _once(symbols: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(symbols))


@dataclass(frozen=True)
class _Phrases:
    rank: re.Pattern[str]
    smallest: re.Pattern[str]
    other_held: re.Pattern[str]
    portfolio: re.Pattern[str]
    closing: re.Pattern[str]
    general: re.Pattern[str]
    other: re.Pattern[str]
    follow_up: re.Pattern[str]
    agreement: re.Pattern[str]
    kinds: dict[str, re.Pattern[str]]
    places: dict[int, re.Pattern[str]]
    several: dict[int, re.Pattern[str]]
    ordinals: dict[str, int]
    numbers: dict[str, int]


@cache
def _phrases() -> _Phrases:
    raw: dict[str, Any] = yaml.safe_load((files(__package__) / "phrases.yaml").read_text(encoding="utf-8"))
    single = (
        "rank",
        "smallest",
        "other_held",
        "portfolio",
        "closing",
        "general",
        "other",
        "follow_up",
        "agreement",
    )
    grouped = ("kinds", "places", "several")
    patterns: dict[str, Any] = {name: _any_of(raw[name]) for name in single}
    groups: dict[str, Any] = {
        name: {key: _any_of(some) for key, some in raw[name].items()} for name in grouped
    }
    return _Phrases(**patterns, **groups, ordinals=raw["ordinals"], numbers=raw["numbers"])


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
