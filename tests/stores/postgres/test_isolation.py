"""Row-level security: what a tenant's transaction can see and write, whatever its statement asks for (OR-6)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import DivisionByZero, InsufficientPrivilege, ReadOnlySqlTransaction

from recuerdo.stores.postgres.checkpoints import open_saver, prune, remove_leftovers
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import Memories, NewMemory, waiting_vectors
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences
from recuerdo.stores.postgres.retention import delete_expired, forget_user
from recuerdo.stores.postgres.turns import fail_abandoned

from .conftest import NOW

TENANT_TABLES = """
select class.relname as name, class.relrowsecurity as enabled, class.relforcerowsecurity as forced
from pg_class class join pg_attribute att on att.attrelid = class.oid and att.attname = 'tenant'
where class.relnamespace = 'recuerdo'::regnamespace and class.relkind = 'r'
"""


async def tables(database: Database) -> list[dict[str, object]]:
    async with database.connection() as connection:
        return await (await connection.execute(TENANT_TABLES)).fetchall()


async def remember(database: Database, tenant: str, text: str) -> None:
    memory = NewMemory(kind="fact", text=text, language="es", confidence=1.0)
    await Memories(database, tenant).add("A1", "user-123", memory, NOW)
    change = PreferenceChange("preferred_timeframe", "4h", "velas de 4h", "m1", "es")
    await Preferences(database, tenant).set("user-123", change, NOW)


async def test_or_6_every_table_of_tenants_is_under_row_level_security(database: Database) -> None:
    found = await tables(database)
    assert {"user_memory", "turns", "messages", "memory_audit"} <= {str(table["name"]) for table in found}
    assert [table["name"] for table in found if not (table["enabled"] and table["forced"])] == []


async def test_or_6_query_that_forgets_the_tenant_sees_its_own_rows_only(database: Database) -> None:
    await remember(database, "A", "de A")
    await remember(database, "B", "de B")
    async with database.tenant("A") as connection:
        for table in await tables(database):
            query = sql.SQL("select distinct tenant from recuerdo.{}").format(
                sql.Identifier(str(table["name"]))
            )
            seen = await (await connection.execute(query)).fetchall()
            assert {row["tenant"] for row in seen} <= {"A"}, table["name"]
        texts = await (await connection.execute("select text from recuerdo.user_memory")).fetchall()
    assert texts == [{"text": "de A"}]


async def test_or_6_write_for_another_tenant_is_refused(database: Database) -> None:
    await remember(database, "B", "de B")
    with pytest.raises(InsufficientPrivilege):
        async with database.tenant("A") as connection:
            await connection.execute(
                "insert into recuerdo.user_symbols (tenant, user_id, symbol, turn_id, mentioned_at)"
                " values ('B', 'user-123', 'AAPL', gen_random_uuid(), now())"
            )
    async with database.tenant("A") as connection:
        gone = await connection.execute("delete from recuerdo.user_memory")
        moved = await connection.execute("update recuerdo.user_memory set tenant = 'A'")
    assert (gone.rowcount, moved.rowcount) == (0, 0)


async def test_or_12_audit_of_memory_cannot_be_changed_by_a_tenant(database: Database) -> None:
    await remember(database, "A", "de A")
    for statement in ("delete from recuerdo.memory_audit", "update recuerdo.memory_audit set actor = 'x'"):
        with pytest.raises(InsufficientPrivilege):
            async with database.tenant("A") as connection:
                await connection.execute(statement)


async def test_or_6_role_and_tenant_end_with_the_transaction(database: Database) -> None:
    async with database.connection() as connection:
        before = await (await connection.execute("select current_user as me")).fetchone()
    async with database.tenant("A") as connection:
        inside = await (await connection.execute("select current_user as me")).fetchone()
    with pytest.raises(ZeroDivisionError):
        async with database.tenant("A") as connection:
            raise ZeroDivisionError
    async with database.connection() as connection:
        after = await (
            await connection.execute(
                "select current_user as me, current_setting('recuerdo.tenant', true) as t"
            )
        ).fetchone()
    assert inside == {"me": "recuerdo_tenant"}
    assert before is not None
    assert after == {"me": before["me"], "t": ""}


@pytest.fixture
async def owned(empty_database_url: str) -> AsyncIterator[Database]:
    """A database of an owner who is no superuser: he is under the policies himself."""
    name = psycopg.conninfo.conninfo_to_dict(empty_database_url)["dbname"]
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("create role owner_of_the_test login createrole")
        connection.execute(
            sql.SQL("alter database {} owner to owner_of_the_test").format(sql.Identifier(str(name)))
        )
        connection.execute("alter schema public owner to owner_of_the_test")
        for role in ("recuerdo_tenant", "recuerdo_operator"):
            if connection.execute("select 1 from pg_roles where rolname = %s", (role,)).fetchone():
                connection.execute(
                    sql.SQL("grant {} to owner_of_the_test with inherit false").format(sql.Identifier(role))
                )
    database = await Database.open(
        psycopg.conninfo.make_conninfo(empty_database_url, user="owner_of_the_test")
    )
    yield database
    await database.close()
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("reassign owned by owner_of_the_test to current_user")
        connection.execute("drop owned by owner_of_the_test")
        connection.execute("drop role owner_of_the_test")


async def test_or_6_an_owner_who_is_no_superuser_can_run_everything(owned: Database) -> None:
    await remember(owned, "A", "de A")
    await remember(owned, "B", "de B")
    memories = Memories(owned, "A")
    assert [memory.text for memory in await memories.all("A1", "user-123", NOW)] == ["de A"]
    async with owned.connection() as connection:
        row = await (await connection.execute("select count(*) as n from recuerdo.user_memory")).fetchone()
        assert row == {"n": 0}, "the owner is under the policies himself"
    assert len(await waiting_vectors(owned, limit=10)) == 2
    await open_saver(owned)
    assert (await prune(owned), await remove_leftovers(owned), await fail_abandoned(owned, NOW)) == (0, 0, 0)
    assert (await forget_user(owned, "A", "user-123", NOW)).remembered == 2
    assert await delete_expired(owned, NOW + timedelta(days=91), actor="worker") == 2


async def test_or_6_read_in_one_trip_sees_its_own_rows_only_and_writes_nothing(database: Database) -> None:
    await remember(database, "A", "de A")
    await remember(database, "B", "de B")
    assert await database.read("A", "select text from recuerdo.user_memory", ()) == [{"text": "de A"}]
    with pytest.raises(ReadOnlySqlTransaction):
        await database.read("A", "delete from recuerdo.user_memory returning id", ())


async def test_or_6_read_that_fails_or_is_broken_off_leaves_no_tenant_behind(database: Database) -> None:
    await remember(database, "A", "de A")
    whoami: LiteralString = "select current_user as role, current_setting('recuerdo.tenant', true) as tenant"
    async with database.connection() as connection:
        before = await (await connection.execute(whoami)).fetchone()
    with pytest.raises(DivisionByZero):
        await database.read("A", "select 1 / 0", ())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await database.read("A", "select pg_sleep(30)", ())
    async with database.connection() as connection:
        after = await (await connection.execute(whoami)).fetchone()
    assert before and after and after["role"] == before["role"] and not after["tenant"]
    assert await database.read("B", "select text from recuerdo.user_memory", ()) == []
