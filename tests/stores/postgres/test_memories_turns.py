"""What a turn changes of memories, in its transaction, and what its replay does not do twice (RF-10, C-12)."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from recuerdo.state.limits import MemoryLimits
from recuerdo.stores.postgres.audit import read_audit
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import Memories, MemoryChanges, NewMemory
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences
from recuerdo.stores.postgres.turns import NewTurn, TurnLog, TurnOutcome

from .conftest import AT_ONCE, LEASE, NOW, PlayTurn

USER, LATER = "user-123", NOW + timedelta(days=3)


@pytest.fixture
def memories(database: Database) -> Memories:
    return Memories(database, "t1")


def fact(text: str, confidence: float | None = 1.0, **fields: object) -> NewMemory:
    return NewMemory("fact", text, "es", confidence, **fields)  # type: ignore[arg-type]


async def remembered(memories: Memories, text: str, confidence: float | None = 0.3) -> UUID:
    return (await memories.add("A1", USER, fact(text, confidence), NOW)).id


async def test_or_10_a_25_a_turn_confirms_supersedes_and_forgets(
    database: Database, memories: Memories, play: PlayTurn
) -> None:
    again, old, wrong = [await remembered(memories, text) for text in ("F", "vive en Madrid", "usa stop")]
    turn = await play(
        "me mudé a Lima; olvida lo del stop",
        "Hecho",
        at=LATER,
        memories=[fact("vive en Lima", supersedes=[old], message_id="m9")],
        memory_changes=MemoryChanges(confirmed=[again], forgotten=[wrong], message_id="m9"),
    )
    in_force = {m.text: m for m in await memories.all("A1", USER, LATER)}
    assert set(in_force) == {"F", "vive en Lima"}
    assert in_force["F"].expires_at == LATER + timedelta(days=90)
    history = await memories.history(in_force["vive en Lima"].id, "A1", USER, LATER)
    assert [(r.text, r.reason) for r in history] == [("vive en Madrid", "superseded")]
    confirmed = (await read_audit(database, "t1", "user_memory", str(again)))[-1]
    assert (confirmed.action, confirmed.turn, confirmed.message_id) == ("confirmed", turn, "m9")
    assert (await read_audit(database, "t1", "user_memory", str(wrong)))[-1].action == "forgotten"


async def test_a_replay_of_the_turn_writes_nothing_twice(
    database: Database, memories: Memories, log: TurnLog, new_turn: Callable[..., NewTurn]
) -> None:
    again, old, wrong = [await remembered(memories, text) for text in ("F", "vive en Madrid", "usa stop")]
    turn = new_turn()
    changes = MemoryChanges(confirmed=[again], forgotten=[wrong])
    states = []
    for at in (LATER, LATER + timedelta(hours=1)):
        await log.begin(turn, lease=LEASE, wait=AT_ONCE)
        new = [fact("vive en Lima", supersedes=[old]), fact("toca el violín")]
        await log.finish(TurnOutcome(turn.id, at, (), memories=new, memory_changes=changes))
        async with database.tenant("t1") as connection:
            cursor = await connection.execute("select count(*) as n from recuerdo.memory_audit")
            states.append((await memories.all("A1", USER, at), await cursor.fetchone()))
    assert states[0] == states[1]
    (lima,) = [m for m in states[1][0] if m.text == "vive en Lima"]
    assert len(await memories.history(lima.id, "A1", USER, LATER)) == 1


async def test_what_the_user_changed_since_is_not_undone_by_a_replay(
    memories: Memories, log: TurnLog, new_turn: Callable[..., NewTurn]
) -> None:
    turn = new_turn()
    outcome = TurnOutcome(turn.id, NOW, (), memories=[fact(text) for text in ("uno", "dos", "tres")])
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    ids = {waiting.text: waiting.id for waiting in await log.finish(outcome)}
    await memories.update(ids["uno"], "A1", USER, "corregido", NOW)
    await memories.forget(ids["dos"], "A1", USER, NOW)
    await memories.supersede(ids["tres"], "A1", USER, fact("cuatro"), NOW)
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    assert await log.finish(outcome) == []
    assert {m.text for m in await memories.all("A1", USER, NOW)} == {"corregido", "cuatro"}


async def test_fault_1_fault_2_many_turns_with_the_same_words_leave_one_memory(
    memories: Memories, play: PlayTurn
) -> None:
    for number in range(20):
        text = "Le gusta el RSI" if number % 2 else "le gusta el rsi."
        await play("me gusta el RSI", "ok", memories=[fact(text, once=True)], conversation=f"c{number % 3}")
    assert await memories.count("A1", USER, NOW) == 1


async def test_foreign_and_unknown_ids_change_nothing(memories: Memories, play: PlayTurn) -> None:
    foreign = (await memories.add("A1", "u2", fact("de otro"), NOW)).id
    await play(
        "x",
        "y",
        memories=[fact("mío", supersedes=[foreign, uuid4()])],
        memory_changes=MemoryChanges(confirmed=[foreign, uuid4()], forgotten=[foreign, uuid4()]),
    )
    assert [m.text for m in await memories.all("A1", "u2", NOW)] == ["de otro"]
    assert [m.text for m in await memories.all("A1", USER, NOW)] == ["mío"]


async def test_im_30_a_turn_is_not_lost_for_a_long_text(memories: Memories, play: PlayTurn) -> None:
    await play("x", "y", memories=[fact("a" * 9000)])
    (memory,) = await memories.all("A1", USER, NOW)
    assert len(memory.text) == 4000


async def test_fault_2_alike_gives_what_a_fact_may_repeat_or_contradict(memories: Memories) -> None:
    for text, vector in (("este", [1.0, 0.0]), ("norte", [0.0, 1.0]), ("sur", [0.0, -1.0])):
        await memories.add("A1", USER, fact(text, embedding=vector, embedder="e"), NOW)
    found = await memories.alike("A1", USER, [0.6, 0.8], "e", NOW, 2)
    assert [(one.memory.text, round(one.similarity, 3)) for one in found] == [("norte", 0.8), ("este", 0.6)]


async def test_or_9_the_setting_shortens_what_is_inferred(database: Database, play: PlayTurn) -> None:
    database.limits = MemoryLimits(low_confidence_days=3)
    memories, preferences = Memories(database, "t1"), Preferences(database, "t1")
    change = PreferenceChange("k", "v", "q", None, "es", confidence=0.3)
    await play("x", "y", memories=[fact("de un turno", None)], preferences=[change])
    await memories.add("A1", USER, fact("fuera", None), NOW)
    await preferences.set(USER, PreferenceChange("l", "v", "q", None, "es", confidence=0.3), NOW)
    end = NOW + timedelta(days=3)
    for now, found in ((end - timedelta(seconds=1), 2), (end, 0)):
        assert len(await memories.all("A1", USER, now)) == found
        assert len(await preferences.all(USER, now)) == found


@pytest.mark.parametrize("days", [0, 8])
def test_or_9_days_may_only_be_lowered(days: int) -> None:
    with pytest.raises(ValueError, match="LOW_CONFIDENCE_MAX_DAYS must be from 1 to 7"):
        MemoryLimits(low_confidence_days=days)


async def test_a_24_the_threshold_is_a_setting(database: Database) -> None:
    database.limits = MemoryLimits(low_confidence_below=0.8)
    memories = Memories(database, "t1")
    for confidence in (0.79, 0.8):
        await memories.add("A1", USER, fact(str(confidence), confidence), NOW)
    assert {m.text: m.status for m in await memories.all("A1", USER, NOW)} == {
        "0.79": "low",
        "0.8": "confirmed",
    }
