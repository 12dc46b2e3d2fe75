from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from recuerdo.state.errors import ScopeError
from recuerdo.state.limits import LOW_CONFIDENCE_MAX_DAYS, MEMORY_MAX_DAYS
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import (
    Memories,
    NewMemory,
    mark_all_waiting,
    mark_indexed,
    waiting_deletions,
    waiting_vectors,
)
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences
from recuerdo.stores.postgres.retention import delete_expired, forget_user

DAY_0 = datetime(2025, 12, 5, tzinfo=UTC)
LAST_SECOND = timedelta(seconds=-1)
SECRET = "mi tarjeta es 4111 1111 1111 1111 y tengo 25000 USD en la cuenta 0123456789"


@pytest.fixture
def memories(database: Database) -> Memories:
    return Memories(database, "t1")


async def add(memories: Memories, text: str = "Le gusta el RSI", user: str = "u1", **fields: object):  # type: ignore[no-untyped-def]
    memory = NewMemory("qa", text, "es", **{"confidence": 1.0, **fields})  # type: ignore[arg-type]
    return await memories.add("A1", user, memory, DAY_0)


@pytest.mark.parametrize(
    ("confidence", "days"), [(1.0, MEMORY_MAX_DAYS), (0.6, 90), (0.59, 7), (None, LOW_CONFIDENCE_MAX_DAYS)]
)
async def test_rf_32_or_8_im_53_expiry_is_checked_at_read_time(
    memories: Memories, confidence: float | None, days: int
) -> None:
    added = await add(memories, confidence=confidence, embedding=[1.0, 0.0], embedder="e")
    end = DAY_0 + timedelta(days=days)
    for at, found in ((end + LAST_SECOND, True), (end, False)):
        assert bool(await memories.get([added.id], "A1", "u1", at)) is found
        assert bool(await memories.all("A1", "u1", at)) is found
        assert bool(await memories.nearest("A1", "u1", [1.0, 0.0], "e", at, 5)) is found


def test_rf_32_or_8_the_limits_are_those_of_the_rows() -> None:
    assert (MEMORY_MAX_DAYS, LOW_CONFIDENCE_MAX_DAYS) == (90, 7)


async def test_c_6_low_confirmed_on_day_5_lasts_to_day_95(memories: Memories) -> None:
    added = await add(memories, confidence=0.3)
    assert await memories.confirm(added.id, "A1", "u1", DAY_0 + timedelta(days=5))
    end = DAY_0 + timedelta(days=95)
    assert await memories.get([added.id], "A1", "u1", end + LAST_SECOND)
    assert not await memories.get([added.id], "A1", "u1", end)


async def test_expired_memory_cannot_be_confirmed(memories: Memories) -> None:
    added = await add(memories, confidence=0.3)
    assert not await memories.confirm(added.id, "A1", "u1", DAY_0 + timedelta(days=7))


async def test_rf_32_sweep_deletes_the_row_and_notes_its_vector(
    database: Database, memories: Memories
) -> None:
    added = await add(memories)
    await Preferences(database, "t1").set("u1", PreferenceChange("k", 1, "q", None, "es"), DAY_0)
    end = DAY_0 + timedelta(days=90)
    assert await delete_expired(database, end + LAST_SECOND, actor="worker") == 0
    assert await delete_expired(database, end, actor="worker") == 2
    assert [deletion.id for deletion in await waiting_deletions(database, limit=9)] == [added.id]
    async with database.connection() as connection:
        cursor = await connection.execute(
            "select table_name, item_id, actor from recuerdo.memory_audit where action = 'expired' order by 1"
        )
        assert await cursor.fetchall() == [
            {"table_name": "user_memory", "item_id": str(added.id), "actor": "worker"},
            {"table_name": "user_preferences", "item_id": "k", "actor": "worker"},
        ]


async def test_rf_33_c_16_no_sensitive_text_in_any_long_term_row(
    database: Database, memories: Memories, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    added = await add(memories, SECRET, quote=SECRET, metadata={"k": [SECRET]}, embedding=[1.0], embedder="e")
    change = PreferenceChange("note", {"text": SECRET}, SECRET, "m", "es")
    await Preferences(database, "t1").set("u1", change, DAY_0)
    async with database.connection() as connection:
        for table in ("user_memory", "user_preferences", "memory_audit"):
            rows = await (
                await connection.execute(f"select kept::text from recuerdo.{table} kept")
            ).fetchall()
            assert rows
            for digits in ("4111", "25000", "0123456789"):
                assert digits not in str(rows)
    # The vector of the raw text would give it away; the stored text is embedded anew.
    assert added.embedding is None
    assert "redacted" in caplog.text
    assert "4111" not in caplog.text


async def test_fault_6_every_read_keeps_to_its_scope(database: Database, memories: Memories) -> None:
    added = await add(memories, embedding=[1.0, 0.0], embedder="e")
    foreign = [(memories, "A1", "u2"), (memories, "A2", "u1"), (Memories(database, "t2"), "A1", "u1")]
    for store, assistant, user in foreign:
        assert await store.get([added.id], assistant, user, DAY_0) == []
        assert await store.all(assistant, user, DAY_0) == []
        assert await store.nearest(assistant, user, [1.0, 0.0], "e", DAY_0, 5) == []
        assert not await store.forget(added.id, assistant, user, DAY_0)
        assert not await store.confirm(added.id, assistant, user, DAY_0)
    assert await memories.get([added.id], "A1", "u1", DAY_0)


async def test_c_11_missing_scope_is_refused(database: Database, memories: Memories) -> None:
    with pytest.raises(ScopeError):
        Memories(database, "")
    for assistant, user in (("", "u1"), ("A1", "")):
        with pytest.raises(ScopeError):
            await memories.get([], assistant, user, DAY_0)
        with pytest.raises(ScopeError):
            await memories.nearest(assistant, user, [1.0], "e", DAY_0, 5)
    with pytest.raises(ScopeError):
        await forget_user(database, "t1", "", DAY_0)
    with pytest.raises(ScopeError):
        await Preferences(database, "t1").all("", DAY_0)


async def test_fault_8_forgotten_at_once(database: Database, memories: Memories) -> None:
    kept, gone = await add(memories), await add(memories)
    assert await memories.forget(gone.id, "A1", "u1", DAY_0)
    assert [m.id for m in await memories.all("A1", "u1", DAY_0)] == [kept.id]
    assert not await memories.forget(gone.id, "A1", "u1", DAY_0)


async def test_im_43_fault_7_forget_all_of_one_user(database: Database, memories: Memories) -> None:
    await add(memories, user="u1")
    await add(memories, user="u2")
    await Preferences(database, "t1").set("u1", PreferenceChange("k", "secret", "q", None, "es"), DAY_0)
    assert (await forget_user(database, "t1", "u1", DAY_0)).remembered == 2
    assert await memories.all("A1", "u1", DAY_0) == []
    assert await Preferences(database, "t1").all("u1", DAY_0) == {}
    assert len(await memories.all("A1", "u2", DAY_0)) == 1
    async with database.connection() as connection:
        rows = await (await connection.execute("select a::text from recuerdo.memory_audit a")).fetchall()
    assert "secret" not in str(rows)
    assert "RSI" not in str(rows)


async def test_get_keeps_the_order_of_the_ids(memories: Memories) -> None:
    added = [(await add(memories, str(number))).id for number in range(3)]
    wanted = [added[2], uuid4(), added[0], added[2]]
    assert [m.id for m in await memories.get(wanted, "A1", "u1", DAY_0)] == [added[2], added[0]]


async def test_c_10_nearest_by_exact_scan(memories: Memories) -> None:
    vectors = {"east": [1.0, 0.0], "north": [0.0, 2.0], "west": [-3.0, 0.0], "none": [0.0, 0.0]}
    ids = {
        name: (await add(memories, name, embedding=vector, embedder="e")).id
        for name, vector in vectors.items()
    }
    await add(memories, "another model", embedding=[1.0, 0.0], embedder="other")
    await add(memories, "other dimensions", embedding=[1.0, 0.0, 0.0], embedder="e")
    await add(memories, "not embedded")
    found = await memories.nearest("A1", "u1", [0.9, 0.1], "e", DAY_0, 2)
    assert [near.id for near in found] == [ids["east"], ids["north"]]
    assert found[0].similarity == pytest.approx(0.9939, abs=1e-4)
    assert len(await memories.nearest("A1", "u1", [0.9, 0.1], "e", DAY_0, 99)) == 4


async def test_vectors_wait_until_they_are_indexed(database: Database, memories: Memories) -> None:
    added = await add(memories, embedding=[0.5, 0.25], embedder="e")
    assert await waiting_vectors(database, limit=9) == [added]
    await mark_indexed(database, [added])
    assert await waiting_vectors(database, limit=9) == []
    assert await mark_all_waiting(database, "t1", "A1", DAY_0) == 1
    assert [w.id for w in await waiting_vectors(database, limit=9)] == [added.id]


async def test_vector_of_a_memory_forgotten_meanwhile_is_noted(
    database: Database, memories: Memories
) -> None:
    added = await add(memories)
    await memories.forget(added.id, "A1", "u1", DAY_0)
    async with database.connection() as connection:
        await connection.execute("delete from recuerdo.vector_deletions")
    assert [gone.id for gone in await mark_indexed(database, [added])] == [added.id]
    assert [deletion.id for deletion in await waiting_deletions(database, limit=9)] == [added.id]


async def test_rf_11_one_value_per_preference_and_updated_at_moves(database: Database) -> None:
    preferences = Preferences(database, "t1")
    later = DAY_0 + timedelta(days=1)
    for value, at in (("4h", DAY_0), ("1d", later)):
        await preferences.set("u1", PreferenceChange("preferred_timeframe", value, "q", None, "es"), at)
    (preference,) = (await preferences.all("u1", later)).values()
    assert (preference.value, preference.created_at, preference.updated_at) == ("1d", DAY_0, later)


async def test_rf_26_a_15_preference_said_again_lasts_90_days_from_then(database: Database) -> None:
    preferences = Preferences(database, "t1")
    change = PreferenceChange("show_disclaimers", True, "siempre mostrar disclaimer", "m", "es")
    for day in (0, 60):
        await preferences.set("u1", change, DAY_0 + timedelta(days=day))
    assert (await preferences.all("u1", DAY_0 + timedelta(days=149)))["show_disclaimers"].value is True
    assert await preferences.all("u1", DAY_0 + timedelta(days=150)) == {}


async def test_or_8_preference_inferred_with_low_confidence_lasts_7_days(database: Database) -> None:
    preferences = Preferences(database, "t1")
    await preferences.set("u1", PreferenceChange("k", "v", "q", None, "es", confidence=0.5), DAY_0)
    assert await preferences.all("u1", DAY_0 + timedelta(days=7) + LAST_SECOND)
    assert await preferences.all("u1", DAY_0 + timedelta(days=7)) == {}


async def test_preference_can_be_deleted(database: Database) -> None:
    preferences = Preferences(database, "t1")
    await preferences.set("u1", PreferenceChange("k", "v", "q", None, "es"), DAY_0)
    assert not await Preferences(database, "t2").delete("u1", "k", DAY_0)
    assert await preferences.delete("u1", "k", DAY_0)
    assert await preferences.all("u1", DAY_0) == {}


async def test_tenants_on_a_clock_of_their_own_are_spared(database: Database) -> None:
    now = datetime(2025, 12, 5, tzinfo=UTC)
    for tenant in ("t1", "demo"):
        change = PreferenceChange("show_disclaimers", True, "siempre", None, "es")
        await Preferences(database, tenant).set("ana", change, now)
    much_later = now + timedelta(days=400)

    assert await delete_expired(database, much_later, actor="worker", spared=("demo",)) == 1
    assert await Preferences(database, "demo").all("ana", now)
    assert not await Preferences(database, "t1").all("ana", now)
