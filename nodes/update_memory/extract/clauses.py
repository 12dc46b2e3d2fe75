"""Cuts a message into clauses, and tells which of them the user means of himself, now and for good.

What is pasted, quoted, asked, supposed, meant for once, ironic or said by others teaches nothing, whoever reads
it: the rules read only what is left, and what a model wants to learn has to stand in it.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from recuerdo.nodes.update_memory.extract.grammar import is_event, is_of_household
from recuerdo.nodes.update_memory.extract.patterns import load_patterns
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
    r"|it|this|don'?t|no|keep|forget|go|show|use|skip|put|just|that wont|spanish|english|nothing|default"
    r"|include|set|make|give|write|answer|stick|let|leave|drop|always|never|plain|short|brief)\b))\s)"
    # A second statement or request after "and"; not the next thing of a list.
    r"|\s+(?=(?:and (?:(?:i|we|i'?m|i've|ive|we're|there'?s|please)\b"
    r"|(?:my|our) (?:[\w-]+ ){1,3}?(?:is|are|has|have|can'?t|cannot|won'?t|does|doesn'?t|keeps?|lives?"
    r"|works?|needs?"
    r"|eats?|uses|wants|likes|hates|starts?|closes?|runs?|says|turned|was|just)\b)"
    r"|y (?:soy|somos|vivo|vivimos|trabajo|trabajamos|tengo|tenemos|estoy|estamos|opero|invierto|llevo"
    r"|llevamos"
    r"|me|nos|yo|por favor|no (?:me|nos|puedo|podemos)"
    r"|(?:mi|mis|nuestr[oa]s?) (?:\w+ ){1,3}?(?:es|son|esta|estan|tiene|tienen|no|se|cierra|dice)\b)\b)\s?)"
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
    r"|and|but|also|because|look|btw|fyi|heads up|hey|just so you know|by the way|actually|please"
    r"|since(?! (?:then|yesterday|last|this|\d{4}|\w+day|january|february|march|april|may|june|july|august"
    r"|september|october|november|december)\b)"
    r"|pls|por favor"
    r"|hola|hi|hello|buenas(?: tardes| noches)?|buenos dias|ademas|tambien|tenga en cuenta que"
    r"|ten en cuenta que"
    r"|toma en cuenta que|considera que|note that|keep in mind(?: that)?|bear in mind(?: that)?"
    r"|ya sabes que|(?:como )?(?:ya )?(?:te|le) (?:dije|conte|comente)(?: que)?|como sabes"
    r"|you (?:already )?know(?: that)?"
    r"|as you know|(?:like|as) i (?:said|told you|mentioned)|i told you(?: that)?|remember(?: that)?"
    r"|recuerd[ae](?: por favor)?(?: que)?|acuerdate(?: de)?(?: que)?|te recuerdo que|apunta(?: que)?"
    r"|anota(?: que)?"
    r"|honestly|tbh|to be honest|anyway|ah|oh|ok|okay|yes|yeah|yep|sure|corrijo|por cierto|a todo esto"
    r"|la cosa es que"
    r"|lo que pasa es que|resulta que|sinceramente|y es que|the thing is|one more thing|oye que"
    r"|que conste que"
    r"|te (?:aviso|comento|cuento|recuerdo)(?: que)?|le (?:aviso|comento|informo"
    r"|recuerdo)(?: que)?)\b[,:]?\s+)+",
)
# What is known, said once more: "as I told you".
_RESTATED = re.compile(
    r"\b(?:(?:ya )?sabes que|ya (?:te|le) (?:dije|habia dicho|conte)(?: que)?|como (?:(?:ya"
    r"|tu) )?(?:te (?:dije|conte|comente)"
    r"|sabes|le dije)|te repito(?: que)?|insisto en que|sigo (?:con|en|usando|siendo|igual)|sigue igual"
    r"|igual que siempre"
    r"|lo de siempre|as (?:you know|i (?:said|told you|mentioned))|like i (?:said|told you)"
    r"|you (?:already )?know(?: that)?"
    r"|i (?:already )?told you(?: that)?|same as (?:i told you|always|before)|as always|still|(?:hasn'?t"
    r"|haven'?t) changed"
    r"|no ha cambiado|again)\b"
)
_CLOSING = re.compile(
    r"[\s,.;:!…)]*(?:(?:\s|,)(?:btw|by the way|fyi|tho|though|tbh|mind you|just so you know|por cierto"
    r"|la verdad|por favor|porfa(?:vor)?|gracias|please|pls|thanks|thank you|thx|eh|ok"
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
    r"(?:please |por favor |y |and )*(?:siempre|always|every time|from now on|de ahora en adelante"
    r"|a partir de ahora"
    r"|going forward|por defecto|by default|in general|en general|for good)"
)
_QUESTION_WORD = re.compile(
    r"^\W*(?:y |and |so |but |pero |entonces )?(?:que|cual|cuales|como|cuando|cuanto|cuantos|cuanta"
    r"|cuantas|donde"
    r"|quien|por que|para que|what|which|how|when|where|who|why|whose|is|are|do|does|did|was|were|will"
    r"|would|can"
    r"|could|should|shall|has|have|am|any)\b"
)
# "You know I drive a truck, right?" states it.
_TAG = re.compile(
    r"\W*(?:right|ok|okay|yeah|yes|deal|alright|remember|you know|isn'?t it|no|verdad|vale|cierto|eh"
    r"|de acuerdo|sale|va|si"
    r"|te acuerdas|recuerdas|me explico|entendido)\W*"
)
# "My wife and I are vegan" has one subject.
_WITH_ANOTHER = re.compile(r"\W*(?:(?:mi|mis|my|our|both my) (?:[\w-]+ ?){1,2}|me)\s*")
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
    comma, such as the rest of a list. ``asked``: it is put as a question; ``for_good``: with words such as "always";
    ``restated``: with words such as "as I told you"; ``of_others``: what it says, it says of one of the user's people.
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
    restated: bool = False
    of_others: bool = False


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


def joined(before: Clause, clause: Clause, text: str) -> Clause:
    """Two clauses of one sentence as one, with what stands between them."""
    both = normalised(text)[before.start : clause.end]
    return replace(
        clause,
        text=both,
        folded=_comparable(both),
        whole=both,
        start=before.start,
        confidence=min(before.confidence, clause.confidence),
        asked=before.asked or clause.asked,
        for_good=before.for_good or clause.for_good,
        restated=before.restated or clause.restated,
    )


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
            bool(_RESTATED.search(own[start:end])),
            is_of_household(said),
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
    if _matches("once", lasting) and not is_event(said):
        return True
    if _matches("others", lasting) and not (is_of_household(said) and not _matches("of_markets", said)):
        return True
    return _matches("supposing", lasting) or _matches("unsure", lasting)


def _is_request(said: str) -> bool:
    """ "Can you answer in Spanish?" asks for something; it asks nothing."""
    return bool(_ASKED_TO.search(said))


def _question_at(own: str, pieces: list[tuple[int, int]], start: int, end: int) -> int:
    """The piece that a sentence's question begins with: from the inverted mark, or the last one."""
    last = own[slice(*pieces[-1])]
    if len(pieces) > 1 and _TAG.fullmatch(last):
        return len(pieces) - 1
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
        if _WITH_ANOTHER.fullmatch(own, left, match.start()):
            continue
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
