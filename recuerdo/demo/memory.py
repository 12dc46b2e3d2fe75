"""Plays the memory scenes through the real graph, in a tenant and on a clock of their own (OR-3 to OR-12, RF-26)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID, uuid4

import yaml
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from recuerdo.agent import Agent
from recuerdo.demo.clock import MEMORY_TENANT, running_from
from recuerdo.demo.memory_script import (
    Ask,
    AssistantModel,
    Audit,
    Export,
    ForgetAll,
    Look,
    MemoryScene,
    MemoryScript,
    MemoryVisit,
    Publish,
    Say,
    Step,
    Why,
    load_memory_script,
)
from recuerdo.level_1 import Level1
from recuerdo.memory import Explanation
from recuerdo.nodes.call_llm.local import newest_question
from recuerdo.opening import AgentOpening, open_agent
from recuerdo.state.errors import ScopeError
from recuerdo.state.plan import Plan, read_plan
from recuerdo.state.sentences import Sentence
from recuerdo.store import open_store
from recuerdo.stores.postgres.audit import AuditEntry
from recuerdo.stores.postgres.memories import StoredMemory
from recuerdo.stores.postgres.preferences import Preference
from recuerdo.stores.postgres.retention import Forgotten
from recuerdo.stores.postgres.symbols import Interest
from recuerdo.stores.recall.search import Recalled
from recuerdo.turn import Turn

_AT_MOST = 10


@dataclass(frozen=True)
class MemorySceneBegan:
    """A scene begins."""

    scene: MemoryScene


@dataclass(frozen=True)
class MemoryVisitBegan:
    """The application was opened anew; the clock stands at ``at``."""

    at: datetime


@dataclass(frozen=True)
class ToolCalled:
    """Arguments of the memory tool as the model gave them, and its answer: a ``result`` or an ``error``."""

    arguments: Mapping[str, Any]
    answer: Mapping[str, str]


@dataclass(frozen=True)
class MemorySaid:
    """A turn is over.

    ``recalled`` are the lines of memories in the prompt of its first request. ``during``: level 1 as it stood when the
    last tool had run, None in a turn without tools; ``after``: what is left of it.
    """

    user: str
    text: str
    turn: Turn
    recalled: Sequence[str]
    calls: Sequence[ToolCalled]
    during: Level1 | None
    after: Level1 | None


@dataclass(frozen=True)
class Ranked:
    """The user's memories for a question, best first; those that stood in the prompt by their ids."""

    hits: Sequence[Recalled]
    in_prompt: frozenset[str]


@dataclass(frozen=True)
class Stands:
    """What is in force of a user."""

    user: str
    preferences: dict[str, Preference]
    memories: Sequence[StoredMemory]
    symbols: Sequence[Interest]


@dataclass(frozen=True)
class Explained:
    """Why a memory is kept."""

    explanation: Explanation


@dataclass(frozen=True)
class PublishRefused:
    """Somebody may not make a memory permanent."""

    actor: str
    why: Sentence


@dataclass(frozen=True)
class Published:
    """A memory is permanent: as it is read afterwards."""

    actor: str
    reason: str
    memory: StoredMemory


@dataclass(frozen=True)
class Audited:
    """The audit of a memory, oldest first. ``text``: as the demo read it before; the audit has none."""

    text: str
    entries: Sequence[AuditEntry]


@dataclass(frozen=True)
class Exported:
    """Rows of the user's export by table."""

    user: str
    rows: Mapping[str, int]


@dataclass(frozen=True)
class AllForgotten:
    """What forgetting the user took away."""

    user: str
    gone: Forgotten


MemoryEvent = (
    MemorySceneBegan
    | MemoryVisitBegan
    | MemorySaid
    | Ranked
    | Stands
    | Explained
    | PublishRefused
    | Published
    | Audited
    | Exported
    | AllForgotten
)


def play_memory() -> Iterator[MemoryEvent]:
    """Play every scene; in the end nothing of its users is left, so that it can be played again.

    Blocking. Raises what ``open_agent`` and ``send`` raise.
    """
    script = load_memory_script()
    opening = _Opening(_plan(script), AssistantModel(said=script.said()))
    seen: dict[str, UUID] = {}
    # Held open meanwhile: else the embedded database would stop and start between any two visits.
    with open_store(tenant=MEMORY_TENANT):
        _prepare(script, opening)
        for scene in script.scenes:
            yield MemorySceneBegan(scene)
            for visit in scene.visits:
                yield from _play(script, visit, seen, opening)


@dataclass(frozen=True)
class _Opening:
    """Opens the demo's agent anew at any instant."""

    plan: Plan
    model: AssistantModel

    def at(self, instant: datetime) -> AgentOpening:
        clock = running_from(instant)
        return open_agent(plan=self.plan, tenant=MEMORY_TENANT, model=self.model, clock=clock)


def _plan(script: MemoryScript) -> Plan:
    return read_plan(yaml.safe_dump(script.plan, allow_unicode=True), "memory.yaml")


def _prepare(script: MemoryScript, opening: _Opening) -> None:
    """The people with their roles; what a run that was broken off left of its users goes."""
    with opening.at(script.scenes[0].visits[0].at) as agent:
        roles = agent.governance.roles
        try:
            agent.run_sync(roles.all(actor=script.owner))
        except ScopeError:
            agent.run_sync(roles.appoint_first_owner(script.owner))
        agent.run_sync(roles.grant(script.supervisor, "supervisor", actor=script.owner))
        for user in (script.user, script.other):
            agent.run_sync(agent.memory.forget_all(user=user))


def _play(
    script: MemoryScript, visit: MemoryVisit, seen: dict[str, UUID], opening: _Opening
) -> Iterator[MemoryEvent]:
    with opening.at(visit.at) as agent:
        yield MemoryVisitBegan(visit.at)
        playing = _Visit(agent, script, seen)
        for step in visit.steps:
            yield from playing.play(step)


@dataclass
class _Visit:
    """Plays the steps of one visit. ``seen``: ids of all memories that were read so far, by text."""

    agent: Agent
    script: MemoryScript
    seen: dict[str, UUID]
    conversations: dict[str, str] = field(default_factory=dict)

    def play(self, step: Step) -> Iterator[MemoryEvent]:
        """Do one step; yields what was read back."""
        user = getattr(step, "user", None) or self.script.user
        match step:
            case Say():
                yield self._say(step.text, user)
            case Ask():
                yield from self._ask(step.text, user)
            case Look():
                yield self._look(user)
            case Why():
                yield self._why(step.of, user)
            case Publish():
                yield self._publish(step, user)
            case Audit():
                yield self._audit(step.of)
            case Export():
                exported = self.agent.run_sync(self.agent.memory.export(user=user))
                yield Exported(user, {table: len(rows) for table, rows in exported.items()})
            case ForgetAll():
                yield AllForgotten(user, self.agent.run_sync(self.agent.memory.forget_all(user=user)))
            case _:
                assert_never(step)

    def _say(self, text: str, user: str) -> MemorySaid:
        return self.agent.run_sync(self._turn(text, user))

    async def _turn(self, text: str, user: str) -> MemorySaid:
        conversation = self.conversations.setdefault(user, str(uuid4()))
        turn = during = None
        async with aclosing(self.agent.stream(text, user=user, conversation=conversation)) as chunks:
            async for chunk in chunks:
                if chunk.type == "tool":
                    during = await self.agent.level_1(conversation, user=user)
                turn = chunk.turn or turn
        assert turn is not None, "a turn that raised nothing ends with a chunk that has it"
        after = await self.agent.level_1(conversation, user=user)
        first, last = (turn.requests[place]["messages"] for place in (0, -1))
        return MemorySaid(user, text, turn, _recalled(first), _called(last), during, after)

    def _ask(self, text: str, user: str) -> Iterator[MemoryEvent]:
        said = self._say(text, user)
        yield said
        hits = self.agent.run_sync(self.agent.memory.recall(text, user=user, limit=_AT_MOST))
        yield Ranked(hits, frozenset(said.turn.record.memories))

    def _look(self, user: str) -> Stands:
        memory, run = self.agent.memory, self.agent.run_sync
        stands = Stands(
            user,
            run(memory.preferences(user=user)),
            run(memory.list(user=user)),
            run(memory.symbols(user=user)),
        )
        self.seen.update({one.text: one.id for one in stands.memories})
        return stands

    def _why(self, of: str, user: str) -> Explained:
        explanation = self.agent.run_sync(self.agent.memory.why(self._known(of)[1], user=user))
        assert explanation is not None, "the script asks about what is in force"
        return Explained(explanation)

    def _publish(self, step: Publish, user: str) -> Published | PublishRefused:
        memory, run = self.agent.memory, self.agent.run_sync
        memory_id = self._known(step.of)[1]
        try:
            run(memory.publish(memory_id, actor=step.actor, reason=step.reason))
        except ScopeError as error:
            return PublishRefused(step.actor, error.sentence)
        published = next(one for one in run(memory.list(user=user)) if one.id == memory_id)
        return Published(step.actor, step.reason, published)

    def _audit(self, of: str) -> Audited:
        text, memory_id = self._known(of)
        reading = self.agent.memory.audit(memory_id, actor=self.script.supervisor)
        return Audited(text, self.agent.run_sync(reading))

    def _known(self, of: str) -> tuple[str, UUID]:
        """The memory that was read last with ``of`` in its text."""
        return next(one for one in reversed(self.seen.items()) if of in one[0])


def _recalled(messages: Sequence[AnyMessage]) -> list[str]:
    """The lines of the prompt's section of memories."""
    texts = "\n".join(str(message.text) for message in messages)
    _, opened, rest = texts.partition("<memories>\n")
    return rest.partition("</memories>")[0].splitlines() if opened else []


def _called(messages: Sequence[AnyMessage]) -> list[ToolCalled]:
    """The tool's calls in the turn, with their answers."""
    present = messages[newest_question(messages) :]
    answers = {one.tool_call_id: str(one.text) for one in present if isinstance(one, ToolMessage)}
    asked = [call for one in present if isinstance(one, AIMessage) for call in one.tool_calls]
    return [ToolCalled(call["args"], json.loads(answers[str(call["id"])])) for call in asked]
