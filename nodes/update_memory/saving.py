"""What a turn stores at once, and what it asks the user about first (IM-34).

With the plan's ``memory.saving: ask_first`` what the memory tool and the learner want to remember waits in the
thread. A yes in the next message stores it, anything else drops it. What the user orders is stored without a
question, and so are his preferences; questions with their answers, which nobody ordered, are not kept.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from uuid import UUID

from langchain_core.messages import AnyMessage

from recuerdo.nodes.call import Call, Chunk
from recuerdo.nodes.run_tools.memory_tool.operations import NOTE
from recuerdo.nodes.update_memory.by_tool import yield_to_tool
from recuerdo.nodes.update_memory.command import commanded_text, read_command, sentences
from recuerdo.nodes.update_memory.learn import Lesson
from recuerdo.nodes.update_memory.proposals import to_ask
from recuerdo.state.folding import folded, plain
from recuerdo.state.sentences import Sentence
from recuerdo.state.tables import read_table
from recuerdo.state.turn import PendingMemory, TurnInfo, TurnState, Work
from recuerdo.stores.postgres.memories import MemoryChanges, NewMemory, write_memories
from recuerdo.stores.worker import index_at_once

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
    lesson = await yield_to_tool(lesson, work, call)
    command = await read_command(work["turn"], call)
    # What follows the marker is the command's to keep, also where the plan has switched that off.
    learnt = lesson.memories if commanded_text(work["turn"]["text"]) is None else []
    pending: list[PendingMemory] = []
    if call.services.plan.memory.saving == "ask_first":
        kept = [memory for memory in learnt if memory.kind == NOTE]
        pending = await to_ask(learnt, work.get("proposed", []))
    else:
        kept = list(learnt)
    agreed = await _agreed(state, work, call)
    commanded = _instead(command.memories, lesson.memories) if command else []
    said = (*agreed.notices, command.fault if command else None, _question(pending))
    stored = replace(
        lesson,
        memories=[*kept, *agreed.memories, *commanded],
        changes=_with_agreed(lesson.changes, agreed),
    )
    return Saving(stored, pending, [sentence for sentence in said if sentence is not None])


async def keep_command(turn: TurnInfo, call: Call) -> None:
    """Store what the user ordered in a turn that has failed: that the model was away is no reason to lose it."""
    command = await read_command(turn, call)
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
    services = call.services
    await index_at_once(services.database, services.index, services.embedder, waiting)


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


@dataclass(frozen=True)
class _Agreed:
    """What a yes stores: new memories, other texts of memories that are there, and what could not be done."""

    memories: list[NewMemory] = field(default_factory=list)
    updated: dict[UUID, str] = field(default_factory=dict)
    replaced: list[UUID] = field(default_factory=list)
    notices: list[Sentence] = field(default_factory=list)


async def _agreed(state: TurnState, work: Work, call: Call) -> _Agreed:
    """What the reply before asked about, if this message says yes. What was forgotten meanwhile stays forgotten."""
    waiting = state.get("pending_memories") or []
    caller = call.caller
    if caller.user is None or caller.mode == "preview" or not is_yes(work["turn"]["redacted"]):
        return _Agreed()
    changed = {UUID(key): memory for memory in waiting if (key := memory.get("updates"))}
    now = call.services.clock()
    found = await call.memories.get(list(changed), caller.assistant, caller.user, now) if changed else []
    there = {memory.id for memory in found if memory.status != "published"}
    return _Agreed(
        [_as_memory(memory) for memory in waiting if not memory.get("updates")],
        {key: memory["text"] for key, memory in changed.items() if key in there},
        [UUID(old) for key, memory in changed.items() if key in there for old in memory["supersedes"]],
        [sentences("update_gone", text=m["text"]) for key, m in changed.items() if key not in there],
    )


def _with_agreed(changes: MemoryChanges, agreed: _Agreed) -> MemoryChanges:
    return replace(changes, updated=agreed.updated, forgotten=(*changes.forgotten, *agreed.replaced))


def _question(pending: Sequence[PendingMemory]) -> Sentence | None:
    if not pending:
        return None
    if len(pending) == 1:
        return sentences("ask_one", text=pending[0]["text"])
    quoted = [sentences("quoted", text=memory["text"]) for memory in pending]
    texts = Sentence(es=" ".join(text.es for text in quoted), en=" ".join(text.en for text in quoted))
    return sentences("ask_several", texts=texts)


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
    raw = read_table(__package__, "yes.yaml")
    return _YesWords(frozenset(raw["yes"]), tuple(raw["polite"]), frozenset(raw["against"]))


def _without_polite(clause: str) -> str:
    """A clause without the polite words before and after what it says."""
    for word in _words().polite:
        clause = clause.removeprefix(word + " ").removesuffix(" " + word)
    return clause
