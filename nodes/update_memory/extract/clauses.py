"""Cuts a message into clauses, and tells which of them the user means of himself, now and for good.

What is pasted, quoted, asked, supposed, meant for once, ironic or said by others teaches nothing, whoever reads
it: the rules read only what is left, and what a model wants to learn has to stand in it.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from recuerdo.state.folding import folded, plain
from recuerdo.stores.sensitive import MASK

READ = 2_000
"""Characters of a message that are read: what is longer is a document, and its beginning says what it is."""

# A dot ends no sentence after a title: "Dr. Osei".
_SENTENCE_END = re.compile(
    r"(?<!\bdr)(?<!\bmr)(?<!\bms)(?<!\bsr)(?<!\bmrs)(?<!\bsra)(?<!\blic)(?<!\bing)(?<!\bprof)(?<!\bdra)"
    r"[.;!?…]+(?=\s|$|[)»”\"])|\n+|(?<=\w)\s+[–—-]+\s+"
)
_CLAUSE_END = re.compile(
    r"\s*(?:,|:|\(|\))\s+|\s+(?=[(])"
    r"|\s+(?=(?:pero|aunque|por eso|asi que|but|although|though|so(?= (?:i|we|please|the|an?|my|our|you"
    r"|it|this|don'?t|no|keep|forget|go|show|use|skip|put|just|that wont|spanish|english)\b))\s)"
)
# A quotation of three words or more; a shorter one is a name.
_QUOTED = re.compile(
    r"«[^»]*»|“[^”]*”|\"[^\"\n]*\"|(?<!\w)'[^'\n]*(?:\w'\w[^'\n]*)*'(?!\w)|```.*?(?:```|$)", re.DOTALL
)
_BLANK = re.compile(r"\S")
# An answer to a question of before stands first.
_OPENING = re.compile(
    r"^(?:[^\w#$]|(?:y|e|que|pues|bueno|eh|oye|mira|ojo|es que|la verdad|fijate que|sabes que|porque"
    r"|pero|asi que|por eso|so|well"
    r"|and|but|also|because|since|look|btw|fyi|heads up|hey|just so you know|by the way|actually|please"
    r"|pls|por favor"
    r"|hola|hi|hello|buenas(?: tardes| noches)?|buenos dias|ademas|tambien|tenga en cuenta que"
    r"|ten en cuenta que"
    r"|toma en cuenta que|considera que|note that|keep in mind(?: that)?|bear in mind(?: that)?"
    r"|te (?:aviso|comento|cuento|recuerdo)(?: que)?|le (?:aviso|comento|informo"
    r"|recuerdo)(?: que)?)\b[,:]?\s+)+",
)
_CLOSING = re.compile(
    r"[\s,.;:!…)]*(?:(?:\s|,)(?:por favor|porfa(?:vor)?|gracias|please|pls|thanks|thank you|thx|eh|ok"
    r"|jaja+|jeje+|lol|haha+))*"
    r"[\s,.;:!…)]*$"
)
_ASKED_TO = re.compile(
    r"^\W*(?:(?:please|hey|also|and|ok|so|then),? )*(?:can|could|would|will) (?:you|we)\b|^\W*(?:me "
    r"|nos )?(?:puedes?|podrias?|podes|podria|puede|podemos|podriamos|quieres)\b"
    r"|^\W*te importa(?:ria)?\b|^\W*would you mind\b"
)
_FOR_GOOD = re.compile(
    r"\b(?:siempre|nunca|de ahora en adelante|a partir de|desde (?:ahora|hoy)|en adelante|por defecto"
    r"|from now on"
    r"|from here on|always|never|ever|for good|by default|going forward|every time|cada vez)\b"
)
_ONLY_FOR_GOOD = re.compile(
    r"(?:please |por favor |y |and )*(?:siempre|always|every time|from now on|de ahora en adelante|a partir de ahora"
    r"|going forward|por defecto|by default|in general|en general|for good)"
)
_QUESTION_WORD = re.compile(
    r"^\W*(?:y |and |so |but |pero |entonces )?(?:que|cual|cuales|como|cuando|cuanto|cuantos|cuanta"
    r"|cuantas|donde"
    r"|quien|por que|para que|what|which|how|when|where|who|why|whose|is|are|do|does|did|was|were|will"
    r"|would|can"
    r"|could|should|shall|has|have|am|any)\b"
)
_CONTINUES = re.compile(
    r"^(?:\d|(?:un|una|unos|unas|el|la|los|las|dos|tres|con|sin|ni|y|e|o|en|a|an|the|and|or|with"
    r"|without|in|from|mostly"
    r"|mainly|sobre todo|especialmente|especially|plus|mas|no (?:el|la|en|a|con|de|the|on|in|at))\s)"
)
_LONGEST_TAIL = 8


@dataclass(frozen=True)
class Clause:
    """A clause of the user's own: ``text`` is a substring of the message (NFC), ``folded`` the same folded.

    ``sentence`` is the folded sentence that it stands in, ``confidence`` below 1 where the user hedges.
    ``start`` and ``end`` are offsets in the message. ``whole`` is the clause with what goes on with it after a
    comma, such as the rest of a list. ``asked``: it is put as a question; ``for_good``: with words such as "always".
    """

    text: str
    folded: str
    sentence: str
    start: int
    end: int
    confidence: float = 1.0
    whole: str = ""
    asked: bool = False
    for_good: bool = False


HEDGED = 0.5
"""Confidence of what the user only thinks: below 0.6, so it is low (A-24)."""


# "Sí" is no "si" (if), and accents go.
_YES = re.compile(r"\bs[íÍ]\b", re.IGNORECASE)


def _comparable(whole: str) -> str:
    """The message folded, of the same length."""
    return folded(plain(_YES.sub("eh", whole)))


def normalised(text: str) -> str:
    """The message as clauses are cut from it."""
    return unicodedata.normalize("NFC", text)[:READ]


def own_clauses(text: str) -> list[Clause]:
    """The clauses of ``text`` in which the user states or asks for something lasting, in order."""
    whole = normalised(text)
    own = _without_foreign(_comparable(whole))
    if _matches("ironic", own):
        return []
    found: list[Clause] = []
    for start, end, ends_with in _sentences(own):
        if _matches("denied", own[start:end]):
            continue
        found += _of_sentence(whole, own, start, end, ends_with)
    return found


def own_sentences(text: str) -> list[tuple[str, str]]:
    """The user's own sentences without sensitive data that ask nothing, as written and folded."""
    whole = normalised(text)
    own = _without_foreign(_comparable(whole))
    return [
        (whole[start:end], own[start:end])
        for start, end, ends_with in _sentences(own)
        if "?" not in ends_with and MASK not in whole[start:end] and "¿" not in own[start:end]
    ]


def _of_sentence(whole: str, own: str, start: int, end: int, ends_with: str) -> list[Clause]:
    pieces = [piece for piece in _pieces(own, start, end) if own[slice(*piece)].strip()]
    asks_from = _question_at(own, pieces, start, end) if "?" in ends_with else len(pieces)
    clauses: list[Clause] = []
    last: tuple[int, int] | None = None
    for number, (left, right) in enumerate(pieces):
        said = own[left:right]
        asked = number >= asks_from or bool(_ASKED_TO.search(said))
        if _teaches_nothing(said) or (asked and not _is_request(said)):
            last = None
            continue
        left, right = _trimmed(own, left, right)
        if MASK in whole[left:right] or not any(map(str.isalnum, own[left:right])):
            last = None
            continue
        confidence = HEDGED if _matches("hedged", said) else 1.0
        if _ONLY_FOR_GOOD.fullmatch(own[left:right]) and clauses and clauses[-1].end >= pieces[number - 1][0]:
            clauses[-1] = _for_good(clauses[-1], whole, own, right)
            continue
        clause = Clause(
            whole[left:right],
            own[left:right],
            own[start:end],
            left,
            right,
            confidence,
            whole[left:right],
            asked,
            bool(_FOR_GOOD.search(said)),
        )
        if last and not asked and "," in own[last[1] : left] and _goes_on(own[left:right]):
            before = clauses[-1]
            joined = whole[before.start : right]
            clauses[-1] = replace(before, whole=joined if MASK not in joined else before.whole)
        clauses.append(clause)
        last = (left, right)
    return clauses


def _for_good(before: Clause, whole: str, own: str, end: int) -> Clause:
    """ "Prices in pounds, always": the last word belongs to what stands before it."""
    said = whole[before.start : end]
    return replace(before, text=said, folded=own[before.start : end], whole=said, end=end, for_good=True)


def _goes_on(said: str) -> bool:
    return bool(_CONTINUES.match(said)) and len(said.split()) <= _LONGEST_TAIL


def _teaches_nothing(said: str) -> bool:
    lasting = re.sub(_pattern("lasting_dates"), " ", said)
    return any(_matches(why, lasting) for why in ("once", "supposing", "unsure", "others"))


def _is_request(said: str) -> bool:
    """ "Can you answer in Spanish?" asks for something; it asks nothing."""
    return bool(_ASKED_TO.search(said))


def _question_at(own: str, pieces: list[tuple[int, int]], start: int, end: int) -> int:
    """The piece that a sentence's question begins with: from the inverted mark, or the last one."""
    opens = own.rfind("¿", start, end)
    if opens >= 0:
        return next(
            (number for number, (left, right) in enumerate(pieces) if left <= opens < right), len(pieces)
        )
    if _QUESTION_WORD.match(own[start:end]) or len(pieces) == 1:
        return 0
    asking = (n for n, (left, right) in enumerate(pieces) if _QUESTION_WORD.match(own[left:right]))
    return next(asking, len(pieces) - 1)


def _without_foreign(same: str) -> str:
    """The folded message with blanks for what is not the user's own saying, offsets kept."""
    own = _QUOTED.sub(_blanked, same)
    for why in ("handed_over", "supposed"):
        match = _search(why, own)
        if match:
            own = own[: match.start()] + _BLANK.sub(" ", own[match.start() :])
    return own


def _blanked(match: re.Match[str]) -> str:
    quoted = match.group()
    return _BLANK.sub(" ", quoted) if len(quoted.split()) >= 3 else quoted


def _sentences(own: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and closing marks of each sentence."""
    start = 0
    for match in _SENTENCE_END.finditer(own):
        yield start, match.start(), match.group()
        start = match.end()
    yield start, len(own), ""


def _pieces(own: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    left = start
    for match in _CLAUSE_END.finditer(own, start, end):
        yield left, match.start()
        left = match.end()
    yield left, end


def _trimmed(own: str, left: int, right: int) -> tuple[int, int]:
    """Without greetings before it and thanks behind it."""
    if closing := _CLOSING.search(own, left, right):
        right = closing.start()
    if opening := _OPENING.match(own[left:right]):
        left += opening.end()
    while left < right and not own[left].isalnum() and own[left] not in "$#":
        left += 1
    return left, right


def _matches(name: str, text: str) -> bool:
    return _search(name, text) is not None


def _search(name: str, text: str) -> re.Match[str] | None:
    return _pattern(name).search(text)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in load_patterns("clauses.yaml")[name]))


@cache
def load_patterns(name: str) -> dict[str, Any]:
    """The patterns in a YAML file of this package, by name."""
    loaded: dict[str, Any] = yaml.safe_load((files(__package__) / name).read_text(encoding="utf-8"))
    return loaded
