"""An event loop in a thread of its own, so that scripts and notebooks can use async parts without one."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

SETTLING_SECONDS = 10.0
"""How long cancelled work may take to end."""


class BackgroundLoop:
    """Runs coroutines to their end from a caller that is not async, also inside a running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recuerdo", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` on the loop and wait. An interrupt of the caller cancels the work and waits for its end."""
        ended = threading.Event()
        future = asyncio.run_coroutine_threadsafe(_until_ended(work, ended), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            # What is cancelled has things to put away: a turn keeps what was said and gives its thread free.
            ended.wait(SETTLING_SECONDS)
            raise

    def close(self) -> None:
        """Stop the loop and end its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _until_ended(work: Coroutine[Any, Any, T], ended: threading.Event) -> T:
    try:
        return await work
    finally:
        ended.set()
