"""One tenant's memory as one SQLite file, and one user's as plain data (OR-6, IM-43)."""

import json
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.chroma import MemoryIndex
from recuerdo.stores.portable import export_tenant, export_user, import_tenant
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import Memories, NewMemory, waiting_vectors
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences
from recuerdo.stores.postgres.roles import Roles
from recuerdo.stores.recall.search import Recall

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
async def empty(empty_database_url: str) -> AsyncIterator[Database]:
    """An installation without anything in it."""
    database = await Database.open(empty_database_url)
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
    assert await export_user(empty, "A", "garcia") == await export_user(database, "A", "garcia")
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
    before = await export_user(empty, "A", "garcia")
    again = await import_tenant(empty, "A", tmp_path / "memory.db", "operator", LATER)
    assert (sum(again.written.values()), again.present) == (0, sum(counts.values()))
    assert await export_user(empty, "A", "garcia") == before


async def test_or_6_ids_of_another_tenant_are_refused(database: Database, tmp_path: Path) -> None:
    await fill(database, "A")
    await export_tenant(database, "A", tmp_path / "memory.db", LATER)
    with pytest.raises(InputError, match="another tenant"):
        await import_tenant(database, "B", tmp_path / "memory.db", "operator", LATER)
    assert (await export_user(database, "B", "garcia"))["user_preferences"] == []


async def test_im_43_export_of_a_user_has_all_of_him_and_nothing_of_others(database: Database) -> None:
    await fill(database, "A")
    await fill(database, "A", "lopez")
    exported = await export_user(database, "A", "garcia")
    texts = {memory["text"] for memory in exported["user_memory"]}
    assert texts == {"Prefiere pisos bajos", *FACTS[1:]}
    assert [old["text"] for old in exported["memory_revisions"]] == [FACTS[0]]
    assert [symbol["symbol"] for symbol in exported["user_symbols"]] == ["TSLA"]
    assert [item["namespace"] for item in exported["store_items"]] == ["app.garcia"]
    assert "lopez" not in json.dumps(exported)
    with pytest.raises(ScopeError):
        await export_user(database, "A", "")


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
    assert not any((await export_user(empty, "A", "garcia")).values())


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
    await Roles(empty, "A").appoint_first_owner("boss", NOW)
    imported = await import_tenant(empty, "A", file, "somebody", LATER)
    assert imported.unpublished == 1
    memories = Memories(empty, "A")
    assert len(await memories.get(ids, "A1", "garcia", LATER)) == 3
    assert await memories.get(ids, "A1", "garcia", NOW + timedelta(days=91)) == []


async def test_or_11_an_owner_may_bring_published_facts_along(
    database: Database, empty: Database, tmp_path: Path
) -> None:
    ids = await fill(database, "A")
    file = tmp_path / "memory.db"
    await export_tenant(database, "A", file, LATER)
    altered("update user_memory set status = 'published', expires_at = null where id = ?", str(ids[2]))(file)
    await Roles(empty, "A").appoint_first_owner("boss", NOW)
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
