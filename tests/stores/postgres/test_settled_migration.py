"""A database of before: what was taken back without an entry in the audit is no fault after the update (OR-12)."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres import migrations as package
from recuerdo.stores.postgres.approvals import Approvals, NewApproval
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.evidence import Run
from recuerdo.stores.postgres.governance_audit import AuditAct, GovernanceAudit

NOW = datetime(2025, 12, 5, 10, 0, tzinfo=UTC)
BEFORE = 13


async def test_or_12_requests_that_were_taken_back_unaudited_go_with_the_update(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, run = KeyFolder(tmp_path / "keys"), Run(uuid4(), "c", "hotel", "leo", "hotel", 1)
    cleared, taken_back, waits = (NewApproval(uuid4(), run, "pay", {"sum": 5}, NOW) for _ in range(3))
    with monkeypatch.context() as patched:
        every = package.migrations()
        patched.setattr(package, "migrations", lambda: every[:BEFORE])
        patched.setattr(GovernanceAudit, "append", _unless_asked)
        database = await Database.open(empty_database_url)
        approvals = Approvals(database, "t1", keys)
        await approvals.request([cleared, taken_back, waits])
        await approvals.decide(taken_back.id, "reject", actor="leo", at=NOW)
        async with database.tenant("t1") as connection:
            await connection.execute(
                "update recuerdo.approvals set status = 'withdrawn', decided_at = now(), decided_by = 'leo'"
                " where id = %s",
                (cleared.id,),
            )
        await database.close()
    database = await Database.open(empty_database_url)
    left = await Approvals(database, "t1", keys).list()
    assert {one.id: one.status for one in left} == {taken_back.id: "withdrawn", waits.id: "pending"}
    assert (await GovernanceAudit(database, "t1", keys).verify()).fault is None
    await database.close()


_append = GovernanceAudit.append


async def _unless_asked(audit: GovernanceAudit, connection: Connection, act: AuditAct) -> int:
    """Requests had no entry before somebody decided them."""
    return 0 if act.action == "approval.requested" else await _append(audit, connection, act)
