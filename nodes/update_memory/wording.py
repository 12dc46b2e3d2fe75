"""How much of one text's wording stands in another: stems in either language, numbers, negations."""

import re
from typing import Literal

from recuerdo.state.folding import folded, plain
from recuerdo.stores.recall.analysis import fold, query_terms

_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_WORD = re.compile(r"[^\W_]+")
_BEGINNING = 6
_NEGATION = re.compile(r"\b(?:no|nunca|jamas|sin|tampoco|ni|not|never|without|cannot)\b|\b\w+n'?t\b")


def overlap(one: str, other: str, of: Literal["first", "shorter"] = "shorter") -> float:
    """The share of the words of ``one`` (or of the text that has fewer) that stand in ``other``, 0 to 1."""
    words, others = _words(one), _words(other)
    whole = len(words) if of == "first" else min(len(words), len(others))
    return min(shared_words(one, other) / whole, 1.0) if whole else 0.0


def shared_words(one: str, other: str) -> int:
    """How many words of ``one`` that count stand in ``other``, inflected or not."""
    stems = {stem for word in _words(other) for stem in word}
    return sum(not word.isdisjoint(stems) for word in _words(one))


def other_words(one: str, other: str) -> int:
    """How many words of ``one`` that count do not stand in ``other``."""
    return len(_words(one)) - shared_words(one, other)


def numbers(text: str) -> set[str]:
    """The numbers in a text, as they are written."""
    return set(_NUMBER.findall(text))


def is_negated(text: str) -> bool:
    """Whether a text denies something."""
    return bool(_NEGATION.search(folded(plain(text))))


def _words(text: str) -> list[set[str]]:
    """Each word that counts as its stems, and a long one as its beginning too: alergia, alérgico."""
    found: dict[str, set[str]] = {}
    for word in _WORD.findall(fold(text)):
        stems = {str(stem) for terms in query_terms(word) for stem in terms}
        if stems:
            found[word] = stems | ({word[:_BEGINNING]} if len(word) > _BEGINNING else set())
    return list(found.values())
