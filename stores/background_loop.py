"""An event loop in a thread of its own: what belongs to it can be used from any thread and any other loop."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

SETTLING_SECONDS = 10.0
"""How long cancelled work may take to end."""


class BackgroundLoop:
    """Runs coroutines to their end for callers that are not async, also inside a running loop, and for async ones."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recuerdo", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` on the loop and wait. An interrupt of the caller cancels the work and waits for its end."""
        ended = threading.Event()
        future = self._submit(_until_ended(work, ended))
        try:
            return future.result()
        except BaseException:
            future.cancel()
            # What is cancelled has things to put away: a turn keeps what was said and gives its thread free.
            ended.wait(SETTLING_SECONDS)
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` on the loop for a caller on any loop; a cancelled caller cancels the work."""
        if asyncio.get_running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(self._submit(work))

    def close(self) -> None:
        """Stop the loop and end its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)


async def _until_ended(work: Coroutine[Any, Any, T], ended: threading.Event) -> T:
    try:
        return await work
    finally:
        ended.set()
