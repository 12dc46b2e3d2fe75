"""What the words around a candidate say of it: the table `cues.yaml`, the nearest cue first."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from recuerdo.state.tables import read_table
from recuerdo.stores.sensitive.vocabulary import (
    Candidate,
    Kind,
    alternatives,
    kind_named,
    vocabulary,
    words,
)

_DEFAULT_REACH = 40
_LISTED, _LISTED_REACH = 4, 45
# An answer in figures belongs to its question: "my average? 188.3".
_BOUNDARY = re.compile(r"[.!;]+(?=\s|$)|\n|[?!;]+(?! ?[$€£]?\d)")
_ABBREVIATION = re.compile(r"(?:no|num|nro|cta|acct|avg|aprox|approx|n|c|\.[a-z])$")
# "ganó 5 dólares" is said of a share, "gano" of oneself.
_THIRD_PERSON = re.compile(r"\w+ó\b", re.IGNORECASE)
# Where an English verb without a subject is the user's.
_OPENING = re.compile(
    r"(?:^|\n|[,.;:!?()-]|(?<!\w)(?:and|but|so|then|just|also|already|still|i|we|i've|ive|finally|only|ended up|y"
    r"|pero)) ?$"
)
_AFTER_CONDITION = re.compile(r"(?: (?:yo|i|we|le|les|me|te|se|lo|la|no|ya|just|hoy|que|only|solo))* ?")
# Two amounts of one verb: "tengo 500 USD y 300 EUR".
_COORDINATED = re.compile(
    r"[^\d.;?!\n]{0,30}?(?:,|(?<!\w)(?:y|and|mas|plus|otros|another)(?!\w)|[&+/])[^\d.;?!\n]{0,12}"
)
_AMOUNTS = frozenset({"money", "large", "small", "percent"})
_PRICE_REACH = 45


@dataclass(frozen=True)
class Entry:
    """One row of the table: what its words say of a candidate before or after them, by shape; None is no secret."""

    rank: int
    name: str
    pattern: re.Pattern[str]
    before: Mapping[str, Kind | None]
    after: Mapping[str, Kind | None]
    reach: int
    verb: bool
    firm: bool
    first_person: bool
    opening: bool
    weak: bool


@dataclass(frozen=True)
class Cue:
    """An entry's words at a place of the text. ``void``: said under a condition, so nothing is the user's."""

    start: int
    end: int
    entry: Entry
    void: bool = False


class Opinion(NamedTuple):
    """A candidate, the kind that the nearest cue gives it, and what else is said, as names of features."""

    candidate: Candidate
    kind: Kind | None
    said: frozenset[str]


class _Around(NamedTuple):
    """The cues around a candidate within its sentence and the longest reach, the nearest first."""

    before: Sequence[Cue]
    after: Sequence[Cue]


_NOTHING = _Around((), ())


class Decider:
    """The cues of one text, and what they say of its candidates."""

    def __init__(self, folded_text: str, plain_text: str) -> None:
        """Find the cues of a text in its folded and its accented form."""
        self._text = folded_text
        self._boundaries = _boundaries(folded_text)
        self._reach = max(entry.reach for entry in load_entries())
        cues = _found_cues(folded_text, plain_text)
        self._by_end = sorted(cues, key=lambda cue: (cue.end, -cue.start, -cue.entry.rank))
        self._ends = [cue.end for cue in self._by_end]
        self._by_start = sorted(cues, key=lambda cue: (cue.start, -cue.end))
        self._starts = [cue.start for cue in self._by_start]

    def opinions(self, candidates: Sequence[Candidate]) -> Iterator[Opinion]:
        """Each candidate in order, the kind that the nearest cue gives it, and the names of the cues around it."""
        last_amount, last_quantity = -1, -1
        for one in sorted(candidates, key=lambda one: (one.start, one.end)):
            around = self._around(one)
            kind = self._kind(one, around, last_amount)
            if kind is None and one.shape == "price" and _is_price_of(one, around, last_quantity):
                kind = "holding"
            if one.shape in _AMOUNTS:
                last_amount = one.end
            if kind is not None and one.shape in ("quantity", "small", "large"):
                last_quantity = one.end
            verdict = [f"{one.shape}kind={kind}"] if kind else []
            said = frozenset([*verdict, *_names(one, around)])
            yield Opinion(Candidate(one.start, self._end(one, kind), one.shape), kind, said)

    def _around(self, one: Candidate) -> _Around:
        first, last = one.start - self._reach, one.end + self._reach
        before = self._by_end[bisect_left(self._ends, first) : bisect_right(self._ends, one.start)]
        after = self._by_start[bisect_left(self._starts, one.end) : bisect_right(self._starts, last)]
        if not before and not after:
            # As in the most part of a pasted table.
            return _NOTHING
        start, end = self._sentence(one)
        return _Around(
            [cue for cue in reversed(before) if cue.start >= start], [cue for cue in after if cue.end <= end]
        )

    def _end(self, one: Candidate, kind: Kind | None) -> int:
        """Where what is taken out ends: what is earned or owed goes with its period, "a month"."""
        period = _period().match(self._text, one.end) if kind == "amount_held" else None
        return period.end() if period else one.end

    def _kind(self, one: Candidate, around: _Around, last_amount: int) -> Kind | None:
        speaks, kind = self._said_before(one, around, last_amount)
        if kind is None:
            kind = _said_after(one, around, firm=speaks)
        return kind

    def _said_before(self, one: Candidate, around: _Around, last_amount: int) -> tuple[bool, Kind | None]:
        for cue in around.before:
            if one.shape in cue.entry.before and one.start - cue.end <= cue.entry.reach:
                if self._is_used_up(cue, one, last_amount) or (cue.entry.weak and _is_a_price(one, around)):
                    continue
                return True, None if cue.void else cue.entry.before[one.shape]
        return False, None

    def _is_used_up(self, cue: Cue, one: Candidate, last_amount: int) -> bool:
        """A verb speaks of the amount that follows, and of those that are joined to it."""
        if one.shape not in _AMOUNTS or not cue.end <= last_amount <= one.start:
            return False
        return cue.entry.verb and _COORDINATED.fullmatch(self._text, last_amount, one.start) is None

    def _sentence(self, one: Candidate) -> tuple[int, int]:
        """Where the sentence of a candidate begins and ends."""
        index = bisect_right(self._boundaries, one.start)
        start = self._boundaries[index - 1] if index else 0
        following = bisect_left(self._boundaries, one.end)
        return start, self._boundaries[following] if following < len(self._boundaries) else len(self._text)


def _names(one: Candidate, around: _Around) -> Iterator[str]:
    """The cues around a candidate: all in reach, and the nearest one by its rank."""
    before = [cue for cue in around.before if one.start - cue.end <= _LISTED_REACH]
    after = [cue for cue in around.after if cue.start - one.end <= _LISTED_REACH]
    for side, cues in (("<", before), (">", after)):
        for place, cue in enumerate(cues[:_LISTED]):
            name = f"{cue.entry.name}{'?' if cue.void else ''}"
            yield f"cue{side}{name}"
            if not place:
                yield f"cue{side}{side}{name}"


def _said_after(one: Candidate, around: _Around, *, firm: bool) -> Kind | None:
    for cue in around.after:
        if firm and not cue.entry.firm:
            continue
        if one.shape in cue.entry.after and cue.start - one.end <= cue.entry.reach:
            return cue.entry.after[one.shape]
    return None


def _is_a_price(one: Candidate, around: _Around) -> bool:
    """What no weak cue may take: an amount after "at", or before "a share" and what else says so."""
    return one.at or any(
        one.shape in cue.entry.after and cue.entry.after[one.shape] is None
        for cue in around.after
        if cue.start - one.end <= cue.entry.reach
    )


def _is_price_of(one: Candidate, around: _Around, last_quantity: int) -> bool:
    """The price of the holding that was named just before: "20 acciones de TSLA a 250"."""
    if not 0 <= one.start - last_quantity <= _PRICE_REACH or last_quantity < 0:
        return False
    between = (cue for cue in around.before if cue.start >= last_quantity)
    return all(cue.entry.before.get("price", "holding") is not None for cue in between)


def _boundaries(text: str) -> list[int]:
    return [
        match.end()
        for match in _BOUNDARY.finditer(text)
        if not _ABBREVIATION.search(text, max(0, match.start() - 8), match.start())
    ]


def _found_cues(folded_text: str, plain_text: str) -> list[Cue]:
    found = [
        Cue(*match.span(), entry)
        for entry in load_entries()
        for match in entry.pattern.finditer(folded_text)
        if not (entry.first_person and _THIRD_PERSON.match(plain_text, match.start()))
        and not (
            entry.opening and not _OPENING.search(folded_text, max(0, match.start() - 12), match.start())
        )
    ]
    conditions = sorted(cue.end for cue in found if cue.entry.name in ("condition", "intention"))
    return [
        Cue(cue.start, cue.end, cue.entry, void=True)
        if cue.entry.verb and _is_conditional(folded_text, conditions, cue.start)
        else cue
        for cue in found
    ]


def _is_conditional(text: str, conditions: Sequence[int], start: int) -> bool:
    index = bisect_right(conditions, start) - 1
    return (
        index >= 0
        and start - conditions[index] <= _DEFAULT_REACH
        and (_AFTER_CONDITION.fullmatch(text, conditions[index], start) is not None)
    )


@cache
def load_entries() -> tuple[Entry, ...]:
    """The table, its patterns built once."""
    return tuple(_entry(rank, row) for rank, row in enumerate(read_table(__package__, "cues.yaml")))


@cache
def _period() -> re.Pattern[str]:
    return re.compile(rf" ?{words('period')}(?!\w)")


def _entry(rank: int, row: Mapping[str, Any]) -> Entry:
    stops = row.get("stops", {})
    return Entry(
        rank=rank,
        name=row["name"],
        pattern=_pattern(row["words"], stands=row.get("stands", False)),
        before=_said(row.get("before", {}), stops.get("before", ())),
        after=_said(row.get("after", {}), stops.get("after", ())),
        reach=row["reach"],
        verb=row.get("verb", False),
        firm=row.get("firm", False),
        first_person=row.get("first_person", False),
        opening=row.get("opening", False),
        weak=row.get("weak", False),
    )


def _said(kinds: Mapping[str, str], stopped: Sequence[str]) -> dict[str, Kind | None]:
    return {**{shape: kind_named(kind) for shape, kind in kinds.items()}, **dict.fromkeys(stopped)}


def _pattern(listed: str, *, stands: bool) -> re.Pattern[str]:
    filled = re.sub("«([a-z_]+)»", lambda match: vocabulary()[match.group(1)], alternatives(listed))
    goes_on = rf"(?:(?: [a-z]{{1,12}}){{0,3}}? ?{words('stands_at')}(?!\w))?" if stands else ""
    return re.compile(rf"(?<!\w)(?:{filled})(?!\w){goes_on}")
