"""One turn under way: runs the graph and reads its updates."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from recuerdo.graph.turn import TICKET, TurnContext
from recuerdo.nodes.build_context.history import shortened, split_present
from recuerdo.nodes.receive.message import LEASE, WAIT
from recuerdo.state import errors
from recuerdo.state.errors import RecuerdoError
from recuerdo.state.record import TurnRecord
from recuerdo.state.rounds import chat_count
from recuerdo.state.sentences import Sentence
from recuerdo.state.turn import TurnError, TurnInfo, TurnState, Work, merge_work
from recuerdo.state.usage import usage_of
from recuerdo.stores.postgres.checkpoints import thread_of
from recuerdo.stores.postgres.turns import NewMessage, Reservation, TurnLog
from recuerdo.turn import Turn, TurnChunk

if TYPE_CHECKING:
    from recuerdo.agent import Agent

STEPS_PER_TOOL_ROUND = 6
"""Graph steps of one pass of the tool loop, compression included; bounds the recursion of a turn."""


class TurnRun:
    """One turn under way: reads the graph's updates and turns them into chunks and a Turn."""

    def __init__(self, agent: "Agent", text: str, user: str | None, conversation: str) -> None:
        self._agent = agent
        self._text = text
        self._user = user
        self._conversation = conversation
        # A preview has a thread of its own that nothing reads again (LA-7).
        preview = agent.mode == "preview"
        self.thread = str(uuid4()) if preview else thread_of(agent.tenant, conversation)
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
        if agent.mode == "preview":
            yield
            return
        log = TurnLog(agent.services.database, agent.tenant)
        ticket = self._ticket = uuid4()
        reservation = Reservation(
            ticket=ticket,
            conversation=self._conversation,
            assistant=agent.assistant,
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
        """Run the turn; its last chunk is ``done``. One that is not read to its end is cancelled."""
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
                tenant=agent.tenant,
                assistant=agent.assistant,
                mode=agent.mode,
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
        await self._leave_thread_clean(turn)
        text = "".join(self._said)
        said = [NewMessage(f"{turn['id']}-cancelled", "assistant", text, now)] if text else []
        usage = usage_of(self._work.get("usage", []), services.plan.prices)
        log = TurnLog(services.database, self._agent.tenant)
        await log.cancel(UUID(turn["id"]), now, said, usage)

    async def _leave_thread_clean(self, turn: TurnInfo) -> None:
        """As after a failure: the user's message and what tools did stay, in short; nothing of level 1 does."""
        graph, config = self._agent.graph, self._config()
        state = (await graph.aget_state(config)).values
        _, present = split_present(state.get("messages") or [], turn["message_id"])
        if not present:
            return
        count = self._agent.services.counter.count
        update = {
            "messages": await asyncio.to_thread(shortened, present[1:], turn["language"], count),
            "messages_count": (state.get("messages_count") or 0) + chat_count(present),
            "work": None,
        }
        await graph.aupdate_state(config, update, as_node="update_memory")


def _as_exception(error: TurnError) -> RecuerdoError:
    kind = getattr(errors, error["kind"], RecuerdoError)
    exception: RecuerdoError = kind(Sentence(es=error["es"], en=error["en"]))
    return exception
