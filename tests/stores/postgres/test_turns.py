import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from recuerdo.state.errors import BusyError, ScopeError
from recuerdo.state.usage import Usage
from recuerdo.stores.postgres.approvals import Approvals
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import NewMemory
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences
from recuerdo.stores.postgres.symbols import SymbolInterest
from recuerdo.stores.postgres.turns import (
    ABANDONED,
    NewMessage,
    NewTurn,
    Reservation,
    TurnLog,
    TurnOutcome,
    fail_abandoned,
)

from .conftest import AT_ONCE, LEASE, NOW, PlayTurn

NewTurnBuilder = Callable[..., NewTurn]
EXPIRED = timedelta(seconds=-1)


async def rows(database: Database, query: str, *values: Any) -> list[dict[str, Any]]:
    async with database.connection() as connection:
        return await (await connection.execute(query, values)).fetchall()  # type: ignore[call-overload, no-any-return]


async def count(database: Database, table: str) -> int:
    return int((await rows(database, f"select count(*) as n from recuerdo.{table}"))[0]["n"])


async def test_rf_2_history_in_order_with_role_text_and_time(log: TurnLog, play: PlayTurn) -> None:
    await play("M1", "R1", at=NOW)
    await play("M2", "R2", at=NOW + timedelta(minutes=1))
    messages = await log.messages("conv-456", "user-123")
    assert [(m.role, m.content, m.at) for m in messages] == [
        ("user", "M1", NOW),
        ("assistant", "R1", NOW),
        ("user", "M2", NOW + timedelta(minutes=1)),
        ("assistant", "R2", NOW + timedelta(minutes=1)),
    ]
    info = await log.conversation("conv-456", "user-123")
    assert info is not None
    assert (info.messages_count, info.started_at) == (4, NOW)


async def test_messages_limit_keeps_the_newest(log: TurnLog, play: PlayTurn) -> None:
    await play("M1", "R1")
    await play("M2", "R2")
    assert [m.content for m in await log.messages("conv-456", "user-123", limit=3)] == ["R1", "M2", "R2"]


async def test_a_41_tool_calls_and_results_do_not_count(log: TurnLog, play: PlayTurn) -> None:
    tools = [
        NewMessage("c", "assistant", "", NOW, tool_calls=[{"name": "quote", "args": {}, "id": "1"}]),
        NewMessage("r", "tool", "185.50", NOW, tool_name="quote", tool_call_id="1"),
        NewMessage("a", "assistant", "R1", NOW),
    ]
    await play("M1", "", messages=tools)
    info = await log.conversation("conv-456", "user-123")
    assert info is not None
    assert info.messages_count == 2
    stored = await log.messages("conv-456", "user-123")
    assert stored[1].tool_calls == [{"name": "quote", "args": {}, "id": "1"}]
    assert (stored[2].tool_name, stored[2].tool_call_id) == ("quote", "1")


async def test_rf_21_usage_of_a_conversation_is_summed(log: TurnLog, play: PlayTurn) -> None:
    await play("M1", "R1", usage=Usage(1200, 300, 1500, 200))
    await play("M2", "R2", usage=Usage(1500, 250, 1750))
    assert await log.usage("conv-456", "user-123") == Usage(2700, 550, 3250, 200)
    assert await log.usage("conv-456", "other") == Usage()


async def test_rf_52_failed_turn_keeps_the_message_marked(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    turn = new_turn(text="M1")
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    await log.fail(turn.id, NOW, "ModelError", [NewMessage("r", "assistant", "half a rep", NOW)])
    messages = await log.messages("conv-456", "user-123")
    assert [(m.role, m.content, m.status) for m in messages] == [
        ("user", "M1", "failed"),
        ("assistant", "half a rep", "partial"),
    ]
    assert await log.begin(new_turn(), lease=LEASE, wait=AT_ONCE) == 2


async def test_partial_reply_comes_after_what_was_written_before(
    log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    turn = new_turn(text="M1")
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    await log.add_messages(turn.id, [NewMessage("t", "tool", "result", NOW)], position=1)
    await log.fail(turn.id, NOW, "ModelError", [NewMessage("r", "assistant", "half", NOW)])
    assert [m.content for m in await log.messages("conv-456", "user-123")] == ["M1", "result", "half"]
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    assert [m.content for m in await log.messages("conv-456", "user-123")] == ["M1"]


async def test_im_38_cancelled_turn_keeps_the_partial_reply(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    turn = new_turn(text="M1")
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    await log.cancel(turn.id, NOW, [NewMessage("r", "assistant", "ten tokens", NOW)], Usage(10, 10, 20))
    assert [m.status for m in await log.messages("conv-456", "user-123")] == ["ok", "partial"]
    assert (await log.usage("conv-456", "user-123")).total == 20


async def test_fail_of_a_finished_turn_changes_nothing(log: TurnLog, play: PlayTurn) -> None:
    turn = await play("M1", "R1")
    await log.fail(turn, NOW, "late")
    assert [m.status for m in await log.messages("conv-456", "user-123")] == ["ok", "ok"]


async def test_second_turn_is_refused_while_the_first_runs(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    await log.begin(new_turn(), lease=LEASE, wait=AT_ONCE)
    with pytest.raises(BusyError):
        await log.begin(new_turn(), lease=LEASE, wait=timedelta(milliseconds=120))


async def test_second_turn_waits_for_the_first(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    first, second = new_turn(), new_turn()
    await log.begin(first, lease=LEASE, wait=AT_ONCE)
    waiting = asyncio.create_task(log.begin(second, lease=LEASE, wait=timedelta(seconds=30)))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await log.finish(TurnOutcome(first.id, NOW, []))
    assert await waiting == 2


async def test_turns_of_one_thread_never_overlap(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    running = 0

    async def whole_turn() -> None:
        nonlocal running
        turn = new_turn()
        await log.begin(turn, lease=LEASE, wait=timedelta(seconds=30))
        running += 1
        assert running == 1
        await asyncio.sleep(0.01)
        running -= 1
        await log.finish(TurnOutcome(turn.id, NOW, []))

    await asyncio.gather(*(whole_turn() for _ in range(8)))
    info = await log.conversation("conv-456", "user-123")
    assert info is not None
    assert info.messages_count == 8


async def test_expired_lease_is_taken_over_and_its_turn_failed(
    database: Database, log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    lost, next_one = new_turn(text="lost"), new_turn()
    await log.begin(lost, lease=EXPIRED, wait=AT_ONCE)
    await log.begin(next_one, lease=LEASE, wait=AT_ONCE)
    (row,) = await rows(database, "select status, error from recuerdo.turns where id = %s", lost.id)
    assert row == {"status": "failed", "error": ABANDONED}
    assert (await log.messages("conv-456", "user-123"))[0].status == "failed"
    with pytest.raises(BusyError):
        await log.finish(TurnOutcome(lost.id, NOW, [NewMessage("r", "assistant", "too late", NOW)]))
    with pytest.raises(BusyError):
        await log.extend_lease(lost.id, LEASE)


async def test_extended_lease_holds(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    turn = new_turn()
    await log.begin(turn, lease=EXPIRED, wait=AT_ONCE)
    await log.extend_lease(turn.id, LEASE)
    with pytest.raises(BusyError):
        await log.begin(new_turn(), lease=LEASE, wait=AT_ONCE)


async def test_abandoned_turns_are_found_without_a_next_turn(
    database: Database, log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    await log.begin(new_turn(), lease=EXPIRED, wait=AT_ONCE)
    await log.begin(new_turn(conversation="alive"), lease=LEASE, wait=AT_ONCE)
    assert await fail_abandoned(database, NOW) == 1
    assert [m.status for m in await log.messages("conv-456", "user-123")] == ["failed"]
    assert [m.status for m in await log.messages("alive", "user-123")] == ["ok"]


async def test_replayed_turn_writes_nothing_twice(
    database: Database, log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    turn = new_turn(text="M1")
    outcome = TurnOutcome(
        turn.id,
        NOW,
        [NewMessage("r", "assistant", "R1", NOW)],
        preferences=[PreferenceChange("preferred_timeframe", "4h", "usa 4h", turn.message_id, "es")],
        symbols=["TSLA"],
        memories=[NewMemory("qa", "P: x R: y", "es", 1.0), NewMemory("qa", "P: z R: w", "es", 1.0)],
    )
    tables = ("turns", "messages", "user_preferences", "user_symbols", "user_memory", "memory_audit")
    counts = []
    for _ in range(2):
        assert await log.begin(turn, lease=LEASE, wait=AT_ONCE) == 1
        written = await log.finish(outcome)
        counts.append([await count(database, table) for table in tables])
    assert counts == [[1, 2, 1, 1, 2, 3]] * 2
    assert written == []


async def test_replay_with_fewer_messages_leaves_no_old_ones(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    turn = new_turn(text="M1")
    long = [NewMessage("t", "tool", "result", NOW), NewMessage("r", "assistant", "R1", NOW)]
    for messages in (long, [NewMessage("r2", "assistant", "R1 anew", NOW)]):
        await log.begin(turn, lease=LEASE, wait=AT_ONCE)
        await log.finish(TurnOutcome(turn.id, NOW, messages))
    assert [m.content for m in await log.messages("conv-456", "user-123")] == ["M1", "R1 anew"]


async def test_finish_again_after_a_lost_answer_is_fine(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    turn = new_turn()
    outcome = TurnOutcome(turn.id, NOW, [NewMessage("r", "assistant", "R1", NOW)], usage=Usage(1, 1, 2))
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    await log.finish(outcome)
    await log.finish(outcome)
    assert len(await log.messages("conv-456", "user-123")) == 2


async def test_finish_is_all_or_nothing(database: Database, log: TurnLog, new_turn: NewTurnBuilder) -> None:
    turn = new_turn()
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    broken = NewMemory("qa", "text", "es", confidence=7.0)
    outcome = TurnOutcome(turn.id, NOW, [NewMessage("r", "assistant", "R1", NOW)], symbols=["TSLA"])
    with pytest.raises(Exception, match="check constraint"):
        await log.finish(replace(outcome, memories=[broken]))
    assert await count(database, "user_symbols") == 0
    assert len(await log.messages("conv-456", "user-123")) == 1
    await log.finish(outcome)
    assert len(await log.messages("conv-456", "user-123")) == 2


@pytest.mark.parametrize("change", [{"user": "intruder"}, {"user": None}, {"assistant": "A2"}])
async def test_c_11_conversation_belongs_to_its_owner(
    log: TurnLog, play: PlayTurn, new_turn: NewTurnBuilder, change: dict[str, Any]
) -> None:
    await play("secret", "R1")
    with pytest.raises(ScopeError) as refused:
        await log.begin(new_turn(**change), lease=LEASE, wait=AT_ONCE)
    assert "user-123" not in str(refused.value)


async def test_c_11_reads_give_nothing_of_a_foreign_conversation(
    log: TurnLog, play: PlayTurn, approvals: Approvals
) -> None:
    turn = await play("secret", "", messages=[NewMessage("r", "tool", "result", NOW)], record={"a": 1})
    for user in ("intruder", None):
        assert await log.conversation("conv-456", user) is None
        assert await log.messages("conv-456", user) == []
        assert await log.record(turn, user) is None
        assert await log.tool_result("conv-456", "r", user) is None
        with pytest.raises(ScopeError):
            await log.clear("conv-456", user, approvals, NOW)
    assert await log.conversations("intruder") == []


async def test_c_11_tenants_do_not_see_each_other(database: Database, play: PlayTurn) -> None:
    turn = await play("secret", "R1", record={"a": 1})
    other = TurnLog(database, "t2")
    assert await other.messages("conv-456", "user-123") == []
    assert await other.record(turn, "user-123") is None
    assert await other.conversations("user-123") == []


async def test_c_11_missing_scope_is_refused(
    database: Database, log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    with pytest.raises(ScopeError):
        TurnLog(database, "")
    with pytest.raises(ScopeError):
        await log.messages("", "user-123")
    with pytest.raises(ScopeError):
        await log.conversations("")
    for change in ({"user": ""}, {"assistant": ""}, {"conversation": ""}):
        with pytest.raises(ScopeError):
            await log.begin(new_turn(**change), lease=LEASE, wait=AT_ONCE)


async def test_turn_id_of_another_conversation_is_refused(
    log: TurnLog, play: PlayTurn, new_turn: NewTurnBuilder
) -> None:
    turn = await play("M1", "R1")
    with pytest.raises(ScopeError):
        await log.begin(new_turn(id=turn, conversation="other"), lease=LEASE, wait=AT_ONCE)


async def test_la_32_anonymous_session_is_kept_without_long_term_memory(
    database: Database, log: TurnLog, play: PlayTurn
) -> None:
    await play("M1", "R1", user=None, symbols=["TSLA"], memories=[NewMemory("qa", "P R", "es", 1.0)])
    assert len(await log.messages("conv-456", None)) == 2
    assert await count(database, "user_symbols") == 0
    assert await count(database, "user_memory") == 0


async def test_im_15_c_14_preview_leaves_its_usage_and_nothing_else(
    database: Database, log: TurnLog, play: PlayTurn
) -> None:
    await play("M1", "R1", mode="preview", record={"a": 1}, symbols=["TSLA"], usage=Usage(10, 5, 15))
    (turn,) = await rows(database, "select mode, status, usage, record from recuerdo.turns")
    assert turn == {
        "mode": "preview",
        "status": "done",
        "usage": {"input": 10, "output": 5, "total": 15, "cached": 0},
        "record": None,
    }
    for table in ("conversations", "messages", "user_symbols", "user_memory", "memory_audit"):
        assert await count(database, table) == 0
    assert (await log.usage("conv-456", "user-123")).total == 15


async def test_c_14_preview_does_not_touch_a_live_conversation(log: TurnLog, play: PlayTurn) -> None:
    await play("M1", "R1")
    await play("preview", "R", mode="preview")
    await play("M2", "R2")
    assert [m.content for m in await log.messages("conv-456", "user-123")] == ["M1", "R1", "M2", "R2"]


async def test_rf_55_symbols_are_counted_by_turn(database: Database, play: PlayTurn) -> None:
    for minute in range(3):
        await play("TSLA?", "R", symbols=["TSLA"], at=NOW + timedelta(minutes=minute))
    (interest,) = await SymbolInterest(database, "t1").of("user-123", NOW + timedelta(hours=1))
    assert (interest.symbol, interest.count) == ("TSLA", 3)
    assert interest.last_mentioned == NOW + timedelta(minutes=2)


async def test_a_3_old_mentions_do_not_count(database: Database, play: PlayTurn) -> None:
    await play("TSLA?", "R", symbols=["TSLA"])
    interests = SymbolInterest(database, "t1")
    assert await interests.of("user-123", NOW + timedelta(days=29))
    assert await interests.of("user-123", NOW + timedelta(days=31)) == []


async def test_rf_54_preference_of_a_turn_with_its_audit(database: Database, play: PlayTurn) -> None:
    change = PreferenceChange("favorite_indicators", ["MACD"], "siempre muéstrame el MACD", "m-7", "es")
    turn = await play("siempre muéstrame el MACD", "R", preferences=[change])
    preferences = await Preferences(database, "t1").all("user-123", NOW)
    assert preferences["favorite_indicators"].value == ["MACD"]
    (entry,) = await rows(database, "select * from recuerdo.memory_audit")
    assert (entry["message_id"], entry["turn_id"], entry["action"]) == ("m-7", turn, "added")


async def test_im_36_clear_removes_the_log_and_keeps_memory(
    database: Database, log: TurnLog, play: PlayTurn, new_turn: NewTurnBuilder, approvals: Approvals
) -> None:
    await play("M1", "R1", memories=[NewMemory("qa", "P R", "es", 1.0)])
    await log.clear("conv-456", "user-123", approvals, NOW)
    assert await log.messages("conv-456", "user-123") == []
    assert await log.conversations("user-123") == []
    assert await count(database, "user_memory") == 1
    with pytest.raises(ScopeError):
        await log.begin(new_turn(user="intruder"), lease=LEASE, wait=AT_ONCE)


async def test_clear_waits_for_no_running_turn(
    log: TurnLog, new_turn: NewTurnBuilder, approvals: Approvals
) -> None:
    await log.begin(new_turn(), lease=LEASE, wait=AT_ONCE)
    with pytest.raises(BusyError):
        await log.clear("conv-456", "user-123", approvals, NOW)


async def test_whole_tool_result_can_be_read_in_the_same_turn(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    turn, result = new_turn(), "0123" * 50_000
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    await log.add_messages(turn.id, [NewMessage("r", "tool", result, NOW)], position=2)
    assert await log.tool_result("conv-456", "r", "user-123") == result
    assert await log.tool_result("conv-456", turn.message_id, "user-123") is None


async def test_bad_characters_are_stored_replaced(log: TurnLog, play: PlayTurn) -> None:
    turn = await play("a\0b\ud800c", "ok 🎉 שלום", record={"text\0": ["x\udfff"]})
    messages = await log.messages("conv-456", "user-123")
    assert [m.content for m in messages] == ["a�b�c", "ok 🎉 שלום"]
    assert await log.record(turn, "user-123") == {"text�": ["x�"]}


async def test_c_42_messages_keep_the_raw_text(log: TurnLog, play: PlayTurn) -> None:
    await play("mi tarjeta es 4111 1111 1111 1111", "R1")
    assert "4111" in (await log.messages("conv-456", "user-123"))[0].content


async def test_conversations_newest_first(log: TurnLog, play: PlayTurn) -> None:
    await play("M1", "R1", conversation="old", at=NOW)
    last = await play("M2", "R2", conversation="new", at=NOW + timedelta(hours=1))
    infos = await log.conversations("user-123")
    assert [info.id for info in infos] == ["new", "old"]
    assert infos[0].last_turn == last
    assert [info.id for info in await log.conversations("user-123", limit=1)] == ["new"]


async def test_unknown_turn_cannot_be_finished(log: TurnLog) -> None:
    with pytest.raises(BusyError):
        await log.finish(TurnOutcome(uuid4(), NOW, []))


def reservation(turn: NewTurn, ticket: UUID) -> Reservation:
    return Reservation(ticket, turn.conversation, turn.assistant, turn.user, turn.at, turn.language)


async def test_a_reserved_conversation_lets_only_its_own_turn_begin(
    log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    ticket = uuid4()
    await log.reserve(reservation(new_turn(), ticket), lease=LEASE, wait=AT_ONCE)

    with pytest.raises(BusyError):
        await log.begin(new_turn(), lease=LEASE, wait=AT_ONCE)
    with pytest.raises(BusyError):
        await log.reserve(reservation(new_turn(), uuid4()), lease=LEASE, wait=AT_ONCE)
    assert await log.begin(replace(new_turn(), ticket=ticket), lease=LEASE, wait=AT_ONCE) == 1


async def test_a_reservation_outlives_its_turn_until_it_is_released(
    log: TurnLog, new_turn: NewTurnBuilder
) -> None:
    ticket = uuid4()
    turn = replace(new_turn(), ticket=ticket)
    await log.reserve(reservation(turn, ticket), lease=LEASE, wait=AT_ONCE)
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    await log.finish(TurnOutcome(turn=turn.id, at=turn.at, messages=()))

    with pytest.raises(BusyError):
        await log.begin(new_turn(), lease=LEASE, wait=AT_ONCE)
    await log.release(ticket, NOW)
    assert await log.begin(new_turn(), lease=LEASE, wait=AT_ONCE) == 2


async def test_a_reservation_whose_agent_died_gives_way(log: TurnLog, new_turn: NewTurnBuilder) -> None:
    await log.reserve(reservation(new_turn(), uuid4()), lease=EXPIRED, wait=AT_ONCE)
    assert await log.begin(new_turn(), lease=LEASE, wait=AT_ONCE) == 1


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 201])
async def test_c_11_a_name_that_cannot_be_kept_is_refused(
    log: TurnLog, new_turn: NewTurnBuilder, name: str
) -> None:
    with pytest.raises(ScopeError):
        await log.begin(replace(new_turn(), user=name), lease=LEASE, wait=AT_ONCE)
    with pytest.raises(ScopeError):
        await log.messages(name, "ana")
