"""The words of both languages that give sensitive data away (`words.yaml`), and what they are said of."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Literal, NamedTuple, get_args

from recuerdo.state.tables import read_table

Kind = Literal[
    "account",
    "amount_held",
    "balance",
    "card",
    "clabe",
    "credential",
    "holding",
    "iban",
    "identity",
    "key",
    "seed_phrase",
    "tax_id",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

# A line of a list ends after a bar.
_BREAK = re.compile("[|] +")
_PIECE = re.compile(r"\\.|\[(?:\\.|[^\]])*\]|.", re.DOTALL)
_PLAIN_START = re.compile(r"[a-z](?![?*+{])")


class Candidate(NamedTuple):
    """A part of the text that may be sensitive, and what it looks like; ``at``: as a price stands, after "at"."""

    start: int
    end: int
    shape: str
    at: bool = False


def kind_named(name: str) -> Kind:
    """The kind of that name, for a table that names one."""
    return next(kind for kind in KINDS if kind == name)


@cache
def vocabulary() -> dict[str, str]:
    """Each list of `words.yaml` as one group of alternatives of a regular expression."""
    return {name: alternatives(value) for name, value in read_table(__package__, "words.yaml").items()}


def words(name: str) -> str:
    """One list of the vocabulary."""
    return vocabulary()[name]


def plain_words(name: str) -> frozenset[str]:
    """The words of one list that holds nothing but words."""
    return frozenset(read_table(__package__, "words.yaml")[name].strip().split("|"))


def alternatives(listed: str) -> str:
    """Alternatives with bars between them, on one line or several, as one group."""
    return f"(?:{'|'.join(_by_first_letter(_split(_BREAK.sub('|', listed.strip()))))})"


def _split(listed: str) -> list[str]:
    """The alternatives of a regular expression, those in its groups and sets left alone."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(listed):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _by_first_letter(parts: Sequence[str]) -> Iterator[str]:
    """The same alternatives with those of one first letter together, so that a reader tries few of them at a place.

    Only between neighbours that begin with a plain letter: such can never match at the same place, and the order of
    all others stays.
    """
    for is_plain, run in groupby(parts, lambda part: _PLAIN_START.match(part) is not None):
        if not is_plain:
            yield from run
            continue
        letters: dict[str, list[str]] = {}
        for part in run:
            letters.setdefault(part[0], []).append(part[1:])
        for letter, rests in letters.items():
            yield f"{letter}(?:{'|'.join(rests)})" if len(rests) > 1 else letter + rests[0]
