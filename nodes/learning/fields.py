"""What the name of an argument says: which way it is the lesser matter, its unit, and how a person calls it."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from recuerdo.state.folding import comparable, plain
from recuerdo.state.sentences import Sentence
from recuerdo.state.tables import read_table

Limit = Literal["at_most", "at_least"]


@dataclass(frozen=True)
class Field:
    """An argument. ``limit`` None: its name does not say which way it matters less. ``unit`` may be empty.

    ``measures``: every word of the name is known, so that its numbers are amounts of something. ``identifies``: it
    names a thing; ``ignored`` where that thing is only what the call is about, such as a reservation.
    """

    name: str
    noun: Sentence
    unit: Sentence
    limit: Limit | None
    measures: bool
    identifies: bool
    ignored: bool


@dataclass(frozen=True)
class _Word:
    es: str = ""
    en: str = ""
    limit: Limit | None = None
    unit: bool = False
    ignored: bool = False


@cache
def _words() -> dict[str, _Word]:
    raw = read_table(__package__, "fields.yaml")
    return {str(name): _Word(**word) for name, word in raw.items()}


@cache
def field_of(name: str) -> Field:
    """Read a name such as ``discount_pct`` or ``discountPct``; of an unknown one only the name is known."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain(name))
    parts = re.findall(r"[^\W_]+", comparable(split))
    words = [_words()[part] for part in parts if part in _words()]
    nouns = [word for word in words if not word.unit and word.es]
    units = [word for word in words if word.unit]
    known = len(words) == len(parts)
    identifies = any(word.ignored for word in words)
    return Field(
        name=name,
        noun=_joined(nouns) if known else Sentence(name, name),
        unit=_joined(units),
        limit=next((word.limit for word in words if word.limit), None),
        measures=known and bool(words) and not identifies,
        identifies=identifies,
        ignored=known and identifies,
    )


def _joined(words: list[_Word]) -> Sentence:
    return Sentence(" ".join(word.es for word in words), " ".join(word.en for word in words))
