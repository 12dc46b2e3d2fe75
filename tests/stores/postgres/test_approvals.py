"""Requests for approval, the ledger of tool calls and evidence, as they stand in the tables (OR-22, IM-49, A-30)."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from recuerdo.state.errors import BusyError, InputError, ScopeError
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.approvals import Approvals, NewApproval, kept_reason
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.evidence import (
    EVIDENCE_KEPT,
    EvidenceFilter,
    EvidenceLog,
    NewEvidence,
    Run,
    delete_expired_evidence,
)
from recuerdo.stores.postgres.governance_audit import GovernanceAudit
from recuerdo.stores.postgres.marks import reason_mark
from recuerdo.stores.postgres.retention import forget_user
from recuerdo.stores.postgres.roles import Roles
from recuerdo.stores.postgres.settling import settle_call
from recuerdo.stores.postgres.tool_calls import NewToolCall, Settled, ToolCall, ToolCalls
from recuerdo.stores.postgres.turns import NewTurn, Reservation, TurnLog

from .conftest import AT_ONCE, LEASE, NOW

NewTurnBuilder = Callable[..., NewTurn]
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
async def approvals(database: Database, keys: KeyFolder) -> Approvals:
    roles = Roles(database, "t1", keys)
    await roles.appoint_first_owner("olga", NOW)
    await roles.grant("sara", "supervisor", actor="olga", at=NOW)
    await roles.grant("ana", "agent", actor="olga", at=NOW)
    return Approvals(database, "t1", keys)


@pytest.fixture
async def run(log: TurnLog, new_turn: NewTurnBuilder) -> Run:
    """A turn of user-123 that runs."""
    turn = new_turn()
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    return Run(turn.id, turn.conversation, turn.assistant, turn.user, "trading", 3)


def asked(run: Run, rule: str | None = None, **arguments: Any) -> NewApproval:
    return NewApproval(uuid4(), run, "apply_discount", arguments or {"discount_pct": 10}, NOW, rule)


def reservation(run: Run, resumes: UUID | None = None) -> Reservation:
    return Reservation(uuid4(), run.conversation, run.assistant, run.user, NOW, "es", resumes)


# Requests


async def test_or_22_a_request_lets_its_turn_wait_and_frees_the_lease(
    approvals: Approvals, run: Run, log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    new = asked(run)
    await approvals.request([new])
    await approvals.request([new])
    (pending,) = await approvals.list("pending")
    assert (pending.id, pending.user, pending.revision, pending.run) == (new.id, run.user, 3, run)
    assert await log.is_waiting(run.turn)
    with pytest.raises(BusyError, match=str(new.id)):
        await log.begin(new_turn(), lease=LEASE, wait=AT_ONCE)
    with pytest.raises(BusyError):
        await log.extend_lease(run.turn, LEASE)
    with pytest.raises(InputError):
        await log.reserve(reservation(run, uuid4()), lease=LEASE, wait=AT_ONCE)
    again = reservation(run, run.turn)
    await log.reserve(again, lease=LEASE, wait=AT_ONCE)
    with pytest.raises(ScopeError):
        await log.take_up(run.turn, "user-999", LEASE, again.ticket)
    with pytest.raises(BusyError):
        await log.take_up(run.turn, run.user, LEASE, None)
    await log.take_up(run.turn, run.user, LEASE, again.ticket)
    await log.extend_lease(run.turn, LEASE)
    assert not await log.is_waiting(run.turn)


@pytest.mark.parametrize("actor", ["user-123", "ana", "nobody", ""])
async def test_im_49_these_may_not_approve(approvals: Approvals, run: Run, actor: str) -> None:
    new = asked(run)
    await approvals.request([new])
    with pytest.raises(ScopeError):
        await approvals.decide(new.id, "approve", actor=actor, at=NOW)
    assert (await approvals.get(new.id)).status == "pending"


async def test_im_49_a_supervisor_cannot_approve_his_own_request(
    approvals: Approvals, log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    turn = new_turn(user="sara")
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    new = asked(Run(turn.id, turn.conversation, turn.assistant, "sara", "trading"))
    await approvals.request([new])
    with pytest.raises(ScopeError, match="another person"):
        await approvals.decide(new.id, "approve", actor="sara", at=NOW)
    assert (await approvals.decide(new.id, "reject", actor="sara", at=NOW)).status == "withdrawn"


async def test_or_22_a_decision_is_taken_once_audited_and_evidence(
    approvals: Approvals, run: Run, database: Database, keys: KeyFolder
) -> None:
    new = asked(run, discount_pct=10, note="clave: hunter2secret")
    await approvals.request([new])
    ended = await asyncio.gather(
        approvals.decide(new.id, "approve", actor="olga", at=NOW),
        approvals.decide(new.id, "reject", actor="sara", at=NOW),
        return_exceptions=True,
    )
    assert len([e for e in ended if isinstance(e, InputError)]) == 1
    (decided,) = [e for e in ended if not isinstance(e, BaseException)]
    assert await approvals.get(new.id) == decided and decided.arguments["discount_pct"] == 10
    audit = GovernanceAudit(database, "t1", keys)
    of_request = await audit.entries(subject=str(new.id))
    assert [e.actor for e in of_request] == [decided.decided_by, run.user]
    assert "hunter2" not in str(of_request) and (await audit.verify()).fault is None
    found = await EvidenceLog(database, "t1").list(NOW, EvidenceFilter(("approval_decided",)))
    assert [(one.data["status"], one.data["approval"]) for one in found] == [(decided.status, str(new.id))]
    assert found[0].data["arguments"]["discount_pct"] == 10 and "hunter2" not in str(found)


async def test_or_33_what_a_rule_lets_pass_waits_for_nobody(
    approvals: Approvals, run: Run, log: TurnLog
) -> None:
    new = asked(run, "small-discounts")
    await approvals.request([new])
    found = await approvals.get(new.id)
    assert (found.status, found.rule, found.passes) == ("auto_approved", "small-discounts", True)
    assert not await log.is_waiting(run.turn)
    with pytest.raises(InputError):
        await approvals.decide(new.id, "reject", actor="sara", at=NOW)


@pytest.mark.parametrize("decision", ["yes", "", "approved"])
async def test_or_22_an_unknown_decision_or_request_is_an_error(
    approvals: Approvals, run: Run, decision: Any
) -> None:
    new = asked(run)
    await approvals.request([new])
    with pytest.raises(InputError):
        await approvals.decide(new.id, decision, actor="sara", at=NOW)
    with pytest.raises(InputError):
        await approvals.decide(uuid4(), "approve", actor="sara", at=NOW)
    assert (await approvals.get(new.id)).status == "pending"


async def test_im_43_forgetting_the_user_takes_requests_calls_and_evidence_along(
    approvals: Approvals, run: Run, database: Database, log: TurnLog
) -> None:
    calls = ToolCalls(database, "t1")
    await calls.claim(NewToolCall(uuid4(), run, "place_order", "foreign", NOW))
    await approvals.request([asked(run)])
    await forget_user(database, "t1", str(run.user), NOW)
    assert await approvals.list() == [] and await calls.of_turn(run.turn) == []
    assert await EvidenceLog(database, "t1").list(NOW) == []


async def test_or_6_requests_of_another_tenant_are_not_there(
    approvals: Approvals, run: Run, database: Database, keys: KeyFolder
) -> None:
    new = asked(run)
    await approvals.request([new])
    other = Approvals(database, "t2", keys)
    assert await other.list() == []
    with pytest.raises(ScopeError):
        await other.decide(new.id, "approve", actor="olga", at=NOW)


async def test_or_22_what_clearing_takes_back_is_audited_and_evidence(
    approvals: Approvals, run: Run, database: Database, keys: KeyFolder, log: TurnLog
) -> None:
    new, decided = asked(run), asked(run)
    await approvals.request([new, decided])
    await approvals.decide(decided.id, "approve", actor="sara", at=NOW)
    await log.clear(run.conversation, run.user, approvals, LATER)
    found = await approvals.get(new.id)
    assert (found.status, found.decided_by, found.decided_at) == ("withdrawn", run.user, LATER)
    assert (await approvals.get(decided.id)).status == "approved"
    audit = GovernanceAudit(database, "t1", keys)
    entry, asked_for = await audit.entries(subject=str(new.id))
    assert (asked_for.action, asked_for.after) == ("approval.requested", "pending")
    assert (entry.actor, entry.action, entry.before, entry.at) == (
        run.user,
        "approval.withdrawn",
        "pending",
        LATER,
    )
    pieces = await EvidenceLog(database, "t1").list(LATER, EvidenceFilter(kinds=("approval_decided",)))
    (piece,) = [one for one in pieces if one.data["approval"] == str(new.id)]
    assert (piece.data["status"], piece.data["actor"]) == ("withdrawn", run.user)
    assert (await audit.verify()).fault is None


async def test_or_22_clearing_that_fails_takes_nothing_back(
    approvals: Approvals, run: Run, log: TurnLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = asked(run)
    await approvals.request([new])

    async def fails(*_: Any) -> None:
        raise RuntimeError("the chain cannot be written")

    monkeypatch.setattr(GovernanceAudit, "append", fails)
    with pytest.raises(RuntimeError):
        await log.clear(run.conversation, run.user, approvals, NOW)
    assert (await approvals.get(new.id)).status == "pending"
    assert await log.messages(run.conversation, run.user)


async def test_im_43_what_waited_of_a_forgotten_user_stands_in_the_audit_as_taken_back(
    approvals: Approvals, run: Run, database: Database, keys: KeyFolder
) -> None:
    new = asked(run)
    await approvals.request([new])
    await forget_user(database, "t1", str(run.user), NOW, approvals=approvals)
    assert not await approvals.of([new.id])
    audit = GovernanceAudit(database, "t1", keys)
    entry, asked_for = await audit.entries(subject=str(new.id))
    assert (asked_for.action, asked_for.after) == ("approval.requested", "pending")
    assert entry.action == "approval.withdrawn" and (await audit.verify()).fault is None


# Settling


@pytest.fixture
async def lost(run: Run, log: TurnLog, database: Database) -> UUID:
    """A call of a turn that broke off: nobody knows whether it took effect."""
    new = NewToolCall(uuid4(), run, "place_order", "foreign", NOW)
    await ToolCalls(database, "t1").claim(new)
    await log.fail(run.turn, NOW, "gone")
    return new.id


@pytest.mark.parametrize("outcome", ["happened", "did_not_happen"])
async def test_or_22_an_unknown_outcome_is_settled_once_audited_and_evidence(
    approvals: Approvals, lost: UUID, run: Run, database: Database, keys: KeyFolder, outcome: Settled
) -> None:
    calls, audit = ToolCalls(database, "t1"), GovernanceAudit(database, "t1", keys)
    both = [
        settle_call(database, "t1", keys, lost, outcome, actor=actor, at=NOW, reason="clave: hunter2secret")
        for actor in ("sara", "olga")
    ]
    ended = await asyncio.gather(*both, return_exceptions=True)
    assert len([one for one in ended if isinstance(one, InputError)]) == 1
    (settled,) = [one for one in ended if isinstance(one, ToolCall)]
    assert (settled.settled, settled.settled_at, settled.status) == (outcome, NOW, "unknown")
    assert not await calls.unknown()
    (entry,) = await audit.entries(subject=str(lost))
    assert (entry.action, entry.actor) == ("call.settled", settled.settled_by)
    assert (entry.before, entry.after) == ("unknown", outcome) and "reason_sha256" in entry.details
    (piece,) = await EvidenceLog(database, "t1").list(NOW, EvidenceFilter(kinds=("outcome_settled",)))
    assert (piece.data["call"], piece.data["settled"], piece.turn) == (str(lost), outcome, run.turn)
    assert "hunter2" not in str(piece.data) and (await audit.verify()).fault is None
    # It runs nothing, and lets nothing run again.
    before = await calls.claim(NewToolCall(lost, run, "place_order", "foreign", NOW))
    assert before == settled


async def test_or_22_what_is_no_unknown_outcome_is_not_settled(
    approvals: Approvals, lost: UUID, run: Run, database: Database, keys: KeyFolder
) -> None:
    done = NewToolCall(uuid4(), run, "place_order", "foreign", NOW)
    calls = ToolCalls(database, "t1")
    await calls.claim(done)
    await calls.complete(done.id, "done", "ordered", NOW)
    for call_id in (done.id, uuid4()):
        with pytest.raises(InputError, match=str(call_id)):
            await settle_call(database, "t1", keys, call_id, "happened", actor="sara", at=NOW)
    with pytest.raises(InputError, match="perhaps"):
        await settle_call(database, "t1", keys, lost, "perhaps", actor="sara", at=NOW)  # type: ignore[arg-type]
    for actor in ("ana", "user-123", "nobody"):
        with pytest.raises(ScopeError):
            await settle_call(database, "t1", keys, lost, "happened", actor=actor, at=NOW)
    assert [one.id for one in await calls.unknown()] == [lost]


async def test_or_22_a_call_of_a_process_that_went_away_is_found_at_the_first_look(
    approvals: Approvals, run: Run, database: Database, keys: KeyFolder
) -> None:
    calls = ToolCalls(database, "t1")
    foreign, own = (NewToolCall(uuid4(), run, "place_order", effect, NOW) for effect in ("foreign", "own"))
    for new in (foreign, own):
        await calls.claim(new)
    assert not await calls.unknown()
    with pytest.raises(InputError, match=str(foreign.id)):
        await settle_call(database, "t1", keys, foreign.id, "happened", actor="sara", at=NOW)
    await _lease_ends(database)
    (lost,) = await calls.unknown()
    assert (lost.id, lost.status) == (foreign.id, "unknown")
    settled = await settle_call(database, "t1", keys, foreign.id, "happened", actor="sara", at=NOW)
    assert (settled.status, settled.settled) == ("unknown", "happened") and not await calls.unknown()
    kinds = [one.kind for one in await EvidenceLog(database, "t1").list(NOW)]
    assert sorted(kinds) == ["outcome_settled", "outcome_unknown", "tool_used"]
    assert (await GovernanceAudit(database, "t1", keys).verify()).fault is None


async def test_im_36_clearing_keeps_what_a_process_that_went_away_left_unknown(
    approvals: Approvals, run: Run, database: Database, log: TurnLog
) -> None:
    calls = ToolCalls(database, "t1")
    new = [NewToolCall(uuid4(), run, "place_order", effect, NOW) for effect in ("foreign", "own", "none")]
    for one in new:
        await calls.claim(one)
    await _lease_ends(database)
    await log.clear(run.conversation, run.user, approvals, NOW)
    assert [(one.id, one.status) for one in await calls.of_turn(run.turn)] == [(new[0].id, "unknown")]


async def test_im_43_forgetting_keeps_what_a_process_that_went_away_left_unknown(
    approvals: Approvals, run: Run, database: Database
) -> None:
    calls = ToolCalls(database, "t1")
    new = NewToolCall(uuid4(), run, "place_order", "foreign", NOW)
    await calls.claim(new)
    await _lease_ends(database)
    await forget_user(database, "t1", str(run.user), NOW, approvals=approvals)
    (kept,) = await calls.unknown()
    assert (kept.id, kept.tool, kept.user, kept.conversation) == (new.id, "place_order", None, "-")
    assert kept.turn != run.turn and await EvidenceLog(database, "t1").list(NOW) == []


async def test_or_22_only_what_is_unknown_and_not_settled_outlives_its_turn(
    approvals: Approvals, lost: UUID, run: Run, database: Database, keys: KeyFolder, log: TurnLog
) -> None:
    calls = ToolCalls(database, "t1")
    done = NewToolCall(uuid4(), run, "place_order", "foreign", NOW)
    await calls.claim(done)
    await calls.complete(done.id, "done", "ordered", NOW)
    await settle_call(database, "t1", keys, lost, "happened", actor="sara", at=NOW)
    await log.clear(run.conversation, run.user, approvals, NOW)
    assert await calls.of_turn(run.turn) == []
    assert (await GovernanceAudit(database, "t1", keys).verify()).fault is None


async def _lease_ends(database: Database) -> None:
    async with database.operator() as connection:
        await connection.execute("update recuerdo.conversations set lease_until = clock_timestamp()")


# The ledger


@pytest.mark.parametrize(
    ("effect", "outcome", "again"),
    [
        ("foreign", None, "started"),
        ("foreign", "done", "done"),
        ("foreign", "failed", "failed"),
        ("foreign", "unknown", "unknown"),
        ("own", "done", "done"),
        ("own", "failed", None),
        ("own", None, None),
        ("none", "done", None),
        ("none", None, None),
    ],
)
async def test_or_22_what_ran_or_may_have_run_is_not_claimed_twice(
    run: Run, database: Database, effect: Any, outcome: Any, again: str | None
) -> None:
    calls, new = ToolCalls(database, "t1"), NewToolCall(uuid4(), run, "tool", effect, NOW)
    assert await calls.claim(new) is None
    if outcome:
        await calls.complete(new.id, outcome, "the result", NOW)
    before = await calls.claim(new)
    assert (before and before.status) == again
    if before and outcome:
        assert before.result == "the result"


async def test_or_22_two_who_claim_one_call_at_once(run: Run, database: Database) -> None:
    calls, new = ToolCalls(database, "t1"), NewToolCall(uuid4(), run, "tool", "foreign", NOW)
    claimed = await asyncio.gather(*(calls.claim(new) for _ in range(4)))
    assert claimed.count(None) == 1


async def test_or_22_an_effect_and_its_note_are_one_transaction(run: Run, database: Database) -> None:
    calls, new = ToolCalls(database, "t1"), NewToolCall(uuid4(), run, "tool", "own", NOW)
    await calls.claim(new)
    ran: list[int] = []

    async def effect(connection: Connection) -> str:
        ran.append(1)
        if len(ran) == 1:
            raise RuntimeError("broke off")
        return "made"

    with pytest.raises(RuntimeError):
        await calls.once(new.id, NOW, effect)
    assert [await calls.once(new.id, NOW, effect) for _ in range(3)] == ["made"] * 3
    assert len(ran) == 2
    # What is noted later does not take it back.
    assert (await calls.complete(new.id, "failed", "late", NOW)).result == "made"


async def test_or_22_a_turn_that_breaks_off_leaves_calls_with_unknown_outcome(
    run: Run, database: Database, log: TurnLog
) -> None:
    calls = ToolCalls(database, "t1")
    for effect in ("none", "own", "foreign"):
        await calls.claim(NewToolCall(uuid4(), run, effect, effect, NOW))  # type: ignore[arg-type]
    await log.fail(run.turn, NOW, "gone")
    of_turn = await calls.of_turn(run.turn)
    assert {one.tool: one.status for one in of_turn} == {
        "none": "failed",
        "own": "failed",
        "foreign": "unknown",
    }
    assert [one.tool for one in await calls.unknown()] == ["foreign"]
    found = await EvidenceLog(database, "t1").list(NOW)
    kinds = [one.kind for one in found]
    assert (kinds.count("run_failed"), kinds.count("outcome_unknown"), kinds.count("tool_used")) == (1, 1, 3)


# Evidence


async def test_a_30_evidence_is_there_for_180_days_and_then_neither_read_nor_kept(
    run: Run, database: Database
) -> None:
    log = EvidenceLog(database, "t1")
    await log.write(NewEvidence("tool_used", NOW, run, "x", "get_quote"))
    assert timedelta(days=180) == EVIDENCE_KEPT
    last = NOW + EVIDENCE_KEPT - timedelta(seconds=1)
    assert len(await log.list(last)) == 1 and await delete_expired_evidence(database, last) == 0
    over = NOW + EVIDENCE_KEPT
    assert await log.list(over) == []
    assert await delete_expired_evidence(database, over, tenant="t2") == 0
    assert await delete_expired_evidence(database, over, spared=["t1"]) == 0
    assert await delete_expired_evidence(database, over) == 1
    assert await log.list(NOW) == []


async def test_a_30_what_requests_and_calls_held_is_kept_as_long_as_evidence(
    run: Run, database: Database, approvals: Approvals
) -> None:
    decided, waits = uuid4(), uuid4()
    for key in (decided, waits):
        await approvals.request([NewApproval(key, run, "apply_discount", {"guest": "Eva Ruiz"}, NOW)])
    await approvals.decide(decided, "approve", actor="sara", at=NOW, reason="Eva viene a menudo")
    calls = ToolCalls(database, "t1")
    await calls.claim(NewToolCall(decided, run, "apply_discount", "foreign", NOW))
    await calls.complete(decided, "done", "Eva Ruiz", NOW)
    await delete_expired_evidence(database, NOW + EVIDENCE_KEPT - timedelta(seconds=1))
    assert (await approvals.get(decided)).arguments == {"guest": "Eva Ruiz"}
    await delete_expired_evidence(database, NOW + EVIDENCE_KEPT, spared=["t1"])
    assert (await calls.of_turn(run.turn))[0].result == "Eva Ruiz"
    await delete_expired_evidence(database, NOW + EVIDENCE_KEPT)
    kept = await approvals.get(decided)
    assert (kept.arguments, kept.reason, kept.status, kept.decided_by) == ({}, None, "approved", "sara")
    assert (await calls.of_turn(run.turn))[0].result is None
    assert (await approvals.get(waits)).arguments == {"guest": "Eva Ruiz"}


async def test_or_22_a_card_is_filtered_as_a_number_too(run: Run, database: Database) -> None:
    log = EvidenceLog(database, "t1")
    given: dict[str, Any] = {
        "card": 4111111111111111,
        "also": [5500005555555559.0],
        "pct": 10,
        "amount": 2500000,
    }
    await log.write(
        NewEvidence("approval_requested", NOW, run, "n", data={"arguments": {**given, "ok": True}})
    )
    (found,) = await log.list(NOW)
    assert found.data["arguments"] == {
        "card": "[***]",
        "also": ["[***]"],
        "pct": 10,
        "amount": 2500000,
        "ok": True,
    }


async def test_c_16_the_audit_holds_a_hash_of_a_reason_and_no_name(
    run: Run, database: Database, approvals: Approvals, keys: KeyFolder
) -> None:
    key = uuid4()
    await approvals.request([NewApproval(key, run, "apply_discount", {"discount_pct": 25}, NOW)])
    decided = await approvals.decide(key, "approve", actor="sara", at=NOW, reason="Eva Ruiz lo pidió")
    await approvals.reverse(key, actor="olga", at=NOW, reason="no era Eva Ruiz")
    entries = [e for e in await GovernanceAudit(database, "t1", keys).entries() if e.subject == str(key)]
    assert len(entries) == 3 and "Eva" not in str(entries)
    marks = {mark for one in entries if (mark := json.loads(one.details).get("reason_sha256"))}
    assert marks == {
        reason_mark(str(key), reason)["reason_sha256"] for reason in (decided.reason, "no era Eva Ruiz")
    }


async def test_im_43_objections_stay_without_the_user_who_is_forgotten(
    run: Run, database: Database, approvals: Approvals
) -> None:
    """What was rejected still speaks against a rule; a text stays only where others have given it too."""
    asked = {"discount_pct": 25, "kind": "loyalty", "guest": "Eva Ruiz", "member": True}
    mine, others = uuid4(), uuid4()
    other = Run(uuid4(), "another", run.assistant, "somebody-else", run.plan, run.revision)
    await approvals.request([NewApproval(mine, run, "apply_discount", asked, NOW)])
    await approvals.request([NewApproval(others, other, "apply_discount", {**asked, "guest": "Leo"}, NOW)])
    await approvals.decide(mine, "reject", actor="sara", at=NOW, reason="Eva pide siempre")
    await approvals.decide(others, "approve", actor="sara", at=NOW)
    await TurnLog(database, "t1").fail(run.turn, NOW, "gone")
    assert run.user is not None
    await forget_user(database, "t1", run.user, NOW)
    found = [one for one in await EvidenceLog(database, "t1").list(NOW) if one.user is None]
    (kept,) = found
    assert (kept.kind, kept.tool, kept.plan) == ("approval_decided", "apply_discount", run.plan)
    assert kept.data == {
        "status": "rejected",
        "arguments": {"discount_pct": 25, "kind": "loyalty", "member": True, "guest": "[***]"},
    }
    assert kept.turn != run.turn and run.conversation not in str(kept)


async def test_or_22_one_piece_for_each_subject_filtered_and_newest_first(
    run: Run, database: Database
) -> None:
    log = EvidenceLog(database, "t1")
    said = {"message": "mi tarjeta es 4111 1111 1111 1111"}
    names = {"call": "0a7b18b2-2b9d-5e03-b64b-91884c89be47"}
    await log.write(NewEvidence("ambiguity", NOW, run, "a", names=names, data=said))
    await log.write(NewEvidence("ambiguity", NOW, run, "a", data={"message": "otra vez"}))
    await log.write(NewEvidence("tool_used", NOW + timedelta(seconds=1), run, "b", "get_quote"))
    found = await log.list(NOW)
    assert [one.kind for one in found] == ["tool_used", "ambiguity"]
    assert "4111" not in found[1].data["message"] and found[1].data["call"] == names["call"]
    assert [one.kind for one in await log.list(NOW, EvidenceFilter(tool="get_quote"))] == ["tool_used"]
    assert len(await log.list(NOW, EvidenceFilter(until=NOW + timedelta(seconds=1)))) == 1
    assert len(await log.list(NOW, EvidenceFilter(turn=run.turn, since=NOW), limit=1, offset=1)) == 1


@pytest.mark.parametrize("number", ["4111 1111 1111 1111", "ES91 2100 0418 4502 0005 1332"])
async def test_c_16_a_reason_is_filtered_before_it_is_cut(
    approvals: Approvals, run: Run, database: Database, number: str
) -> None:
    new = asked(run)
    await approvals.request([new])
    for spare in range(1, len(number), 4):
        kept = await kept_reason("x" * (999 - spare) + " " + number)
        assert kept is not None and len(kept) <= 1000 and number[:spare].strip()[:6] not in kept
    decided = await approvals.decide(new.id, "approve", actor="sara", at=NOW, reason="x" * 990 + " " + number)
    assert decided.reason is not None and number[:6] not in decided.reason


async def test_im_49_a_decision_of_who_has_no_role_says_nothing_of_what_there_is(
    approvals: Approvals, run: Run
) -> None:
    new = asked(run)
    await approvals.request([new])
    said = set()
    for request in (new.id, uuid4()):
        with pytest.raises(ScopeError) as error:
            await approvals.seen(request, actor="nobody")
        said.add(str(error.value))
    assert len(said) == 1
    assert (await approvals.seen(new.id, actor=str(run.user))).id == new.id
    with pytest.raises(InputError):
        await approvals.seen(uuid4(), actor="sara")
