"""What a model wants to learn is checked by code: the user said it himself, now and for good, and nothing is added.

Every item's quote is an exact part of the user's own clauses, so nothing that is pasted, asked, supposed, ironic or
said by others can be learnt. Numbers and names of an item stand in its quote, and so do most of its words; so its
language is the user's (known fault 17). Values of known keys are read out of the quote by the rules.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from recuerdo.nodes.build_context.symbols import find_indicators, find_symbols
from recuerdo.nodes.update_memory.extract.answer import (
    Answer,
    StatedEnd,
    StatedFact,
    StatedPreference,
    StatedSymbol,
)
from recuerdo.nodes.update_memory.extract.clauses import Clause, normalised, own_clauses
from recuerdo.nodes.update_memory.extract.facts import is_passing
from recuerdo.nodes.update_memory.extract.preferences import (
    INDICATORS,
    LANGUAGES,
    NOTIFICATION_STYLES,
    STYLES,
    TIMEFRAME,
    has,
    timeframe_in,
)
from recuerdo.nodes.update_memory.extract.protocol import Extracted, Item, Said
from recuerdo.nodes.update_memory.wording import numbers, overlap, shared_words
from recuerdo.state.folding import folded, plain
from recuerdo.stores.sensitive import MASK, redact

LONGEST_FACT = 300
"""Characters of a fact's text and of a value."""

_KEY = re.compile(r"^[a-z][a-z0-9_]{1,39}$")
_NAME = re.compile(r"(?<=[^.!?\s]\s)[A-ZÁÉÍÓÚÑ][\w'-]+")
_JOINING = ("and", "y", "e", "but", "pero", "so", "because", "porque", "que", "also", "tambien")
_GROUNDED = 0.7
_FEWEST_WORDS = 2


def checked(answer: Answer, said: Said) -> Extracted:
    """The items of an answer that stand the checks, and how many did not."""
    grounds = _Grounds(said)
    learn = [
        *(grounds.preference(one) for one in answer.preferences),
        *(grounds.symbol(one) for one in answer.symbols),
        *(grounds.fact(one) for one in answer.facts),
    ]
    forget = [grounds.ended(one) for one in answer.forget]
    kept, over = [one for one in learn if one], [one for one in forget if one]
    refused = len(learn) + len(forget) - len(kept) - len(over)
    return Extracted(kept, over, refused=refused)


class _Grounds:
    """What the user's own clauses bear out."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._text = normalised(said.text)
        self._clauses: Sequence[Clause] = own_clauses(said.text)

    def preference(self, stated: StatedPreference) -> Item | None:
        if not self._is_own(stated.quote) or not _KEY.match(stated.key):
            return None
        read: Callable[[Any, str], Any] = _VALUES.get(stated.key, _free_value)
        value = read(stated.value, stated.quote)
        return None if value is None else Item("preference", stated.key, value, stated.quote)

    def symbol(self, stated: StatedSymbol) -> Item | None:
        if not self._is_own(stated.quote):
            return None
        named = [one.symbol for one in find_symbols(stated.quote) if one.certain and one.known]
        return Item("symbol", stated.symbol, stated.symbol, stated.quote) if stated.symbol in named else None

    def fact(self, stated: StatedFact) -> Item | None:
        text = stated.text.strip()
        if not self._is_own(stated.quote) or not self._is_borne_out(text, stated.quote):
            return None
        hedge = min(clause.confidence for clause in self._over(stated.quote))
        return Item("fact", "fact", text, stated.quote, min(stated.confidence, hedge))

    def ended(self, stated: StatedEnd) -> Item | None:
        if not self._is_own(stated.quote):
            return None
        if stated.type == "fact":
            return self._ended_fact(stated)
        if stated.value is None:
            return None
        if stated.type == "symbol":
            named = [one.symbol for one in find_symbols(stated.quote) if one.known]
            return Item("symbol", stated.value, stated.value, stated.quote) if stated.value in named else None
        if stated.value in find_indicators(stated.quote):
            return Item("preference", INDICATORS, stated.value, stated.quote)
        known = self._said.preferences.get(stated.value)
        return None if known is None else Item("preference", stated.value, known, stated.quote)

    def _ended_fact(self, stated: StatedEnd) -> Item | None:
        if stated.known is None or not 1 <= stated.known <= len(self._said.facts):
            return None
        text = self._said.facts[stated.known - 1]
        if not overlap(stated.quote, text):
            return None
        return Item("fact", "fact", stated.quote, stated.quote)

    def _is_own(self, quote: str) -> bool:
        """Whether the quote is an exact part of the message that lies in the user's own clauses, wholly."""
        if len(quote.strip()) < 2 or MASK in quote or quote not in self._text:
            return False
        start = self._text.index(quote)
        covered = [False] * len(quote)
        for clause in self._clauses:
            for place in range(max(clause.start, start), min(clause.end, start + len(quote))):
                covered[place - start] = True
        rest = "".join(" " if is_covered else one for one, is_covered in zip(quote, covered, strict=True))
        # "Vivo en Lima y opero de noche" is two clauses, and the word between them belongs to neither.
        return all(word in _JOINING for word in re.findall(r"\w+", folded(plain(rest))))

    def _over(self, quote: str) -> Sequence[Clause]:
        start = self._text.index(quote)
        end = start + len(quote)
        return [clause for clause in self._clauses if clause.start < end and clause.end > start]

    def _is_borne_out(self, text: str, quote: str) -> bool:
        if not text or len(text) > LONGEST_FACT or redact(text).text != text:
            return False
        if not numbers(text) <= numbers(quote):
            return False
        said = folded(plain(quote))
        if is_passing(said) or shared_words(text, quote) < _FEWEST_WORDS:
            return False
        if any(folded(plain(name)) not in said for name in _NAME.findall(text)):
            return False
        return overlap(text, quote, of="first") >= _GROUNDED


def _timeframe(value: Any, quote: str) -> str | None:
    read = timeframe_in(folded(plain(quote)))
    return read if read == value else None


def _boolean(value: Any, quote: str) -> bool | None:
    return value if isinstance(value, bool) and has("disclaimer", folded(plain(quote))) else None


def _indicators(value: Any, quote: str) -> list[str] | None:
    named = find_indicators(quote)
    wanted = value if isinstance(value, list) else [value]
    kept = [name for name in named if name in {read for one in wanted for read in find_indicators(str(one))}]
    return kept or None


def _one_of(values: Sequence[str]) -> Callable[[Any, str], str | None]:
    return lambda value, quote: value if value in values else None


def _language(value: Any, quote: str) -> str | None:
    cue = LANGUAGES.get(value) if isinstance(value, str) else None
    return str(value) if cue and re.search(cue, folded(plain(quote))) else None


def _free_value(value: Any, quote: str) -> Any | None:
    """A yes or no, or words of the quote."""
    if isinstance(value, bool):
        return value
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if not text or len(text) > LONGEST_FACT or redact(text).text != text:
        return None
    said = folded(plain(quote))
    return value if all(word in said for word in re.findall(r"\w+", folded(plain(text)))) else None


_VALUES: dict[str, Callable[[Any, str], Any]] = {
    TIMEFRAME: _timeframe,
    "show_disclaimers": _boolean,
    INDICATORS: _indicators,
    "notification_style": _one_of(NOTIFICATION_STYLES),
    "communication_style": _one_of(STYLES),
    "response_language": _language,
}
