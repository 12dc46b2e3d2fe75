"""Finds, in calls that people approved, the limits within which they did (OR-31, OR-32, A-31, A-32). Pure.

Calls of one *type* have the same numbers among their arguments, and the same values of those texts that repeat: a kind
of discount is part of the type. They give the same arguments too, and a rule lets no call pass that gives others. A
rule holds the greatest or the least number that was seen, whichever the field's name says is the greater matter, or
both when it says nothing or numbers below 0 were seen: the greatest alone would let none of those pass. What no
condition can look at, such as an account that is another each time, makes a rule impossible, unless its name says
that it only tells one call from another.

It is fed in batches, so that memory does not grow with the evidence.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, TypeGuard

from recuerdo.nodes.learning.fields import field_of
from recuerdo.state.plan import AutoApproveRule, Condition
from recuerdo.stores.sensitive import MASK

REPEATS = 3
"""How often the values of a text occur on average, at least, where it tells a type from another."""

MOST_VALUES = 50
"""More values than that are names, not kinds."""

MOST_TYPES = 500
"""Types of one tool that are looked at."""

MOST_ARGUMENTS = 50
"""A call with more of them is of no type."""

LONGEST_KIND = 100
"""Characters of a text that can be a kind of something."""

_EXACT = 2**53
"""From here on whole numbers are not the same for every reader of JSON (RFC 8785)."""

Number = int | float
Kind = str | bool


def kinds_in(calls: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Names of the texts, and yes or no, whose values repeat in these calls."""
    values: dict[str, set[Kind]] = {}
    for arguments in calls:
        for name, value in arguments.items():
            if _is_kind(value, name):
                values.setdefault(name, set()).add(value)
    most = min(MOST_VALUES, len(calls) // REPEATS)
    return frozenset(name for name, seen in values.items() if len(seen) <= most)


@dataclass
class _Range:
    low: Number
    high: Number
    whole: bool
    seen: set[Number] = field(default_factory=set)

    def add(self, number: Number) -> None:
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.whole = self.whole and isinstance(number, int)
        if len(self.seen) <= MOST_VALUES:
            self.seen.add(number)

    def is_limit(self, name: str, calls: int) -> bool:
        """Of a number whose name says nothing, values that do not repeat are likely names: accounts, not amounts."""
        return field_of(name).measures or len(self.seen) <= min(MOST_VALUES, calls // REPEATS)


@dataclass
class _Type:
    arguments: Set[str]
    kinds: Mapping[str, Kind]
    calls: int = 0
    ranges: dict[str, _Range] = field(default_factory=dict)

    @property
    def ignored(self) -> Set[str]:
        return self.arguments - self.ranges.keys() - self.kinds.keys()

    @property
    def has_limits(self) -> bool:
        limited = all(seen.is_limit(name, self.calls) for name, seen in self.ranges.items())
        return limited and bool(self.ranges or self.kinds)

    def add(self, numbers: Mapping[str, Number]) -> None:
        self.calls += 1
        for name, number in numbers.items():
            if name not in self.ranges:
                self.ranges[name] = _Range(number, number, isinstance(number, int))
            self.ranges[name].add(number)


@dataclass(frozen=True)
class Limits:
    """A rule that lets one type of call pass, from how many calls it comes, and the arguments that it ignores."""

    rule: AutoApproveRule
    subject: str
    calls: int
    ignored: tuple[str, ...]


class ApprovedTypes:
    """The types of a tool's approved calls. What tells them apart is read in the first batch.

    Calls that one of ``rules`` lets pass do not count: they waited only because of an emergency stop.
    """

    def __init__(self, tool: str, rules: Sequence[AutoApproveRule] = ()) -> None:
        self._tool = tool
        self._rules = rules
        self._kinds: frozenset[str] | None = None
        self._types: dict[str, _Type] = {}

    def add_all(self, batch: Sequence[str]) -> None:
        """Approved calls more: their arguments as JSON texts. Takes a while: off the event loop."""
        calls = [json.loads(text) for text in batch]
        if self._kinds is None:
            self._kinds = kinds_in(calls)
        for arguments in calls:
            if not any(rule.allows(self._tool, arguments) for rule in self._rules):
                self._add(arguments, self._kinds)

    def _add(self, arguments: Mapping[str, Any], named: frozenset[str]) -> None:
        given = {name: value for name, value in arguments.items() if value is not None}
        numbers = {name: value for name, value in given.items() if _is_limit(value, name)}
        kinds = {name: value for name in named if _is_kind(value := given.get(name), name)}
        rest = given.keys() - numbers.keys() - kinds.keys()
        if len(given) > MOST_ARGUMENTS or not all(_tells_apart(given[name], name) for name in rest):
            return
        subject = json.dumps(
            [self._tool, sorted(given), sorted(numbers), kinds], sort_keys=True, ensure_ascii=False
        )
        found = self._types.get(subject)
        if found is None:
            if len(self._types) >= MOST_TYPES:
                return
            found = self._types[subject] = _Type(given.keys(), kinds)
        found.add(numbers)

    def limits(self, least: int) -> list[Limits]:
        """A rule for each type with at least so many calls; none where nothing in them can be a limit."""
        enough = [(subject, found) for subject, found in self._types.items() if found.calls >= least]
        return [
            Limits(_rule(self._tool, found), subject, found.calls, tuple(sorted(found.ignored)))
            for subject, found in enough
            if found.has_limits
        ]


def without_objections(found: Sequence[Limits], batch: Sequence[str]) -> list[Limits]:
    """Those within whose limits none of these calls is, which a person rejected or had to undo (A-31).

    What else such a call gave does not count: it speaks against the limits all the same. Their arguments are JSON
    texts. Takes a while: off the event loop.
    """
    standing = list(found)
    for text in batch:
        arguments = json.loads(text)
        standing = [one for one in standing if not one.rule.within(arguments)]
    return standing


def let_pass(found: Sequence[Limits], batch: Sequence[str]) -> Counter[str]:
    """How many of these calls each rule lets pass, by the rule's id. Their arguments are JSON texts. Takes a while:
    off the event loop.
    """
    calls = [json.loads(text) for text in batch]
    rules = [one.rule for one in found]
    return Counter(rule.id for rule in rules for arguments in calls if rule.allows(rule.tool, arguments))


def _is_limit(value: object, name: str) -> TypeGuard[Number]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return _is_named(name) and abs(value) < _EXACT


def _is_kind(value: object, name: str) -> TypeGuard[Kind]:
    """What was masked is not what the next call holds."""
    if isinstance(value, str):
        return _is_named(name) and 0 < len(value.strip()) == len(value) <= LONGEST_KIND and MASK not in value
    return isinstance(value, bool) and _is_named(name)


def _is_named(name: str) -> bool:
    return bool(name) and name == name.strip() and not field_of(name).identifies


def _tells_apart(value: object, name: str) -> bool:
    """Which call it is about, a reservation for one: no limit, and nothing that a rule need look at."""
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return is_plain and name == name.strip() and field_of(name).ignored


def _rule(tool: str, found: _Type) -> AutoApproveRule:
    when = [
        *(condition for name in sorted(found.ranges) for condition in _conditions(name, found.ranges[name])),
        *(_condition(name, "==", found.kinds[name]) for name in sorted(found.kinds)),
    ]
    arguments = tuple(sorted(found.arguments))
    key = change_id(tool, [arguments, [one.model_dump() for one in when]])
    return AutoApproveRule(id=key, tool=tool, when=tuple(when), arguments=arguments)


def _conditions(name: str, seen: _Range) -> list[Condition]:
    most = _condition(name, "<=", seen.high)
    least = _condition(name, ">", seen.low - 1) if seen.whole else _condition(name, ">=", seen.low)
    match field_of(name).limit:
        case "at_most" if seen.low >= 0:
            return [most]
        case "at_least":
            return [least]
    return [_condition(name, "==", seen.low)] if seen.low == seen.high else [least, most]


def _condition(name: str, op: Literal["<=", ">", ">=", "=="], value: Number | Kind) -> Condition:
    whole = isinstance(value, float) and value.is_integer()
    return Condition(field=name, op=op, value=int(value) if whole else value)


def change_id(name: str, content: object) -> str:
    """A name for a rule or a case of this content, the same whenever it is found."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-") or "tool"
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return f"{slug}-{sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"
