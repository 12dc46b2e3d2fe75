"""What governs and is not in the audit, or not as it says, is found; what went as it should is not (OR-12, A-28)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from recuerdo.state.amendment import RuleAdded, ToolDeactivated
from recuerdo.state.errors import StoreError
from recuerdo.state.plan import AutoApproveRule, Condition, Plan, read_plan
from recuerdo.state.sentences import Sentence
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.packs import Pack, PackFile
from recuerdo.stores.plans import PlanOffice
from recuerdo.stores.plans.merge import Changes
from recuerdo.stores.portable import export_tenant, import_tenant
from recuerdo.stores.postgres.approvals import Approvals, Decision, NewApproval
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.eval_cases import CaseResult, EvalRuns, TriedPlan
from recuerdo.stores.postgres.evidence import Run, delete_expired_evidence
from recuerdo.stores.postgres.governance_audit import AuditAct, GovernanceAudit, read_change
from recuerdo.stores.postgres.governance_held import CHANGE, change_hash, find_unaudited
from recuerdo.stores.postgres.marks import REQUEST_MARK
from recuerdo.stores.postgres.memories import Memories, NewMemory
from recuerdo.stores.postgres.proposal_links import tie_each
from recuerdo.stores.postgres.proposals import Link, NewProposal, Proposals, join_proposal, make_proposal
from recuerdo.stores.postgres.publishing import Publishing
from recuerdo.stores.postgres.retention import delete_expired, forget_user
from recuerdo.stores.postgres.roles import Roles
from recuerdo.stores.postgres.settling import settle_call
from recuerdo.stores.postgres.tool_calls import NewToolCall, ToolCalls
from recuerdo.stores.postgres.turns import NewTurn, TurnLog
from tests.recuerdo.approved import approved, propose

from .conftest import AT_ONCE, LEASE

NOW = datetime(2025, 12, 5, 10, 0, tzinfo=UTC)
DAY = timedelta(days=1)
OFF = ToolDeactivated(tool="get_quote")
RULE = AutoApproveRule(id="small", tool="pay", when=(Condition(field="sum", op="<=", value=10),))


def hotel() -> Plan:
    return read_plan(
        "name: hotel\nlanguage: es\nrole: Recepción.\ninstructions: [Sé breve.]\n"
        "disclaimer: {es: x, en: x}\ntools: [get_quote]\n",
        "hotel",
    )


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
async def office(database: Database, keys: KeyFolder) -> PlanOffice:
    return await governed(database, keys)


async def governed(database: Database, keys: KeyFolder) -> PlanOffice:
    """Two revisions, a stop, a pack, requests of every kind and their evidence, proposals in force, rejected and
    waiting, a trial, and two memories that were published, one of which was taken back.
    """
    office = PlanOffice(database, "t1", keys)
    roles = Roles(database, "t1", keys)
    await roles.appoint_first_owner("olga", NOW)
    await roles.grant("sara", "supervisor", actor="olga", at=NOW)
    await office.build_pack(Pack.of("tarifas", [PackFile("a.md", "Una regla.\n")]), actor="sara", at=NOW)
    first = await office.compile_revision(hotel(), actor="sara", at=NOW)
    await office.activate("hotel", 1, actor="sara", at=NOW)
    proposals = Proposals(database, "t1", keys)
    one = await approved(database, keys, "t1", "hotel", OFF, actor="sara", at=NOW)
    await office.compile_revision(hotel(), Changes([one]), actor="sara", at=NOW, also=proposals.included)
    await office.activate("hotel", 2, actor="sara", at=NOW)
    await office.stop("hotel", all_tools=True, actor="sara", at=NOW)
    async with database.tenant("t1") as connection:
        key = await propose(connection, "t1", "hotel", ToolDeactivated(tool="search"), NOW, office.audit)
    await proposals.decide(UUID(key), "reject", actor="sara", at=NOW, reason="se usa")
    decided = await requests(database, keys)
    rule = await rule_of(database, office.audit, decided[:2])
    await proposals.decide(rule, "approve", actor="sara", at=NOW, reason="de acuerdo")
    async with database.tenant("t1") as connection:
        await propose(connection, "t1", "hotel", ToolDeactivated(tool="order"), NOW, office.audit)
    await unknown_calls(database, keys)
    tried = TriedPlan("hotel", 1, first.sha256, "m")
    results = [CaseResult("a", True), CaseResult("b", False, ("calls pay",))]
    await EvalRuns(database, "t1", keys).add(tried, results, actor="sara", at=NOW)
    await memories(database, keys)
    return office


async def requests(database: Database, keys: KeyFolder, at: datetime = NOW) -> list[UUID]:
    """Two approved, the second one reversed, one rejected, one taken back, one that a rule let pass, one that waits;
    returns their ids in that order.
    """
    approvals = Approvals(database, "t1", keys)
    run = Run(uuid4(), "c", "hotel", "leo", "hotel", 2)
    asked = [
        NewApproval(uuid4(), run, "pay", {"sum": place}, at, "small" if place == 4 else None)
        for place in range(6)
    ]
    await approvals.request(asked)
    decisions: Sequence[Decision] = ("approve", "approve", "reject")
    for new, decision in zip(asked, decisions, strict=False):
        await approvals.decide(new.id, decision, actor="sara", at=at, reason="visto")
    await approvals.reverse(asked[1].id, actor="sara", at=at)
    await approvals.decide(asked[3].id, "reject", actor="leo", at=at)
    return [new.id for new in asked]


async def rule_of(database: Database, audit: GovernanceAudit, decided: Sequence[UUID]) -> UUID:
    """A rule that was proposed because of these approvals."""
    wording, change = Sentence("¿Sí?", "Yes?"), RuleAdded(rule=RULE)
    new = NewProposal("rule_suggestion", "hotel", 2, "rule pay", change, wording, {"share": 0.5})
    async with database.tenant("t1") as connection:
        cursor = await connection.execute(
            "select at, id as evidence, turn_id as turn, (data ->> 'approval')::uuid as approval"
            " from recuerdo.evidence where kind = 'approval_decided' and data ->> 'approval' = any(%s)",
            ([str(one) for one in decided],),
        )
        links = [Link(**row) for row in await cursor.fetchall()]
        made = await make_proposal(connection, "t1", new, tie_each("t1", links), audit=audit, at=NOW)
    assert made is not None
    return made


async def memories(database: Database, keys: KeyFolder) -> None:
    """One published, one taken back, and one that nobody published."""
    kept = Memories(database, "t1")
    publishing = Publishing(database, "t1", "A1", keys)
    published, withdrawn, _ = [
        (await kept.add("A1", "leo", NewMemory("fact", text, "es", confidence=0.9), NOW)).id
        for text in ("Prefiere pisos altos", "Prefiere pisos bajos", "Viaja con su perro")
    ]
    await publishing.publish(published, actor="sara", reason="lo pidió", at=NOW)
    await publishing.publish(withdrawn, actor="sara", reason="lo pidió", at=NOW)
    await publishing.withdraw(withdrawn, actor="sara", reason="era falso", at=NOW)


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
    assert (found.fault, found.subject) == (None, None) and found.entries > 30


_APPROVED = "kind = 'approval_decided' and data ->> 'status' = 'approved'"
_MOVED = "with gone as (delete from recuerdo.evidence where kind = 'approval_decided' and data ->> 'status' ="
_PIECE = "tenant, id, kind, at, turn_id, conversation, assistant, user_id, plan, revision, tool"
_COPY = _PIECE.replace(" id,", " gen_random_uuid(),")
_RULE = "kind = 'rule_suggestion'"
_OF_RULE = f"(select id from recuerdo.proposals where {_RULE})"

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
    "decision taken back": "update recuerdo.approvals set status = 'pending', decided_at = null, decided_by = null"
    " where status = 'rejected'",
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
    # Requests that are not the ones that were made.
    "waiting request of another tool": "update recuerdo.approvals set tool = 'get_quote' where status = 'pending'",
    "waiting request with other arguments": "update recuerdo.approvals set arguments = '{\"sum\": 1}'"
    " where status = 'pending'",
    "waiting request of nobody": "update recuerdo.approvals set user_id = null where status = 'pending'",
    "waiting request deleted": "delete from recuerdo.approvals where status = 'pending'",
    "arguments of a decided request": "update recuerdo.approvals set arguments = '{\"sum\": 1e400}'"
    " where status = 'rejected'",
    "plan of a decided request": "update recuerdo.approvals set plan = 'other' where status = 'approved'",
    "requester of a decided request": "update recuerdo.approvals set user_id = 'zoe' where status = 'approved'",
    "decided request blank too early": "update recuerdo.approvals set arguments = '{}', reason = null"
    " where status = 'approved'",
    "reason of a decision": "update recuerdo.approvals set reason = 'otra' where status = 'rejected'",
    "reason put in": "update recuerdo.approvals set reason = 'otra' where status = 'withdrawn'",
    "rule that let pass": "update recuerdo.approvals set rule = 'other' where status = 'auto_approved'",
    # Evidence that rules are proposed from.
    "all evidence deleted": "delete from recuerdo.evidence",
    "oldest evidence deleted": "delete from recuerdo.evidence where kind = 'approval_decided' and id ="
    " (select id from recuerdo.evidence where kind = 'approval_decided' order by at, id limit 1)",
    "evidence of a reversal deleted": "delete from recuerdo.evidence where kind = 'reversal'",
    "rejection's evidence an approval": f"{_MOVED} 'rejected' returning *) insert into recuerdo.evidence"
    f" select {_PIECE}, jsonb_set(data, '{{status}}', '\"approved\"'), expires_at from gone",
    "evidence of other arguments": f"{_MOVED} 'approved' returning *) insert into recuerdo.evidence"
    f" select {_PIECE}, jsonb_set(data, '{{arguments,sum}}', '500'), expires_at from gone",
    "approval counted twice": f"insert into recuerdo.evidence select {_COPY}, data, expires_at"
    f" from recuerdo.evidence where {_APPROVED}",
    "approval invented": f"insert into recuerdo.evidence select {_COPY},"
    " jsonb_set(data, '{approval}', to_jsonb(gen_random_uuid()::text)), expires_at"
    f" from recuerdo.evidence where {_APPROVED}",
    "approval without a request": f"insert into recuerdo.evidence select {_COPY}, data - 'approval', expires_at"
    f" from recuerdo.evidence where {_APPROVED}",
    "objection invented": f"insert into recuerdo.evidence select {_COPY.replace(' at,', ' now(),')},"
    ' \'{"status": "rejected", "arguments": {}}\', expires_at'
    f" from recuerdo.evidence where {_APPROVED}",
    "evidence and request of a rejection": "with gone as (delete from recuerdo.approvals where status = 'rejected')"
    " delete from recuerdo.evidence where kind = 'approval_decided' and data ->> 'status' = 'rejected'",
    # What a call did.
    "unknown outcome done": "update recuerdo.tool_calls set status = 'done' where settled is null",
    "unknown outcome deleted": "delete from recuerdo.tool_calls where settled is null",
    "approved request deleted": "delete from recuerdo.approvals where status = 'approved'",
    "trial put in": "insert into recuerdo.eval_results select tenant, gen_random_uuid(), case_id, plan, revision,"
    " sha256, model, true, '[]', at, actor from recuerdo.eval_results where case_id = 'b'",
    "case put in a trial": "insert into recuerdo.eval_results select tenant, run, 'c', plan, revision,"
    " sha256, model, true, '[]', at, actor from recuerdo.eval_results where case_id = 'b'",
    # Memories that nobody made permanent.
    "memory published": "update recuerdo.user_memory set status = 'published', expires_at = null"
    " where status = 'confirmed'",
    "memory without an end": "update recuerdo.user_memory set expires_at = null where status = 'confirmed'",
    "memory that lasts": "update recuerdo.user_memory set expires_at = now() + interval '9 years'"
    " where status = 'confirmed'",
    "published memory says something else": "update recuerdo.user_memory set text = 'Comisión cero'"
    " where status = 'published'",
    "withdrawn memory published again": "update recuerdo.user_memory set status = 'published', expires_at = null"
    " where status = 'withdrawn'",
    # Proposals.
    "proposal approved again": "update recuerdo.proposals set status = 'approved', included_in = null,"
    " included_at = null where status = 'included'",
    "proposal of another plan": f"update recuerdo.proposals set plan = 'other' where {_RULE}",
    "proposal of another kind": f"update recuerdo.proposals set kind = 'skill_lifecycle' where {_RULE}",
    "reason of a proposal": f"update recuerdo.proposals set reason = 'otra' where {_RULE}",
    "wording of a proposal": f'update recuerdo.proposals set wording = \'{{"es": "z"}}\' where {_RULE}',
    "sample of a proposal": f"update recuerdo.proposals set sample_size = 1 where {_RULE}",
    "larger sample": f"update recuerdo.proposals set sample_size = 99 where {_RULE}",
    "period of a proposal": f"update recuerdo.proposals set period_from = '-infinity' where {_RULE}",
    "effect of a proposal": f"update recuerdo.proposals set effect = '{{}}' where {_RULE}",
    "links deleted": f"delete from recuerdo.proposal_evidence where proposal in {_OF_RULE}",
    "link to another run": f"update recuerdo.proposal_evidence set turn_id = gen_random_uuid()"
    f" where proposal in {_OF_RULE}",
    "link to no approval": f"insert into recuerdo.proposal_evidence (tenant, proposal, evidence, approval, at)"
    f" select 't1', id, gen_random_uuid(), gen_random_uuid(), now() from recuerdo.proposals where {_RULE}",
    "waiting question changed": "update recuerdo.proposals set wording = '{\"es\": \"z\"}' where status = 'pending'",
    "waiting change changed": "update recuerdo.proposals set change = jsonb_set(change, '{tool}', '\"pay\"')"
    " where status = 'pending'",
    "waiting proposal's sample": "update recuerdo.proposals set sample_size = 15 where status = 'pending'",
    "waiting proposal deleted": "delete from recuerdo.proposals where status = 'pending'",
    "proposal put in": "insert into recuerdo.proposals select tenant, gen_random_uuid(), kind, plan, revision, 'new',"
    " change, wording, effect, sample_size, period_from, period_to, user_id, status, created_at"
    " from recuerdo.proposals where status = 'pending'",
    **{
        f"change is {value}": f"update recuerdo.proposals set change = '{value}' where status = 'included'"
        for value in ("5", '"x"', "[1]", "9007199254740993", "{}", '{"sum": 1e400}')
    },
}


async def test_or_12_what_was_written_past_the_audit_is_named(office: PlanOffice, database: Database) -> None:
    missed = [name for name, done in BY_THE_TENANT.items() if not await _is_named(database, done)]
    assert not missed and await _whole(office)


async def _is_named(database: Database, statement: str) -> bool:
    """Whether a verification after the statement names something; it is undone."""
    async with database.tenant("t1") as connection:
        await connection.execute("savepoint before")
        assert (await connection.execute(statement)).rowcount > 0, statement  # type: ignore[call-overload]
        found = await find_unaudited(connection, "t1")
        await connection.execute("rollback to before")
    return found is not None


async def test_or_12_a_verification_names_what_it_found(office: PlanOffice, database: Database) -> None:
    async with database.tenant("t1") as connection:
        await connection.execute("update recuerdo.roles set role = 'owner' where user_id = 'sara'")
    found = await office.audit.verify()
    assert (found.fault, found.subject) == ("unaudited", "sara")


async def test_or_33_a_call_that_nobody_let_pass_is_named_whatever_became_of_its_request(
    office: PlanOffice, database: Database
) -> None:
    (waits,) = await Approvals(database, "t1", KeyFolder(Path())).list("pending")
    await ToolCalls(database, "t1").claim(NewToolCall(waits.id, waits.run, "pay", "foreign", NOW))
    async with database.tenant("t1") as connection:
        for statement in (
            "update recuerdo.approvals set status = 'approved', decided_at = now(), decided_by = 'sara'"
            " where status = 'pending'",
            "delete from recuerdo.approvals",
            "delete from recuerdo.evidence where data ->> 'approval' = %(waits)s",
            "delete from recuerdo.tool_calls where id::text = %(waits)s",
        ):
            await connection.execute(statement, {"waits": str(waits.id)})
            assert await find_unaudited(connection, "t1")


async def test_or_21_nobody_decides_a_proposal_that_was_changed(
    office: PlanOffice, database: Database, keys: KeyFolder
) -> None:
    proposals = Proposals(database, "t1", keys)
    (waits,) = await proposals.list("pending")
    asked = {"change": json.dumps(waits.change), "wording": json.dumps(waits.wording)}
    for column, value in (("change", "5"), ("change", '{"kind": "tool", "tool": "pay"}'), ("wording", "{}")):
        async with database.tenant("t1") as connection:
            for name, text in {**asked, column: value}.items():
                statement = f"update recuerdo.proposals set {name} = %s::jsonb where id = %s"
                await connection.execute(statement, (text, waits.id))  # type: ignore[arg-type]
        with pytest.raises(StoreError, match="audit verify"):
            await proposals.decide(waits.id, "approve", actor="sara", at=NOW)
    assert (await proposals.get(waits.id)).status == "pending"


async def test_or_12_a_chain_wiped_with_its_head_is_missed(office: PlanOffice, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("set session_replication_role = replica")
        for table in ("governance_audit", "governance_audit_heads", "plan_activations"):
            owner.execute(f"delete from recuerdo.{table}")  # type: ignore[call-overload]
    assert (await office.audit.verify()).fault == "end_missing"


# What went as it should.


async def test_im_43_forgetting_a_user_is_no_fault(
    office: PlanOffice, database: Database, keys: KeyFolder
) -> None:
    async with database.tenant("t1") as connection:
        await connection.execute("update recuerdo.conversations set lease_until = null, lease_turn = null")
    approvals = Approvals(database, "t1", keys)
    gone = await forget_user(database, "t1", "leo", NOW, approvals=approvals)
    assert gone.remembered and not await approvals.list()
    assert await _whole(office)
    # What he objected to stays without him, and nobody takes that away.
    async with database.tenant("t1") as connection:
        await connection.execute("delete from recuerdo.evidence where kind = 'reversal'")
        assert await find_unaudited(connection, "t1")


async def test_a_30_what_expired_is_no_fault_whatever_the_clock_says_then(
    office: PlanOffice, database: Database, keys: KeyFolder
) -> None:
    assert await delete_expired_evidence(database, NOW + 300 * DAY)
    await delete_expired(database, NOW + 300 * DAY, actor="worker")
    assert await _whole(office)
    # The clock goes back, and people go on deciding.
    decided = await requests(database, keys, NOW + DAY)
    assert await _whole(office)
    later = NOW + 200 * DAY
    await requests(database, keys, later)
    assert await _whole(office)
    # What was decided since then has not expired.
    async with database.tenant("t1") as connection:
        deleted = await connection.execute("delete from recuerdo.evidence where at >= %s", (later,))
        assert deleted.rowcount and await find_unaudited(connection, "t1")
    assert decided


async def test_a_30_nobody_but_the_worker_says_what_has_expired(
    office: PlanOffice, database: Database
) -> None:
    for statement in (
        "insert into recuerdo.evidence_horizons values ('t1', now())",
        "update recuerdo.evidence_horizons set at = now()",
        "insert into recuerdo.held_before values ('t1', 'proposal', 'x')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with database.tenant("t1") as connection:
                await connection.execute(statement)  # type: ignore[call-overload]
    # An end that was put in makes the worker delete what it should not: that is no horizon.
    async with database.tenant("t1") as connection:
        await connection.execute(
            f"{_MOVED} 'rejected' returning *) insert into recuerdo.evidence select {_PIECE}, data, at from gone"  # type: ignore[arg-type]
        )
    assert await delete_expired_evidence(database, NOW) == 1
    assert not await _whole(office)


async def test_im_50_what_was_rolled_back_and_taken_in_again_is_no_fault(
    office: PlanOffice, database: Database, keys: KeyFolder
) -> None:
    proposals = Proposals(database, "t1", keys)
    earlier = await office.earlier("hotel", actor="sara")
    await office.activate("hotel", earlier, actor="sara", at=NOW)
    assert await _whole(office)
    changes = await proposals.changes("hotel")
    await office.compile_revision(hotel(), changes, actor="sara", at=NOW, also=proposals.included)
    assert await _whole(office)
    (back,) = [one.proposal for one in changes.earlier]
    changes = await proposals.changes("hotel", include=[back])
    again = await office.compile_revision(hotel(), changes, actor="sara", at=NOW, also=proposals.included)
    await office.activate("hotel", again.number, actor="sara", at=NOW)
    assert len(again.included) == 2 and await _whole(office)


async def test_im_36_a_cleared_conversation_is_no_fault(
    office: PlanOffice, database: Database, keys: KeyFolder
) -> None:
    async with database.tenant("t1") as connection:
        await connection.execute("update recuerdo.conversations set lease_until = null, lease_turn = null")
    approvals = Approvals(database, "t1", keys)
    await TurnLog(database, "t1").clear("c", "leo", approvals, NOW)
    assert not await approvals.list("pending") and await _whole(office)


async def test_or_24_what_a_decided_proposal_is_tied_to_afterwards_is_no_fault(
    office: PlanOffice, database: Database
) -> None:
    wording, change = Sentence("¿Sí?", "Yes?"), RuleAdded(rule=RULE)
    same = NewProposal("rule_suggestion", "hotel", 2, "rule pay", change, wording, {})
    async with database.tenant("t1") as connection:
        assert await join_proposal(connection, "t1", same, tie_each("t1", [Link(NOW, revision=2)]))
    assert await _whole(office)


@pytest.mark.parametrize("has_roles", [True, False])
async def test_or_6_published_memories_that_are_brought_back_are_no_fault(
    office: PlanOffice, empty_database_url: str, database: Database, tmp_path: Path, has_roles: bool
) -> None:
    file, keys = tmp_path / "memory.db", KeyFolder(tmp_path / "others")
    await export_tenant(database, "t1", file, NOW)
    there = await Database.open(empty_database_url)
    audit = GovernanceAudit(there, "t2", keys)
    if has_roles:
        await Roles(there, "t2", keys).appoint_first_owner("olga", NOW)
    await import_tenant(there, "t2", file, "olga", NOW, audit=audit)
    entries = [entry.action for entry in await audit.entries()]
    found = await audit.verify()
    await there.close()
    assert "memory.published" in entries and found.fault is None


async def test_or_12_a_chain_of_before_is_whole(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = KeyFolder(tmp_path / "keys")
    database = await Database.open(empty_database_url)
    with monkeypatch.context() as patched:
        _write_as_before(patched)
        office = await governed(database, keys)
        await delete_expired_evidence(database, NOW + 181 * DAY)
        await requests(database, keys, NOW + 181 * DAY)
    await database.close()
    _undo_held(empty_database_url)
    database = await Database.open(empty_database_url)
    office = PlanOffice(database, "t1", keys)
    assert await _whole(office)
    # From here on it is held, and people go on with what they had.
    missed = [name for name in _SINCE if not await _is_named(database, BY_THE_TENANT[name])]
    (waits,) = await Proposals(database, "t1", keys).list("pending")
    await Proposals(database, "t1", keys).decide(waits.id, "approve", actor="sara", at=NOW)
    assert not missed and await _whole(office)
    changed = f"update recuerdo.proposals set wording = '{{}}' where id = '{waits.id}'"
    assert await _is_named(database, changed)
    await database.close()


_SINCE = ("approval invented", "memory without an end", "trial put in", "proposal put in")


def _write_as_before(patched: pytest.MonkeyPatch) -> None:
    """Entries without marks, and none of what is noted only since."""
    append = GovernanceAudit.append

    async def earlier(self: GovernanceAudit, connection: Connection, act: AuditAct) -> int:
        if act.action in (
            "approval.requested",
            "proposal.made",
            "plan.tried",
            "memory.published",
            "memory.withdrawn",
        ):
            return 0
        details = {name: value for name, value in act.details.items() if name != REQUEST_MARK}
        return await append(self, connection, replace(act, details=details))

    async def no_marks(self: GovernanceAudit, connection: Connection, act: AuditAct) -> dict[str, str]:
        change = await read_change(connection, "t1", act.subject)
        return {CHANGE: change_hash(change)} if change else {}

    async def any_proposal(self: Proposals, connection: Connection, proposal: str) -> None:
        """It could be decided whatever had become of it."""

    patched.setattr(GovernanceAudit, "append", earlier)
    patched.setattr(GovernanceAudit, "_marks", no_marks)
    patched.setattr(Proposals, "_require_made", any_proposal)


def _undo_held(url: str) -> None:
    """As if the last migration had not run."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("drop table recuerdo.evidence_horizons, recuerdo.held_before")
        owner.execute("drop index recuerdo.governance_audit_by_action, recuerdo.memory_kept_long")
        owner.execute("delete from recuerdo.migrations where name = 'held'")


async def _whole(office: PlanOffice) -> bool:
    found = await office.audit.verify()
    return (found.fault, found.subject) == (None, None)
