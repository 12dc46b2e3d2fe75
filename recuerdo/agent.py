"""The agent: one compiled graph over opened services, with a face for apps, scripts and notebooks."""

from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar
from uuid import uuid4

from recuerdo.background_loop import BackgroundLoop
from recuerdo.conversations import Conversations
from recuerdo.graph.turn import TurnGraph
from recuerdo.memory import Memory
from recuerdo.nodes.receive.message import check_message
from recuerdo.nodes.services import Services
from recuerdo.state import errors
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import Mode
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
        self._loop: BackgroundLoop | None = None

    @property
    def conversations(self) -> Conversations:
        """Read, list and clear conversations."""
        return Conversations(self.services.database, self.tenant)

    @property
    def memory(self) -> Memory:
        """What is remembered of a user: list and forget."""
        return Memory(self.services, self.tenant, self.assistant)

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
        run = TurnRun(self, text, user, str(uuid4()) if conversation is None else conversation)
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
