"""The topic of a message by what it names and how it says it (RF-6, RF-25, IM-42, A-2); no model is asked.

The steps are tried in order and the first that knows decides. What none of them knows is a doubt, for the
similarity to the last messages to settle.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from recuerdo.nodes.build_context.intent import CLEAR, Intent
from recuerdo.nodes.build_context.symbols import Resolution
from recuerdo.nodes.build_context.symbols.references import How
from recuerdo.nodes.build_context.topic.phrases import Patterns, patterns
from recuerdo.nodes.build_context.topic.subjects import (
    PORTFOLIO,
    concept_topic,
    is_asset,
    is_related,
    is_side_of_security,
    named_topics,
    naming_words,
    portfolio_topic,
    symbol_topic,
    words_topic,
)
from recuerdo.state.folding import comparable, plain
from recuerdo.state.turn import Topic, TopicChange

_LONGEST_READ = 2000
"""Characters; a document pasted into a question is not read through for phrases."""
_STANDS_ALONE = 2
"""Words that name something, from which on a question may have a subject of its own."""


@dataclass(frozen=True)
class Said:
    """A message and what is known of it so far."""

    text: str
    redacted: str
    language: str
    intent: Intent
    resolution: Resolution
    held: Sequence[str]


@dataclass(frozen=True)
class Reading:
    """The topic of a message, the symbols that it is about, and how it stands to the topic before.

    ``maybe`` are symbols that it may mean: to be asked about, not assumed.
    """

    topic: Topic | None
    symbols: tuple[str, ...]
    how: How
    changed: bool = False
    returned_to: bool = False
    reason: TopicChange | None = None
    maybe: tuple[str, ...] = ()


@dataclass(frozen=True)
class Doubt:
    """Neither symbols nor words decide: a new topic if the message is unlike the last ones, else the same."""

    if_unlike: Reading
    if_like: Reading


def read_topic(said: Said, topics: Sequence[Topic]) -> Reading | Doubt:
    """The topic of ``said`` after ``topics``, the recent ones, oldest first; the last one is the present one."""
    scene = _Scene(said, topics)
    steps = (
        *(_returning, _portfolio, _holding, _symbols, _unsure),
        *(_following, _nothing_asked, _going_on, _concept),
    )
    found = (step(scene) for step in steps)
    reading = next((reading for reading in found if reading), None)
    return replace(reading, maybe=said.resolution.unsure) if reading else _own_words(scene)


class _Scene:
    """A message before the topics of its conversation."""

    def __init__(self, said: Said, topics: Sequence[Topic]) -> None:
        self.said = said
        self.topics = list(topics)
        self.text = comparable(plain(said.text[:_LONGEST_READ]))
        self.patterns: Patterns = patterns()

    @property
    def current(self) -> Topic | None:
        return self.topics[-1] if self.topics else None

    @property
    def current_symbols(self) -> set[str]:
        return set(self.current["symbols"]) if self.current else set()

    @cached_property
    def leaves(self) -> bool:
        """Words that say that the subject is left."""
        return bool(self.patterns.change.search(self.text))

    @cached_property
    def turns(self) -> bool:
        """Words that may lead to another subject."""
        return self.leaves or bool(self.patterns.turn_to.search(self.text))

    @cached_property
    def leans(self) -> bool:
        return bool(self.patterns.leaning.search(self.text))

    @cached_property
    def opens_as_follow_up(self) -> bool:
        return bool(self.patterns.opening.search(self.text))

    @cached_property
    def concept(self) -> Topic | None:
        return concept_topic(self.said.text[:_LONGEST_READ], self.said.language)

    @cached_property
    def speaks_of_security(self) -> bool:
        return bool(self.patterns.security.search(self.text))

    @cached_property
    def explains(self) -> bool:
        return bool(self.patterns.explains.search(self.text))

    @cached_property
    def asks(self) -> bool:
        return bool(self.patterns.request.search(self.text))

    def stay(self, *, carry: bool = True) -> Reading:
        """The present topic goes on; ``carry``: its symbols are meant."""
        if self.current is None or not carry:
            return Reading(self.current, (), "none")
        return Reading(self.current, tuple(self.current["symbols"]), _how(self.current))

    def go_to(self, topic: Topic, how: How, reason: TopicChange) -> Reading:
        """Another topic: the first one of a conversation, one of before, or a new one."""
        symbols = tuple(topic["symbols"])
        if self.current is None:
            return Reading(topic, symbols, how)
        same = [old for old in self.topics if old["key"] == topic["key"]]
        known = same or [old for old in self.topics if is_related(old, topic)]
        return Reading(same[0] if same else topic, symbols, how, True, bool(known), reason)

    def after_marker(self, folded: str) -> int:
        """Offset in a folded text behind the words that lead to its subject."""
        groups = (self.patterns.change, self.patterns.turn_to, self.patterns.back)
        return max((match.end() for group in groups if (match := group.search(folded))), default=0)

    def own_topic(self) -> Topic | None:
        """The topic by the message's own words: those after a marker, or before one that stands at the end."""
        redacted = self.said.redacted[:_LONGEST_READ]
        skip = self.after_marker(comparable(plain(redacted)))
        return words_topic(redacted, skip) or words_topic(redacted, 0)


def _how(topic: Topic) -> How:
    """How symbols that come with a topic were found."""
    if topic["key"] == PORTFOLIO:
        return "portfolio"
    return "follow_up" if topic["symbols"] else "none"


def _returning(scene: _Scene) -> Reading | None:
    """ "Volviendo al oro", "back to what we said before": by the name of an earlier topic, or the one before."""
    marker = scene.patterns.back.search(scene.text)
    if not marker or not scene.current or scene.said.resolution.how == "mentioned":
        return None
    rest = scene.text[marker.end() :]
    named = named_topics(rest, scene.topics)
    others = [(topic, share) for topic, share in named if topic is not scene.current]
    if others:
        topic, _ = max(others, key=lambda pair: pair[1])
        return scene.go_to(topic, _how(topic), "marker")
    if named and not scene.patterns.before.search(scene.text):
        return scene.stay()
    if (named or not naming_words(rest)) and len(scene.topics) > 1:
        topic = scene.topics[-2]
        return scene.go_to(topic, _how(topic), "marker")
    return None


def _portfolio(scene: _Scene) -> Reading | None:
    if scene.said.resolution.how != "portfolio":
        return None
    topic = portfolio_topic(scene.said.held, scene.said.language)
    if scene.current and scene.current["key"] == PORTFOLIO:
        return Reading(topic, tuple(topic["symbols"]), "portfolio")
    return scene.go_to(topic, "portfolio", "subject")


def _holding(scene: _Scene) -> Reading | None:
    """Some positions, by their size or kind: from then on the topic is their symbols."""
    resolution = scene.said.resolution
    if resolution.how != "holding":
        return None
    topic = _symbol_topic(scene, resolution.symbols)
    if scene.current_symbols & set(resolution.symbols):
        return Reading(topic, resolution.symbols, "holding")
    return scene.go_to(topic, "holding", "symbols")


def _symbols(scene: _Scene) -> Reading | None:
    """Symbols in the message; beside a comparison they join the one that was spoken of."""
    resolution = scene.said.resolution
    if resolution.how != "mentioned":
        return None
    symbols = resolution.symbols + resolution.unknown
    if _joins(scene, symbols):
        assert scene.current is not None
        symbols = (*scene.current["symbols"], *symbols)
    topic = _symbol_topic(scene, symbols)
    goes_on = bool(scene.current_symbols & set(symbols)) or _applies_concept(scene)
    return Reading(topic, symbols, "mentioned") if goes_on else scene.go_to(topic, "mentioned", "symbols")


def _unsure(scene: _Scene) -> Reading | None:
    """Which symbol is meant is to be asked first: it is not the one that was spoken of."""
    return scene.stay(carry=False) if scene.said.resolution.unsure else None


def _joins(scene: _Scene, symbols: tuple[str, ...]) -> bool:
    """ "¿Y comparada con Netflix?": one symbol, set beside those of the present topic."""
    compares = len(symbols) == 1 and scene.patterns.comparison.search(scene.text)
    beside = scene.current_symbols and scene.current and scene.current["key"] != PORTFOLIO
    return bool(compares and beside and not scene.current_symbols & set(symbols))


def _applies_concept(scene: _Scene) -> bool:
    """ "¿Y cómo está el RSI de Apple?" after a question about the RSI."""
    current, concept = scene.current, scene.concept
    return bool(current and concept and is_related(current, concept))


def _symbol_topic(scene: _Scene, symbols: Sequence[str]) -> Topic:
    topic = symbol_topic(symbols, trade=scene.said.intent.name == "trade", language=scene.said.language)
    return next((old for old in scene.topics if old["key"] == topic["key"]), topic)


def _following(scene: _Scene) -> Reading | None:
    """A follow-up of a turn that had symbols: mostly of the present topic, else of the one they belong to."""
    resolution, current = scene.said.resolution, scene.current
    if resolution.how != "follow_up" or current is None or _names_other_subject(scene):
        return None
    symbols = set(resolution.symbols)
    if not scene.current_symbols and _means_present_concept(scene, current):
        return scene.stay()
    if symbols == scene.current_symbols or (current["key"] == PORTFOLIO and symbols <= scene.current_symbols):
        return Reading(current, resolution.symbols, "follow_up")
    topic = _symbol_topic(scene, resolution.symbols)
    if symbols & scene.current_symbols:
        return Reading(topic, resolution.symbols, "follow_up")
    return scene.go_to(topic, "follow_up", "symbols")


def _means_present_concept(scene: _Scene, current: Topic) -> bool:
    """Whether a follow-up is of the concept that is spoken of, not of the symbols before it."""
    return _is_newest(scene) and (is_asset(current) or not scene.speaks_of_security)


def _is_newest(scene: _Scene) -> bool:
    """Whether the follow-up means the newest symbols, not "the other one" or "both"."""
    newest = next((topic["symbols"] for topic in reversed(scene.topics) if topic["symbols"]), [])
    return set(newest) == set(scene.said.resolution.symbols)


def _names_other_subject(scene: _Scene) -> bool:
    """Whether what looks like a follow-up says that it is none, or names a subject that no security has."""
    if scene.leaves:
        return bool(scene.concept or naming_words(scene.text[scene.after_marker(scene.text) :]))
    if scene.concept is None or scene.leans:
        return False
    return scene.explains or not is_side_of_security(scene.concept)


def _nothing_asked(scene: _Scene) -> Reading | None:
    """Greetings, thanks, preferences, statements and asides leave the topic as it is."""
    small_talk = scene.patterns.small_talk.search(scene.text)
    if small_talk and not scene.concept and len(_words_beside(scene, small_talk.span())) < _STANDS_ALONE:
        return scene.stay(carry=False)
    if _is_aside(scene):
        return scene.stay(carry=False)
    says_something = scene.asks or scene.turns or scene.patterns.go_on.search(scene.text)
    return None if says_something else scene.stay(carry=scene.speaks_of_security)


def _is_aside(scene: _Scene) -> bool:
    """Whether it speaks of no subject: a preference, what was said once, the hour, the assistant."""
    intent = scene.said.intent
    if intent.name == "preference":
        return intent.confidence >= CLEAR or not scene.asks
    return intent.name in ("greeting", "recall") or bool(scene.patterns.aside.search(scene.text))


def _words_beside(scene: _Scene, span: tuple[int, int]) -> list[str]:
    return naming_words(scene.text[: span[0]] + " " + scene.text[span[1] :])


def _going_on(scene: _Scene) -> Reading | None:
    """ "Explícame más", "no entendí", "why?": the present topic, unless another is named."""
    match = scene.patterns.go_on.search(scene.text)
    if not match or scene.leaves or scene.concept or len(_words_beside(scene, match.span())) >= _STANDS_ALONE:
        return None
    return scene.stay()


def _concept(scene: _Scene) -> Reading | None:
    """A concept or indicator by name: a topic of its own, or a side of what is spoken of."""
    topic, current = scene.concept, scene.current
    if topic is None:
        return None
    if current is None:
        return scene.go_to(topic, "none", "subject")
    if scene.leaves:
        return scene.go_to(topic, "none", "marker")
    if is_related(topic, current):
        return replace(scene.stay(), topic=current if topic["key"] == current["key"] else topic)
    was_spoken_of = not scene.current_symbols and topic["key"] in {old["key"] for old in scene.topics}
    if scene.leans or (_is_side_of_present(scene, topic) and not was_spoken_of):
        return scene.stay()
    return scene.go_to(topic, "none", "marker" if scene.turns else "subject")


def _is_side_of_present(scene: _Scene, concept: Topic) -> bool:
    if not is_side_of_security(concept) or scene.turns:
        return False
    return scene.opens_as_follow_up or (bool(scene.current_symbols) and not scene.explains)


def _own_words(scene: _Scene) -> Reading | Doubt:
    """A question without symbol or concept: the same topic, or one by the message's own words."""
    topic = scene.own_topic()
    carry = scene.leans or not scene.explains
    if topic is None:
        return scene.stay(carry=carry)
    if scene.current is None:
        return scene.stay() if scene.leans else scene.go_to(topic, "none", "subject")
    named = named_topics(scene.text, scene.topics)
    if any(old is scene.current for old, _ in named):
        return scene.stay(carry=carry)
    wholly = [old for old, share in named if share == 1.0]
    if wholly:
        return scene.go_to(wholly[0], _how(wholly[0]), "subject")
    if scene.leaves or (scene.turns and not _depends(scene)):
        return scene.go_to(topic, "none", "marker")
    if _depends(scene) or len(naming_words(scene.text)) < _STANDS_ALONE:
        return scene.stay(carry=carry)
    return Doubt(scene.go_to(topic, "none", "similarity"), scene.stay(carry=carry))


def _depends(scene: _Scene) -> bool:
    """Whether the message has its subject from what was said before."""
    of_security = scene.speaks_of_security and bool(scene.current_symbols)
    return scene.leans or scene.opens_as_follow_up or of_security
