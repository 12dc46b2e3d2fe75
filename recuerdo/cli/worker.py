"""``recuerdo worker``: the upkeep of what is stored, as a process of its own."""

import asyncio
import logging
import signal
import sys
from typing import TYPE_CHECKING

from recuerdo.cli.console import complain, note
from recuerdo.state.errors import SettingsError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from recuerdo.stores.settings import Settings


def worker() -> None:
    """Look after what is stored (vectors, expiry, key events, proposals), of every tenant. Any number may run."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    asyncio.run(_work())
    note("worker_stopped")


async def _work() -> None:
    from recuerdo.demo.clock import ON_A_CLOCK_OF_THEIR_OWN
    from recuerdo.graph.learning import learning_job
    from recuerdo.graph.services import Parts, events_job, open_services
    from recuerdo.stores.settings import Settings
    from recuerdo.stores.worker import Worker

    stop = asyncio.Event()
    # For a service a signal to stop is the normal end.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings = Settings.load()
    async with open_services(settings, Parts(model=_without_model(settings))) as services:
        if unavailable := services.index.unavailable:
            complain(unavailable)
        note("worker_running")
        worker = Worker(
            services.database,
            services.index,
            services.embedder,
            services.clock,
            spared=ON_A_CLOCK_OF_THEIR_OWN,
            jobs=[
                events_job(services, spared=ON_A_CLOCK_OF_THEIR_OWN),
                learning_job(services, spared=ON_A_CLOCK_OF_THEIR_OWN),
            ],
        )
        await worker.run(stop)


def _without_model(settings: "Settings") -> "BaseChatModel | None":
    """A model that is set up wrongly does not stand in the way: key events are read by rules then. None: it is not."""
    from recuerdo.nodes.call_llm.model import check_model
    from recuerdo.nodes.call_llm.offline import OfflineResponder

    try:
        check_model(settings)
    except SettingsError as error:
        complain(error.sentence)
        return OfflineResponder()
    return None
