"""How long the open key events of a prompt take to select, of a user who has 10,000 (LA-22).

``recuerdo bench events [--json]``. In a database of its own on this machine.
"""

import asyncio
import os
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recuerdo.state.key_events import EventFilter, Owner
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.embedded import EmbeddedServer
from recuerdo.stores.postgres.key_events import PostgresKeyEvents

TENANT, ASSISTANT, USER = "bench", "support", "user-0"
EVENTS, OTHER_USERS, OF_EACH = 10_000, 1_000, 20
CHOSEN, WARM_UP, RUNS, PAGES = 5, 50, 500, 50
NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)

_FILL = """
insert into recuerdo.key_events (tenant, id, assistant, user_id, session, type, summary, entities, status,
    priority, confidence, created_at, updated_at, version)
select %(tenant)s, gen_random_uuid(), %(assistant)s, %(user)s || owner, 'session-' || number %% 100, 'Reembolso',
    'El pedido ' || number || ' no ha llegado y el cliente pide que se le devuelva el importe',
    jsonb_build_array('pedido ' || number), (array['PENDING', 'IN_PROGRESS', 'RESOLVED'])[1 + number %% 3],
    'MEDIUM', 1, %(now)s, %(now)s - number * interval '1 minute', 1
from generate_series(%(first)s::integer, %(last)s::integer) as owner, generate_series(1, %(events)s) as number
"""


def measure(data: Path | None) -> dict[str, Any]:
    """Milliseconds, under plain names, beside how many events there are."""
    with tempfile.TemporaryDirectory(prefix="recuerdo-bench-") as folder:
        os.environ["RECUERDO_DATA"] = folder
        server = EmbeddedServer(Path(folder) / "postgres")
        conninfo = server.start()
        try:
            return asyncio.run(_measured(conninfo))
        finally:
            server.stop()


async def _measured(conninfo: str) -> dict[str, Any]:
    database = await Database.open(conninfo)
    try:
        await _fill(database)
        owner = Owner(USER, "session-1")
        own = PostgresKeyEvents(database, TENANT, ASSISTANT)
        shared = PostgresKeyEvents(database, TENANT, ASSISTANT, shared=True)
        chosen = await own.open(owner, CHOSEN)
        return {
            "events_of_the_user": EVENTS,
            "events_in_all": EVENTS + OTHER_USERS * OF_EACH,
            "chosen": len(chosen),
            "open_ms": await _timed(RUNS, lambda: own.open(owner, CHOSEN)),
            "open_shared_ms": await _timed(RUNS, lambda: shared.open(owner, CHOSEN)),
            "query_page_ms": await _timed(
                PAGES, lambda: own.query(owner, EventFilter(closed=True), NOW + timedelta(days=1))
            ),
        }
    finally:
        await database.close()


async def _fill(database: Database) -> None:
    values = {"tenant": TENANT, "assistant": ASSISTANT, "user": USER.removesuffix("0"), "now": NOW}
    async with database.tenant(TENANT) as connection:
        await connection.execute(_FILL, {**values, "first": 0, "last": 0, "events": EVENTS})
        await connection.execute(_FILL, {**values, "first": 1, "last": OTHER_USERS, "events": OF_EACH})
    async with database.connection() as connection:
        await connection.execute("analyze recuerdo.key_events")


async def _timed(runs: int, work: Any) -> dict[str, float]:
    spent = []
    for run in range(min(WARM_UP, runs) + runs):
        started = time.perf_counter()
        await work()
        if run >= min(WARM_UP, runs):
            spent.append((time.perf_counter() - started) * 1000)
    ordered = sorted(spent)
    p95 = ordered[int(len(ordered) * 0.95)]
    return {"p50": round(statistics.median(spent), 3), "p95": round(p95, 3)}
