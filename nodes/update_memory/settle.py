"""Compares what was learnt with what is known: said again, said anew, or something else (RF-11, A-25).

A paraphrase confirms the fact that is there (known fault 2), a new value takes the old one's place (known fault 3).
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from recuerdo.nodes.update_memory.extract.facts import says_what_is_now, slot_of
from recuerdo.nodes.update_memory.extract.grammar import without_hedge
from recuerdo.nodes.update_memory.extract.preferences import FOLLOWED
from recuerdo.nodes.update_memory.extract.protocol import Extracted, Item
from recuerdo.nodes.update_memory.extract.verdicts import LISTS
from recuerdo.nodes.update_memory.wording import is_negated, numbers, other_words, overlap, shared_words
from recuerdo.state.folding import folded, plain

Relation = Literal["same", "replaces", "other"]

# Verbs that say little beside what they stand with.
_LIGHT = re.compile(
    r"\b(?:trabaj\w+|tengo|tenemos|tiene|hago|hacemos|estoy|voy|work(?:s|ing)?|have|has|got|do|does|am|are|is"
    r"|mi meta|mi objetivo|quiero|queremos|planeo|my goal|my plan|want|plan|turno|shift|todavia|still"
    r"|(?:ya )?sabes"
    r"|you know|like i said|as i (?:said|told you)|como (?:ya )?te dije|soy|somos|sigo|seguimos|muy|mucho"
    r"|really|very)\b"
)
_ENOUGH = 4
_SAME_WORDS = 0.8
_SAME_MATTER = 0.6
_SOME_MATTER = 0.34
_MEANT = 0.5
_MEANT_ALIKE = 0.55
_RESTATED_ALIKE = 0.45
_FEWEST_OTHER_WORDS = 2
# "I'm not a day trader" takes something back; "I don't eat meat" is a fact of its own.
_NO_LONGER_IS = re.compile(
    r"^(?:yo )?(?:ya )?no (?:soy|somos|tengo|tenemos|estoy|estamos|llevo|llevamos)\b"
    r"|^(?:i|we)(?: am|'?m| are|'?re|'?ve| have) (?:not|never|no)\b|^(?:i|we) (?:don'?t|do not) have\b"
)
_OF_A_WEEK = re.compile(
    r"\b(?:(?P<mo>lunes|mondays?)|(?P<tu>martes|tuesdays?)|(?P<we>miercoles|wednesdays?)|(?P<th>jueves"
    r"|thursdays?)"
    r"|(?P<fr>viernes|fridays?)|(?P<sa>sabados?|saturdays?)|(?P<su>domingos?|sundays?))\b"
)


@dataclass(frozen=True)
class Known:
    """A fact that is remembered, and its cosine similarity, -1 to 1, to what it is compared with."""

    id: UUID
    text: str
    similarity: float


Nearest = Callable[[str], Awaitable[Sequence[Known]]]
"""The remembered facts nearest to a text, nearest first."""


@dataclass(frozen=True)
class NewFact:
    """A fact to add, in the place of those it ``supersedes``."""

    item: Item
    supersedes: Sequence[UUID] = ()


@dataclass
class Settled:
    """What a turn changes of what is known.

    ``preferences`` are new values by key with the item that says so, ``said_again`` those that hold already;
    ``dropped`` keys go altogether. ``confirmed`` and ``forgotten`` are facts by id, with the item too.
    """

    facts: list[NewFact] = field(default_factory=list)
    confirmed: dict[UUID, Item] = field(default_factory=dict)
    forgotten: dict[UUID, Item] = field(default_factory=dict)
    preferences: dict[str, tuple[Any, Item]] = field(default_factory=dict)
    said_again: dict[str, tuple[Any, Item]] = field(default_factory=dict)
    dropped: dict[str, Item] = field(default_factory=dict)
    unfollowed: dict[str, Item] = field(default_factory=dict)


async def settle(extracted: Extracted, known: Mapping[str, Any], nearest: Nearest) -> Settled:
    """Decide what changes. ``known`` are the preferences in force by key."""
    settled = Settled()
    _settle_preferences(extracted, known, settled)
    ended = await _settle_forgotten(extracted, nearest, settled)
    for item in extracted.learn:
        if item.type != "fact" or (item.quote in ended and not _says_now(item)):
            continue
        await _settle_fact(item, nearest, settled)
    return settled


def _says_now(item: Item) -> bool:
    return says_what_is_now(folded(plain(item.value)))


async def _settle_forgotten(extracted: Extracted, nearest: Nearest, settled: Settled) -> set[str]:
    """Facts that are over; returns the quotes that ended one."""
    ended: set[str] = set()
    for item in extracted.forget:
        if item.type != "fact":
            continue
        for one in await nearest(item.value):
            if is_meant(item.value, one.text, one.similarity) and not _same_words(item.value, one.text):
                settled.forgotten[one.id] = item
                ended.add(item.quote)
    return ended


async def _settle_fact(item: Item, nearest: Nearest, settled: Settled) -> None:
    replaced: list[UUID] = []
    for one in await nearest(item.value):
        # What the same message ends is replaced by what it says is so now.
        if one.id in settled.forgotten and settled.forgotten[one.id].quote in item.quote:
            replaced.append(one.id)
            continue
        if _only_denies(item.value, one.text):
            settled.forgotten[one.id] = item
            return
        if item.restated and is_restated(item.value, one.text, one.similarity):
            settled.confirmed[one.id] = item
            return
        match relation(item.value, one.text, one.similarity):
            case "same":
                settled.confirmed[one.id] = item
                return
            case "replaces":
                replaced.append(one.id)
    for old in replaced:
        settled.forgotten.pop(old, None)
    settled.facts.append(NewFact(item, replaced))


def _settle_preferences(extracted: Extracted, known: Mapping[str, Any], settled: Settled) -> None:
    """A list gains and loses single values; any other key has one value, the last one said."""
    lists = {key: list(known.get(key) or ()) for key in LISTS}
    touched: dict[str, Item] = {}
    for item in extracted.forget:
        if item.type == "symbol":
            settled.unfollowed[item.value] = item
        if item.type != "fact":
            _forget_preference(_as_preference(item), lists, known, touched, settled)
    for item in map(_as_preference, extracted.learn):
        if item.type == "preference" and item.key in LISTS:
            lists[item.key] = list(dict.fromkeys([*lists[item.key], *item.value]))
            touched[item.key] = item
        elif item.type == "preference":
            _set(item.key, item.value, item, known, settled)
    for key, item in touched.items():
        _set(key, lists[key], item, known, settled)


def _set(key: str, value: Any, item: Item, known: Mapping[str, Any], settled: Settled) -> None:
    """A value is new, or said again, or there is nothing left of it."""
    if value == []:
        settled.dropped[key] = item
    elif known.get(key) == value:
        settled.said_again[key] = (value, item)
    else:
        settled.preferences[key] = (value, item)


def _forget_preference(
    item: Item,
    lists: dict[str, list[Any]],
    known: Mapping[str, Any],
    touched: dict[str, Item],
    settled: Settled,
) -> None:
    if item.key in LISTS:
        gone = item.value if isinstance(item.value, list) else [item.value]
        kept = [value for value in lists[item.key] if value not in gone]
        if kept != lists[item.key]:
            lists[item.key], touched[item.key] = kept, item
    elif item.key in known:
        settled.dropped[item.key] = item


def _as_preference(item: Item) -> Item:
    """Symbols that the user follows are kept as a list among the preferences."""
    if item.type != "symbol":
        return item
    return Item("preference", FOLLOWED, [item.value], item.quote, item.confidence)


def relation(new: str, known: str, similarity: float) -> Relation:
    """What a new fact is to a known one. ``similarity`` is their cosine, -1 to 1.

    Likeness alone decides nothing: "I never trade on Mondays" is as like "on Fridays" as a paraphrase is.
    """
    if _holds(known, new):
        return "replaces" if _is_firmer(new, known) else "same"
    if _holds(new, known) or (slot_of(new) and slot_of(new) == slot_of(known)):
        return "replaces"
    shared = overlap(new, known)
    if shared >= _SOME_MATTER and similarity >= _MEANT_ALIKE and says_what_is_now(folded(plain(new))):
        return "replaces"
    changed = numbers(new) and numbers(known) and numbers(new) != numbers(known)
    if shared >= _SAME_MATTER and (changed or is_negated(new) != is_negated(known)):
        return "replaces"
    return "other"


def is_restated(new: str, known: str, similarity: float) -> bool:
    """Whether what the user says he has told before is a known fact in other words.

    Two texts that differ in one word are two facts: "allergic to dust", "allergic to feathers".
    """
    if similarity < _RESTATED_ALIKE or not shared_words(new, known) or is_negated(new) != is_negated(known):
        return False
    if not numbers(new) <= numbers(known) or not same_days(new, known):
        return False
    return min(other_words(new, known), other_words(known, new)) >= _FEWEST_OTHER_WORDS


def same_days(one: str, other: str) -> bool:
    """Whether two texts name the same days of the week, where both name any."""
    first, second = (_days(text) for text in (one, other))
    return not first or not second or first == second


def _days(text: str) -> set[str | None]:
    return {match.lastgroup for match in _OF_A_WEEK.finditer(folded(plain(text)))}


def _only_denies(new: str, known: str) -> bool:
    """Whether a new fact is no more than that a known one is not so."""
    if not _NO_LONGER_IS.match(folded(plain(new))) or is_negated(known) or numbers(new) != numbers(known):
        return False
    return overlap(new, known, of="first") == 1.0


def is_meant(description: str, known: str, similarity: float) -> bool:
    """Whether a description such as "the thing about the stop" means a known fact."""
    if not shared_words(description, known):
        return False
    return overlap(description, known) >= _MEANT or similarity >= _MEANT_ALIKE


def _same_words(one: str, other: str) -> bool:
    """ "We're closed on Mondays" said again ends nothing."""
    same = min(overlap(one, other, of="first"), overlap(other, one, of="first")) >= _SAME_WORDS
    return same and is_negated(one) == is_negated(other) and numbers(one) == numbers(other)


def _is_firmer(new: str, known: str) -> bool:
    """Whether a new text says without a hedge all that a known one only supposes."""
    meant = without_hedge(known)
    return meant != known and without_hedge(new) == new and _holds(new, meant)


def _holds(whole: str, part: str) -> bool:
    """Whether ``whole`` says all that ``part`` says: its words in any inflection, its numbers, its denial."""
    if not numbers(part) <= numbers(whole) or is_negated(part) != is_negated(whole):
        return False
    if overlap(part, whole, of="first") == 1.0:
        return True
    rest = _LIGHT.sub(" ", folded(plain(part)))
    return len(rest.split()) >= _ENOUGH and overlap(rest, whole, of="first") == 1.0
