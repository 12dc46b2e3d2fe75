"""Where a store works: an event loop of its own, and the parts that belong to it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from recuerdo.state.errors import StoreError
from recuerdo.stores.background_loop import SETTLING_SECONDS, BackgroundLoop
from recuerdo.stores.embeddings import Embedder
from recuerdo.stores.memory_store.events import KeyEvents
from recuerdo.stores.memory_store.items import ItemTable, sentences
from recuerdo.stores.memory_store.protocol import UserMemories

T = TypeVar("T")


@dataclass(frozen=True)
class Backend:
    """What a store works on: items, memories and key events of each assistant, the embedder and the clock."""

    items: ItemTable
    memories: Callable[[str], UserMemories]
    events: Callable[..., KeyEvents]
    embedder: Embedder
    clock: Callable[[], datetime]


OpenBackend = Callable[[AsyncExitStack], Awaitable[Backend]]
"""Opens a backend on the running loop; what is to be closed goes on the stack."""


class StoreHome:
    """The loop that a store's parts belong to. It knows nothing of the store, so that it can outlive it."""

    def __init__(self, open_backend: OpenBackend) -> None:
        self._open_backend = open_backend
        self._idle = threading.Condition()
        self._callers = 0
        self._loop: BackgroundLoop | None = None
        self._stack = AsyncExitStack()
        self._opening: asyncio.Task[Backend] | None = None
        self._closed = False

    def run(self, work: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """Do ``work`` and wait for its end, from any thread. Raises StoreError when closed."""
        with self._in_use() as loop:
            return loop.run(self._with_backend(work))

    async def arun(self, work: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """Do ``work`` for a caller on any loop. Raises StoreError when closed."""
        with self._in_use() as loop:
            return await loop.arun(self._with_backend(work))

    def close(self) -> None:
        """Close the parts and end the loop; a second call does nothing. Work that has begun is waited for."""
        with self._idle:
            self._closed = True
            loop, self._loop = self._loop, None
            self._idle.wait_for(lambda: not self._callers, SETTLING_SECONDS)
        if loop:
            try:
                loop.run(self._end())
            finally:
                loop.close()

    @contextmanager
    def _in_use(self) -> Iterator[BackgroundLoop]:
        with self._idle:
            if self._closed:
                raise StoreError(sentences("store_closed"))
            self._loop = self._loop or BackgroundLoop()
            self._callers += 1
            loop = self._loop
        try:
            yield loop
        finally:
            with self._idle:
                self._callers -= 1
                self._idle.notify_all()

    async def _end(self) -> None:
        await self._stack.aclose()
        # Whoever still waits is not to wait for ever.
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _with_backend(self, work: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        # Opened once, also when two come at the same time; one that failed is tried again.
        if self._opening is None or (self._opening.done() and self._opening.exception()):
            self._opening = asyncio.create_task(self._open())
        return await work(await asyncio.shield(self._opening))

    async def _open(self) -> Backend:
        async with AsyncExitStack() as stack:
            backend = await self._open_backend(stack)
            self._stack = stack.pop_all()
        return backend


async def nothing(backend: Backend) -> None:
    """No work: only what has to be open for it."""
