"""What leaves the store: switched off, expired, dated in the future, and all of a user (IM-43, C-17)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import sql

from recuerdo.state.errors import BusyError, InputError
from recuerdo.stores.chroma import MemoryIndex
from recuerdo.stores.embeddings import BundledEmbedder
from recuerdo.stores.postgres.audit import read_audit
from recuerdo.stores.postgres.checkpoints import open_saver, thread_of
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import Memories, NewMemory
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences
from recuerdo.stores.postgres.retention import (
    NOT_FORGOTTEN,
    Forgotten,
    delete_expired,
    forget_user,
)
from recuerdo.stores.postgres.turns import TurnLog
from recuerdo.stores.worker import index_vectors

from .conftest import AT_ONCE, LEASE, NOW, PlayTurn

# Tables without a user that hold nothing of one, or go with a row that names him.
WITHOUT_USER = {
    "audit_keys",
    "hotel_reservations",
    "hotel_rooms",
    "messages",
    "packs",
    "pack_signatures",
    "platform_quotes",
    "platform_signals",
    "platform_events",
    "store_items",
    "vector_deletions",
    "key_event_changes",
    "key_event_views",
    # What people decided: no text of a user's is in it.
    "plan_revisions",
    "plan_activations",
    "plan_stops",
    "governance_audit",
    "governance_audit_heads",
    "evidence_horizons",
    "held_before",
    "sweeps",
    "eval_results",
    "proposal_evidence",  # with its proposal
    # These go with their conversation.
    "event_extraction_leases",
    "event_extractions",
}
DAY_0 = datetime(2025, 12, 5, tzinfo=UTC)


@pytest.fixture
def memories(database: Database) -> Memories:
    return Memories(database, "t1")


async def add(memories: Memories, text: str, at: datetime = DAY_0, user: str = "u1", **fields: Any) -> Any:
    return (
        await memories.add("A1", user, NewMemory("fact", text, "es", **{"confidence": 1.0, **fields}), at)
    ).id


async def query(database: Database, statement: str, *values: object) -> list[dict[str, Any]]:
    async with database.connection() as connection:
        cursor = await connection.execute(statement, values)
        return await cursor.fetchall() if cursor.description else []


async def test_im_30_im_33_a_memory_that_is_off_is_read_by_no_path(
    database: Database, memories: Memories
) -> None:
    on, off = await add(memories, "sí"), await add(memories, "no", embedding=[1.0], embedder="e")
    assert await memories.set_active(off, "A1", "u1", False, DAY_0)
    assert not await memories.set_active(off, "A1", "u1", False, DAY_0)
    assert [m.id for m in await memories.get([on, off], "A1", "u1", DAY_0)] == [on]
    assert [m.id for m in await memories.all("A1", "u1", DAY_0)] == [on]
    assert [row.id for row in await memories.search_rows("A1", "u1", DAY_0, "e", 9)] == [on]
    assert await memories.nearest("A1", "u1", [1.0], "e", DAY_0, 9) == []
    assert await memories.count("A1", "u1", DAY_0) == 1
    assert not await memories.confirm(off, "A1", "u1", DAY_0)
    assert await memories.update(off, "A1", "u1", "x", DAY_0) is None
    (hidden,) = await memories.inactive("A1", "u1", DAY_0)
    assert (hidden.id, hidden.active) == (off, False)
    assert await memories.inactive("A1", "u2", DAY_0) == []
    assert await memories.inactive("A1", "u1", DAY_0 + timedelta(days=90)) == []
    assert not await memories.set_active(off, "A1", "u2", True, DAY_0)
    assert await memories.set_active(off, "A1", "u1", True, DAY_0)
    assert await memories.count("A1", "u1", DAY_0) == 2
    actions = [entry.action for entry in await read_audit(database, "t1", "user_memory", str(off))]
    assert actions == ["added", "deactivated", "activated"]


async def test_or_10_after_the_sweep_nothing_of_an_unconfirmed_fact_but_the_audit(
    database: Database, memories: Memories
) -> None:
    gone = await add(memories, "GGG", confidence=0.3)
    kept = await add(memories, "FFF", confidence=0.3)
    await memories.confirm(kept, "A1", "u1", DAY_0 + timedelta(days=5))
    await memories.update(gone, "A1", "u1", "GGG dos", DAY_0)
    await delete_expired(database, DAY_0 + timedelta(days=8), actor="worker")
    assert [m.text for m in await memories.all("A1", "u1", DAY_0)] == ["FFF"]
    for table in ("user_memory", "memory_revisions", "memory_audit"):
        rows = await query(database, f"select kept::text from recuerdo.{table} kept")
        assert "GGG" not in str(rows)
    assert (await read_audit(database, "t1", "user_memory", str(gone)))[-1].action == "expired"


async def test_im_53_read_between_expiry_and_the_next_sweep(database: Database, memories: Memories) -> None:
    midnight_and_half = DAY_0 + timedelta(days=7, minutes=30)
    added = await add(memories, "breve", at=midnight_and_half - timedelta(days=7), confidence=None)
    assert await memories.get([added], "A1", "u1", midnight_and_half + timedelta(minutes=1)) == []
    assert len(await query(database, "select 1 from recuerdo.user_memory")) == 1
    await delete_expired(database, DAY_0 + timedelta(days=7, hours=6), actor="worker")
    assert await query(database, "select 1 from recuerdo.user_memory") == []


async def test_rf_32_old_texts_are_swept(database: Database, memories: Memories) -> None:
    added = await add(memories, "uno")
    await memories.update(added, "A1", "u1", "dos", DAY_0 + timedelta(days=80))
    await delete_expired(database, DAY_0 + timedelta(days=91), actor="worker")
    assert await query(database, "select text from recuerdo.memory_revisions") == []
    assert [m.text for m in await memories.all("A1", "u1", DAY_0 + timedelta(days=91))] == ["dos"]


async def test_rf_32_what_is_dated_in_the_future_is_kept_no_longer_than_anything_else(
    database: Database, memories: Memories
) -> None:
    future = DAY_0 + timedelta(days=3650)
    added = await add(memories, "del futuro", at=future)
    low = await add(memories, "débil", at=future, confidence=None)
    await Preferences(database, "t1").set("u1", PreferenceChange("k", "v", "q", None, "es"), future)
    assert await delete_expired(database, DAY_0, actor="worker") == 0
    (memory, weak) = await memories.get([added, low], "A1", "u1", DAY_0)
    assert (memory.created_at, memory.updated_at) == (DAY_0, DAY_0)
    assert memory.expires_at == DAY_0 + timedelta(days=90)
    assert weak.expires_at == DAY_0 + timedelta(days=7)
    (preference,) = (await Preferences(database, "t1").all("u1", DAY_0)).values()
    assert preference.expires_at == DAY_0 + timedelta(days=90)


async def test_fault_19_naive_dates_never_reach_the_tables(database: Database, memories: Memories) -> None:
    naive = datetime(2025, 12, 5)
    for call in (
        lambda: memories.nearest("A1", "u1", [1.0], "e", naive, 3),
        lambda: memories.search_rows("A1", "u1", naive, "e", 3),
        lambda: delete_expired(database, naive, actor="worker"),
        lambda: forget_user(database, "t1", "u1", naive),
    ):
        with pytest.raises(InputError, match="time zone"):
            await call()


@pytest.fixture
async def lived_in(database: Database, memories: Memories, play: PlayTurn) -> Sequence[str]:
    """Two users of t1 who left something in every table; a third of the same name in t2."""
    await open_saver(database)
    for user in ("ana.b@mail.example", "beto"):
        conversation = f"conv-{user}"
        await play(
            f"XXX {user}",
            "ok",
            user=user,
            conversation=conversation,
            symbols=["TSLA"],
            memories=[NewMemory("fact", f"XXX {user}", "es", 1.0, quote="XXX")],
            preferences=[PreferenceChange("k", "XXX", "XXX", "m", "es")],
            record={"memories": ["XXX"]},
        )
        added = await add(memories, f"XXX {user}", user=user)
        await memories.update(added, "A1", user, f"XXX {user} dos", DAY_0)
        await memories.add("A2", user, NewMemory("fact", f"XXX {user}", "es", 1.0), DAY_0)
        await fill_langgraph(database, thread_of("t1", conversation))
        await fill_items(database, user)
    await Memories(database, "t2").add("A1", "beto", NewMemory("fact", "XXX", "es", 1.0), DAY_0)
    return ("ana.b@mail.example", "beto")


async def fill_langgraph(database: Database, thread: str) -> None:
    async with database.connection() as connection:
        await connection.execute(
            "insert into checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata)"
            " values (%s, '', '1', '{\"x\": \"XXX\"}', '{}')",
            (thread,),
        )
        await connection.execute(
            "insert into checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)"
            " values (%s, '', 'c', '1', 'json', 'XXX')",
            (thread,),
        )
        await connection.execute(
            "insert into checkpoint_writes"
            " (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, blob, task_path)"
            " values (%s, '', '1', 't', 0, 'c', 'XXX', '')",
            (thread,),
        )


async def fill_items(database: Database, user: str) -> None:
    label = user.replace(".", "%2E")
    async with database.tenant("t1") as connection:
        await connection.execute(
            "insert into recuerdo.store_items (tenant, namespace, key, value, created_at, updated_at)"
            " values ('t1', %s, 'k', '{\"x\": \"XXX\"}', now(), now())",
            (f"notes.{label}",),
        )
        await connection.execute(
            "insert into recuerdo.key_events (tenant, id, assistant, user_id, type, summary, entities, status,"
            " priority, confidence, created_at, updated_at, version) values ('t1', gen_random_uuid(), 'A1', %s,"
            " 'Queja', 'XXX', '[]', 'PENDING', 'LOW', 1, now(), now(), 1)",
            (user,),
        )


async def rows_of(database: Database, name: str) -> dict[str, int]:
    """How many rows of every table name the user, or hold his data."""
    tables = await query(
        database,
        "select class.relnamespace::regnamespace::text as schema, class.relname as name from pg_class class"
        " where class.relkind = 'r' and (class.relnamespace = 'recuerdo'::regnamespace"
        " or class.relname like 'checkpoint%%')",
    )
    found = {}
    for table in tables:
        statement = sql.SQL("select count(*) as n from {} kept where position(%s in kept::text) > 0").format(
            sql.Identifier(table["schema"], table["name"])
        )
        (row,) = await query(database, statement, name)  # type: ignore[arg-type]
        found[table["name"]] = row["n"]
    return {name: number for name, number in found.items() if number}


async def test_im_43_c_17_fault_7_nothing_of_the_forgotten_is_left_and_the_others_keep_all(
    database: Database, lived_in: Sequence[str]
) -> None:
    gone, other = lived_in
    before = await rows_of(database, other)
    assert {"key_events", "store_items", "checkpoints"} <= {
        *before,
        *(await rows_of(database, "XXX")),
    }
    result = await forget_user(database, "t1", gone, NOW)
    assert result == Forgotten(remembered=5, conversations=1, assistants=["A1", "A2"])
    assert set(await rows_of(database, gone)) == {"memory_audit"}
    assert set(await rows_of(database, gone.replace(".", "%2E"))) == set()
    assert await rows_of(database, other) == before
    (audit,) = await query(
        database, "select string_agg(kept::text, ' ') as texts from recuerdo.memory_audit kept"
    )
    assert "XXX" not in audit["texts"]
    assert (await forget_user(database, "t1", other, NOW)).remembered == 5
    # What is left is of the other tenant.
    assert set(await rows_of(database, "XXX")) == {"user_memory"}


async def test_et_24_a_users_data_can_be_located_apart(database: Database, lived_in: Sequence[str]) -> None:
    for user in lived_in:
        rows = await query(
            database,
            "select distinct tenant, user_id from recuerdo.user_memory where tenant = 't1' and user_id = %s",
            user,
        )
        assert rows == [{"tenant": "t1", "user_id": user}]
    await forget_user(database, "t1", lived_in[0], NOW)
    left = await query(database, "select distinct user_id from recuerdo.user_memory where tenant = 't1'")
    assert left == [{"user_id": lived_in[1]}]


async def test_im_43_while_a_turn_runs_nothing_is_forgotten(
    database: Database, memories: Memories, log: TurnLog, new_turn: Any
) -> None:
    await add(memories, "sigue", user="user-123")
    turn = new_turn()
    await log.begin(turn, lease=LEASE, wait=AT_ONCE)
    with pytest.raises(BusyError):
        await forget_user(database, "t1", "user-123", NOW)
    assert await memories.count("A1", "user-123", DAY_0) == 1
    await log.fail(turn.id, NOW, "x")
    assert (await forget_user(database, "t1", "user-123", NOW)).remembered == 1


async def test_im_43_every_table_says_whether_forgetting_a_user_reaches_it(database: Database) -> None:
    tables = await query(
        database,
        "select class.relname as name, exists (select 1 from pg_attribute att"
        " where att.attrelid = class.oid and att.attname = 'user_id') as of_users"
        " from pg_class class join pg_attribute att on att.attrelid = class.oid and att.attname = 'tenant'"
        " where class.relnamespace = 'recuerdo'::regnamespace and class.relkind = 'r'",
    )
    names = {table["name"] for table in tables}
    assert names >= set(NOT_FORGOTTEN)
    without = {table["name"] for table in tables if not table["of_users"]} - set(NOT_FORGOTTEN)
    assert without <= WITHOUT_USER


async def test_fault_8_a_vector_written_after_its_memory_was_forgotten_goes_at_once(
    database: Database, memories: Memories
) -> None:
    index, embedder = MemoryIndex(), BundledEmbedder()
    added = await memories.add("A1", "u1", NewMemory("fact", "tarde", "es", 1.0), DAY_0)
    await memories.forget(added.id, "A1", "u1", DAY_0)
    await index_vectors(database, index, embedder, [added])
    assert await index.count("t1", "A1") == 0
