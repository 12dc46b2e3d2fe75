"""One turn under way: runs the graph and reads its updates; begins one, or goes on with one that has waited."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from recuerdo.graph.turn import TICKET, TurnContext, steps_at_most
from recuerdo.level_1 import Level1, read_level_1
from recuerdo.nodes.build_context.history import shortened, split_present
from recuerdo.nodes.call import Call, Caller
from recuerdo.nodes.receive.message import LEASE, WAIT
from recuerdo.nodes.update_memory.record import waiting_record
from recuerdo.state import errors
from recuerdo.state.errors import InputError, RecuerdoError
from recuerdo.state.record import TurnRecord
from recuerdo.state.rounds import chat_count
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.state.turn import TurnError, TurnInfo, TurnState, Work, merge_work
from recuerdo.state.usage import usage_of
from recuerdo.stores.postgres.approvals import Approval, Approvals
from recuerdo.stores.postgres.checkpoints import thread_of
from recuerdo.stores.postgres.roles import SYSTEM
from recuerdo.stores.postgres.turns import ABANDONED, NewMessage, Reservation, TurnLog
from recuerdo.turn import Turn, TurnChunk

if TYPE_CHECKING:
    from recuerdo.agent import Agent

sentences = load_sentences(__package__)

_NEWEST_CHECKPOINTS = 20
"""How many are looked through for one that waits: a bare graph may have written others over it."""


class TurnRun:
    """One turn under way: reads the graph's updates and turns them into chunks and a Turn."""

    def __init__(self, agent: "Agent", text: str, user: str | None, conversation: str) -> None:
        self._agent = agent
        self._text = text
        self._user = user
        self.conversation = conversation
        # A preview has a thread of its own that nothing reads again (LA-7).
        preview = agent.mode == "preview"
        self.thread = str(uuid4()) if preview else thread_of(agent.tenant, conversation)
        self._work: Work = Work()
        self._error: TurnError | None = None
        self._reply: AIMessage | None = None
        self._record: dict[str, Any] | None = None
        self._said: list[str] = []
        self._ticket: UUID | None = None
        self._spoken: list[AnyMessage] = []
        self._waits = False
        self._broke_on: str | None = None
        self._resumes: UUID | None = None

    @asynccontextmanager
    async def reserved(self) -> AsyncIterator[None]:
        """Hold the conversation until the checkpoint is written, so that the next turn goes on from there."""
        agent = self._agent
        agent.services = await agent.services.under(agent.tenant)
        if agent.mode == "preview":
            yield
            return
        log = TurnLog(agent.services.database, agent.tenant)
        ticket = self._ticket = uuid4()
        reservation = Reservation(
            ticket=ticket,
            conversation=self.conversation,
            assistant=agent.assistant,
            user=self._user,
            at=agent.services.clock(),
            language=agent.services.plan.language,
            resumes=self._resumes,
        )
        await log.reserve(reservation, lease=LEASE, wait=WAIT)
        try:
            yield
        finally:
            await asyncio.shield(log.release(ticket, agent.services.clock(), self._broke_on))

    async def chunks(self) -> AsyncGenerator[TurnChunk, None]:
        """Run the turn; its last chunk is ``done`` or ``pending``. One that is not read to its end is cancelled."""
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
        except Exception as error:
            # What no node has made a failure of: the kind of error only, its text may quote what users wrote.
            self._broke_on = type(error).__name__
            raise
        finally:
            if self._record is None and self._error is None and not self._waits:
                await asyncio.shield(self._break_off())
        if self._error:
            raise _as_exception(self._error)
        if self._waits:
            turn = await self._waiting_turn()
            yield TurnChunk("token", turn.reply)
            yield TurnChunk("pending", turn=turn)
        else:
            yield TurnChunk("done", turn=self._turn())

    def _stream(self) -> AsyncGenerator[Any, None]:
        agent = self._agent
        stream: Any = agent.graph.astream(
            self._input(),
            self._config(),
            context=TurnContext(
                user=self._user,
                conversation=self.conversation,
                tenant=agent.tenant,
                assistant=agent.assistant,
                mode=agent.mode,
            ),
            stream_mode=["updates", "custom"],
            durability="exit",
        )
        return cast(AsyncGenerator[Any, None], stream)

    def _input(self) -> TurnState | Command[Any]:
        return TurnState(messages=[HumanMessage(self._text, id=str(uuid4()))])

    def _config(self) -> RunnableConfig:
        return {
            "configurable": {"thread_id": self.thread, TICKET: self._ticket},
            "recursion_limit": steps_at_most(self._agent.services.plan),
        }

    def _take(self, updates: dict[str, Any]) -> None:
        if "__interrupt__" in updates:
            self._waits = True
            return
        for update in updates.values():
            if not update:
                continue
            if update.get("work"):
                self._work = merge_work(self._work, update["work"]) or Work()
            self._error = update.get("error") or self._error
            messages: list[AnyMessage] = update.get("messages") or []
            self._spoken += [m for m in messages if isinstance(m, AIMessage | ToolMessage)]
            self._reply = next((m for m in reversed(messages) if isinstance(m, AIMessage)), self._reply)

    def _turn(self) -> Turn:
        assert self._record is not None and self._reply is not None, "the last node has run"
        return Turn(
            id=self._record["turn"],
            conversation=self.conversation,
            reply=str(self._reply.text),
            requests=self._work["requests"],
            record=TurnRecord.model_validate(self._record),
            context=self._work["context"],
        )

    def level_1(self, user: str | None) -> Level1 | None:
        """What the turn works with at this moment; None when it has only begun, or is not this user's."""
        if "turn" not in self._work or user != self._user:
            return None
        requests = self._work.get("requests", [])
        sent = requests[-1]["messages"] if requests else [HumanMessage(self._text)]
        known = {message.id for message in sent}
        spoken = [message for message in self._spoken if message.id not in known]
        return read_level_1(self._work, [*sent, *spoken], "running")

    async def _waiting_turn(self) -> Turn:
        """The turn so far, with the request that it waits for."""
        agent, info = self._agent, self._work["turn"]
        services = await agent.services.under(agent.tenant, info.get("revision"))
        approvals = Approvals(services.database, agent.tenant, services.keys)
        asked = await approvals.of_turn(UUID(info["id"]))
        pending = next((one for one in asked if one.status == "pending"), asked[-1])
        state = (await agent.graph.aget_state(self._config())).values
        caller = Caller(agent.tenant, agent.assistant, self._user, self.conversation, agent.mode)
        call = Call(caller, services, lambda chunk: None)
        return Turn(
            id=info["id"],
            conversation=self.conversation,
            reply=sentences("turn_waits", tool=pending.tool).in_language(info["language"]),
            requests=self._work["requests"],
            record=waiting_record(self._work, state.get("messages_count") or 0, call),
            context=self._work["context"],
            pending=pending,
        )

    async def _break_off(self) -> None:
        """The consumer stopped, or the run broke down: close the turn's row and give the thread free. A run that
        broke down is a failed one, and evidence (OR-22).
        """
        turn = self._work.get("turn")
        if turn is None:
            return
        services = self._agent.services
        if await TurnLog(services.database, self._agent.tenant).is_waiting(UUID(turn["id"])):
            # It can still go on: what it stopped at must stay.
            return
        now = services.clock()
        await self._leave_thread_clean(turn)
        text = "".join(self._said)
        said = [NewMessage(f"{turn['id']}-partial", "assistant", text, now)] if text else []
        usage = usage_of(self._work.get("usage", []), services.plan.prices)
        log = TurnLog(services.database, self._agent.tenant)
        if self._broke_on is None:
            await log.cancel(UUID(turn["id"]), now, said, usage)
        else:
            await log.fail(UUID(turn["id"]), now, self._broke_on, said, usage)

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


class ResumedRun(TurnRun):
    """A turn that has waited for a person and goes on where it stopped."""

    def __init__(self, agent: "Agent", approval: Approval) -> None:
        super().__init__(agent, "", approval.user, approval.conversation)
        self._resumes = approval.turn
        self._checkpoint: str | None = None

    async def chunks(self) -> AsyncGenerator[TurnChunk, None]:
        """Go on. Raises InputError when the thread no longer holds what the turn stopped at; it has failed then."""
        await self._find_stop()
        async with aclosing(super().chunks()) as chunks:
            async for chunk in chunks:
                yield chunk

    def _input(self) -> TurnState | Command[Any]:
        # The decisions stand in the database; any value makes the graph go on.
        return Command(resume=True)

    def _config(self) -> RunnableConfig:
        config = super()._config()
        if self._checkpoint:
            config["configurable"]["checkpoint_id"] = self._checkpoint
        return config

    async def _find_stop(self) -> None:
        """Take up what the turn had worked out, from the checkpoint at which it stopped."""
        history = self._agent.graph.aget_state_history(self._config(), limit=_NEWEST_CHECKPOINTS)
        async for state in history:
            work: Work = state.values.get("work") or Work()
            if state.interrupts and "turn" in work and work["turn"]["id"] == str(self._resumes):
                self._work = work
                self._checkpoint = state.config["configurable"]["checkpoint_id"]
                return
        await self._give_up()

    async def _give_up(self) -> None:
        """The process went away before the checkpoint was written: the turn is over, the conversation is free, and
        nobody is asked any more what else it waited for.
        """
        services, turn = self._agent.services, self._resumes
        assert turn is not None, "given from the beginning"
        log = TurnLog(services.database, self._agent.tenant)
        await log.take_up(turn, self._user, LEASE, self._ticket)
        await log.fail(turn, services.clock(), ABANDONED)
        approvals = Approvals(services.database, self._agent.tenant, services.keys)
        await approvals.withdraw_of_turn(turn, actor=SYSTEM, at=services.clock())
        raise InputError(sentences("turn_gone"))


def _as_exception(error: TurnError) -> RecuerdoError:
    kind = getattr(errors, error["kind"], RecuerdoError)
    exception: RecuerdoError = kind(Sentence(es=error["es"], en=error["en"]))
    return exception
