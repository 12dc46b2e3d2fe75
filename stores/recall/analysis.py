"""Words to terms: what the lexical half of recall compares, for Spanish and English alike.

Stop words of both languages are dropped, accents are folded but ñ is kept, and what remains is stemmed by
the language of the text. A question may be in either language, so each of its words stands for both stems.
"""

import re
import threading
import zlib
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recuerdo.state.folding import folded, plain
from recuerdo.state.tables import read_table

ANALYZER = "es-en-1"
"""Names the rules of this module and its words; it is kept beside the terms that they made."""

MAX_QUERY_CHARACTERS = 2_000
"""What a question is about is said in its beginning: as much as the bundled embedder reads."""

Language = Literal["es", "en"]

TERM = np.dtype("<u4")
"""A term as it is kept and compared: the CRC-32 of its stem."""

_STEMMERS: dict[Language, str] = {"es": "spanish", "en": "english"}
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*")
_CLOSING = " \t\n\"'»”)"
# A long answer may close with "shall I go on?".
_ASKING_SHARE = 0.2
# Stands for ñ while accents are folded: in no text that is to be indexed.
_ENYE = "\ue000"


@dataclass(frozen=True)
class Analysis:
    """A memory's text for recall: its ``terms`` in order as bytes (little-endian uint32), and whether it asks.

    It asks when it ends with a question that is a good part of it.
    """

    terms: bytes
    asks: bool


def analyse(text: str, language: str) -> Analysis:
    """The terms of a memory's text; ``language`` other than Spanish counts as English."""
    own: Language = "es" if language.startswith("es") else "en"
    found = [term for word in _words(text) if (term := _term(word, own)) is not None]
    return Analysis(np.array(found, TERM).tobytes(), _asks(text))


def query_terms(text: str) -> list[NDArray[np.uint32]]:
    """The terms of a question: for each word that counts, its alternatives (one or two), none twice."""
    alternatives: dict[frozenset[int], None] = {}
    for word in _words(text[:MAX_QUERY_CHARACTERS]):
        terms = frozenset(term for language in _STEMMERS if (term := _term(word, language)) is not None)
        if terms:
            alternatives[terms] = None
    return [np.array(sorted(terms), TERM) for terms in alternatives]


def fold(text: str) -> str:
    """Lower case without accents, ñ kept."""
    marked = plain(text).replace("ñ", _ENYE).replace("Ñ", _ENYE)
    return folded(marked).replace(_ENYE, "ñ")


def table(name: str) -> Any:
    """One part of ``words.yaml``."""
    return _tables()[name]


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = read_table(__package__, "words.yaml")
    return tables


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


def _asks(text: str) -> bool:
    said = _without_caption(text.rstrip()).rstrip(_CLOSING)
    if not said.endswith("?"):
        return False
    sentences = [(len(sentence.split()), "?" in sentence) for sentence in _SENTENCE.findall(said)]
    asking = sum(words for words, asks in sentences if asks)
    return asking >= _ASKING_SHARE * sum(words for words, _ in sentences)


def _without_caption(text: str) -> str:
    """``text`` without what stands in brackets at its end, such as a picture's caption: no part of the saying."""
    opens = text.rfind("[")
    return text[:opens] if text.endswith("]") and opens >= 0 else text


@cache
def _stop_words(language: Language) -> frozenset[str]:
    """Stop words of both languages, but for those of the other one that mean something in this one."""
    stop, content = table("stop"), table("content")
    other: Language = "en" if language == "es" else "es"
    return frozenset(stop[language].split()) | (
        frozenset(stop[other].split()) - frozenset(content[language].split())
    )


@cache
def _regular(language: Language) -> dict[str, str]:
    """Irregular forms and what stands for them."""
    lines = [line.split() for line in table("irregular")[language]]
    return {form: forms[0] for forms in lines for form in forms}


_stemming = threading.Lock()


@lru_cache(maxsize=50_000)
def _term(word: str, language: Language) -> int | None:
    """The term of a folded word, None for a stop word."""
    if word in _stop_words(language):
        return None
    regular = _regular(language).get(word, word)
    # A stemmer holds the word it is at.
    with _stemming:
        stem = _stemmer(language).stemWord(regular)
    return zlib.crc32(stem.encode())


@cache
def _stemmer(language: Language) -> Any:
    # Here, not above: it loads the stemmers of all its languages.
    import snowballstemmer  # type: ignore[import-untyped]

    return snowballstemmer.stemmer(_STEMMERS[language])
