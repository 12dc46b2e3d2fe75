"""Compiling, activating, returning and stopping, each with its role and its entry (OR-20, OR-29, IM-50, IM-52)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from recuerdo.state.amendment import ApprovedProposal, RuleAdded, ToolDeactivated
from recuerdo.state.errors import InputError, ScopeError, SettingsError
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import Sentence
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.packs import Pack, PackFile, Packs
from recuerdo.stores.plans import PlanOffice, PlanShelf, Revision, load_plan, read_autonomy
from recuerdo.stores.plans.merge import Changes
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.governance_audit import GovernanceEntry
from recuerdo.stores.postgres.governance_held import CHANGE, change_hash
from recuerdo.stores.postgres.proposals import Proposals
from recuerdo.stores.postgres.roles import SYSTEM, Roles
from tests.recuerdo.approved import propose
from tests.stores.plans.conftest import NOW, TENANT, Approve
from tests.stores.plans.test_merge import RULE, rule

TARIFAS = Pack.of("tarifas", [PackFile("salidas.md", "El check-out es a las 11:00.\n")])


async def newest(office: PlanOffice) -> GovernanceEntry:
    return (await office.audit.entries(limit=1))[0]


async def compiled(
    office: PlanOffice, draft: Plan, *approved: ApprovedProposal, actor: str = "sara"
) -> Revision:
    return await office.compile_revision(draft, Changes(approved), actor=actor, at=NOW)


async def roll_back(
    office: PlanOffice, name: str, number: int | None = None, *, actor: str, at: datetime
) -> Revision:
    return await office.activate(name, await office.earlier(name, number, actor=actor), actor=actor, at=at)


async def in_force(office: PlanOffice) -> int:
    return (await office.read("hotel"))[1].number


async def test_or_29_the_next_revision_is_signed_names_its_parent_and_waits(
    office: PlanOffice, draft: Plan, approve: Approve
) -> None:
    approved = await approve(RULE.change)
    r1 = await compiled(office, draft)
    assert (r1.label, r1.parent) == ("r1", None)
    await office.activate("hotel", 1, actor="sara", at=NOW)
    r2 = await compiled(office, draft, approved)
    assert (r2.label, r2.parent, r2.plan.auto_approve_rules) == ("r2", r1.sha256, (rule(),))
    assert await in_force(office) == 1
    entry = await newest(office)
    assert (entry.actor, entry.action, entry.subject) == ("sara", "plan.compiled", "hotel")
    assert (entry.before, entry.after) == (r1.sha256, r2.sha256)
    assert json.loads(entry.details)["included"] == [approved.proposal]


async def test_im_48_two_compiles_include_a_proposal_once(
    office: PlanOffice, draft: Plan, approve: Approve
) -> None:
    approved = await approve(RULE.change)
    for _ in range(2):
        revision = await compiled(office, draft, approved)
        assert revision.plan.auto_approve_rules == (rule(),)
    assert revision.label == "r2"
    assert (await compiled(office, draft)).included == (approved,)


async def test_im_50_what_was_rolled_back_does_not_come_in_again(
    office: PlanOffice, draft: Plan, approve: Approve
) -> None:
    rule_added = await approve(RULE.change)
    for number, approved in ((1, ()), (2, (rule_added,))):
        await compiled(office, draft, *approved)
        await office.activate("hotel", number, actor="sara", at=NOW)
    assert (await roll_back(office, "hotel", actor="sara", at=NOW)).number == 1
    entry = await newest(office)
    assert (entry.actor, entry.action) == ("sara", "plan.rolled_back")
    assert json.loads(entry.details) == {"revision": "r1", "previous": "r2"}
    r1 = (await office.read("hotel", 1))[1]
    r3 = await compiled(office, draft)
    assert (r3.label, r3.parent, r3.included) == ("r3", r1.sha256, ())
    # Not even where a row says that it was in none; and the next one goes on from r3, though that is not in force.
    with pytest.raises(InputError, match="was in a revision of hotel before"):
        await compiled(office, draft, rule_added)
    assert (await compiled(office, draft)).parent == r3.sha256


async def test_im_50_there_is_something_earlier_to_return_to(office: PlanOffice, draft: Plan) -> None:
    with pytest.raises(SettingsError, match="has no signed revision"):
        await roll_back(office, "hotel", actor="sara", at=NOW)
    await compiled(office, draft)
    await office.activate("hotel", 1, actor="sara", at=NOW)
    for number in (None, 1, 2):
        with pytest.raises(InputError, match="hotel r1"):
            await roll_back(office, "hotel", number, actor="sara", at=NOW)
    with pytest.raises(InputError, match="active already"):
        await office.activate("hotel", 1, actor="sara", at=NOW)
    with pytest.raises(SettingsError, match="no revision r7"):
        await office.activate("hotel", 7, actor="sara", at=NOW)


Act = Callable[[PlanOffice, Plan, str], Awaitable[object]]

ACTS: dict[str, Act] = {
    "compile": lambda office, draft, who: compiled(office, draft, actor=who),
    "activate": lambda office, draft, who: office.activate("hotel", 2, actor=who, at=NOW),
    "rollback": lambda office, draft, who: roll_back(office, "hotel", 1, actor=who, at=NOW),
    "stop": lambda office, draft, who: office.stop("hotel", all_tools=True, actor=who, at=NOW),
    "pack": lambda office, draft, who: office.build_pack(TARIFAS, actor=who, at=NOW),
    "lift": lambda office, draft, who: office.lift("hotel", actor=who, at=NOW),
    "key": lambda office, draft, who: office.rotate_key(actor=who, at=NOW),
}
OWNERS = {"lift", "key"}


@pytest.mark.parametrize("act", ACTS)
async def test_c_32_supervisors_and_owners_decide_and_nobody_else(
    office: PlanOffice, draft: Plan, act: str
) -> None:
    await compiled(office, draft)
    await compiled(office, draft)
    await office.activate("hotel", 1, actor="olga", at=NOW)
    refused = ["bot", "ana", "", *(["sara"] if act in OWNERS else [])]
    before = await newest(office)
    for who in refused:
        with pytest.raises(ScopeError):
            await ACTS[act](office, draft, who)
    assert await newest(office) == before
    if act == "rollback":
        await office.activate("hotel", 2, actor="olga", at=NOW)
    if act == "lift":
        await office.stop("hotel", all_tools=False, actor="sara", at=NOW)
    who = "olga" if act in OWNERS else "sara"
    await ACTS[act](office, draft, who)
    assert (await newest(office)).actor == who


async def test_or_16_a_plan_that_names_a_pin_gets_that_pin(
    office: PlanOffice, database: Database, draft: Plan
) -> None:
    later = Pack.of("tarifas", [PackFile("salidas.md", "El check-out es a las 10:00.\n")])
    for pack in (TARIFAS, later):
        assert await office.build_pack(pack, actor="sara", at=NOW)
    assert not await office.build_pack(later, actor="sara", at=NOW)
    plan = draft.model_copy(update={"packs": (TARIFAS.reference,)})
    revision = await compiled(office, plan)
    assert revision.packs == {TARIFAS.reference: TARIFAS.pin}
    packs = await Packs(database, TENANT).all()
    assert {entry.reference for entry in packs} == {TARIFAS.reference, later.reference}
    # OR-2: both are of the third level.
    assert {entry.level for entry in (*packs, *await office.revisions())} == {3}


async def test_or_15_a_plan_whose_pack_is_missing_is_not_compiled(office: PlanOffice, draft: Plan) -> None:
    plan = draft.model_copy(update={"packs": (TARIFAS.reference,)})
    with pytest.raises(SettingsError, match=TARIFAS.reference):
        await compiled(office, plan)
    assert not await office.revisions()


def tamper(url: str, statement: str) -> None:
    """As somebody with the run of the database would."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute(statement)


async def test_im_50_no_return_to_a_revision_whose_pack_is_gone(
    office: PlanOffice, draft: Plan, database_url: str
) -> None:
    await office.build_pack(TARIFAS, actor="sara", at=NOW)
    await compiled(office, draft.model_copy(update={"packs": (TARIFAS.reference,)}))
    await office.activate("hotel", 1, actor="sara", at=NOW)
    await compiled(office, draft)
    await office.activate("hotel", 2, actor="sara", at=NOW)
    tamper(database_url, "delete from recuerdo.packs")
    with pytest.raises(SettingsError, match=rf"hotel r1 cannot be activated.*{TARIFAS.reference}"):
        await roll_back(office, "hotel", 1, actor="sara", at=NOW)
    assert await in_force(office) == 2


async def test_or_29_an_altered_row_is_refused_wherever_it_is_read(
    office: PlanOffice, draft: Plan, database: Database, database_url: str, keys: KeyFolder
) -> None:
    await compiled(office, draft)
    await office.activate("hotel", 1, actor="sara", at=NOW)
    tamper(
        database_url,
        "update recuerdo.plan_revisions set document ="
        " convert_to(replace(convert_from(document, 'UTF8'), 'Sé breve', 'Sé cruel'), 'UTF8')",
    )
    for refused in (
        PlanShelf(database, keys).active(TENANT, "hotel"),
        office.read("hotel"),
        compiled(office, draft),
    ):
        with pytest.raises(SettingsError, match=r"hotel r1 is refused"):
            await refused


@pytest.mark.parametrize("table", ["plan_revisions", "plan_activations", "plan_stops"])
async def test_or_20_nothing_of_a_revision_can_be_changed(
    office: PlanOffice, draft: Plan, database: Database, table: str
) -> None:
    await compiled(office, draft)
    await office.activate("hotel", 1, actor="sara", at=NOW)
    await office.stop("hotel", all_tools=False, actor="sara", at=NOW)
    async with database.connection() as connection:
        for statement in (f"update recuerdo.{table} set name = 'x'", f"delete from recuerdo.{table}"):
            with pytest.raises(psycopg.errors.RaiseException, match="immutable"):
                await connection.execute(statement)  # type: ignore[arg-type]


async def test_im_52_a_stop_acts_at_once_and_only_narrows(
    office: PlanOffice, draft: Plan, database: Database
) -> None:
    plan = draft.model_copy(update={"four_eyes": ("apply_discount",), "auto_approve_rules": (rule(),)})
    ten = {"discount_pct": 10}
    free = await read_autonomy(database, TENANT, plan)
    assert free.rule_for("apply_discount", ten) == rule()
    assert (free.waits("apply_discount"), free.waits("get_quote")) == (True, False)
    await office.stop("hotel", all_tools=False, actor="sara", at=NOW)
    stopped = await read_autonomy(database, TENANT, plan)
    assert stopped.rule_for("apply_discount", ten) is None
    assert (stopped.waits("apply_discount"), stopped.waits("get_quote")) == (True, False)
    await office.stop("hotel", all_tools=True, actor="sara", at=NOW)
    # Never back to the milder one.
    assert (await office.stop("hotel", all_tools=False, actor="sara", at=NOW)).all_tools
    assert (await read_autonomy(database, TENANT, plan)).waits("get_quote")
    assert (await read_autonomy(database, "t2", plan)).stop is None
    await office.lift("hotel", actor="olga", at=NOW)
    assert await read_autonomy(database, TENANT, plan) == free
    with pytest.raises(InputError, match="not under an emergency stop"):
        await office.lift("hotel", actor="olga", at=NOW)
    actions = [(entry.action, entry.before, entry.after) for entry in await office.audit.entries(limit=4)]
    assert actions[::3] == [
        ("plan.stop_lifted", "all_tools", "none"),
        ("plan.stopped", "none", "rules"),
    ]


async def test_im_52_a_revision_without_the_rule_revokes_it(
    office: PlanOffice, draft: Plan, approve: Approve
) -> None:
    await compiled(office, draft, await approve(RULE.change))
    revision = await office.compile_revision(draft, Changes(without=["discounts"]), actor="sara", at=NOW)
    assert revision.plan.auto_approve_rules == ()


async def test_im_48_what_was_left_out_stays_out_until_it_is_taken_in_again(
    office: PlanOffice, draft: Plan, approve: Approve, database: Database, keys: KeyFolder
) -> None:
    included = Proposals(database, TENANT, keys).included
    one = await approve(RULE.change)
    for without in (["discounts"], (), ["discounts"]):
        revision = await office.compile_revision(draft, Changes([one], without=without), actor="sara", at=NOW)
        assert (revision.included, revision.excluded) == ((), (one.proposal,))
        details = json.loads((await newest(office)).details)
        assert (details["included"], details["excluded"]) == ([], [one.proposal])
    for _ in range(2):
        again = Changes([one], include=[one.proposal])
        revision = await office.compile_revision(draft, again, actor="sara", at=NOW, also=included)
        assert (revision.included, revision.excluded) == ((one,), ())
        assert json.loads((await newest(office)).details)["included"] == [one.proposal]
        assert revision.plan.auto_approve_rules == (rule(),)
    assert (await office.audit.verify()).fault is None


async def test_im_50_what_was_rolled_back_comes_in_again_when_it_is_asked_for(
    office: PlanOffice, draft: Plan, approve: Approve
) -> None:
    one = await approve(RULE.change)
    await compiled(office, draft)
    await office.activate("hotel", 1, actor="sara", at=NOW)
    await compiled(office, draft, one)
    await office.activate("hotel", 2, actor="sara", at=NOW)
    await roll_back(office, "hotel", actor="sara", at=NOW)
    earlier = Changes(earlier=[one])
    assert (await office.compile_revision(draft, earlier, actor="sara", at=NOW)).included == ()
    asked = Changes(earlier=[one], include=[one.proposal])
    r4 = await office.compile_revision(draft, asked, actor="sara", at=NOW)
    assert (r4.label, r4.included, r4.plan.auto_approve_rules) == ("r4", (one,), (rule(),))


async def test_or_21_what_nobody_approved_with_this_change_cannot_be_taken_in_again(
    office: PlanOffice, draft: Plan, approve: Approve
) -> None:
    one = await approve(RULE.change)
    wider = one.model_copy(update={"change": RuleAdded(rule=rule(limit=90))})
    with pytest.raises(InputError, match="audit does not hold"):
        await office.compile_revision(
            draft, Changes(earlier=[wider], include=[one.proposal]), actor="sara", at=NOW
        )
    assert not await office.revisions()


async def test_a_28_a_rotation_is_audited_and_old_revisions_stay_valid(
    office: PlanOffice, draft: Plan
) -> None:
    await compiled(office, draft)
    record = await office.rotate_key(actor="olga", at=NOW)
    entry = await newest(office)
    assert (entry.actor, entry.action, entry.before, entry.after) == (
        "olga",
        "key.rotated",
        record.retires,
        record.key_id,
    )
    await office.activate("hotel", 1, actor="sara", at=NOW)
    second = await compiled(office, draft)
    sealed, _ = await office.read("hotel", second.number)
    assert sealed.signature.key_id == record.key_id


async def test_a_28_a_rotation_enters_every_tenants_chain_with_its_next_act(
    office: PlanOffice, draft: Plan, database: Database, keys: KeyFolder
) -> None:
    await compiled(office, draft)
    # As if the process had died between the folder and the chain; and of another tenant the same folder.
    record = keys.rotate("olga", NOW)
    other = PlanOffice(database, "t2", keys)
    await other.first_use("trading", NOW)
    await office.activate("hotel", 1, actor="sara", at=NOW)
    for each in (office, other):
        (entry,) = await each.audit.entries(subject=record.key_id)
        assert (entry.actor, entry.action, entry.before) == ("olga", "key.rotated", record.retires)
        assert (await each.audit.verify()).fault is None


async def test_a_28_another_signature_on_a_pack_is_audited(office: PlanOffice) -> None:
    assert await office.build_pack(TARIFAS, actor="sara", at=NOW)
    assert not await office.build_pack(TARIFAS, actor="olga", at=NOW)
    await office.rotate_key(actor="olga", at=NOW)
    assert not await office.build_pack(TARIFAS, actor="sara", at=NOW)
    entries = await office.audit.entries(subject=TARIFAS.reference)
    assert [(entry.actor, entry.action) for entry in entries] == [
        ("sara", "pack.signed"),
        ("sara", "pack.built"),
    ]


async def test_or_29_what_belongs_to_a_compilation_is_written_with_it_or_not_at_all(
    office: PlanOffice, draft: Plan
) -> None:
    async def fails(connection: Connection, revision: Revision) -> None:
        raise InputError(Sentence(es="no", en="no"))

    with pytest.raises(InputError):
        await office.compile_revision(draft, actor="sara", at=NOW, also=fails)
    assert not await office.revisions()
    assert (await office.audit.verify()).fault is None


async def test_or_29_compiling_at_once_gives_each_its_own_number(
    office: PlanOffice, draft: Plan, approve: Approve, database: Database, keys: KeyFolder
) -> None:
    included = Proposals(database, TENANT, keys).included
    off = [await approve(ToolDeactivated(tool=f"tool{number}")) for number in range(6)]
    made = await asyncio.gather(
        *(office.compile_revision(draft, Changes([one]), actor="sara", at=NOW, also=included) for one in off)
    )
    assert sorted(revision.number for revision in made) == [1, 2, 3, 4, 5, 6]
    last = max(made, key=lambda revision: revision.number)
    assert {one.proposal for one in last.included} == {one.proposal for one in off}
    assert (await office.audit.verify()).fault is None


async def test_a_28_what_ships_is_signed_once_at_first_use(
    database: Database, keys: KeyFolder, tmp_path: Path
) -> None:
    office = PlanOffice(database, TENANT, keys)
    await asyncio.gather(*(office.first_use("trading", NOW) for _ in range(3)))
    (entry,) = await office.revisions("trading")
    assert (entry.number, entry.active, entry.compiled_by) == (1, True, SYSTEM)
    _, revision = await office.read("trading")
    assert revision.plan == load_plan("trading")
    assert [(e.actor, e.action) for e in await office.audit.entries()] == [
        (SYSTEM, "plan.activated"),
        (SYSTEM, "plan.compiled"),
    ]
    private = [path for path in (tmp_path / "keys").iterdir() if path.suffix in {".pem", ".key"}]
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600} and len(private) == 2


async def test_or_20_first_use_never_replaces_what_a_person_compiled(office: PlanOffice) -> None:
    await office.compile_revision(load_plan("trading"), actor="olga", at=NOW)
    with pytest.raises(SettingsError, match="recuerdo plan activate"):
        await office.first_use("trading", NOW)
    with pytest.raises(SettingsError, match=r"no plan named nothing.*trading"):
        await office.first_use("nothing", NOW)


async def test_or_6_plans_and_stops_are_those_of_one_tenant(
    office: PlanOffice, draft: Plan, database: Database, keys: KeyFolder
) -> None:
    await compiled(office, draft)
    await office.activate("hotel", 1, actor="sara", at=NOW)
    other = PlanOffice(database, "t2", keys)
    assert not await other.revisions()
    assert await PlanShelf(database, keys).active("t2", "hotel") is None
    await Roles(database, "t2", keys).appoint_first_owner("sara", NOW)
    with pytest.raises(SettingsError):
        await other.activate("hotel", 1, actor="sara", at=NOW)
    with pytest.raises(ScopeError):
        await other.compile_revision(draft, actor="olga", at=NOW)


# Only what people approved


async def test_or_21_a_proposal_that_nobody_made_is_refused(office: PlanOffice, draft: Plan) -> None:
    with pytest.raises(InputError, match="p1 does not enter"):
        await compiled(office, draft, RULE)
    assert not await office.revisions()


async def test_or_21_a_proposal_that_nobody_approved_is_refused(
    office: PlanOffice, draft: Plan, database: Database
) -> None:
    await compiled(office, draft)
    async with database.tenant(TENANT) as connection:
        pending = await propose(connection, TENANT, "hotel", RULE.change, NOW, office.audit)
    with pytest.raises(InputError, match="does not enter"):
        await compiled(office, draft, ApprovedProposal(proposal=pending, change=RULE.change))
    # Nor by the word of the table alone, nor by an entry that somebody wrote without the key.
    async with database.tenant(TENANT) as connection:
        await connection.execute(
            "update recuerdo.proposals set status = 'approved', decided_at = now(), decided_by = 'sara'"
        )
        await connection.execute(
            "insert into recuerdo.governance_audit select tenant, number + 1, at, 'sara', 'proposal.approved', %s,"
            " before, after, %s, hash from recuerdo.governance_audit order by number desc limit 1",
            (
                pending,
                json.dumps({"plan": "hotel", CHANGE: change_hash(RULE.change.model_dump(mode="json"))}),
            ),
        )
    with pytest.raises(InputError, match="does not enter"):
        await compiled(office, draft, ApprovedProposal(proposal=pending, change=RULE.change))


async def test_or_21_a_proposal_changed_after_its_approval_is_refused(
    office: PlanOffice, draft: Plan, database: Database, approve: Approve
) -> None:
    one = await approve(RULE.change)
    async with database.tenant(TENANT) as connection:
        await connection.execute(
            "update recuerdo.proposals set change = jsonb_set(change, '{rule,when,0,value}', '90')"
        )
    changed = RULE.change.model_copy(update={"rule": rule(limit=90)})
    for given in (one, ApprovedProposal(proposal=one.proposal, change=changed)):
        with pytest.raises(InputError, match="does not enter"):
            await compiled(office, draft, given)


async def test_or_21_an_approval_is_of_one_plan(office: PlanOffice, draft: Plan, approve: Approve) -> None:
    one = await approve(RULE.change)
    with pytest.raises(InputError, match="does not enter"):
        await compiled(office, draft.model_copy(update={"name": "other"}), one)
