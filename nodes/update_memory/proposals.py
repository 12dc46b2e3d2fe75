"""What the user is asked about: what was learnt and what the memory tool wants to keep, each thing once (IM-34)."""

import asyncio
import re
from collections.abc import Sequence

from recuerdo.nodes.run_tools.memory_tool.operations import NOTE
from recuerdo.nodes.update_memory.learn import ANSWERED
from recuerdo.nodes.update_memory.wording import is_negated, numbers, other_words, shared_words
from recuerdo.state.folding import folded, plain
from recuerdo.state.turn import PendingMemory
from recuerdo.stores.postgres.memories import NewMemory
from recuerdo.stores.sensitive import redact

# How a model names whom it remembers something of: no part of what it remembers.
_SUBJECT = re.compile(r"\b(?:(?:el|la|the) )?(?:usuari[oa]|user|client[ea]|customer|huesped|guest)\b")
_ENOUGH = 2


async def to_ask(learnt: Sequence[NewMemory], proposed: Sequence[PendingMemory]) -> list[PendingMemory]:
    """Facts that were learnt and proposals of the tool, those of the same thing as one."""
    asked: list[PendingMemory] = []
    for fact in learnt:
        if fact.kind not in (NOTE, ANSWERED):
            _ask(asked, _as_pending(fact))
    for proposal in proposed:
        clean = await asyncio.to_thread(redact, proposal["text"])
        _ask(asked, PendingMemory(**{**proposal, "text": clean.text}))
    return asked


def say_the_same(one: str, other: str) -> bool:
    """Whether one of two texts says all that the other says, whoever it names: "vivo en Lugo", "Ana vive en Lugo"."""
    first, second = _of_anybody(one), _of_anybody(other)
    if is_negated(first) != is_negated(second) or numbers(first) != numbers(second):
        return False
    if first.split() == second.split():
        return True
    less, more = (first, second) if not other_words(first, second) else (second, first)
    if other_words(less, more):
        return False
    # "I'm vegetarian" is not said by "my sister is vegetarian".
    return shared_words(less, more) >= _ENOUGH or (
        shared_words(less, more) > 0 and not other_words(more, less)
    )


def _ask(asked: list[PendingMemory], new: PendingMemory) -> None:
    for place, one in enumerate(asked):
        if _change_the_same(one, new) and say_the_same(one["text"], new["text"]):
            asked[place] = _joined(one, new)
            return
    asked.append(new)


def _change_the_same(one: PendingMemory, other: PendingMemory) -> bool:
    """Two memories are never changed by one proposal."""
    return len({changed for changed in (one.get("updates"), other.get("updates")) if changed}) < _ENOUGH


def _joined(one: PendingMemory, other: PendingMemory) -> PendingMemory:
    """The first, which has the user's own words, with the fuller text of the two, and what the other changes."""
    says_more = other_words(_of_anybody(other["text"]), _of_anybody(one["text"])) > 0
    fuller = other if says_more else one
    updates = one.get("updates") or other.get("updates")
    supersedes = [key for key in dict.fromkeys([*one["supersedes"], *other["supersedes"]]) if key != updates]
    return PendingMemory(
        **{
            **one,
            "text": fuller["text"],
            "language": fuller["language"],
            "supersedes": supersedes,
            "updates": updates,
        }
    )


def _of_anybody(text: str) -> str:
    return _SUBJECT.sub(" ", folded(plain(text)))


def _as_pending(memory: NewMemory) -> PendingMemory:
    return PendingMemory(
        kind=memory.kind,
        text=memory.text,
        language=memory.language,
        confidence=memory.confidence,
        quote=memory.quote,
        message_id=memory.message_id,
        metadata=memory.metadata,
        supersedes=[str(key) for key in memory.supersedes],
        updates=None,
    )
