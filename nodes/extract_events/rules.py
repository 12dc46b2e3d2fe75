"""The extractor without a model: statements of a problem or a request, matched to the types of the dictionary.

A statement is compared with each type's name and description: shared words of either language, and, with the bundled
embedder, which knows both languages, their likeness. What is asked for information, supposed or denied gives nothing.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

import numpy as np

from recuerdo.nodes.extract_events.protocol import READ, Extracted, Heard
from recuerdo.nodes.update_memory.wording import is_negated, numbers, overlap, shared_words
from recuerdo.state.errors import StoreError
from recuerdo.state.folding import folded, plain
from recuerdo.state.key_events import (
    LONGEST_ENTITY,
    MOST_ENTITIES,
    PRIORITY_OF,
    EventChange,
    EventStatus,
    KeyEvent,
    NewEvent,
)
from recuerdo.state.plan import EventType
from recuerdo.state.tables import read_table
from recuerdo.stores.embeddings import BundledEmbedder, Embedder
from recuerdo.stores.postgres.key_events.extraction import FoundEvent

LONGEST = 300
"""Characters of a statement that become an event's summary."""

LIKENESS = 0.19
"""How like a type a statement must be. Of the bundled embedder's cosine, words add to it."""
NAME_WEIGHT, WORD_WEIGHT, MOST_WORDS = 0.3, 0.05, 3
WITHOUT_EMBEDDER = 0.1
"""The same where words alone decide: two words of a description, or a third of a name."""
SAME_WORDS = 0.5
"""Share of words from which two statements of one type are about the same thing."""
SURE = 0.6
"""Likeness of a statement that is taken as sure."""

_SENTENCE = re.compile(r"[^.!?¡¿;\n]+[.!?]*|[¿¡][^?!\n]+[?!]*")


@dataclass(frozen=True)
class Statement:
    """A sentence of the user's, in the turn that said it, and the same folded."""

    turn: UUID
    text: str
    folded: str


class RulesExtractor:
    """Reads by rules; ``embedder`` None or another than the bundled one: by shared words alone."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder if isinstance(embedder, BundledEmbedder) else None

    async def extract(self, heard: Heard) -> Extracted:
        """Events of what the user states, each with his own words."""
        statements = await asyncio.to_thread(_statements, heard)
        likeness = await self._likeness([one.text for one in statements], heard.settings.types)
        reading = _Reading(heard)
        for statement, alike in zip(statements, likeness, strict=True):
            reading.read(statement, alike)
        return Extracted(reading.found, "rules")

    async def _likeness(self, texts: Sequence[str], types: Sequence[EventType]) -> np.ndarray:
        """Of each statement to each type."""
        words = np.array([[_words_alike(text, kind) for kind in types] for text in texts])
        words = words.reshape(len(texts), len(types))
        if self._embedder is None or not texts:
            return words * LIKENESS / WITHOUT_EMBEDDER
        named = [f"{kind.name}. {kind.description}".strip() for kind in types]
        try:
            vectors = np.array(await self._embedder.embed([*texts, *named]))
        except StoreError:
            return words * LIKENESS / WITHOUT_EMBEDDER
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        likeness: np.ndarray = vectors[: len(texts)] @ vectors[len(texts) :].T + words
        return likeness


class _Reading:
    """Statement by statement: what is new, and what is said of an event that is open."""

    def __init__(self, heard: Heard) -> None:
        self._types = heard.settings.types
        self._known = list(heard.known)
        self._new: list[NewEvent] = []
        self.found: list[FoundEvent] = []

    def read(self, statement: Statement, alike: np.ndarray) -> None:
        if (status := _status_of(statement)) is not None:
            self._settle(statement, status, alike)
        elif _gives_an_event(statement):
            self._open(statement, alike)

    def _settle(self, statement: Statement, status: EventStatus, alike: np.ndarray) -> None:
        event = self._meant(statement, alike)
        if event is not None and event.status != status:
            self.found.append(
                FoundEvent(statement.turn, f"{event.id}:{status}", EventChange(status=status), event.id)
            )

    def _meant(self, statement: Statement, alike: np.ndarray) -> KeyEvent | None:
        """The open event that something is over with: the one it names, the only one of its type, the only one."""
        about = numbers(statement.text)
        named = [event for event in self._known if about & _numbers_of(event)]
        if about:
            return named[0] if len(named) == 1 else None
        kind = self._types[int(alike.argmax())].name if alike.max(initial=0) >= LIKENESS else None
        of_kind = [event for event in self._known if event.type == kind]
        candidates = of_kind or self._known
        return candidates[0] if len(candidates) == 1 else None

    def _open(self, statement: Statement, alike: np.ndarray) -> None:
        best = int(alike.argmax())
        if alike[best] < LIKENESS:
            return
        kind = self._types[best]
        event = NewEvent(
            type=kind.name,
            summary=statement.text[:LONGEST],
            entities=_entities(statement.text),
            priority=PRIORITY_OF[_severity(statement)],
            confidence=round(float(min(0.5 + 0.4 * alike[best] / SURE, 0.9)), 2),
        )
        if self._is_told(event):
            return
        self._new.append(event)
        self.found.append(FoundEvent(statement.turn, f"{kind.name}:{statement.folded[:LONGEST]}", event))

    def _is_told(self, event: NewEvent) -> bool:
        """Whether an open event, or one of before in this reading, is about the same: a ticket is opened once."""
        before: list[KeyEvent | NewEvent] = [*self._known, *self._new]
        return any(one.type == event.type and _same_matter(event, one) for one in before)


def _same_matter(one: NewEvent, other: NewEvent | KeyEvent) -> bool:
    """By the numbers where both have some, else by the words."""
    mine, its = _numbers_of(one), _numbers_of(other)
    return bool(mine & its) if mine and its else overlap(one.summary, other.summary) >= SAME_WORDS


def _numbers_of(event: NewEvent | KeyEvent) -> set[str]:
    return {number for text in (event.summary, *event.entities) for number in numbers(text)}


def _statements(heard: Heard) -> list[Statement]:
    return [
        Statement(spoken.turn, text, folded(plain(text)))
        for spoken in heard.spoken
        if spoken.role == "user"
        for sentence in _SENTENCE.findall(spoken.text[:READ])
        if (text := " ".join(sentence.split())) and any(char.isalpha() for char in text)
    ]


def _gives_an_event(statement: Statement) -> bool:
    """Something is wrong or wanted. A question for information, what is supposed and what is denied is neither."""
    said = statement.folded
    if _says("denied", said) or _says("supposed", said):
        return False
    asks = "?" in said
    return not asks or _says("trouble", said) or (_says("wanted", said) and not _says("informing", said))


def _status_of(statement: Statement) -> EventStatus | None:
    if "?" in statement.text or is_negated(statement.text) or _says("supposed", statement.folded):
        return None
    if _says("closed", statement.folded):
        return "CLOSED"
    return "RESOLVED" if _says("resolved", statement.folded) else None


def _severity(statement: Statement) -> str:
    if _says("calm", statement.folded):
        return "low"
    return "urgent" if _says("urgent", statement.folded) else "normal"


def _entities(text: str) -> tuple[str, ...]:
    """What is named by kind and number, in the user's own letters: "pedido 4471"."""
    same = plain(text)
    spans = [match.span() for pattern in _patterns("about") for match in pattern.finditer(folded(same))]
    found = dict.fromkeys(same[start:end][:LONGEST_ENTITY] for start, end in spans)
    return tuple(found)[:MOST_ENTITIES]


def _words_alike(text: str, kind: EventType) -> float:
    words = min(shared_words(kind.description, text), MOST_WORDS)
    return NAME_WEIGHT * overlap(kind.name, text, of="first") + WORD_WEIGHT * words


def _says(group: str, said: str) -> bool:
    return any(pattern.search(said) for pattern in _patterns(group))


@cache
def _patterns(group: str) -> tuple[re.Pattern[str], ...]:
    raw = read_table(__package__, "rules.yaml")
    return tuple(re.compile(pattern) for pattern in raw[group])
