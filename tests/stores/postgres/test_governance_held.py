"""What governs and is not in the audit, or not as it says, is found (OR-12, A-28)."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from recuerdo.state.amendment import ToolDeactivated
from recuerdo.state.plan import Plan, read_plan
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.packs import Pack, PackFile
from recuerdo.stores.plans import PlanOffice
from recuerdo.stores.plans.merge import Changes
from recuerdo.stores.postgres.approvals import Approvals, NewApproval
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.evidence import Run
from recuerdo.stores.postgres.proposals import Proposals
from recuerdo.stores.postgres.roles import Roles
from recuerdo.stores.postgres.settling import settle_call
from recuerdo.stores.postgres.tool_calls import NewToolCall, ToolCalls
from recuerdo.stores.postgres.turns import NewTurn, TurnLog
from tests.recuerdo.approved import approved, propose

from .conftest import AT_ONCE, LEASE

NOW = datetime(2025, 12, 5, 10, 0, tzinfo=UTC)
OFF = ToolDeactivated(tool="get_quote")


def hotel() -> Plan:
    return read_plan(
        "name: hotel\nlanguage: es\nrole: Recepción.\ninstructions: [Sé breve.]\n"
        "disclaimer: {es: x, en: x}\ntools: [get_quote]\n",
        "hotel",
    )


@pytest.fixture
async def office(database: Database, tmp_path: Path) -> PlanOffice:
    """Two revisions, a stop, a pack, an approved and a rejected request, a proposal in force and one rejected."""
    keys = KeyFolder(tmp_path / "keys")
    office = PlanOffice(database, "t1", keys)
    roles = Roles(database, "t1", keys)
    await roles.appoint_first_owner("olga", NOW)
    await roles.grant("sara", "supervisor", actor="olga", at=NOW)
    await office.build_pack(Pack.of("tarifas", [PackFile("a.md", "Una regla.\n")]), actor="sara", at=NOW)
    await office.compile_revision(hotel(), actor="sara", at=NOW)
    await office.activate("hotel", 1, actor="sara", at=NOW)
    proposals = Proposals(database, "t1", keys)
    one = await approved(database, keys, "t1", "hotel", OFF, actor="sara", at=NOW)
    await office.compile_revision(hotel(), Changes([one]), actor="sara", at=NOW, also=proposals.included)
    await office.activate("hotel", 2, actor="sara", at=NOW)
    await office.stop("hotel", all_tools=True, actor="sara", at=NOW)
    async with database.tenant("t1") as connection:
        key = await propose(connection, "t1", "hotel", ToolDeactivated(tool="search"), NOW)
    await proposals.decide(UUID(key), "reject", actor="sara", at=NOW)
    approvals = Approvals(database, "t1", keys)
    for decision in ("approve", "reject"):
        asked = NewApproval(uuid4(), Run(uuid4(), "c", "hotel", "leo", "hotel", 2), "pay", {"sum": 5}, NOW)
        await approvals.request([asked])
        await approvals.decide(asked.id, decision, actor="sara", at=NOW)  # type: ignore[arg-type]
    run = Run(uuid4(), "c", "hotel", "leo", "hotel", 2)
    taken_back, waits = (NewApproval(uuid4(), run, "pay", {"sum": 5}, NOW) for _ in range(2))
    await approvals.request([taken_back, waits])
    await approvals.decide(taken_back.id, "reject", actor="leo", at=NOW)
    await unknown_calls(database, keys)
    return office


async def unknown_calls(database: Database, keys: KeyFolder) -> None:
    """Two calls whose outcome nobody knew; one of them was settled."""
    log, turn = TurnLog(database, "t1"), uuid4()
    new = NewTurn(turn, "c", "hotel", "leo", None, "live", NOW, "es", "m-1", "Hola")
    await log.begin(new, lease=LEASE, wait=AT_ONCE)
    calls = [
        NewToolCall(uuid4(), Run(turn, "c", "hotel", "leo", "hotel", 2), "pay", "foreign", NOW)
        for _ in range(2)
    ]
    for call in calls:
        await ToolCalls(database, "t1").claim(call)
    await log.fail(turn, NOW, "gone")
    await settle_call(database, "t1", keys, calls[0].id, "happened", actor="sara", at=NOW)


async def test_or_12_what_was_done_by_the_book_is_whole(office: PlanOffice) -> None:
    found = await office.audit.verify()
    assert (found.fault, found.subject) == (None, None) and found.entries == 14


# What the tenant's own rights in the database allow.
BY_THE_TENANT = {
    "revision put in force": "insert into recuerdo.plan_activations (tenant, name, number, newest, activated_at,"
    " activated_by) values ('t1', 'hotel', 1, 2, now(), 'sara')",
    "activation repeated": "insert into recuerdo.plan_activations (tenant, name, number, newest, activated_at,"
    " activated_by) select tenant, name, number, newest, activated_at, activated_by"
    " from recuerdo.plan_activations order by id limit 1",
    "stop lifted": "insert into recuerdo.plan_stops (tenant, name, stopped, all_tools, at, actor)"
    " values ('t1', 'hotel', false, false, now(), 'olga')",
    "revision put in": "insert into recuerdo.plan_revisions select tenant, name, 3, sha256, document, key_id,"
    " signature, compiled_at, compiled_by from recuerdo.plan_revisions where number = 2",
    "pack put in": "insert into recuerdo.packs select tenant, 'otra', pin, manifest, built_at, built_by"
    " from recuerdo.packs",
    "role taken": "insert into recuerdo.roles values ('t1', 'ana', 'owner', 'olga', now())",
    "role changed": "update recuerdo.roles set role = 'owner' where user_id = 'sara'",
    "role deleted": "delete from recuerdo.roles where user_id = 'olga'",
    "rejection made an approval": "update recuerdo.approvals set status = 'approved' where status = 'rejected'",
    "approval of another": "update recuerdo.approvals set decided_by = 'olga' where status = 'approved'",
    "decision taken back": "update recuerdo.approvals set status = 'pending', decided_at = null, decided_by = null",
    "request taken back": "update recuerdo.approvals set status = 'withdrawn', decided_at = now(),"
    " decided_by = 'leo' where status = 'pending'",
    "taken back by another": "update recuerdo.approvals set decided_by = 'olga' where status = 'withdrawn'",
    "approval made a withdrawal": "update recuerdo.approvals set status = 'withdrawn' where status = 'approved'",
    "outcome settled": "update recuerdo.tool_calls set settled = 'happened', settled_at = now(),"
    " settled_by = 'sara' where settled is null",
    "outcome changed": "update recuerdo.tool_calls set settled = 'did_not_happen' where settled = 'happened'",
    "outcome open again": "update recuerdo.tool_calls set settled = null, settled_at = null, settled_by = null"
    " where settled = 'happened'",
    "evidence of a withdrawal deleted": "delete from recuerdo.evidence where kind = 'approval_decided'"
    " and data ->> 'status' = 'withdrawn'",
    "reversal put in": "update recuerdo.approvals set reversed_at = now(), reversed_by = 'sara'"
    " where status = 'approved'",
    "evidence deleted": "delete from recuerdo.evidence where kind = 'approval_decided'"
    " and data ->> 'status' = 'rejected'",
    "proposal changed": "update recuerdo.proposals set change = jsonb_set(change, '{tool}', '\"search\"')"
    " where status = 'included'",
    "proposal approved": "update recuerdo.proposals set status = 'approved' where status = 'rejected'",
    "proposal pending again": "update recuerdo.proposals set status = 'pending', decided_at = null,"
    " decided_by = null where status = 'rejected'",
    "proposal said to be in": "update recuerdo.proposals set included_in = 1 where status = 'included'",
    "proposal deleted": "delete from recuerdo.proposals where status = 'rejected'",
}


@pytest.mark.parametrize("statement", BY_THE_TENANT.values(), ids=list(BY_THE_TENANT))
async def test_or_12_what_was_written_past_the_audit_is_named(
    office: PlanOffice, database: Database, statement: str
) -> None:
    async with database.tenant("t1") as connection:
        assert (await connection.execute(statement)).rowcount > 0  # type: ignore[call-overload]
    found = await office.audit.verify()
    assert found.fault == "unaudited" and found.subject


async def test_or_12_a_chain_wiped_with_its_head_is_missed(office: PlanOffice, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("set session_replication_role = replica")
        for table in ("governance_audit", "governance_audit_heads", "plan_activations"):
            owner.execute(f"delete from recuerdo.{table}")  # type: ignore[call-overload]
    assert (await office.audit.verify()).fault == "end_missing"


async def test_im_43_forgetting_a_user_is_no_fault(office: PlanOffice, database: Database) -> None:
    async with database.tenant("t1") as connection:
        for table in ("approvals", "evidence"):
            statement: Any = f"delete from recuerdo.{table} where user_id = 'leo'"
            await connection.execute(statement)
    assert (await office.audit.verify()).fault is None
