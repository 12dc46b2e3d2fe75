"""What a message without a symbol refers to: what was spoken of before, or what the user holds (RF-25, IM-42)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any, Literal

from recuerdo.nodes.build_context.symbols.table import instrument
from recuerdo.state.folding import comparable, plain
from recuerdo.state.tables import read_table

How = Literal["mentioned", "follow_up", "holding", "portfolio", "none"]
"""``holding``: some of the positions, by their size or kind; ``portfolio``: all of them."""
Referred = tuple[tuple[str, ...], How]

_WORD = re.compile(r"\w+")
_LONGEST_READ = 2000
"""Characters of a message that are read for phrases: they are for questions, not for a document pasted into one."""

_MESSAGES_READ = 6
"""Earlier messages that a chain of short questions may go back through."""

_NEXT = -1
"""In the words of order of phrases.yaml: the place after the one before."""

_NOTHING: Referred = ((), "none")


@dataclass(frozen=True)
class Standings:
    """What is held in order, the highest first; empty where the figures are not known.

    By market value, by the gain as an amount, and by the gain in per cent of the cost.
    """

    value: tuple[str, ...] = ()
    profit: tuple[str, ...] = ()
    percent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spoken:
    """What a reference may mean: symbols of the turns before, newest first, and what the user holds.

    ``messages`` are the user's own before this one, folded, oldest first.
    """

    turns: tuple[tuple[str, ...], ...]
    held: tuple[str, ...]
    standings: Standings = Standings()
    messages: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        recent: Sequence[Sequence[str]],
        held: Sequence[str],
        standings: Standings,
        messages: Sequence[str],
    ) -> "Spoken":
        """Each symbol once, turns without any left out."""
        turns = tuple(turn for turn in map(_once, recent) if turn)
        return cls(turns, _once(held), standings, _folded(messages))

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
    if rank := _rank_of(folded, spoken.messages):
        return _held(rank.among(spoken.standings), spoken)
    if phrases.whole_again.search(folded) and _spoke_of_holdings(spoken.messages):
        return spoken.held, "portfolio"
    for pattern, chosen in (
        (phrases.other_held, _not_newest),
        (phrases.portfolio, _of_kind),
    ):
        if pattern.search(folded):
            return _held(chosen(folded, spoken), spoken)
    if not spoken.turns or _is_closing(folded):
        return _NOTHING
    return _of_turns(folded, spoken)


def asks_for_rank(text: str, before: Sequence[str] = ()) -> bool:
    """Whether ``text`` asks for a position by its size or gain: only then the figures are needed.

    ``before`` are the user's earlier messages, oldest first: "and the second one?" may go on from one of them.
    """
    (folded,) = _folded([text])
    return _rank_of(folded, _folded(before)) is not None


def asks_for_holdings(text: str, before: Sequence[str] = ()) -> bool:
    """Whether ``text`` asks for what is held without naming it, some or all of it."""
    phrases, (folded,) = _phrases(), _folded([text])
    others = (phrases.other_held, phrases.portfolio)
    return asks_for_rank(text, before) or any(pattern.search(folded) for pattern in others)


def _folded(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(comparable(plain(text[:_LONGEST_READ])) for text in texts[-_MESSAGES_READ:])


@dataclass(frozen=True)
class _Rank:
    """Which of the positions are meant by their place; what is None goes by the question that it follows."""

    by: str | None
    """The field of :class:`Standings`, the value without another."""
    lowest: bool | None
    skip: int | None
    count: int

    @classmethod
    def read(cls, match: re.Match[str]) -> "_Rank":
        phrases, said = _phrases(), match.group()
        by = next((by for by, pattern in phrases.gains.items() if pattern.search(said)), None)
        down, up = bool(phrases.smallest.search(said)), bool(phrases.largest.search(said))
        loses = bool(phrases.losing.search(said))
        words = _WORD.findall(said)
        return cls(
            by=by,
            # Who loses least stands high.
            lowest=(down != loses) if down or up or loses else None,
            skip=next((phrases.ordinals[word] for word in words if word in phrases.ordinals), None),
            count=next((phrases.numbers[word] for word in words if word in phrases.numbers), 1),
        )

    def after(self, other: "_Rank") -> "_Rank":
        """What goes on from ``other``: "and the second one?", "and the smallest?"."""
        return replace(
            self,
            by=self.by or other.by,
            lowest=other.lowest if self.lowest is None else self.lowest,
            skip=(other.skip or 0) + 1 if self.skip == _NEXT else self.skip,
        )

    def among(self, standings: Standings) -> tuple[str, ...]:
        """None where the figures are not known."""
        ordered = getattr(standings, self.by or "value")
        skip = self.skip or 0
        return tuple((ordered[::-1] if self.lowest else ordered)[skip : skip + self.count])


def _rank_of(folded: str, before: Sequence[str]) -> _Rank | None:
    """The rank that a message asks for, by itself or going on from those before it."""
    phrases = _phrases()
    if match := phrases.rank.search(folded):
        return _Rank.read(match)
    match = phrases.rank_again.search(folded)
    if match is None or not before:
        return None
    # "How much have I made with it?" may stand between the two.
    skips = (
        len(before) > 1 and phrases.follow_up.search(before[-1]) and not phrases.rank_again.search(before[-1])
    )
    last = len(before) - (2 if skips else 1)
    base = _rank_of(before[last], before[:last])
    return _Rank.read(match).after(base) if base else None


def _spoke_of_holdings(before: Sequence[str]) -> bool:
    phrases = _phrases()
    patterns = (phrases.rank, phrases.rank_again, phrases.other_held, phrases.portfolio)
    return any(pattern.search(message) for message in before for pattern in patterns)


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
    rank_again: re.Pattern[str]
    whole_again: re.Pattern[str]
    smallest: re.Pattern[str]
    largest: re.Pattern[str]
    losing: re.Pattern[str]
    other_held: re.Pattern[str]
    portfolio: re.Pattern[str]
    closing: re.Pattern[str]
    general: re.Pattern[str]
    other: re.Pattern[str]
    follow_up: re.Pattern[str]
    agreement: re.Pattern[str]
    gains: dict[str, re.Pattern[str]]
    kinds: dict[str, re.Pattern[str]]
    places: dict[int, re.Pattern[str]]
    several: dict[int, re.Pattern[str]]
    ordinals: dict[str, int]
    numbers: dict[str, int]


@cache
def _phrases() -> _Phrases:
    raw: dict[str, Any] = read_table(__package__, "phrases.yaml")
    single = (
        "rank",
        "rank_again",
        "whole_again",
        "smallest",
        "largest",
        "losing",
        "other_held",
        "portfolio",
        "closing",
        "general",
        "other",
        "follow_up",
        "agreement",
    )
    grouped = ("gains", "kinds", "places", "several")
    patterns: dict[str, Any] = {name: _any_of(raw[name]) for name in single}
    groups: dict[str, Any] = {
        name: {key: _any_of(some) for key, some in raw[name].items()} for name in grouped
    }
    return _Phrases(**patterns, **groups, ordinals=raw["ordinals"], numbers=raw["numbers"])


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
