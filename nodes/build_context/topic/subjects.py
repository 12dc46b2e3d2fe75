"""What a message names as its subject: concepts, or its own words; and which earlier topic it names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from recuerdo.nodes.build_context.symbols import find_indicators, instrument
from recuerdo.state.folding import comparable, plain
from recuerdo.state.sentences import load_sentences
from recuerdo.state.tables import read_table
from recuerdo.state.turn import Topic

sentences = load_sentences(__package__)

PORTFOLIO: Final = "portfolio"
_SYMBOLS, _INDICATOR, _CONCEPT, _WORDS = "symbols:", "indicator:", "concept:", "words:"

_WORD = re.compile(r"[^\W_]+")
_ROOT = 5
"""Letters by which words of one family are held together (reserva, reservar)."""
_LABEL_WORDS, _LABEL_CHARACTERS = 4, 48


@dataclass(frozen=True)
class _Concept:
    es: str
    en: str
    forms: tuple[str, ...]
    of_a_security: bool = False
    asset: bool = False

    def label(self, language: str) -> str:
        return self.es if language == "es" else self.en


def symbol_topic(symbols: Sequence[str], *, trade: bool, language: str) -> Topic:
    """The topic of a set of symbols; the order of mention makes no other topic (A-13)."""
    sentence = sentences("topic_trade" if trade else "topic_symbol", subject=", ".join(symbols))
    key = _SYMBOLS + ",".join(sorted(symbols))
    return Topic(key=key, label=sentence.in_language(language), symbols=list(symbols))


def portfolio_topic(held: Sequence[str], language: str) -> Topic:
    """The topic of all that the user holds."""
    label = sentences("topic_portfolio").in_language(language)
    return Topic(key=PORTFOLIO, label=label, symbols=list(held))


def concept_topic(text: str, language: str) -> Topic | None:
    """The topic of the indicators or of the first concept that ``text`` names; None without one."""
    indicators = find_indicators(text)
    if indicators:
        label = sentences("topic_indicator", subject=", ".join(indicators)).in_language(language)
        return Topic(key=_INDICATOR + ",".join(sorted(indicators)), label=label, symbols=[])
    found = _concepts_in(comparable(plain(text)))
    if not found:
        return None
    return Topic(key=_CONCEPT + found[0], label=_concepts()[found[0]].label(language), symbols=[])


def is_side_of_security(topic: Topic) -> bool:
    """Whether it can also be asked of any security: an indicator, dividends, volatility."""
    concept = _concept_of(topic)
    return concept.of_a_security if concept else topic["key"].startswith(_INDICATOR)


def is_asset(topic: Topic) -> bool:
    """Whether it can be bought itself, so that "should I buy it?" means it: gold, bonds."""
    concept = _concept_of(topic)
    return concept is not None and concept.asset


def is_related(topic: Topic, other: Topic) -> bool:
    """Whether two topics are the same, or of one kind with a symbol or an indicator in common."""
    kind, _, names = topic["key"].partition(":")
    other_kind, _, other_names = other["key"].partition(":")
    return kind == other_kind and bool(set(names.split(",")) & set(other_names.split(",")))


def words_topic(redacted: str, skip: int) -> Topic | None:
    """The topic by the message's own words from offset ``skip`` of its NFC form on; None if it has none.

    ``redacted`` is free of sensitive data: the label is kept with the conversation.
    """
    text = plain(redacted)
    found = [match for match in _WORD.finditer(text, skip) if _names_something(match.group())]
    if not found:
        return None
    chosen = [match for match in found[:_LABEL_WORDS] if match.end() - found[0].start() <= _LABEL_CHARACTERS]
    end = chosen[-1].end() if chosen else found[0].start() + _LABEL_CHARACTERS
    label = " ".join(text[found[0].start() : end].split())
    return Topic(key=_WORDS + comparable(label), label=label[0].upper() + label[1:], symbols=[])


def naming_words(text: str) -> list[str]:
    """The folded words of ``text`` that name something."""
    return [word for word in _WORD.findall(comparable(plain(text))) if _names_something(word)]


def named_topics(text: str, topics: Iterable[Topic]) -> list[tuple[Topic, float]]:
    """The topics that ``text`` names, the newest first; each with the share of the text's words that name it."""
    asked = set(_roots(naming_words(text)))
    forms = set(_roots(word for form in _forms_in(text) for word in naming_words(form)))
    found = []
    for topic in topics:
        names = _names_of(topic)
        hits = asked & names
        if hits or forms & names:
            found.append((topic, len(hits) / len(asked) if hits else 1.0))
    return found[::-1]


def _names_something(word: str) -> bool:
    folded = comparable(plain(word))
    return len(folded) > 1 and not folded.isdigit() and folded not in _fillers()


def _names_of(topic: Topic) -> set[str]:
    """Roots of all words that a topic goes by, in both languages."""
    return set(_roots(word for name in _names(topic) for word in naming_words(name)))


def _names(topic: Topic) -> Sequence[str]:
    """A concept's forms, the names of instruments, the indicators; else the label, with its concepts' forms."""
    kind, _, names = topic["key"].partition(":")
    if concept := _concept_of(topic):
        return concept.forms
    if f"{kind}:" == _SYMBOLS:
        known = [found for symbol in topic["symbols"] if (found := instrument(symbol))]
        return [*topic["symbols"], *(name for found in known for name in (found.name, *found.aliases))]
    if f"{kind}:" == _INDICATOR:
        return names.split(",")
    if kind == PORTFOLIO:
        label = sentences("topic_portfolio")
        return [label.es, label.en]
    return [topic["label"], *_forms_in(topic["label"])]


def _concept_of(topic: Topic) -> _Concept | None:
    key = topic["key"]
    return _concepts().get(key.removeprefix(_CONCEPT)) if key.startswith(_CONCEPT) else None


def _roots(words: Iterable[str]) -> list[str]:
    return [word[:_ROOT] for word in words]


def _forms_in(text: str) -> list[str]:
    """All forms of the concepts that ``text`` names, in both languages."""
    return [form for key in _concepts_in(comparable(plain(text))) for form in _concepts()[key].forms]


def _concepts_in(folded: str) -> list[str]:
    """Keys of the concepts in a folded text, in order of mention."""
    pattern, keys = _concept_finder()
    return list(dict.fromkeys(keys[match.group()] for match in pattern.finditer(folded)))


@cache
def _concept_finder() -> tuple[re.Pattern[str], dict[str, str]]:
    keys = {form: key for key, concept in _concepts().items() for form in concept.forms}
    longest_first = sorted(keys, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"), keys


@cache
def _concepts() -> dict[str, _Concept]:
    raw = read_table(__package__, "concepts.yaml")
    return {key: _Concept(**{**one, "forms": tuple(one["forms"])}) for key, one in raw.items()}


@cache
def _fillers() -> frozenset[str]:
    raw: dict[str, str] = read_table(__package__, "words.yaml")
    return frozenset(word for words in raw.values() for word in words.split())
