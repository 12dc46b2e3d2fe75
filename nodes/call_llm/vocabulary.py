"""Words as the offline responder compares them: folded, stemmed, without stop words; and topics."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from recuerdo.state.tables import read_table

_ACCENTS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(r"[^\W_]+(?:[.,][^\W_]+)*%?")
_VERB_AND_NOUN_ENDINGS = (
    "aciones",
    "acion",
    "ciones",
    "cion",
    "iendo",
    "ando",
    "ing",
    "ed",
    "ar",
    "er",
    "ir",
    "en",
    "an",
)


@dataclass(frozen=True)
class Topic:
    """Words that point to sections of the prompt, each with its weight; see vocabulary.yaml."""

    sections: dict[str, float]
    words: frozenset[str]
    cues: frozenset[str]


def fold(text: str) -> str:
    """Lower case, without accents."""
    return _ACCENTS.sub("", unicodedata.normalize("NFD", text.lower()))


def stem(word: str) -> str:
    """A cheap stem for both languages: plural, then ending, then vowel, never below four letters."""
    if len(word) <= 4 or not word.isalpha():
        return word
    word = word.removesuffix("es") if word.endswith(("nes", "res", "les", "des")) else word.removesuffix("s")
    for ending in _VERB_AND_NOUN_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word[:-1] if len(word) > 4 and word[-1] in "aeo" else word


def words(text: str) -> list[str]:
    """The folded words and numbers of a text, in order."""
    return _WORD.findall(fold(text))


def is_stop_word(word: str) -> bool:
    """Whether a folded word says nothing about what is asked."""
    return word in _all_stop_words()


def terms(text: str) -> frozenset[str]:
    """The stems of the words that say something."""
    return frozenset(map(stem, set(words(text)) - _all_stop_words()))


def language_of(texts: Iterable[str]) -> str:
    """ "es" or "en" by the first text that shows it; English when none does."""
    for text in texts:
        found = set(words(text))
        spanish, english = (len(found & _stop_words()[language]) for language in ("es", "en"))
        if re.search("[¿¡ñáéíóú]", text.lower()):
            spanish += 1
        if spanish != english:
            return "es" if spanish > english else "en"
    return "en"


@cache
def topics() -> tuple[Topic, ...]:
    """The topics of vocabulary.yaml, in its order."""
    return tuple(
        Topic(raw["sections"], _stems(raw["words"]), _stems(raw.get("cues", "")))
        for raw in _vocabulary()["topics"]
    )


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text))


@cache
def _stop_words() -> dict[str, frozenset[str]]:
    return {language: frozenset(words(text)) for language, text in _vocabulary()["stop_words"].items()}


@cache
def _all_stop_words() -> frozenset[str]:
    return frozenset().union(*_stop_words().values())


@cache
def _vocabulary() -> dict[str, Any]:
    vocabulary: dict[str, Any] = read_table(__package__, "vocabulary.yaml")
    return vocabulary
