"""The agent: one compiled graph over opened services, with a face for apps, scripts and notebooks."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, TypeVar, cast
from uuid import UUID, uuid4

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from recuerdo.background_loop import BackgroundLoop
from recuerdo.conversations import Conversations
from recuerdo.graph.services import Parts, open_services
from recuerdo.graph.turn import TICKET, TurnContext, TurnGraph, build_turn_graph
from recuerdo.memory import Memory
from recuerdo.nodes.build_context.history import split_present
from recuerdo.nodes.receive.message import LEASE, WAIT, check_message
from recuerdo.nodes.services import Clock, Services
from recuerdo.state import errors
from recuerdo.state.errors import RecuerdoError
from recuerdo.state.plan import Plan
from recuerdo.state.record import TurnRecord
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.state.turn import Mode, Request, TurnError, TurnState, Work, merge_work
from recuerdo.state.usage import usage_of
from recuerdo.stores.postgres.checkpoints import open_saver, thread_of
from recuerdo.stores.postgres.turns import NewMessage, Reservation, TurnLog
from recuerdo.stores.settings import Settings
from recuerdo.stores.sources.registry import Source
from recuerdo.stores.worker import Worker

sentences = load_sentences(__package__)

T = TypeVar("T")

STEPS_PER_TOOL_ROUND = 6
"""Graph steps of one pass of the tool loop, compression included; bounds the recursion of a turn."""


@dataclass(frozen=True)
class Turn:
    """A finished turn."""

    id: str
    conversation: str
    reply: str
    requests: list[Request]
    record: TurnRecord
    context: dict[str, Any]

    @property
    def request(self) -> Request:
        """The last request that went to the model."""
        return self.requests[-1]


@dataclass(frozen=True)
class TurnChunk:
    """A piece of a streamed turn: a ``token`` of the reply, a ``tool`` that ran, or ``done`` with the turn."""

    type: Literal["token", "tool", "done"]
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    turn: Turn | None = None


class Agent:
    """An opened agent. Made by :func:`recuerdo.open_agent`; belongs to the event loop that opened it."""

    def __init__(self, services: Services, graph: TurnGraph, tenant: str, assistant: str, mode: Mode) -> None:
        self.services = services
        self.graph = graph
        self._tenant = tenant
        self._assistant = assistant
        self._mode = mode
        self._loop: BackgroundLoop | None = None

    @property
    def conversations(self) -> Conversations:
        """Read, list and clear conversations."""
        return Conversations(self.services.database, self._tenant)

    @property
    def memory(self) -> Memory:
        """What is remembered of a user: list and forget."""
        return Memory(self.services, self._tenant, self._assistant)

    async def send(self, text: str, *, user: str | None = None, conversation: str | None = None) -> Turn:
        """Run one turn and return it.

        ``user`` None is an anonymous session; ``conversation`` None begins a new one.

        Raises:
            InputError: the message is empty, too long or not text.
            ScopeError: the conversation belongs to somebody else.
            BusyError: another turn of the conversation is running.
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
        """Run one turn and yield its chunks; the last one is ``done``. Raises as :meth:`send` does.

        A consumer that stops early cancels the turn: what was said so far is kept, marked as partial.
        """
        check_message(text)
        run = _Run(self, text, user, conversation or str(uuid4()))
        async with run.reserved(), aclosing(run.chunks()) as chunks:
            async for chunk in chunks:
                yield chunk

    def send_sync(self, text: str, *, user: str | None = None, conversation: str | None = None) -> Turn:
        """:meth:`send` for scripts and notebooks; needs an agent opened with a plain ``with``."""
        return self.run_sync(self.send(text, user=user, conversation=conversation))

    def run_sync(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of this agent to its end from code that is not async."""
        if self._loop is None:
            work.close()
            raise errors.InputError(sentences("sync_needs_with"))
        return self._loop.run(work)


class _Run:
    """One turn under way: reads the graph's updates and turns them into chunks and a Turn."""

    def __init__(self, agent: Agent, text: str, user: str | None, conversation: str) -> None:
        self._agent = agent
        self._text = text
        self._user = user
        self._conversation = conversation
        # A preview has a thread of its own that nothing reads again (LA-7).
        preview = agent._mode == "preview"
        self.thread = str(uuid4()) if preview else thread_of(agent._tenant, conversation)
        self._work: Work = Work()
        self._error: TurnError | None = None
        self._reply: AIMessage | None = None
        self._record: dict[str, Any] | None = None
        self._said: list[str] = []
        self._ticket: UUID | None = None

    @asynccontextmanager
    async def reserved(self) -> AsyncIterator[None]:
        """Hold the conversation until the checkpoint is written, so that the next turn goes on from there."""
        agent = self._agent
        if agent._mode == "preview":
            yield
            return
        log = TurnLog(agent.services.database, agent._tenant)
        ticket = self._ticket = uuid4()
        reservation = Reservation(
            ticket=ticket,
            conversation=self._conversation,
            assistant=agent._assistant,
            user=self._user,
            at=agent.services.clock(),
            language=agent.services.plan.language,
        )
        await log.reserve(reservation, lease=LEASE, wait=WAIT)
        try:
            yield
        finally:
            await asyncio.shield(log.release(ticket))

    async def chunks(self) -> AsyncGenerator[TurnChunk, None]:
        try:
            async with aclosing(self._stream()) as stream:
                async for mode, payload in stream:
                    if mode == "updates":
                        self._take(payload)
                    elif payload["type"] == "done":
                        self._record = payload["data"]
                    else:
                        self._said.append(payload["text"] if payload["type"] == "token" else "")
                        yield TurnChunk(payload["type"], payload["text"], payload["data"])
        finally:
            if self._record is None and self._error is None:
                await asyncio.shield(self._cancel())
        if self._error:
            raise _as_exception(self._error)
        yield TurnChunk("done", turn=self._turn())

    def _stream(self) -> AsyncGenerator[Any, None]:
        agent = self._agent
        stream: Any = agent.graph.astream(
            TurnState(messages=[HumanMessage(self._text, id=str(uuid4()))]),
            self._config(),
            context=TurnContext(
                user=self._user,
                conversation=self._conversation,
                tenant=agent._tenant,
                assistant=agent._assistant,
                mode=agent._mode,
            ),
            stream_mode=["updates", "custom"],
            durability="exit",
        )
        return cast(AsyncGenerator[Any, None], stream)

    def _config(self) -> RunnableConfig:
        rounds = self._agent.services.plan.limits.tool_rounds + 1
        return {
            "configurable": {"thread_id": self.thread, TICKET: self._ticket},
            "recursion_limit": STEPS_PER_TOOL_ROUND * rounds + 10,
        }

    def _take(self, updates: dict[str, Any]) -> None:
        for update in updates.values():
            if not update:
                continue
            if update.get("work"):
                self._work = merge_work(self._work, update["work"]) or Work()
            self._error = update.get("error") or self._error
            messages: list[AnyMessage] = update.get("messages") or []
            self._reply = next((m for m in reversed(messages) if isinstance(m, AIMessage)), self._reply)

    def _turn(self) -> Turn:
        assert self._record is not None and self._reply is not None, "the last node has run"
        return Turn(
            id=self._record["turn"],
            conversation=self._conversation,
            reply=str(self._reply.text),
            requests=self._work["requests"],
            record=TurnRecord.model_validate(self._record),
            context=self._work["context"],
        )

    async def _cancel(self) -> None:
        """The consumer stopped, or the run broke down: close the turn's row and give the thread free."""
        turn = self._work.get("turn")
        if turn is None:
            return
        services = self._agent.services
        now = services.clock()
        await self._leave_thread_clean(turn["message_id"])
        text = "".join(self._said)
        said = [NewMessage(f"{turn['id']}-cancelled", "assistant", text, now)] if text else []
        usage = usage_of(self._work.get("usage", []), services.plan.prices)
        log = TurnLog(services.database, self._agent._tenant)
        await log.cancel(UUID(turn["id"]), now, said, usage)

    async def _leave_thread_clean(self, message_id: str) -> None:
        """The thread goes on from the user's message, as after a failure; nothing of level 1 stays."""
        graph, config = self._agent.graph, self._config()
        state = (await graph.aget_state(config)).values
        _, present = split_present(state.get("messages") or [], message_id)
        if not present:
            return
        update = {
            "messages": [RemoveMessage(id=str(message.id)) for message in present[1:]],
            "messages_count": (state.get("messages_count") or 0) + 1,
            "work": None,
        }
        await graph.aupdate_state(config, update, as_node="update_memory")


def _as_exception(error: TurnError) -> RecuerdoError:
    kind = getattr(errors, error["kind"], RecuerdoError)
    exception: RecuerdoError = kind(Sentence(es=error["es"], en=error["en"]))
    return exception


class AgentOpening:
    """What :func:`recuerdo.open_agent` returns: ``async with`` for async code, ``with`` for scripts."""

    def __init__(
        self, settings: Settings | None, parts: Parts, tenant: str | None, assistant: str | None, mode: Mode
    ) -> None:
        self._settings = settings
        self._parts = parts
        self._tenant = tenant
        self._assistant = assistant
        self._mode = mode
        self._stack = AsyncExitStack()
        self._loop: BackgroundLoop | None = None

    async def __aenter__(self) -> Agent:
        async with AsyncExitStack() as stack:
            settings = await asyncio.to_thread(Settings.load) if self._settings is None else self._settings
            services = await stack.enter_async_context(open_services(settings, self._parts))
            # What a preview leaves behind goes with its agent (LA-7, C-14).
            preview = self._mode == "preview"
            saver = InMemorySaver() if preview else await open_saver(services.database)

            async def provide() -> Services:
                return services

            stop = asyncio.Event()
            tenant = self._tenant or settings.tenant
            worker = Worker(
                services.database, services.index, services.embedder, services.clock, tenant=tenant
            )
            task = asyncio.create_task(worker.run(stop))
            stack.push_async_callback(_stop_worker, stop, task)
            agent = Agent(
                services,
                build_turn_graph(provide, saver),
                tenant,
                self._assistant or services.plan.name,
                self._mode,
            )
            self._stack = stack.pop_all()
        return agent

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def __enter__(self) -> Agent:
        self._loop = BackgroundLoop()
        try:
            agent = self._loop.run(self.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        agent._loop = self._loop
        return agent

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._loop is not None, "entered before"
        try:
            self._loop.run(self._stack.aclose())
        finally:
            self._loop.close()


async def _stop_worker(stop: asyncio.Event, task: asyncio.Task[None]) -> None:
    stop.set()
    await asyncio.wait_for(task, timeout=10)


def open_agent(
    settings: Settings | None = None,
    *,
    plan: str | Plan | None = None,
    tenant: str | None = None,
    assistant: str | None = None,
    model: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    sources: Sequence[Source] = (),
    clock: Clock | None = None,
    mode: Mode = "live",
    tools: Sequence[BaseTool] = (),
) -> AgentOpening:
    """Open an agent: ``async with recuerdo.open_agent() as agent`` or, in scripts, a plain ``with``.

    Args:
        settings: deployment settings; None reads the environment.
        plan: name of a shipped plan, path of a YAML file, or a plan; None: the setting.
        tenant: whose data; None: the setting.
        assistant: scope of long-term memories; None: the plan's name.
        model: any LangChain chat model; None: the setting, or the offline responder.
        embeddings: any LangChain embeddings; None: the bundled model.
        sources: objects that follow ``recuerdo.Source``, in place of the PostgreSQL ones of the same name.
        clock: returns the present instant, aware; None: the machine's.
        mode: ``preview`` neither reads nor writes memory (LA-7).
        tools: tools of the app's own, beside those of the plan.

    Raises when entered: SettingsError or StoreError that says what to do.
    """
    parts = Parts(plan, model, embeddings, sources, clock, tools)
    return AgentOpening(settings, parts, tenant, assistant, mode)
