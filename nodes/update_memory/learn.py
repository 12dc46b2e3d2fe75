"""What a turn teaches about its user: preferences, facts, symbols of interest, questions and answers (RF-7 to RF-11).

Only the user's own message is read: what the assistant said, what was recalled into the prompt, what a tool
returned or a document holds is never learnt as his (known fault 1).
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from recuerdo.nodes.build_context.history import redacted
from recuerdo.nodes.build_context.symbols import instrument
from recuerdo.nodes.call import Call
from recuerdo.nodes.call_llm.offline import FROM_PROMPT
from recuerdo.nodes.update_memory.extract import Item, Said, extractor_for
from recuerdo.nodes.update_memory.settle import Known, NewFact, Settled, settle
from recuerdo.nodes.update_memory.wording import numbers, overlap
from recuerdo.state.errors import StoreError
from recuerdo.state.folding import folded, plain
from recuerdo.state.record import Learnt
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import TurnInfo, TurnState, Work
from recuerdo.state.usage import CallUsage
from recuerdo.stores.postgres.memories import MemoryChanges, NewMemory
from recuerdo.stores.postgres.memories.rows import Alike
from recuerdo.stores.postgres.preferences import PreferenceChange
from recuerdo.stores.sensitive import redact

sentences = load_sentences(__package__)

LONGEST_ANSWER = 1500
"""Characters of an answer that are remembered beside its question."""

ANSWERED = "question_answer"
"""Kind of a memory that holds a question with its answer (RF-10)."""

_COMPARED = 20
"""Memories nearest to a text that it is compared with."""

_SHOWN = 10
"""Facts that the model is shown, so that it can say which no longer hold."""

_SAME_QUESTION = 0.8

# How one asks what something is: no part of what is asked about.
_ASKING = re.compile(
    r"\b(?:por favor|me puedes|puedes|podrias|explica\w*|dime|cuentame|que (?:es|son|significa\w*)"
    r"|para que (?:sirve\w*|se usa\w*)|can you|could you|please|explain\w*|tell me|what (?:is|are|does)|means?"
    r"|used for)\b"
)

_FACT_KINDS = ("fact", "note")


@dataclass(frozen=True)
class Lesson:
    """What will be written, and the same for the record.

    ``dropped`` are keys of preferences that go, ``unfollowed`` symbols that are of no interest any more; ``changes``
    are the memories that were said again or are over. ``usage`` is what a model took for it.
    """

    preferences: list[PreferenceChange] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    memories: list[NewMemory] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    unfollowed: list[str] = field(default_factory=list)
    changes: MemoryChanges = field(default_factory=MemoryChanges)
    confirmed: list[Learnt] = field(default_factory=list)
    forgotten: list[Learnt] = field(default_factory=list)
    usage: list[CallUsage] = field(default_factory=list)

    def learnt(self) -> list[Learnt]:
        """The record's entries of what is new, with the user's own quote."""
        again = {entry.key for entry in self.confirmed if entry.type == "preference"}
        return [
            *(
                Learnt(type="preference", key=c.key, value=c.value, quote=c.quote, confidence=c.confidence)
                for c in self.preferences
                if c.key not in again
            ),
            *(Learnt(type="symbol", key=s, value=s, quote=None, confidence=1.0) for s in self.symbols),
            *(
                Learnt(type="memory", key=m.kind, value=m.text, quote=m.quote, confidence=m.confidence or 0.0)
                for m in self.memories
            ),
        ]


async def learn(state: TurnState, work: Work, present: Sequence[AnyMessage], call: Call) -> Lesson:
    """Learn from the user's own words. Nothing from a preview or of an anonymous user (C-14)."""
    caller, plan = call.caller, call.services.plan
    if caller.user is None or caller.mode == "preview" or plan.memory.learning.by == "off":
        return Lesson()
    known = _preferences(work)
    nearest = _Nearest(call, datetime.fromisoformat(work["turn"]["now"]))
    facts = partial(_known_facts, work["turn"], nearest)
    # Off the loop: a long message is looked through here for the first time, for the turns after this one too.
    said = await asyncio.to_thread(_said, state, work, known)
    extracted = await extractor_for(call, work["turn"], facts).extract(said)
    settled = await settle(extracted, known, nearest.facts)
    answers = await _answers(work, present[-1], nearest)
    mentioned = work["symbols"] if work["resolved_by"] == "mentioned" else []
    return Lesson(
        preferences=_changed_preferences(settled, work),
        symbols=[one for one in mentioned if instrument(one) and one not in settled.unfollowed],
        memories=await _with_embeddings([*(_fact(new, work) for new in settled.facts), *answers], call),
        dropped=list(settled.dropped),
        unfollowed=list(settled.unfollowed),
        changes=MemoryChanges(tuple(settled.confirmed), tuple(settled.forgotten), work["turn"]["message_id"]),
        confirmed=_said_again(settled),
        forgotten=_over(settled),
        usage=list(extracted.usage),
    )


def _preferences(work: Work) -> dict[str, Any]:
    """Values in force by key, the free ones among them (A-11)."""
    known = dict(work["context"].get("preferences", {}))
    return {**known, **known.pop("custom", {})}


def _said(state: TurnState, work: Work, known: dict[str, Any]) -> Said:
    turn = work["turn"]
    before = [
        str(message.text)
        for message in redacted(state["messages"])
        if isinstance(message, HumanMessage) and message.id != turn["message_id"]
    ]
    return Said(turn["redacted"], turn["language"], before, known)


async def _known_facts(turn: TurnInfo, nearest: "_Nearest") -> Sequence[str]:
    return [one.text for one in (await nearest.facts(turn["redacted"]))[:_SHOWN]]


class _Nearest:
    """Finds what is remembered near a text. With the embedder or the memories away nothing is (IM-32)."""

    def __init__(self, call: Call, now: datetime) -> None:
        self._call = call
        self._now = now

    async def facts(self, text: str) -> Sequence[Known]:
        """Facts and notes, nearest first."""
        alike = await self._alike(text)
        return [
            Known(one.memory.id, one.memory.text, one.similarity)
            for one in alike
            if one.memory.kind in _FACT_KINDS and one.memory.status != "published"
        ]

    async def answered(self, question: str) -> list[UUID]:
        """The same question with its answer of before."""
        return [
            one.memory.id
            for one in await self._alike(question)
            if one.memory.kind == ANSWERED and one.memory.quote and _asks_the_same(question, one.memory.quote)
        ]

    async def _alike(self, text: str) -> Sequence[Alike]:
        call, embedder = self._call, self._call.services.embedder
        assistant, user = call.caller.assistant, str(call.caller.user)
        try:
            (vector,) = await embedder.embed([text])
            return await call.memories.alike(assistant, user, vector, embedder.name, self._now, _COMPARED)
        except StoreError:
            return []


def _asks_the_same(question: str, other: str) -> bool:
    """Whether two questions ask for an explanation of the same thing."""
    one, two = (_ASKING.sub(" ", folded(plain(text))) for text in (question, other))
    same = min(overlap(one, two, of="first"), overlap(two, one, of="first")) >= _SAME_QUESTION
    return same and numbers(one) == numbers(two)


def _changed_preferences(settled: Settled, work: Work) -> list[PreferenceChange]:
    """New values, and those said again: their dates move (A-25)."""
    turn = work["turn"]
    return [
        PreferenceChange(key, value, item.quote, turn["message_id"], turn["language"], item.confidence)
        for key, (value, item) in {**settled.said_again, **settled.preferences}.items()
    ]


def _said_again(settled: Settled) -> list[Learnt]:
    preferences = [
        Learnt(type="preference", key=key, value=value, quote=item.quote, confidence=item.confidence)
        for key, (value, item) in settled.said_again.items()
    ]
    return [*preferences, *_by_id(settled.confirmed)]


def _over(settled: Settled) -> list[Learnt]:
    preferences = [
        Learnt(type="preference", key=key, value=None, quote=item.quote, confidence=item.confidence)
        for key, item in settled.dropped.items()
    ]
    symbols = [
        Learnt(type="symbol", key=key, value=key, quote=item.quote, confidence=item.confidence)
        for key, item in settled.unfollowed.items()
    ]
    return [*preferences, *symbols, *_by_id(settled.forgotten)]


def _by_id(facts: dict[UUID, Item]) -> list[Learnt]:
    """By their ids: the text of what is forgotten stays nowhere."""
    return [
        Learnt(type="memory", key=item.key, value=str(key), quote=item.quote, confidence=item.confidence)
        for key, item in facts.items()
    ]


def _fact(new: NewFact, work: Work) -> NewMemory:
    item = new.item
    text = " ".join(str(item.value).split())
    return replace(
        _memory(item.key, text, item.quote, item.confidence, work), supersedes=tuple(new.supersedes)
    )


async def _answers(work: Work, reply: AnyMessage, nearest: _Nearest) -> list[NewMemory]:
    """A question that asked for an explanation, with its answer (RF-10); live data would be stale tomorrow.

    Asked again, the new answer takes the place of the old one.
    """
    if work["intent"] != "explanation" or not isinstance(reply, AIMessage):
        return []
    if reply.response_metadata.get(FROM_PROMPT):
        return []
    turn = work["turn"]
    question = turn["redacted"]
    answer = redact(" ".join(str(reply.text).split())).text[:LONGEST_ANSWER]
    text = sentences("question_and_answer", question=question, answer=answer).in_language(turn["language"])
    memory = _memory(ANSWERED, text, question, 1.0, work)
    return [replace(memory, supersedes=tuple(await nearest.answered(question)))]


def _memory(kind: str, text: str, quote: str, confidence: float, work: Work) -> NewMemory:
    turn = work["turn"]
    return NewMemory(
        kind=kind,
        text=text,
        language=turn["language"],
        confidence=confidence,
        quote=quote,
        message_id=turn["message_id"],
        once=True,
    )


async def _with_embeddings(memories: list[NewMemory], call: Call) -> list[NewMemory]:
    """With the embedder away the worker embeds them."""
    if not memories:
        return []
    embedder = call.services.embedder
    try:
        vectors = await embedder.embed([memory.text for memory in memories])
    except StoreError:
        return memories
    return [
        replace(memory, embedding=vector, embedder=embedder.name)
        for memory, vector in zip(memories, vectors, strict=True)
    ]
