"""The bare graph for LangGraph Studio, ``langgraph dev`` and apps with their own checkpointer.

Its services open lazily from the settings, once per event loop, and close with the process.
"""

import asyncio
from contextlib import AsyncExitStack
from weakref import WeakKeyDictionary

from recuerdo.graph.services import Parts, open_services
from recuerdo.graph.turn import TurnGraph, build_turn_graph
from recuerdo.nodes.services import Services
from recuerdo.stores.settings import Settings


class LazyServices:
    """Services by event loop; a pool or a lock of one loop is never used in another."""

    def __init__(self) -> None:
        self._opening: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Services]] = (
            WeakKeyDictionary()
        )

    async def __call__(self) -> Services:
        """The running loop's services, opened at the first call; a failed opening is tried again."""
        loop = asyncio.get_running_loop()
        opening = self._opening.get(loop)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            opening = self._opening[loop] = loop.create_task(self._open())
        return await asyncio.shield(opening)

    @staticmethod
    async def _open() -> Services:
        # Left open for the life of the loop: Studio gives no moment to close, the embedded server counts
        # its clients by itself.
        settings = await asyncio.to_thread(Settings.load)
        return await AsyncExitStack().enter_async_context(open_services(settings, Parts()))


def build_graph() -> TurnGraph:
    """The turn graph without checkpointer or store, for langgraph.json and for an app's own."""
    return build_turn_graph(LazyServices())


graph = build_graph()
