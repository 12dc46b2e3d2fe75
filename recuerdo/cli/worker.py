"""``recuerdo worker``: the upkeep of what is stored, as a process of its own."""

import logging
import signal
import sys
import threading

from recuerdo.cli.console import complain, note


def worker() -> None:
    """Look after what is stored (vectors, expiry, checkpoints) until stopped. Any number may run."""
    from recuerdo.cli.session import Identity, open_stores

    stop = threading.Event()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    # For a service a signal to stop is the normal end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    # An open agent has its worker running.
    with open_stores(Identity()) as agent:
        if unavailable := agent.services.index.unavailable:
            complain(unavailable)
        note("worker_running")
        stop.wait()
    note("worker_stopped")
