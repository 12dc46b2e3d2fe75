"""What a user says of himself, his people and his company, by rules for both languages (RF-8, OR-7).

A fact's text is the user's own clause, in the first person: it reads well as a quotation in a prompt, its words are
those that the user will ask with, and nothing in it is ours.
"""

import re
from functools import cache

from recuerdo.nodes.build_context.symbols import find_symbols
from recuerdo.nodes.update_memory.extract.clauses import Clause, load_patterns
from recuerdo.nodes.update_memory.extract.protocol import Item

_FEWEST_WORDS = 2
_FEWEST_ASKED = 3
_LONGEST = 300
_REMEMBER = re.compile(
    r"^\W*(?:#memory#|(?:por favor,? )?(?:recuerda|recuerde|recuerden|acuerdate de|anota|apunta|apunte"
    r"|toma nota de|guarda|ten presente|no olvides"
    r"|que no se te olvide|memoriza)(?: por favor)?,? que"
    r"|(?:please )?(?:remember|note|don'?t forget|make a note|keep in mind|save"
    r"|write down)(?: please)?,?(?: down)? that)\s+"
)
_ENDS = " \t\n.,;!"
# "Me llegó un correo": what others did once.
_HAPPENED = re.compile(r"^(?:(?:se|me|te|le|nos|lo|la|ya|no)\s+)*\w{2,}ó\b", re.IGNORECASE)
_TO_YOU = re.compile(r"^(?:you|tu|usted|te)\b")
# Of what only the conversation knows.
_POINTS_AWAY = re.compile(
    r"\b(?:these|those)\b|\b(?:use|like|love|hate|want|prefer|need) (?:it|them|that|this)\b"
    r"|\b(?:esto|eso|asi|aquello|that|this|it|them|so)\W*$"
)


def read_fact(clause: Clause) -> list[Item]:
    """The fact that a clause states; at most one."""
    said = clause.folded
    if clause.asked or len(said.split()) < _FEWEST_WORDS or len(clause.whole) > _LONGEST:
        return []
    if is_passing(said) or _HAPPENED.match(clause.text):
        return []
    if not (_has("states", said) or _asked_for_always(said) or _speaks_of_himself(clause)):
        return []
    return [_fact(clause.whole, clause)]


def read_reminder(sentence: str, folded_sentence: str) -> Item | None:
    """What the user asks to be remembered, in a sentence such as "remember that ..."."""
    match = _REMEMBER.match(folded_sentence)
    if match is None:
        return None
    text = sentence[match.end() :].strip(_ENDS)
    return Item("fact", "note", text, text) if len(text.split()) >= _FEWEST_WORDS else None


def is_passing(text: str) -> bool:
    """Whether a folded text speaks of the moment, such as a complaint, thanks or a request for today."""
    return _has("transient", text) or bool(_POINTS_AWAY.search(text))


def forgotten(clause: Clause) -> str | None:
    """The words that describe what the user wants forgotten, folded; None when he asks for nothing such."""
    match = _pattern("forget").search(clause.folded)
    if match is None:
        return None
    return next(found for found in match.groups() if found).strip()


def is_over(clause: Clause) -> bool:
    """Whether the clause says that something is so no longer."""
    return _has("no_more", clause.folded) or _has("changed", clause.folded)


def says_what_is_now(said: str) -> bool:
    """Whether a folded text says what is so instead."""
    return _has("now", said)


_BEFORE = (
    r"^(?:(?:yo|pues|ya|no|nunca|siempre|solo|casi|tambien|aqui|nosotros|nosotras|por \w+ \w+"
    r"|en \w+ \w+|los \w+|las \w+"
    r"|cada \w+|a veces|me|nos|se|le|les|a mi|honestly|usually|as an? \w+|for \w+ reasons|due to \w+ \w+)\s)*"
)
_IN_SPANISH = re.compile(_BEFORE + r"(?P<verb>[a-z]{2,}(?:o|(?<!ar)(?<!er)(?<!ir)[aei]mos))\b")
_IN_ENGLISH = re.compile(
    _BEFORE
    + r"(?:i|we) (?:(?:\w+ly|also|just|still|never|always|often|both|all|don't|do not) )*(?P<verb>[a-z']+)\b"
)
_OF_THINGS = re.compile(
    r"^(?:all (?:of )?)?(?:my|our) (?:[\w'-]+ ){1,4}?(?:is|are|has|have|get|isn't|aren't|[a-z]{2,}s)\b"
    r"|^(?:mis?|nuestr[oa]s?) (?:\w+ ){1,4}?(?:es|son|esta|estan|tiene|tienen|\w{3,}a|\w{3,}e|\w{3,}an"
    r"|\w{3,}en)\b"
)
_IS_ENGLISH = re.compile(
    r"^(?:i'?m|i am|we'?re|we are) (?!\w+ing\b)(?!sure|sorry|late|happy|glad|confused|curious"
    r"|afraid that|here|back|ready|done"
    r"|interested|worried|lost|stuck|fine|good|ok|okay|up|down|out|in the (?:lobby|room|app|middle)"
    r"|at the|on the|so|very|too"
    r"|really|just|all|about to|aware|able|with you|off|still|not sure|a bit|a little|a lot|tired"
    r"|hungry|excited|here)\w+"
)


def _speaks_of_himself(clause: Clause) -> bool:
    """Whether a clause begins with what the user does, or with what his own things do, as a rule.

    What he thinks, wants or sees at the moment, and what he did, is left out.
    """
    said = clause.folded
    if _IS_ENGLISH.search(said):
        return True
    if match := _IN_ENGLISH.match(said):
        return not _has("says_little_en", match["verb"])
    if match := _IN_SPANISH.match(said):
        # "Llegó" is no "llego": accents are gone from the folded text.
        if clause.text[match.end("verb") - 1] in "óÓ":
            return False
        return not _has("says_little_es", match["verb"])
    return bool(_OF_THINGS.match(said)) and not _has("says_little_of_things", said)


def _asked_for_always(said: str) -> bool:
    return len(said.split()) >= _FEWEST_ASKED and _has("wanted_always", said) and not _TO_YOU.match(said)


_OF_THE_USER = re.compile(
    r"\b(?:i|i'?m|i've|we|we're|my|our|me|us|yo|mi|mis|me|nos|nosotros|nuestr[oa]s?|soy|somos|estoy"
    r"|\w{3,}[aei]mos)\b"
)
_FEWEST_TO_ASK = 4


def may_teach(clause: Clause) -> bool:
    """Whether a clause that no rule reads may yet say something of the user."""
    said = clause.folded
    if clause.asked or len(said.split()) < _FEWEST_TO_ASK or is_passing(said):
        return False
    # "My stop of AAPL is 170" is data of a trade.
    if re.search(r"\d", said) and find_symbols(clause.text):
        return False
    return bool(clause.for_good or _OF_THE_USER.search(said))


def _fact(text: str, clause: Clause) -> Item:
    return Item("fact", "fact", text, text, clause.confidence)


def _has(cue: str, text: str) -> bool:
    return _pattern(cue).search(text) is not None


@cache
def _pattern(cue: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in load_patterns("facts.yaml")[cue]))
