"""Memories that contradict a rule: the rule prevails, the prompt says so, and it is evidence (OR-1, IM-54).

What is compared are plain values, "check-out: 11:00" beside "el check-out es a las 12:00": times, percentages and
counted things, each with the words that say what it is the value of. Where a rule gives a bound, "hasta el 20 %", only
what is beyond it contradicts; where it gives a range, nothing is read from it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal

from recuerdo.nodes.call import Call
from recuerdo.nodes.turn_log import run_of
from recuerdo.state.errors import StoreError
from recuerdo.state.folding import folded, plain
from recuerdo.state.sentences import load_sentences
from recuerdo.state.tables import read_table
from recuerdo.state.turn import Work
from recuerdo.stores.packs import Pack
from recuerdo.stores.postgres.evidence import EvidenceLog, NewEvidence
from recuerdo.stores.postgres.memories import StoredMemory

sentences = load_sentences(__package__, "conflicts_sentences.yaml")

_NEAREST = 4
"""Words before a value that say what it is the value of, where no label does."""

_LONGEST_RULE = 160
"""Characters of a rule that the prompt and the evidence quote."""

_LABEL = re.compile(r"^\W*([^:\d|]{2,60}):(?=\s|$)")
_CLAUSE = re.compile(r"[;|]|,(?!\d)|\.(?!\d)")
_WORD = re.compile(r"[^\W\d_]+(?:[-_][^\W\d_]+)*")
_VALUE = re.compile(
    r"(?P<hour>\b[012]?\d)[:h.](?P<minute>[0-5]\d)\b(?!\s*(?:%|€|eur|usd|\d))(?:\s*(?P<half>[ap])\.?m\b)?"
    r"|\b(?:a las?|at|las|until|hasta las?)\s+(?P<clock>[012]?\d)\b(?![:.,]?\d)(?:\s*(?P<clock_half>[ap])\.?m\b)?"
    r"|(?P<percent>\b\d+(?:[.,]\d+)?)\s*(?:%|por ciento|per ?cent)"
    r"|(?P<number>\b\d+(?:[.,]\d+)?)\s*(?P<unit>[a-z€$]+)"
)


_Bound = Literal["least", "most"] | None


@dataclass(frozen=True)
class Conflict:
    """A memory beside the rule of a pack that says otherwise; ``rule`` is the rule's line."""

    memory: StoredMemory
    pack: str
    rule: str
    memory_says: str
    rule_says: str


@dataclass(frozen=True)
class _Fact:
    """A value, of which kind, with what it is the value of. ``line`` is where it stands.

    ``amount`` is the value as a number, minutes for a time; ``bound``: it is the least or the most that is allowed.
    """

    words: tuple[str, ...]
    kind: str
    value: str
    amount: float
    bound: _Bound
    line: str


def find_conflicts(memories: Iterable[StoredMemory], packs: Sequence[Pack]) -> list[Conflict]:
    """The memories that give another value than a rule for the same thing; one conflict each."""
    rules = [(pack.reference, fact) for pack in packs for fact in _rules(pack)]
    found = (_conflict(memory, rules) for memory in memories) if rules else ()
    return [conflict for conflict in found if conflict]


def with_notes(
    memories: Iterable[StoredMemory], conflicts: Sequence[Conflict], language: str
) -> list[StoredMemory]:
    """The memories as the prompt says them: each that contradicts a rule with that rule."""
    of_memory = {conflict.memory.id: conflict for conflict in conflicts}
    return [_noted(memory, of_memory.get(memory.id), language) for memory in memories]


async def note_conflicts(conflicts: Sequence[Conflict], work: Work, call: Call) -> None:
    """Keep them as evidence, each once, however often it is recalled; a database that is away costs only that."""
    if not conflicts:
        return
    now, run = datetime.fromisoformat(work["turn"]["now"]), run_of(work, call)
    pieces = [
        NewEvidence(
            "pack_conflict",
            now,
            run,
            f"{conflict.memory.id}\x1f{conflict.pack}",
            names={"memory": str(conflict.memory.id), "pack": conflict.pack},
            data={
                "memory_says": conflict.memory_says,
                "rule": conflict.rule,
                "rule_says": conflict.rule_says,
            },
        )
        for conflict in conflicts
    ]
    with suppress(StoreError):
        await EvidenceLog(call.services.database, call.caller.tenant).write(*pieces)


def _noted(memory: StoredMemory, conflict: Conflict | None, language: str) -> StoredMemory:
    if conflict is None:
        return memory
    note = sentences("memory_conflicts", pack=conflict.pack, rule=conflict.rule).in_language(language)
    return replace(memory, text=memory.text + note)


def _conflict(memory: StoredMemory, rules: Sequence[tuple[str, _Fact]]) -> Conflict | None:
    for fact in _facts(memory.text):
        same = [(pack, rule) for pack, rule in rules if _same_thing(fact, rule)]
        if same and all(_contradicts(fact, rule) for _, rule in same):
            pack, rule = same[0]
            return Conflict(memory, pack, rule.line, fact.value, rule.value)
    return None


def _contradicts(fact: _Fact, rule: _Fact) -> bool:
    if rule.bound == "least":
        return fact.amount < rule.amount
    if rule.bound == "most":
        return fact.amount > rule.amount
    return fact.amount != rule.amount


def _same_thing(fact: _Fact, rule: _Fact) -> bool:
    """Whether two values of one kind are of the same thing: by the words that they share."""
    if fact.kind != rule.kind:
        return False
    said, ruled = _joined(fact.words, rule.words), set(rule.words)
    shared = len(said & ruled)
    return 2 * shared >= min(len(said), len(ruled)) and 4 * shared >= len(said | ruled) and shared > 0


def _joined(words: Sequence[str], known: Sequence[str]) -> set[str]:
    """ "check out" is "checkout" where the rule writes it as one."""
    pairs = {left + right: (left, right) for left, right in pairwise(words)}
    joined = {pair for pair in pairs if pair in known}
    return {*words, *joined} - {part for pair in joined for part in pairs[pair]}


@lru_cache(maxsize=64)
def _rules(pack: Pack) -> tuple[_Fact, ...]:
    return tuple(fact for file in pack.files for fact in _facts(file.text))


def _facts(text: str) -> Iterator[_Fact]:
    for line in plain(text).splitlines():
        if any(character.isdigit() for character in line):
            yield from _facts_of_line(line)


def _facts_of_line(line: str) -> Iterator[_Fact]:
    shown = " ".join(line.strip(" \t-*#|").split())[:_LONGEST_RULE]
    low = folded(line)
    label = _LABEL.match(low)
    named = _words(label[1]) if label else ()
    for clause in _CLAUSE.split(low):
        values = [(value, read) for value in _VALUE.finditer(clause) if (read := _read(value))]
        kinds = [kind for _, (kind, _, _) in values]
        for value, read in values:
            before, after = clause[: value.start()], clause[value.end() :]
            words = named or _words(before)[-_NEAREST:] or _words(after)[:_NEAREST]
            if words and kinds.count(read[0]) == 1:
                yield _Fact(words, *read, _bound(f"{label[1] if label else ''} {before}"), shown)


def _bound(before: str) -> _Bound:
    """By the words before the value."""
    vocabulary = _vocabulary()
    if vocabulary.least.search(before):
        return "least"
    return "most" if vocabulary.most.search(before) else None


def _read(value: re.Match[str]) -> tuple[str, str, float] | None:
    """Kind, value and amount; None for a number of something that is no unit."""
    part = value.groupdict()
    if part["hour"] or part["clock"]:
        hour, half = int(part["hour"] or part["clock"]), part["half"] or part["clock_half"]
        hour = hour % 12 + (12 if half == "p" else 0) if half else hour
        minute = part["minute"] or "00"
        return ("time", f"{hour:02}:{minute}", float(hour * 60 + int(minute))) if hour < 24 else None
    amount = float((part["percent"] or part["number"]).replace(",", "."))
    if part["percent"]:
        return "percent", f"{amount:g} %", amount
    unit = _vocabulary().units.get(part["unit"])
    return (unit, f"{amount:g} {part['unit']}", amount) if unit else None


def _words(text: str) -> tuple[str, ...]:
    vocabulary = _vocabulary()
    words = (word.replace("-", "").replace("_", "") for word in _WORD.findall(text))
    return tuple(word for word in words if word not in vocabulary.stop and word not in vocabulary.units)


@dataclass(frozen=True)
class _Vocabulary:
    stop: frozenset[str]
    units: dict[str, str]
    least: re.Pattern[str]
    most: re.Pattern[str]


@cache
def _vocabulary() -> _Vocabulary:
    raw = read_table(__package__, "conflicts.yaml")
    units = {str(name): unit for unit, names in raw["units"].items() for name in names}
    return _Vocabulary(frozenset(raw["stop"]), units, _any_of(raw["least"]), _any_of(raw["most"]))


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(map(re.escape, phrases)) + r")\b")
