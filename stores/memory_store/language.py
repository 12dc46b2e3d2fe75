"""The likely language of a text that comes without one: by the small words that only one language has."""

import re
from functools import cache
from typing import Literal

from recuerdo.stores.recall.analysis import fold, table

_WORD = re.compile(r"[^\W\d_]+")
_SPANISH_ONLY = re.compile("[ñÑ¿¡]")


def likely_language(text: str) -> Literal["es", "en"]:
    """Spanish or English; Spanish when nothing tells."""
    words = _WORD.findall(fold(text))
    spanish, english = _small_words()
    said = sum(word in spanish for word in words) - sum(word in english for word in words)
    return "en" if said < 0 and not _SPANISH_ONLY.search(text) else "es"


@cache
def _small_words() -> tuple[frozenset[str], frozenset[str]]:
    stop = table("stop")
    spanish, english = frozenset(stop["es"].split()), frozenset(stop["en"].split())
    return spanish - english, english - spanish
