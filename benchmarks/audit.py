"""How long the audit of governance takes to verify (governance, what is measured).

``recuerdo bench audit [--json]``. A chain of 100,000 entries on an embedded server in a folder of its own: the first
200 written one by one, which is timed, the others in one go with the same hashes; then verified from its first entry
to its end. Memory is Python's own, at its peak in a verification under tracing, which is not the one that is timed.
"""

import asyncio
import json
import tempfile
import time
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.embedded import EmbeddedServer
from recuerdo.stores.postgres.governance_audit import (
    AuditAct,
    GovernanceAudit,
    chain_key,
    end_seal,
    entry_hash,
)

ENTRIES = 100_000
TENANT = "bench"
APPENDED = 200
ROUNDS = 3

_INSERT = (
    "insert into recuerdo.governance_audit"
    " (tenant, number, at, actor, action, subject, before, after, details, hash)"
    " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)


def measure(data: Path | None) -> dict[str, Any]:
    """Milliseconds to append an entry, seconds to verify the chain, and the peak of memory while it is verified."""
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedServer(Path(folder) / "postgres")
        try:
            return asyncio.run(_measure(server.start(), KeyFolder(Path(folder) / "keys")))
        finally:
            server.stop()


async def _measure(conninfo: str, keys: KeyFolder) -> dict[str, Any]:
    database = await Database.open(conninfo)
    try:
        audit = GovernanceAudit(database, TENANT, keys)
        appended = await _append(database, audit)
        await _fill(database, keys)
        rounds = [await _verified(audit) for _ in range(ROUNDS)]
        tracemalloc.start()
        found = await audit.verify()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    finally:
        await database.close()
    return {
        "entries": found.entries,
        "fault": found.fault,
        "append_ms": round(appended * 1000, 2),
        "verify_s": round(min(rounds), 3),
        "verify_s_max": round(max(rounds), 3),
        "verify_peak_mb": round(peak / 2**20, 1),
    }


def _act(number: int, now: datetime) -> AuditAct:
    details: dict[str, str | int] = {"rule": "discounts", "revision": "r8", "number": number}
    return AuditAct(now, "sara", "call.auto_approved", f"call-{number}", after="a" * 64, details=details)


async def _append(database: Database, audit: GovernanceAudit) -> float:
    """Seconds for one entry, each in a transaction of its own."""
    started = time.perf_counter()
    for number in range(APPENDED):
        async with database.tenant(TENANT) as connection:
            await audit.append(connection, _act(number, datetime.now(UTC)))
    return (time.perf_counter() - started) / APPENDED


async def _fill(database: Database, keys: KeyFolder) -> None:
    """The rest of the chain in one go: entry by entry it would take minutes."""
    key, now = chain_key(keys, TENANT), datetime.now(UTC)
    async with database.tenant(TENANT) as connection:
        cursor = await connection.execute("select number, hash from recuerdo.governance_audit_heads")
        head = await cursor.fetchone()
        assert head is not None, "appended before"
        last = head["hash"]
        rows = []
        for number in range(head["number"] + 1, ENTRIES + 1):
            act = _act(number, now)
            row = (number, now, act.actor, act.action, act.subject, None, act.after, json.dumps(act.details))
            last = entry_hash(key, TENANT, last, row)
            rows.append((TENANT, *row, last))
        await connection.cursor().executemany(_INSERT, rows)
        await connection.execute(
            "update recuerdo.governance_audit_heads set number = %s, hash = %s, seal = %s",
            (ENTRIES, last, end_seal(key, TENANT, ENTRIES, last)),
        )


async def _verified(audit: GovernanceAudit) -> float:
    started = time.perf_counter()
    await audit.verify()
    return time.perf_counter() - started
