"""One tenant's memory as one SQLite file, and one user's as plain data (OR-6, IM-43)."""

import json
import os
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from psycopg.types.json import Jsonb

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.chroma import MemoryIndex
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.memory_store.namespaces import encode_label
from recuerdo.stores.portable import export_tenant, export_user, import_tenant
from recuerdo.stores.postgres.audit import read_audit
from recuerdo.stores.postgres.checkpoints import open_saver, thread_of
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import Memories, NewMemory, waiting_vectors
from recuerdo.stores.postgres.memories.rows import STORE_KEY
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences
from recuerdo.stores.postgres.retention import forget_user, tables_of_users
from recuerdo.stores.postgres.roles import Roles
from recuerdo.stores.recall.search import Recall
from recuerdo.stores.worker import index_waiting
from tests.databases import Databases

NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
FACTS = ("Prefiere pisos altos", "Es alérgica a las plumas", "Su objetivo es un 10% anual")


class Embedder:
    """Vectors by length: enough to see that they are carried over."""

    name = "lengths"
    dimensions = 2

    async def embed(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        return (await self.embed([text]))[0]


@pytest.fixture
async def empty(databases: Databases) -> AsyncIterator[Database]:
    """An installation without anything in it."""
    with databases.lent() as conninfo:
        database = await Database.open(conninfo)
        yield database
        await database.close()


async def fill(database: Database, tenant: str, user: str = "garcia") -> list[UUID]:
    memories = Memories(database, tenant)
    ids = []
    for text in FACTS:
        vector = (await Embedder().embed([text]))[0]
        new = NewMemory("fact", text, "es", 1.0, embedding=vector, embedder="lengths", quote=text)
        ids.append((await memories.add("A1", user, new, NOW)).id)
    await memories.update(ids[0], "A1", user, "Prefiere pisos bajos", NOW + timedelta(hours=1))
    change = PreferenceChange("preferred_timeframe", "4h", "velas de 4h", "m1", "es")
    await Preferences(database, tenant).set(user, change, NOW)
    async with database.tenant(tenant) as connection:
        await connection.execute(
            "insert into recuerdo.user_symbols (tenant, user_id, symbol, turn_id, mentioned_at)"
            " values (%s, %s, 'TSLA', %s, %s)",
            (tenant, user, uuid4(), NOW),
        )
        await connection.execute(
            "insert into recuerdo.store_items (tenant, namespace, key, value, created_at, updated_at)"
            " values (%s, %s, 'k', '{\"a\": 1}', %s, %s)",
            (tenant, f"app.{user}", NOW, NOW),
        )
    return ids


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def found(database: Database, tenant: str, query: str) -> list[tuple[UUID, str, float]]:
    recall = Recall(database, MemoryIndex(), Embedder(), tenant)
    hits = await recall.search("A1", "garcia", query, LATER, 10)
    return [(hit.memory.id, hit.memory.text, round(hit.score, 6)) for hit in hits]


async def test_or_6_an_export_brings_back_ids_and_search_results(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    await fill(database, "A")
    await fill(database, "B", "other")
    file = tmp_path / "memory.db"
    counts = await export_tenant(database, "A", file, LATER)
    assert counts["user_memory"] == 3
    assert counts["memory_revisions"] == 1
    imported = await import_tenant(empty, "A", file, "operator", LATER)
    assert imported.written == counts
    assert (imported.present, imported.unpublished) == (0, 0)
    for query in ("plumas", "piso", "objetivo anual"):
        assert await found(empty, "A", query) == await found(database, "A", query)
    assert await export_user(empty, "A", "garcia", LATER) == await export_user(database, "A", "garcia", LATER)
    assert {waiting.tenant for waiting in await waiting_vectors(empty, limit=9)} == {"A"}


async def test_or_6_the_file_holds_exactly_the_tenants_memories(database: Database, tmp_path: Path) -> None:
    ids = await fill(database, "A")
    await fill(database, "B")
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    with sqlite3.connect(file) as connection:
        kept = connection.execute("select id, text from user_memory order by text").fetchall()
        about = dict(connection.execute("select name, value from about").fetchall())
    texts = ("Prefiere pisos bajos", *FACTS[1:])
    assert sorted(kept) == sorted((str(i), text) for i, text in zip(ids, texts, strict=True))
    assert about["tenant"] == "A"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_or_6_import_twice_changes_nothing(database: Database, empty: Database, tmp_path: Path) -> None:
    await fill(database, "A")
    counts = await export_tenant(database, "A", tmp_path / "memory.db", LATER)
    await import_tenant(empty, "A", tmp_path / "memory.db", "operator", LATER)
    before = await export_user(empty, "A", "garcia", LATER)
    again = await import_tenant(empty, "A", tmp_path / "memory.db", "operator", LATER)
    assert (sum(again.written.values()), again.present) == (0, sum(counts.values()))
    assert await export_user(empty, "A", "garcia", LATER) == before


async def test_or_6_ids_of_another_tenant_are_refused(database: Database, tmp_path: Path) -> None:
    await fill(database, "A")
    await export_tenant(database, "A", tmp_path / "memory.db", LATER)
    with pytest.raises(InputError, match="another tenant"):
        await import_tenant(database, "B", tmp_path / "memory.db", "operator", LATER)
    assert (await export_user(database, "B", "garcia", LATER))["user_preferences"] == []


async def test_im_43_export_of_a_user_has_all_of_him_and_nothing_of_others(database: Database) -> None:
    await fill(database, "A")
    await fill(database, "A", "lopez")
    exported = await export_user(database, "A", "garcia", LATER)
    texts = {memory["text"] for memory in exported["user_memory"]}
    assert texts == {"Prefiere pisos bajos", *FACTS[1:]}
    assert [old["text"] for old in exported["memory_revisions"]] == [FACTS[0]]
    assert [symbol["symbol"] for symbol in exported["user_symbols"]] == ["TSLA"]
    assert [item["namespace"] for item in exported["store_items"]] == ["app.garcia"]
    assert "lopez" not in json.dumps(exported)
    with pytest.raises(ScopeError):
        await export_user(database, "A", "", LATER)


async def test_im_43_what_an_app_keeps_under_the_users_name_is_exported_and_forgotten(
    database: Database,
) -> None:
    """The name as a key, or as a label; an e-mail address is a label when it is encoded."""
    user = "ana.b@mail.example"
    label = encode_label(user)
    mine = [("users", user), ("users", label), (f"notes.{label}", "k"), (f"notes.{label}.deep", "k")]
    others = [("users", "beto"), ("users", f"{user}x"), ("notes.beto", "k")]
    async with database.tenant("A") as connection:
        await connection.cursor().executemany(
            "insert into recuerdo.store_items (tenant, namespace, key, value, created_at, updated_at)"
            " values ('A', %s, %s, '{\"a\": 1}', %s, %s)",
            [(*place, NOW, NOW) for place in mine + others],
        )
    exported = await export_user(database, "A", user, LATER)
    assert [(item["namespace"], item["key"]) for item in exported["store_items"]] == sorted(mine)
    await forget_user(database, "A", user, LATER)
    async with database.tenant("A") as connection:
        cursor = await connection.execute("select namespace, key from recuerdo.store_items")
        left = [(row["namespace"], row["key"]) for row in await cursor.fetchall()]
    assert sorted(left) == sorted(others)


async def test_fault_10_what_has_expired_is_not_exported_before_the_sweep(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    ids = await fill(database, "A")
    async with database.tenant("A") as connection:
        await connection.execute(
            "insert into recuerdo.store_items (tenant, namespace, key, value, created_at, updated_at,"
            " ttl_minutes, expires_at) values ('A', 'app.garcia', 'old', '{}', %s, %s, 1, %s)",
            (NOW, NOW, NOW + timedelta(minutes=1)),
        )
    before, after = NOW + timedelta(days=90, minutes=-1), NOW + timedelta(days=90)
    assert len((await export_user(database, "A", "garcia", before))["user_memory"]) == 3
    exported = await export_user(database, "A", "garcia", after)
    # The updated memory is kept for an hour more; its earlier text is of the first hour.
    assert [memory["id"] for memory in exported["user_memory"]] == [str(ids[0])]
    assert (exported["user_preferences"], exported["user_symbols"]) == ([], [])
    assert [item["key"] for item in exported["store_items"]] == ["k"]
    counts = await export_tenant(database, "A", tmp_path / "memory.db", NOW + timedelta(days=91))
    assert counts == {**dict.fromkeys(counts, 0), "store_items": 1}


async def test_im_43_every_table_that_names_the_user_is_exported(database: Database) -> None:
    """Turns with their records, approvals, tool calls, evidence and whatever table comes later."""
    await fill(database, "A")
    async with database.tenant("A") as connection:
        turn = uuid4()
        await connection.execute(
            "insert into recuerdo.conversations (tenant, id, assistant, user_id, language, started_at,"
            " updated_at) values ('A', 'c', 'A1', 'garcia', 'es', %s, %s)",
            (NOW, NOW),
        )
        await connection.execute(
            "insert into recuerdo.turns (tenant, id, conversation, user_id, number, status, mode, started_at,"
            " record) values ('A', %s, 'c', 'garcia', 1, 'done', 'live', %s, '{\"memories\": [\"XXX\"]}')",
            (turn, NOW),
        )
        for expires, name in ((LATER + timedelta(days=1), "kept"), (LATER, "over")):
            await connection.execute(
                "insert into recuerdo.evidence (tenant, id, kind, at, turn_id, conversation, assistant, user_id,"
                " data, expires_at) values ('A', %s, 'ambiguity', %s, %s, 'c', 'A1', 'garcia', %s, %s)",
                (uuid4(), NOW, turn, Jsonb({"name": name}), expires),
            )
        named = set(await tables_of_users(connection))
    saver = await open_saver(database)
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"summary": {"text": "Habla de TSLA", "covers": 2, "left_window": 0}}
    checkpoint["channel_versions"] = {"summary": "1"}
    config = {"configurable": {"thread_id": thread_of("A", "c"), "checkpoint_ns": ""}}
    await saver.aput(config, checkpoint, {}, {"summary": "1"})
    exported = await export_user(database, "A", "garcia", LATER)
    assert named <= set(exported)
    assert {"turns", "evidence", "tool_calls", "approvals", "key_events"} <= named
    assert [kept["record"] for kept in exported["turns"]] == [{"memories": ["XXX"]}]
    assert [kept["data"] for kept in exported["evidence"]] == [{"name": "kept"}]
    assert [kept["summary"] for kept in exported["conversations"]] == ["Habla de TSLA"]
    assert json.loads(json.dumps(exported)) == exported


def altered(statement: str, *values: Any) -> Callable[[Path], None]:
    def alter(file: Path) -> None:
        connection = sqlite3.connect(file)
        connection.execute(statement, values)
        connection.commit()
        connection.close()

    return alter


@pytest.mark.parametrize(
    ("alter", "told"),
    [
        (lambda file: file.unlink(), "no file"),
        (lambda file: file.write_bytes(b"not a database"), "no memory.db"),
        (lambda file: file.write_bytes(b""), "no memory.db"),
        (lambda file: file.write_bytes(file.read_bytes()[:5_000]), "no memory.db"),
        (altered("drop table user_symbols"), "no memory.db"),
        (altered("drop table about"), "no memory.db"),
        (altered("update about set value = '99' where name = 'format'"), "another export format"),
        (altered("update user_memory set id = 'x'"), "user_memory.id"),
        (altered("update user_memory set text = null"), "user_memory.text"),
        (altered("update user_memory set text = ?", "x" * 4_001), "user_memory.text"),
        (altered("update user_memory set status = 'holy'"), "user_memory.status"),
        (altered("update user_memory set created_at = '2025-01-01'"), "user_memory.created_at"),
        (altered("update user_memory set metadata = '{'"), "user_memory"),
        (altered("update user_memory set confidence = 7"), "user_memory"),
        (altered("update user_memory set user_id = ''"), "user_memory"),
        (altered("update user_preferences set expires_at = 5"), "user_preferences.expires_at"),
        (altered("alter table user_memory drop column kind"), "user_memory.kind"),
        (altered("alter table user_memory drop column created_at"), "user_memory.created_at"),
        (altered("alter table user_memory add column of_tomorrow"), "another export format"),
        (altered("update user_memory set kind = ?", "x" * 1_000_000), "user_memory.kind"),
        (altered("update user_memory set kind = ?", "4111 1111 1111 1111"), "user_memory.kind"),
        (altered("update user_memory set user_id = ?", "x" * 201), "user_memory.user_id"),
        (altered("update user_memory set text = ' '"), "user_memory.text"),
        (altered("update user_memory set metadata = '[1, 2]'"), "user_memory.metadata"),
        (altered("update user_memory set message_id = ?", "x\0"), "user_memory"),
        (altered("update memory_revisions set text = ?", "x" * 4_001), "memory_revisions.text"),
        (altered("update user_preferences set key = ?", "x" * 100_000), "user_preferences.key"),
        (altered("update user_preferences set value = ?", json.dumps("x" * 4_001)), "user_preferences.value"),
        (altered("update user_symbols set symbol = ?", "x" * 101), "user_symbols.symbol"),
        (altered("update store_items set key = ?", os.urandom(9_000).hex()), "store_items"),
        (altered("update store_items set key = '4111111111111111'"), "store_items.key"),
        (altered("update store_items set namespace = 'memories.A1.garcia'"), "store_items.namespace"),
        (altered("update store_items set namespace = ''"), "store_items"),
    ],
)
async def test_a_damaged_file_is_refused_and_nothing_is_written(
    database: Database, empty: Database, tmp_path: Path, alter: Callable[[Path], None], told: str
) -> None:
    await fill(database, "A")
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    alter(file)
    with pytest.raises(InputError, match=told):
        await import_tenant(empty, "A", file, "operator", LATER)
    assert not any((await export_user(empty, "A", "garcia", LATER)).values())


async def test_rf_33_sensitive_data_in_the_file_is_not_stored(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    ids = await fill(database, "A")
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    altered("update user_memory set text = 'mi tarjeta es 4111 1111 1111 1111' where id = ?", str(ids[1]))(
        file
    )
    await import_tenant(empty, "A", file, "operator", LATER)
    (memory,) = await Memories(empty, "A").get([ids[1]], "A1", "garcia", LATER)
    assert "4111" not in memory.text
    (waiting,) = [vector for vector in await waiting_vectors(empty, limit=9) if vector.id == ids[1]]
    assert waiting.embedding is None


async def test_rf_32_or_11_an_altered_expiry_or_status_buys_no_time(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    ids = await fill(database, "A")
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    altered("update user_memory set expires_at = '9999-01-01T00:00:00+00:00' where id = ?", str(ids[1]))(file)
    altered("update user_memory set status = 'published', expires_at = null where id = ?", str(ids[2]))(file)
    await Roles(empty, "A", KeyFolder(tmp_path / "keys")).appoint_first_owner("boss", NOW)
    imported = await import_tenant(empty, "A", file, "somebody", LATER)
    assert imported.unpublished == 1
    memories = Memories(empty, "A")
    assert len(await memories.get(ids, "A1", "garcia", LATER)) == 3
    assert await memories.get(ids, "A1", "garcia", NOW + timedelta(days=91)) == []


DAMAGED = ["0102030405", "", "0000c07f0000c07f", "0000000000000000", None]


@pytest.mark.parametrize("damaged", DAMAGED)
async def test_or_6_what_the_search_needs_is_made_anew_where_the_file_has_it_damaged(
    database: Database, empty: Database, tmp_path: Path, damaged: str | None
) -> None:
    ids = await fill(database, "A")
    await index_waiting(database, MemoryIndex(), Embedder())
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    blob = None if damaged is None else bytes.fromhex(damaged)
    altered("update user_memory set embedding = ? where id = ?", blob, str(ids[1]))(file)
    altered("update user_memory set terms = ?, words = ?, analyzer = 'x', asks = 1", b"123", b"")(file)
    await import_tenant(empty, "A", file, "operator", LATER)
    damaged_one, *whole = sorted(await waiting_vectors(empty, limit=9), key=lambda waits: waits.id != ids[1])
    assert (damaged_one.id, damaged_one.embedding, damaged_one.embedder) == (ids[1], None, None)
    assert all(waits.embedding is not None for waits in whole)
    await index_waiting(empty, MemoryIndex(), Embedder())
    for query in ("plumas", "piso", "objetivo anual"):
        assert await found(empty, "A", query) == await found(database, "A", query)
    again = NewMemory("fact", FACTS[1].upper(), "es", 1.0, once=True)
    assert (await Memories(empty, "A").add("A1", "garcia", again, LATER)).id == ids[1]


async def test_or_6_a_file_of_before_a_column_was_added_is_read(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    await fill(database, "A")
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    for column in ("terms", "asks", "analyzer", "words", "changed_in", "conversation", "active"):
        altered(f"alter table user_memory drop column {column}")(file)
    await import_tenant(empty, "A", file, "operator", LATER)
    for query in ("plumas", "piso", "objetivo anual"):
        assert await found(empty, "A", query) == await found(database, "A", query)


async def test_rf_32_what_a_file_dates_in_the_future_is_dated_now(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    await fill(database, "A")
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    future = "2999-01-01T00:00:00+00:00"
    for table, columns in {
        "user_memory": ("created_at", "updated_at", "confirmed_at", "expires_at"),
        "memory_revisions": ("at", "expires_at"),
        "user_preferences": ("created_at", "updated_at", "expires_at"),
        "user_symbols": ("mentioned_at",),
        "store_items": ("created_at", "updated_at"),
    }.items():
        listed = ", ".join(f"{column} = '{future}'" for column in columns)
        altered(f"update {table} set {listed}")(file)
    await import_tenant(empty, "A", file, "operator", LATER)
    exported = await export_user(empty, "A", "garcia", LATER)
    latest = (LATER + timedelta(days=90)).isoformat()
    for rows in exported.values():
        dates = [value for row in rows for name, value in row.items() if name.endswith("at") and value]
        assert all(date <= latest for date in dates)
        assert all(row.get("mentioned_at", "") <= LATER.isoformat() for row in rows)
    assert await export_user(empty, "A", "garcia", LATER + timedelta(days=91)) == {
        **{name: [] for name in exported},
        "store_items": exported["store_items"],
    }


async def test_im_33_what_an_import_writes_is_audited(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    ids = await fill(database, "A")
    await export_tenant(database, "A", tmp_path / "memory.db", LATER)
    await import_tenant(empty, "A", tmp_path / "memory.db", "operator", LATER)
    items = {"user_memory": str(ids[0]), "user_preferences": "preferred_timeframe", "user_symbols": "TSLA"}
    for table, item in items.items():
        (entry,) = await read_audit(empty, "A", table, item)  # type: ignore[arg-type]
        assert (entry.actor, entry.action, entry.at) == ("operator", "added", LATER)


async def test_et_12_the_key_of_an_apps_memory_comes_back_as_it_was(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    new = NewMemory("note", "Prefiere el té", "es", 1.0, metadata={STORE_KEY: "600123456"})
    added = await Memories(database, "A").add("A1", "garcia", new, NOW)
    await export_tenant(database, "A", tmp_path / "memory.db", LATER)
    await import_tenant(empty, "A", tmp_path / "memory.db", "operator", LATER)
    (memory,) = await Memories(empty, "A").get([added.id], "A1", "garcia", LATER)
    assert memory.metadata == {STORE_KEY: "600123456"}


async def test_or_6_or_11_an_empty_installation_believes_the_file(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    """A tenant without roles has no supervisor: who imports sets it up, and gets back what was there."""
    ids = await fill(database, "A")
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    altered("update user_memory set status = 'published', expires_at = null where id = ?", str(ids[2]))(file)
    imported = await import_tenant(empty, "A", file, "somebody", LATER)
    assert imported.unpublished == 0
    (memory,) = await Memories(empty, "A").get([ids[2]], "A1", "garcia", NOW + timedelta(days=400))
    assert memory.status == "published"


async def test_or_11_an_owner_may_bring_published_facts_along(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    ids = await fill(database, "A")
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    altered("update user_memory set status = 'published', expires_at = null where id = ?", str(ids[2]))(file)
    await Roles(empty, "A", KeyFolder(tmp_path / "keys")).appoint_first_owner("boss", NOW)
    await import_tenant(empty, "A", file, "boss", LATER)
    (memory,) = await Memories(empty, "A").get(ids, "A1", "garcia", NOW + timedelta(days=400))
    assert (memory.id, memory.status) == (ids[2], "published")


async def test_a_file_that_is_there_is_kept_unless_told_otherwise(database: Database, tmp_path: Path) -> None:
    await fill(database, "A")
    file = tmp_path / "memory.db"
    file.write_text("precious")
    with pytest.raises(InputError, match="exists"):
        await export_tenant(database, "A", file, LATER)
    assert file.read_text() == "precious"
    await export_tenant(database, "A", file, LATER, replace=True)
    assert file.read_bytes().startswith(b"SQLite format 3")
    with pytest.raises(InputError, match="cannot be written"):
        await export_tenant(database, "A", tmp_path / "nowhere" / "memory.db", LATER)
    assert names_in(tmp_path) == ["memory.db"]
