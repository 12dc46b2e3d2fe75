"""The bare graph for LangGraph Studio, ``langgraph dev`` and apps with their own checkpointer.

Its services open lazily from the settings, once per event loop, and close with the loop.
"""

import asyncio
from asyncio import AbstractEventLoop, Task
from contextlib import AsyncExitStack
from dataclasses import dataclass

from recuerdo.graph.services import Parts, open_services, running_worker
from recuerdo.graph.turn import TurnGraph, build_turn_graph
from recuerdo.nodes.check_tokens import refuse_unusable_packs
from recuerdo.nodes.services import Services
from recuerdo.stores.settings import Settings


@dataclass(frozen=True)
class _Opened:
    services: Services
    # Whoever runs a loop closes its async generators at the end (asyncio.run, uvicorn), and so what is open
    # here; without this reference they would be closed as soon as they are open.
    stack: AsyncExitStack


class LazyServices:
    """Services by event loop; a pool or a lock of one loop is never used in another."""

    def __init__(self) -> None:
        self._opening: dict[AbstractEventLoop, Task[_Opened]] = {}

    async def __call__(self) -> Services:
        """The running loop's services, opened at the first call; a failed opening is tried again."""
        loop = asyncio.get_running_loop()
        opening = self._opening.get(loop)
        if opening is None or _has_failed(opening):
            self._forget_closed_loops()
            opening = self._opening[loop] = loop.create_task(_open())
        # Several runs may wait for one opening: one that is cancelled must not take it from the others.
        return (await asyncio.shield(opening)).services

    def _forget_closed_loops(self) -> None:
        self._opening = {loop: task for loop, task in self._opening.items() if not loop.is_closed()}


def _has_failed(opening: Task[_Opened]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


async def _open() -> _Opened:
    settings = await asyncio.to_thread(Settings.load)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(settings, Parts()))
        await refuse_unusable_packs(services, settings.tenant)
        await stack.enter_async_context(running_worker(services, settings.tenant))
        return _Opened(services, stack.pop_all())


def build_graph() -> TurnGraph:
    """The turn graph without checkpointer or store, for langgraph.json and for an app's own."""
    return build_turn_graph(LazyServices())


graph = build_graph()
