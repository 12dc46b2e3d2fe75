"""What a turn teaches about its user: preferences, symbols of interest, questions and answers, notes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, AnyMessage

from recuerdo.nodes.build_context.symbols import instrument
from recuerdo.nodes.call import Call
from recuerdo.nodes.call_llm.offline import FROM_PROMPT
from recuerdo.nodes.update_memory.preferences import find_preferences
from recuerdo.state.record import Learnt
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import Work
from recuerdo.stores.postgres.memories import NewMemory
from recuerdo.stores.postgres.preferences import PreferenceChange
from recuerdo.stores.sensitive import redact

sentences = load_sentences(__package__)

LONGEST_ANSWER = 1500
"""Characters of an answer that are remembered beside its question."""

_NOTE = re.compile(
    r"^\s*(?:#MEMORY#|(?:por favor[, ]+)?recuerda que|(?:please )?remember that)\s+(.{3,})$",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Lesson:
    """What will be written, and the same for the record."""

    preferences: list[PreferenceChange] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    memories: list[NewMemory] = field(default_factory=list)

    def learnt(self) -> list[Learnt]:
        """The record's entries, without the texts of memories beyond the user's own quote."""
        return [
            *(
                Learnt(type="preference", key=c.key, value=c.value, quote=c.quote, confidence=c.confidence)
                for c in self.preferences
            ),
            *(Learnt(type="symbol", key=s, value=s, quote=None, confidence=1.0) for s in self.symbols),
            *(
                Learnt(type="memory", key=m.kind, value=m.text, quote=m.quote, confidence=m.confidence or 0.0)
                for m in self.memories
            ),
        ]


async def learn(work: Work, present: Sequence[AnyMessage], call: Call) -> Lesson:
    """Learn from the user's own words. Nothing from a preview or of an anonymous user (C-14)."""
    if call.caller.user is None or call.caller.mode == "preview":
        return Lesson()
    turn = work["turn"]
    known = work["context"].get("preferences", {})
    mentioned = work["symbols"] if work["resolved_by"] == "mentioned" else []
    return Lesson(
        preferences=find_preferences(turn["redacted"], known, turn["language"], turn["message_id"]),
        symbols=[symbol for symbol in mentioned if instrument(symbol)],
        memories=await _with_embeddings([*_notes(work), *_answers(work, present[-1])], call),
    )


def _notes(work: Work) -> list[NewMemory]:
    """What the user asks to be remembered, in his own words."""
    turn = work["turn"]
    match = _NOTE.match(turn["redacted"])
    if match is None:
        return []
    text = " ".join(match.group(1).split())
    return [_memory("note", text, turn["redacted"], work)]


def _answers(work: Work, reply: AnyMessage) -> list[NewMemory]:
    """A question that asked for an explanation, with its answer (RF-10); live data would be stale tomorrow."""
    if work["intent"] != "explanation" or not isinstance(reply, AIMessage):
        return []
    if reply.response_metadata.get(FROM_PROMPT):
        return []
    turn = work["turn"]
    answer = redact(" ".join(str(reply.text).split())).text[:LONGEST_ANSWER]
    text = sentences("question_and_answer", question=turn["redacted"], answer=answer)
    return [_memory("question_answer", text.in_language(turn["language"]), turn["redacted"], work)]


def _memory(kind: str, text: str, quote: str, work: Work) -> NewMemory:
    turn = work["turn"]
    return NewMemory(
        kind=kind,
        text=text,
        language=turn["language"],
        confidence=1.0,
        quote=quote,
        message_id=turn["message_id"],
    )


async def _with_embeddings(memories: list[NewMemory], call: Call) -> list[NewMemory]:
    if not memories:
        return []
    embedder = call.services.embedder
    vectors = await embedder.embed([memory.text for memory in memories])
    return [
        NewMemory(**{**vars(memory), "embedding": vector, "embedder": embedder.name})
        for memory, vector in zip(memories, vectors, strict=True)
    ]
