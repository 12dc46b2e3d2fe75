"""``recuerdo worker``: the upkeep of what is stored, as a process of its own."""

import asyncio
import logging
import signal
import sys

from recuerdo.cli.console import complain, note
from recuerdo.demo.clock import DEMO_TENANT


def worker() -> None:
    """Look after what is stored (vectors, expiry, checkpoints), of every tenant, until stopped. Any number may run."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    asyncio.run(_work())
    note("worker_stopped")


async def _work() -> None:
    from recuerdo.graph.services import Parts, open_services
    from recuerdo.nodes.call_llm.offline import OfflineResponder
    from recuerdo.stores.settings import Settings
    from recuerdo.stores.worker import Worker

    stop = asyncio.Event()
    # For a service a signal to stop is the normal end.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    # It calls no model: one that is set up wrongly does not stand in the way.
    async with open_services(Settings.load(), Parts(model=OfflineResponder())) as services:
        if unavailable := services.index.unavailable:
            complain(unavailable)
        note("worker_running")
        # The demo lives on a clock of its own: by ours, what it remembers has expired.
        worker = Worker(
            services.database, services.index, services.embedder, services.clock, spared=(DEMO_TENANT,)
        )
        await worker.run(stop)
