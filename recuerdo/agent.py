"""The agent: one compiled graph over opened services, with a face for apps, scripts and notebooks."""

from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar
from uuid import UUID, uuid4

from langchain_core.runnables import RunnableConfig

from recuerdo.conversations import Conversations
from recuerdo.doctor import Diagnosis, Patient, diagnose
from recuerdo.events import Events
from recuerdo.governance import Governance
from recuerdo.graph.turn import TurnGraph
from recuerdo.level_1 import Level1, read_level_1
from recuerdo.memory import Memory
from recuerdo.nodes.receive.message import check_message
from recuerdo.nodes.services import Services
from recuerdo.panel import Panel
from recuerdo.resuming import resume_turn
from recuerdo.state import errors
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import Mode
from recuerdo.stores.background_loop import BackgroundLoop
from recuerdo.stores.memory_store.store import MemoryStore
from recuerdo.stores.postgres.approvals import Approval, Decision
from recuerdo.stores.postgres.checkpoints import thread_of
from recuerdo.turn import Turn, TurnChunk
from recuerdo.turn_run import TurnRun

sentences = load_sentences(__package__)

T = TypeVar("T")


class Agent:
    """An opened agent. Made by :func:`recuerdo.open_agent`; belongs to the event loop that opened it."""

    def __init__(self, services: Services, graph: TurnGraph, tenant: str, assistant: str, mode: Mode) -> None:
        self.services = services
        self.graph = graph
        self.tenant = tenant
        self.assistant = assistant
        self.mode = mode
        self._running: set[TurnRun] = set()
        self._loop: BackgroundLoop | None = None

    @property
    def conversations(self) -> Conversations:
        """Read, list and clear conversations."""
        return Conversations(self.services, self.tenant)

    @property
    def memory(self) -> Memory:
        """What is remembered of a user: list and forget."""
        return Memory(self.services, self.tenant, self.assistant)

    @property
    def events(self) -> Events:
        """Key events, for operators: list, show, export, and their types."""
        return Events(self.services, self.tenant, self.assistant, self.mode)

    @property
    def panel(self) -> Panel:
        """The memory panel's settings; a changed one gives a draft of the plan to open an agent with."""
        return Panel(self.services.plan, self.mode)

    async def diagnose(
        self,
        symptom: str | None = None,
        *,
        conversation: str | None = None,
        user: str | None = None,
        actor: str = "doctor",
    ) -> Diagnosis:
        """Why something seems wrong: findings with value, reason and remedy, what to check first standing first.

        ``symptom`` is no_last_round, tool_forgotten, event_not_found, event_tools_missing or event_parameter_error;
        None: the health of the whole. ``actor`` is who looks, for the audit. Changes nothing.

        Raises InputError for an unknown symptom or conversation, StoreError when the database does not answer.
        """
        return await diagnose(Patient.of(self, conversation, user, actor), symptom)

    @property
    def governance(self) -> Governance:
        """What people decide about the agent: plans, packs, roles, audit."""
        return Governance(self.services, self.tenant)

    @property
    def store(self) -> MemoryStore:
        """Long-term memory as a LangGraph store, for any thread and any loop; closed with the agent."""
        return self.services.stores.of(self.tenant)

    async def send(self, text: str, *, user: str | None = None, conversation: str | None = None) -> Turn:
        """Run one turn and return it; with ``turn.pending`` when it waits for a person, see :meth:`resume`.

        ``user`` None is an anonymous session; ``conversation`` None begins a new one.

        Raises:
            InputError: the message is empty, too long or not text.
            ScopeError: the conversation belongs to somebody else.
            BusyError: another turn of the conversation is running, or waits for a person.
            BudgetError: critical content alone is above the hard token limit.
            ModelError: the model cannot be reached, refused the call or broke off.
            StoreError: the database does not answer.
        """
        async with aclosing(self.stream(text, user=user, conversation=conversation)) as chunks:
            async for chunk in chunks:
                if chunk.turn is not None:
                    return chunk.turn
        raise AssertionError("a turn that raised nothing ends with a done chunk")

    async def stream(
        self, text: str, *, user: str | None = None, conversation: str | None = None
    ) -> AsyncGenerator[TurnChunk, None]:
        """Run one turn and yield its chunks; the last one is ``done``, or ``pending`` when the turn waits for a
        person. Raises as :meth:`send` does.

        A consumer that stops early cancels the turn: what was said so far is kept, marked as partial.
        """
        check_message(text)
        run = TurnRun(self, text, user, str(uuid4()) if conversation is None else conversation)
        self._running.add(run)
        try:
            async with run.reserved(), aclosing(run.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self._running.discard(run)

    async def level_1(self, conversation: str, *, user: str | None = None) -> Level1 | None:
        """What the user's turn of this conversation works with while it runs here, or waits (OR-5).

        None when there is none: level 1 is gone with the end of its turn (OR-3).
        """
        for run in self._running:
            if run.conversation == conversation and (found := run.level_1(user)):
                return found
        if await self.conversations.info(conversation, user=user) is None:
            return None
        config: RunnableConfig = {"configurable": {"thread_id": thread_of(self.tenant, conversation)}}
        state = await self.graph.aget_state(config)
        if not state.interrupts:
            return None
        return read_level_1(state.values["work"], state.values["messages"], "waiting")

    async def resume(
        self,
        pending: Approval | UUID | str,
        decision: Decision | None = None,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Turn:
        """Decide what a turn waits for (``turn.pending``, or its id) and go on with that turn.

        ``decision`` None goes on with one that was decided already. The turn comes back finished, or waiting for the
        next request. ``reason`` is kept without sensitive data; the model is told why something was rejected.

        Raises, beside what :meth:`send` does:
            InputError: there is no such request, it was decided before, or nothing waits for it.
            ScopeError: the actor made the request himself, or is neither supervisor nor owner.
        """
        return await resume_turn(self, pending, decision, actor, reason)

    def send_sync(self, text: str, *, user: str | None = None, conversation: str | None = None) -> Turn:
        """:meth:`send` for scripts and notebooks; needs an agent opened with a plain ``with``."""
        return self.run_sync(self.send(text, user=user, conversation=conversation))

    def run_sync(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of this agent to its end from code that is not async."""
        if self._loop is None:
            work.close()
            raise errors.InputError(sentences("sync_needs_with"))
        return self._loop.run(work)
