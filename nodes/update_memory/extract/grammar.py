"""What a clause states of its speaker: a small grammar of the first person in both languages.

A statement has a subject (I, we, my people, my things, or none where English drops it), what may lead to it, and a
verb that says what is so for good: a state, a habit, a limit, a goal, an event that changes a life. What one thinks,
wants or sees at the moment is none. Words and patterns are in ``grammar.yaml``.
"""

import re
from functools import cache

from recuerdo.nodes.update_memory.extract.patterns import load_patterns
from recuerdo.state.folding import folded, plain

# Contractions, with their apostrophe and as people type them without it.
_CONTRACTIONS = (
    (re.compile(r"\b(i)'?m\b"), r"\1 am"),
    (re.compile(r"\b(we|you|they)'re\b|\b(you|they)re\b"), r"\1\2 are"),
    (re.compile(r"\b(i|we|you|they)'ve\b|\b(i)ve\b"), r"\1\2 have"),
    (re.compile(r"\b(i|we|you|they|he|she|it)'d\b"), r"\1 would"),
    (re.compile(r"\b(i|we|you|they|he|she|it)'ll\b"), r"\1 will"),
    (re.compile(r"\b(he|she|it|that|there|here)'s\b|\b(that|he|she)s\b"), r"\1\2 is"),
    (re.compile(r"\b(?:can'?t|cannot)\b"), "can not"),
    (re.compile(r"\bwon'?t\b"), "will not"),
    (re.compile(r"\b(is|are|was|were|does|did|has|have|had|would|could|should)n'?t\b"), r"\1 not"),
    (re.compile(r"\bdon'?t\b"), "do not"),
    (
        re.compile(
            r"\b(my|our) ([\w-]+(?: [\w-]+){0,2}?)'s (?=(?:an?|the|in|on|not|from|allergic|called|always"
            r"|been) )"
        ),
        r"\1 \2 is ",
    ),
)

_HEDGE = re.compile(
    r"^(?:(?:yo )?(?:creo|supongo|diria|pienso) que|me parece que|probablemente|seguramente|al parecer"
    r"|i(?:'d)? "
    r"(?:think|guess|suppose|believe|say)(?: that)?|probably|apparently|i would say) "
)


def lead_ends(said: str) -> int:
    """Where a folded clause goes on after words such as "I think that" and "these days"; 0 without them."""
    start = 0
    while match := _HEDGE.match(said[start:]) or _time().match(said[start:]):
        start += match.end()
    return start


def without_hedge(text: str) -> str:
    """A text as it is written, without words such as "I think that" before it."""
    match = _HEDGE.match(folded(plain(text)))
    return text[match.end() :] if match else text


def states_of_self(said: str) -> bool:
    """Whether a folded clause states something lasting of its speaker, his people or his company."""
    said = said[lead_ends(said) :]
    if _pattern("things_of_the_moment").search(said):
        return False
    return bool(_pattern("spanish").search(said) or _pattern("english").search(written_out(said)))


def is_passing_statement(said: str) -> bool:
    """Whether a folded clause says what its speaker thinks, wants, has or did at the moment."""
    return bool(
        _pattern("passing").search(written_out(said)) or _pattern("things_of_the_moment").search(said)
    )


def is_event(said: str) -> bool:
    """Whether a folded clause tells an event that changes a life: its date says nothing of how long it holds."""
    return bool(_event().search(written_out(said)))


def is_of_household(said: str) -> bool:
    """Whether a folded clause begins with one of those who live with the speaker."""
    return bool(_household().search(said))


def written_out(said: str) -> str:
    """A folded text with its English contractions written out."""
    for contraction, words in _CONTRACTIONS:
        said = contraction.sub(words, said)
    return said


@cache
def _pattern(name: str) -> re.Pattern[str]:
    words = _words()
    return re.compile("|".join(f"(?:{_filled(one, words)})" for one in load_patterns("grammar.yaml")[name]))


@cache
def _time() -> re.Pattern[str]:
    words = _words()
    return re.compile(rf"(?:{words['time_es']}|{words['time_en']}) ")


@cache
def _event() -> re.Pattern[str]:
    words = _words()
    subjects = r"(?:i|we|me|my|our|mi|nuestr\w+|just)\b.*\b"
    return re.compile(
        rf"^{words['adv_es']}{words['event_es']}\b|^(?:{subjects})?{words['event_en']}\b"
        rf"|\b{subjects}{words['event_es']}\b"
    )


@cache
def _household() -> re.Pattern[str]:
    words = _words()
    return re.compile(
        r"^(?:\W|a |y |and |but |also |because )*"
        rf"(?:(?:my|our) (?:\w+ )?{words['kin_en']}|(?:mis?|nuestr[oa]s?) (?:\w+ )?{words['kin_es']})\b"
    )


@cache
def _words() -> dict[str, str]:
    words: dict[str, str] = {}
    for name, pattern in load_patterns("grammar.yaml")["words"].items():
        words[name] = _filled(pattern, words)
    return words | {
        name: pattern for name, pattern in load_patterns("grammar.yaml").items() if isinstance(pattern, str)
    }


def _filled(pattern: str, words: dict[str, str]) -> str:
    """The pattern with the classes that it names; ``{3,40}`` and its like stay."""
    return re.sub(r"\{([a-z]\w*)\}", lambda match: words[match[1]], pattern)
