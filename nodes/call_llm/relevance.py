"""Which lines of a prompt answer a question: by shared words, by symbol and by topic."""

import re
from dataclasses import dataclass

from recuerdo.nodes.call_llm.prompt_facts import HISTORY, INSTRUCTIONS, REPLIES, Fact, PromptFacts
from recuerdo.nodes.call_llm.vocabulary import Topic, fold, is_stop_word, stem, terms, topics, words

MOST_LINES = 8

_STRONG = 1.0
_SYMBOL_BONUS = 1.5
_WEAKEST = 0.5
_PART_OF_BEST = 0.5
# What was said before counts less than what the prompt knows now.
_OLD = frozenset({HISTORY, REPLIES})
_PART_OF_OLD = 0.7

_CAPITALS = re.compile(r"\b[A-Z]{2,5}\b")


@dataclass(frozen=True)
class _Question:
    """What is asked: its own words, the topics they point to, and the symbols that it is about."""

    terms: frozenset[str]
    topics: tuple[Topic, ...]
    symbols: frozenset[str]
    names_unknown_symbol: bool

    def weight_of(self, section: str) -> float:
        """What the topics give to a line of ``section``."""
        return max((topic.sections.get(section, 0.0) for topic in self.topics), default=0.0)

    def admits(self, symbol: str) -> bool:
        """Whether a line about ``symbol`` may answer: not when others are named."""
        return not self.names_unknown_symbol and (not self.symbols or symbol in self.symbols)

    @property
    def cues(self) -> frozenset[str]:
        """Words by which an instruction of the turn is known to be about the same topics."""
        about = (topic.words | topic.cues for topic in self.topics if INSTRUCTIONS in topic.sections)
        return frozenset().union(*about)


def choose(prompt: PromptFacts) -> list[Fact]:
    """The facts that answer the prompt's question, at most eight, best first; none when none does."""
    question = _understand(prompt)
    scored = [(_score(fact, question), fact) for fact in prompt.facts]
    best = max((score for score, _ in scored), default=0.0)
    enough = max(_WEAKEST, best * _PART_OF_BEST)
    kept = [
        (score, fact)
        for score, fact in scored
        if score >= enough or (score and question.weight_of(fact.section) >= _STRONG)
    ]
    kept.sort(key=lambda pair: -pair[0])
    return [fact for _, fact in kept[:MOST_LINES]]


def _understand(prompt: PromptFacts) -> _Question:
    stems = {stem(word) for word in words(prompt.question)}
    own_terms = terms(prompt.question)
    named = frozenset(fact.symbol for fact in prompt.facts if _names(prompt.question, own_terms, fact))
    unknown = not named and _names_unknown_symbol(prompt)
    return _Question(
        terms=own_terms,
        topics=tuple(topic for topic in topics() if topic.words & stems),
        symbols=named or (frozenset() if unknown else _symbols_of_the_turn(prompt)),
        names_unknown_symbol=unknown,
    )


def _symbols_of_the_turn(prompt: PromptFacts) -> frozenset[str]:
    """The symbols in the turn's instructions: what a question means that names none (RF-25)."""
    told = " ".join(fact.text for fact in prompt.facts if fact.section == INSTRUCTIONS)
    return frozenset(fact.symbol for fact in prompt.facts if fact.symbol and _stands_in(fact.symbol, told))


def _stands_in(symbol: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(symbol)}(?!\w)", text))


def _names(question: str, question_terms: frozenset[str], fact: Fact) -> bool:
    if not fact.symbol:
        return False
    folded = fold(fact.symbol)
    typed = len(folded) > 2 and not is_stop_word(folded) and folded in words(question)
    return _stands_in(fact.symbol, question) or typed or bool(fact.company & question_terms)


def _names_unknown_symbol(prompt: PromptFacts) -> bool:
    """Whether the question names something in capitals that no fact knows: others' data is no answer."""
    if prompt.question.isupper():
        return False
    known = set().union(*(words(fact.text) for fact in prompt.facts if fact.section not in _OLD))
    return any(fold(word) not in known for word in _CAPITALS.findall(prompt.question))


def _score(fact: Fact, question: _Question) -> float:
    """0 for a fact that has nothing to do with the question."""
    if fact.symbol and not question.admits(fact.symbol):
        return 0.0
    weight = question.weight_of(fact.section)
    shared = float(len(fact.terms & question.terms))
    if fact.section == INSTRUCTIONS:
        return weight + shared if weight and fact.terms & question.cues else 0.0
    if fact.section in _OLD:
        return (weight + shared) * _PART_OF_OLD if _can_tell(fact, weight) else 0.0
    return weight + shared + (_SYMBOL_BONUS if fact.symbol in question.symbols else 0.0)


def _can_tell(fact: Fact, weight: float) -> bool:
    """Whether something said before may answer: no question does, and a reply only where it is asked for."""
    return not fact.text.endswith("?") and (fact.section == HISTORY or weight > 0)
