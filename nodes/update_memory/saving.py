"""What a turn stores at once, and what it asks the user about first (IM-34).

With the plan's ``memory.saving: ask_first`` what the memory tool and the learner want to remember waits in the
thread. A yes in the next message stores it, anything else drops it. What the user orders is stored without a
question, and so are his preferences; questions with their answers, which nobody ordered, are not kept.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from uuid import UUID

import yaml
from langchain_core.messages import AnyMessage

from recuerdo.nodes.call import Call, Chunk
from recuerdo.nodes.run_tools.memory_tool.operations import NOTE
from recuerdo.nodes.update_memory.command import commanded_text, read_command, sentences
from recuerdo.nodes.update_memory.learn import ANSWERED, Lesson
from recuerdo.nodes.update_memory.vectors import index_memories
from recuerdo.state.folding import folded, plain
from recuerdo.state.sentences import Sentence
from recuerdo.state.turn import PendingMemory, TurnInfo, TurnState, Work
from recuerdo.stores.postgres.memories import NewMemory, write_memories
from recuerdo.stores.sensitive import redact

# Where a clause ends. An apostrophe does not: "don't" is one word.
_CLAUSE_END = re.compile(r"[^\w\s']+|\n")
_WORD = re.compile(r"[\w']+")


@dataclass(frozen=True)
class Saving:
    """What is stored now, what waits for a yes, and what the reply says of it."""

    lesson: Lesson
    pending: list[PendingMemory]
    notices: list[Sentence]


async def decide_saving(state: TurnState, work: Work, lesson: Lesson, call: Call) -> Saving:
    """Obey the user's command or his yes, and hold back what he is to be asked about."""
    command = read_command(work["turn"], call)
    # What follows the marker is the command's to keep, also where the plan has switched that off.
    learnt = lesson.memories if commanded_text(work["turn"]["redacted"]) is None else []
    pending: list[PendingMemory] = []
    if call.services.plan.memory.saving == "ask_first":
        kept = [memory for memory in learnt if memory.kind == NOTE]
        pending = await _to_ask(learnt, work.get("proposed", []))
    else:
        kept = list(learnt)
    agreed = _agreed(state, work, call)
    commanded = _instead(command.memories, lesson.memories) if command else []
    said = (command.fault if command else None, _question(pending))
    notices = [sentence for sentence in said if sentence is not None]
    return Saving(replace(lesson, memories=[*kept, *agreed, *commanded]), pending, notices)


async def keep_command(turn: TurnInfo, call: Call) -> None:
    """Store what the user ordered in a turn that has failed: that the model was away is no reason to lose it."""
    command = read_command(turn, call)
    if command is None or not command.memories:
        return
    caller, services = call.caller, call.services
    async with services.database.tenant(caller.tenant) as connection:
        waiting = await write_memories(
            connection,
            caller.tenant,
            caller.assistant,
            str(caller.user),
            command.memories,
            services.clock(),
            UUID(turn["id"]),
        )
    await index_memories(call, waiting)


def with_notices(reply: AnyMessage, notices: Sequence[Sentence], work: Work, call: Call) -> AnyMessage:
    """The reply with what is said of its memories; it was streamed already, so the rest follows it."""
    if not notices:
        return reply
    added = "".join("\n\n" + notice.in_language(work["turn"]["language"]) for notice in notices)
    call.emit(Chunk(type="token", text=added, data={}))
    return reply.model_copy(update={"content": f"{reply.text}{added}"})


def is_yes(text: str) -> bool:
    """Whether a message, in either language, begins with a clause that says yes, and takes nothing back."""
    words = _words()
    said = folded(plain(text))
    if words.against.intersection(_WORD.findall(said)):
        return False
    clauses = (" ".join(_WORD.findall(clause)) for clause in _CLAUSE_END.split(said))
    says = (clause for clause in clauses if clause and clause not in words.polite)
    return _without_polite(next(says, "")) in words.yes


def _instead(commanded: Sequence[NewMemory], learnt: Sequence[NewMemory]) -> list[NewMemory]:
    """What a command says is kept word for word, in place of what was learnt from it and of what that replaces."""
    replaced = tuple(key for memory in learnt for key in memory.supersedes)
    return [replace(memory, supersedes=replaced) for memory in commanded]


def _agreed(state: TurnState, work: Work, call: Call) -> list[NewMemory]:
    """What the reply before asked about, if this message says yes."""
    waiting = state.get("pending_memories") or []
    if call.caller.user is None or call.caller.mode == "preview" or not is_yes(work["turn"]["redacted"]):
        return []
    return [_as_memory(memory) for memory in waiting]


async def _to_ask(learnt: Sequence[NewMemory], proposed: Sequence[PendingMemory]) -> list[PendingMemory]:
    facts = [memory for memory in learnt if memory.kind not in (NOTE, ANSWERED)]
    cleaned = [
        PendingMemory(**{**memory, "text": (await asyncio.to_thread(redact, memory["text"])).text})
        for memory in proposed
    ]
    by_text = {memory["text"]: memory for memory in [*map(_as_pending, facts), *cleaned]}
    return list(by_text.values())


def _question(pending: Sequence[PendingMemory]) -> Sentence | None:
    if not pending:
        return None
    if len(pending) == 1:
        return sentences("ask_one", text=pending[0]["text"])
    quoted = [sentences("quoted", text=memory["text"]) for memory in pending]
    texts = Sentence(es=" ".join(text.es for text in quoted), en=" ".join(text.en for text in quoted))
    return sentences("ask_several", texts=texts)


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
    )


def _as_memory(pending: PendingMemory) -> NewMemory:
    return NewMemory(
        kind=pending["kind"],
        text=pending["text"],
        language=pending["language"],
        confidence=pending["confidence"],
        quote=pending["quote"],
        message_id=pending["message_id"],
        metadata=pending["metadata"],
        supersedes=[UUID(key) for key in pending["supersedes"]],
        once=True,
    )


@dataclass(frozen=True)
class _YesWords:
    yes: frozenset[str]
    polite: tuple[str, ...]
    against: frozenset[str]


@cache
def _words() -> _YesWords:
    raw = yaml.safe_load((files(__package__) / "yes.yaml").read_text(encoding="utf-8"))
    return _YesWords(frozenset(raw["yes"]), tuple(raw["polite"]), frozenset(raw["against"]))


def _without_polite(clause: str) -> str:
    """A clause without the polite words before and after what it says."""
    for word in _words().polite:
        clause = clause.removeprefix(word + " ").removesuffix(" " + word)
    return clause
