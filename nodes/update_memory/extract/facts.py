"""What a user says of himself, his people and his company, by rules for both languages (RF-8, OR-7).

A fact's text is the user's own clause, in the first person: it reads well as a quotation in a prompt, its words are
those that the user will ask with, and nothing in it is ours.
"""

import re
from collections.abc import Sequence
from functools import cache

from recuerdo.nodes.build_context.symbols import find_symbols
from recuerdo.nodes.update_memory.extract.clauses import Clause
from recuerdo.nodes.update_memory.extract.grammar import (
    is_event,
    is_passing_statement,
    lead_ends,
    states_of_self,
    written_out,
)
from recuerdo.nodes.update_memory.extract.patterns import load_patterns
from recuerdo.nodes.update_memory.extract.protocol import Item
from recuerdo.state.folding import folded, plain

_FEWEST_WORDS = 2
_FEWEST_ASKED = 3
_LONGEST = 300
_REMEMBER = re.compile(
    r"^\W*(?:(?:por favor,? )?(?:recuerda|recuerde|recuerden|acuerdate de|anota|apunta|apunte"
    r"|toma nota de|guarda|ten presente|no olvides"
    r"|que no se te olvide|memoriza)(?: por favor)?,? que"
    r"|(?:please )?(?:remember|note|don'?t forget|make a note|keep in mind|save"
    r"|write down)(?: please)?,?(?: down)? that)\s+"
)
_ENDS = " \t\n.,;!"
# "Me llegó un correo": what others did once.
_HAPPENED = re.compile(r"^(?:(?:se|me|te|le|nos|lo|la|ya|no)\s+)*\w{2,}ó\b", re.IGNORECASE)
_PLACED = re.compile(
    r"^(?:yo |nosotros |ahora |aqui )*(?:estoy|estamos|ando|i am|i'?m|we are|we'?re)(?: \w+)? (?:en"
    r"|in) (?=\w)"
)
# A Spanish verb says by its ending who does it.
_ONLY_A_VERB = re.compile(
    r"^(?:(?:yo|pues|ya|no|nunca|siempre|solo|casi|tambien|aqui|nosotros|nosotras|por \w+ \w+"
    r"|en \w+ \w+|(?:los|las) \w+(?: de \w+)?|cada \w+|a veces|me|nos|se|le|les|a mi)\s)*"
    r"(?P<verb>[a-z]{2,}(?:o|(?<!ar)(?<!er)(?<!ir)[aei]mos))\b(?! (?:is|are|am|and)\b)"
)
# "The stock always falls" asks for nothing; "reports always in PDF" does.
_SAYS_HOW_IT_IS = re.compile(
    r"^(?:(?:the|a|an|el|la|los|las|un|una|it|he|she|they|this|that|eso|esto) (?:\w+ ){0,2}?|i |we |yo )"
    r"(?:always|never|siempre|nunca)\b(?! (?:en|in|as|con|with|a|por|by|de|sin)\b)"
)
_TO_YOU = re.compile(r"^(?:you|tu|usted|te)\b")
# Of what only the conversation knows.
_POINTS_AWAY = re.compile(
    r"\b(?:these|those)\b(?! days)|\b(?:use|like|love|hate|want|prefer|need) (?:it|them)\b|\b\w+ (?:that"
    r"|this)\W*$"
    r"|^no (?:me|nos|le|te) (?:lo|la|los|las)\b"
    r"|\b(?:esto|eso|asi|aquello|that|this|it|them|so)\W*$"
)


def read_fact(clause: Clause) -> list[Item]:
    """The fact that a clause states; at most one."""
    said = clause.folded
    if clause.asked or len(said.split()) < _FEWEST_WORDS or len(clause.whole) > _LONGEST:
        return []
    if is_passing(said) or _HAPPENED.match(clause.text):
        return []
    if _has("dated", said) and not is_event(said):
        return []
    if not (_states(clause) or _asked_for_always(said)):
        return []
    return [_fact(clause.whole, clause)]


def _states(clause: Clause) -> bool:
    """Whether the clause states something of the user, in a form that is no bare word."""
    start = lead_ends(clause.folded)
    if verb := _ONLY_A_VERB.match(clause.folded[start:]):
        # "Llegó" is no "llego": accents are gone from the folded text.
        if clause.text[start + verb.end("verb") - 1] in "óÓ":
            return False
        if not _has("says_little_es", verb["verb"]):
            return True
    return states_of_self(clause.folded) or _is_placed(clause)


def _is_placed(clause: Clause) -> bool:
    """Whether the user says that he is in a place that has a name: "estoy en Canarias", not "en el lobby"."""
    match = _PLACED.search(clause.folded)
    return match is not None and clause.text[match.end()].isupper()


def read_reminder(sentence: str, folded_sentence: str) -> Item | None:
    """What the user asks to be remembered, in a sentence such as "remember that ..."."""
    match = _REMEMBER.match(folded_sentence)
    if match is None:
        return None
    text = sentence[match.end() :].strip(_ENDS)
    return Item("fact", "note", text, text) if len(text.split()) >= _FEWEST_WORDS else None


def is_passing(text: str) -> bool:
    """Whether a folded text speaks of the moment, such as a complaint, thanks or a request for today."""
    return is_passing_state(text) or _has("transient", text) or bool(_POINTS_AWAY.search(text))


def is_passing_state(text: str) -> bool:
    """Whether a folded text says how somebody is for the moment, such as in a hurry."""
    return _has("passing_state", text)


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


def _asked_for_always(said: str) -> bool:
    if len(said.split()) < _FEWEST_ASKED or _TO_YOU.match(said) or _SAYS_HOW_IT_IS.match(said):
        return False
    return _has("wanted_always", said)


_OF_THE_USER = re.compile(
    r"\b(?:i|i'?m|i've|we|we're|my|our|me|us|yo|mi|mis|me|nos|nosotros|nuestr[oa]s?|soy|somos|estoy"
    r"|\w{3,}[aei]mos)\b"
)
_FEWEST_TO_ASK = 4


def may_teach(clause: Clause) -> bool:
    """Whether a clause that no rule reads may yet say something of the user."""
    said = clause.folded
    if clause.asked or len(said.split()) < _FEWEST_TO_ASK or is_passing(said) or _has("dated", said):
        return False
    if is_passing_statement(said) and not clause.for_good:
        return False
    # "My stop of AAPL is 170" is data of a trade.
    if re.search(r"\d", said) and find_symbols(clause.text):
        return False
    return bool(clause.for_good or _OF_THE_USER.search(said))


# "Así practico", "I read them on my watch": the reason for a wish, which stands with it.
_LEANS = re.compile(
    r"^(?!(?:eso|esto|that|this|it) (?:es|va|is|goes)(?: todo| all)? (?:para|for|towards)\b)(?:asi|so"
    r"|that way|eso|esto|esos|esas|that|this|those|these(?! days)|it|they|ellos|ellas|(?:lo|los|las) \w+o)\b"
)
_NAMES = re.compile(
    r"^(?:that|this|it|he|she|they|which|who) (?:is|are) (?:my|our)\b|^(?:eso|esa|ese|esto|que|el"
    r"|ella)? ?(?:es|son) "
    r"(?:mi|mis|nuestr[oa]s?|quien(?:es)?|l[oa]s? que)\b"
)
_REASON = re.compile(
    r"\b(?:them|it|that|this|those|these)\b|^(?:never|not|no|nunca) (?:by|on|in|at|por|en|a|con|with|the"
    r"|el|la|los|las)\b"
)


def names_what_was_said(said: str) -> bool:
    """Whether a folded clause says what the one before it is: "that's my rule", "she's our CFO"."""
    return bool(_NAMES.match(written_out(said)))


def leans_on_another(said: str, after_wish: bool) -> bool:
    """Whether a folded clause says nothing without another one, such as the wish that it is the reason for."""
    return bool(_LEANS.match(said)) or (
        after_wish and (bool(_REASON.search(said)) or len(said.split()) <= _FEWEST_WORDS)
    )


def slot_of(text: str) -> str | None:
    """What of a person has one value at a time and is named by a text, such as where he lives; None for none."""
    said = folded(plain(text))
    return next((name for name, cue in _slots().items() if cue.search(said)), None)


@cache
def _slots() -> dict[str, re.Pattern[str]]:
    slots: dict[str, Sequence[str]] = load_patterns("slots.yaml")
    return {name: re.compile("|".join(f"(?:{one})" for one in cues)) for name, cues in slots.items()}


def _fact(text: str, clause: Clause) -> Item:
    return Item("fact", "fact", text, text, clause.confidence, clause.restated)


def _has(cue: str, text: str) -> bool:
    return _pattern(cue).search(text) is not None


@cache
def _pattern(cue: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in load_patterns("facts.yaml")[cue]))
