"""One statement is learnt once: what the model saved by its tool stands before what is learnt of the same words.

The id that the tool gave stays good, and what it deleted is not learnt again (ET-9).
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recuerdo.nodes.call import Call
from recuerdo.nodes.update_memory.extract.facts import says_what_is_now
from recuerdo.nodes.update_memory.learn import ANSWERED, Lesson
from recuerdo.nodes.update_memory.proposals import say_the_same
from recuerdo.nodes.update_memory.settle import relation, same_days
from recuerdo.nodes.update_memory.wording import is_negated, numbers, overlap, shared_words
from recuerdo.state.folding import folded, plain
from recuerdo.state.limits import MemoryLimits, status_for
from recuerdo.state.record import Learnt
from recuerdo.state.turn import Work
from recuerdo.stores.postgres.memories import MemoryChanges, NewMemory, StoredMemory

# "Usa siempre velas" and "prefiere velas" are one wish.
_WISH = re.compile(
    r"\b(?:(?:me|le|nos|les) gusta\w*|prefier\w+|prefer\w*|quier\w+|queremos|us[ao]\w?|usamos|uses?"
    r"|likes?|wants?|siempre|always)\b"
)
_ALIKE = 0.6


async def yield_to_tool(lesson: Lesson, work: Work, call: Call) -> Lesson:
    """``lesson`` without what the memory tool has settled in this turn.

    A fact that the tool saved too confirms the tool's memory, and what it replaces goes; no memory that the tool
    wrote is replaced or forgotten. A fact or preference that the tool deleted is left out.
    """
    edits = work.get("memory_edits", [])
    if not edits or call.caller.user is None:
        return lesson
    ids = {UUID(edit["id"]) for edit in edits}
    now = call.services.clock()
    saved = await call.memories.get(list(ids), call.caller.assistant, call.caller.user, now)
    gone = [edit["before"] for edit in edits if edit["before"] is not None]
    limits = call.services.database.limits
    # Off the loop: every fact is compared with every memory, word by word.
    return await asyncio.to_thread(
        lambda: _without_gone(_without_saved(_spared(lesson, ids), saved, limits), gone)
    )


def _spared(lesson: Lesson, ids: set[UUID]) -> Lesson:
    """The lesson, which replaces and forgets none of ``ids``."""
    named = {str(key) for key in ids}
    return replace(
        lesson,
        memories=[
            replace(memory, supersedes=[key for key in memory.supersedes if key not in ids])
            for memory in lesson.memories
        ],
        changes=replace(
            lesson.changes, forgotten=[key for key in lesson.changes.forgotten if key not in ids]
        ),
        forgotten=[one for one in lesson.forgotten if one.type != "memory" or one.value not in named],
    )


def _without_saved(lesson: Lesson, saved: Sequence[StoredMemory], limits: MemoryLimits) -> Lesson:
    """Facts that the tool saved too are said of its memories, and not kept beside them."""
    told = _told(lesson.memories, saved)
    facts = {place: lesson.memories[place] for place in told}
    sure = {p: key for p, key in told.items() if status_for(facts[p].confidence, limits) == "confirmed"}
    replaced = {key: fact for fact in facts.values() for key in fact.supersedes}
    return replace(
        lesson,
        memories=[memory for place, memory in enumerate(lesson.memories) if place not in told],
        changes=_with(lesson.changes, [*sure.values()], [*replaced]),
        confirmed=[*lesson.confirmed, *(_noted(key, facts[place]) for place, key in sure.items())],
        forgotten=[*lesson.forgotten, *(_noted(key, fact) for key, fact in replaced.items())],
    )


def _told(learnt: Sequence[NewMemory], saved: Sequence[StoredMemory]) -> Mapping[int, UUID]:
    """By the place of a learnt fact, the memory that states the same.

    A model words things its own way: where a memory is none of the facts, it is the one that is most like it. Only
    that one: "the car's check is in May" beside "the van's check is in May" is another fact.
    """
    facts = {place: memory.text for place, memory in enumerate(learnt) if memory.kind != ANSWERED}
    told = {place: one.id for one in saved for place, text in facts.items() if _is_said(text, one.text)}
    for one in saved:
        left = [place for place in facts if place not in told]
        if one.id in told.values() or not left:
            continue
        likest = max(left, key=lambda place: overlap(facts[place], one.text))
        if _is_alike(facts[likest], one.text):
            told[likest] = one.id
    return told


def _without_gone(lesson: Lesson, gone: Sequence[str]) -> Lesson:
    """What the tool deleted, or gave another text, is not learnt again of the words that it was deleted by."""
    dropped = {c.key for c in lesson.preferences if any(_states(c.quote, text) for text in gone)}
    return replace(
        lesson,
        memories=[
            memory
            for memory in lesson.memories
            if memory.kind == ANSWERED or not any(_states(memory.text, text) for text in gone)
        ],
        preferences=[change for change in lesson.preferences if change.key not in dropped],
        confirmed=[one for one in lesson.confirmed if one.type != "preference" or one.key not in dropped],
    )


def _is_said(fact: str, saved: str) -> bool:
    """Whether what the tool saved is the statement that a fact was learnt of."""
    return _states(fact, saved) or (_agree(fact, saved) and relation(fact, saved, 0.0) == "replaces")


def _states(fact: str, known: str) -> bool:
    """Whether two texts state the same, in other words of wishing or of whom."""
    one, other = (_WISH.sub(" ", folded(plain(text))) for text in (fact, known))
    if shared_words(one, other) and say_the_same(one, other):
        return True
    return _agree(fact, known) and relation(fact, known, 0.0) == "same"


def _is_alike(fact: str, saved: str) -> bool:
    return _agree(fact, saved) and same_days(fact, saved) and overlap(fact, saved) >= _ALIKE


def _agree(one: str, other: str) -> bool:
    """Whether both texts deny, or neither, and neither names a number that speaks against the other's."""
    first, second = numbers(one), numbers(other)
    # "I no longer live in Lugo, now I live in Vigo" denies what was.
    denies = is_negated(one) and not says_what_is_now(folded(plain(one)))
    return denies == is_negated(other) and (first <= second or second <= first)


def _with(changes: MemoryChanges, confirmed: Sequence[UUID], forgotten: Sequence[UUID]) -> MemoryChanges:
    return replace(
        changes,
        confirmed=list(dict.fromkeys([*changes.confirmed, *confirmed])),
        forgotten=list(dict.fromkeys([*changes.forgotten, *forgotten])),
    )


def _noted(memory_id: UUID, fact: NewMemory) -> Learnt:
    return Learnt(
        type="memory",
        key=fact.kind,
        value=str(memory_id),
        quote=fact.quote,
        confidence=fact.confidence or 0.0,
    )
