"""What one test leaves in its database, the next does not find."""

import psycopg
import pytest
from psycopg import sql

from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences
from tests.databases import Databases
from tests.recuerdo.carlos import CARLOS, TENANT, SettableClock

FILLED = {"checkpoint_migrations", "migrations"}
TIMES = 8  # more than copies ever lie ready


def tell(conninfo: str, *statements: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def rows(conninfo: str) -> dict[str, int]:
    """How many rows each table has that has any."""
    with psycopg.connect(conninfo) as connection:
        tables = connection.execute(
            "select schemaname, tablename from pg_tables where schemaname in ('public', 'recuerdo')"
        ).fetchall()
        counts = {
            name: connection.execute(sql.SQL("select from {}").format(sql.Identifier(schema, name))).rowcount
            for schema, name in tables
        }
    return {name: count for name, count in counts.items() if count}


def identity(conninfo: str) -> int:
    """The oid, which a new name does not change."""
    with psycopg.connect(conninfo) as connection:
        (row,) = connection.execute("select oid from pg_database where datname = current_database()")
    return int(row[0])


async def test_rows_of_one_do_not_reach_the_next(databases: Databases) -> None:
    seen, names = set(), set()
    for _ in range(TIMES):
        with databases.lent() as conninfo:
            assert set(rows(conninfo)) == FILLED
            seen.add(identity(conninfo))
            names.add(conninfo)
            database = await Database.open(conninfo)
            change = PreferenceChange("preferred_timeframe", "4h", "velas de 4h", "m1", "es")
            await Preferences(database, TENANT).set(CARLOS, change, SettableClock().now)
            await database.close()
            tell(conninfo, "select nextval(seqrelid) from pg_sequence", "create temporary table mine (x int)")
            assert "user_preferences" in rows(conninfo)
    assert len(seen) < TIMES == len(names)


def test_a_forgotten_connection_is_closed(databases: Databases) -> None:
    with databases.lent() as conninfo:
        forgotten = psycopg.connect(conninfo)
    with pytest.raises(psycopg.OperationalError):
        forgotten.execute("select 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        for _ in range(TIMES):
            with databases.lent():
                pass
        psycopg.connect(conninfo)


def test_sequences_start_anew(databases: Databases) -> None:
    values = "select array_agg(nextval(seqrelid) order by seqrelid) from pg_sequence"
    for _ in range(TIMES):
        with databases.lent() as conninfo, psycopg.connect(conninfo) as connection:
            (row,) = connection.execute(values)
            assert set(row[0]) == {1}


@pytest.mark.parametrize(
    "change",
    [
        "create schema theirs",
        "create table recuerdo.theirs (x int)",
        "drop table recuerdo.user_symbols",
        "alter table recuerdo.plan_revisions disable trigger immutable",
        "alter table recuerdo.user_memory add column theirs int",
        "grant select on recuerdo.user_memory to public",
        "grant usage on schema recuerdo to public",
        "drop policy if exists tenant on recuerdo.turns; alter table recuerdo.turns no force row level security",
        "create function recuerdo.theirs() returns int language sql return 1",
        "delete from recuerdo.migrations",
        "insert into recuerdo.migrations select number + 100, name || 'x', applied_at from recuerdo.migrations",
        "do $$ begin execute format('alter database %I set work_mem = 100', current_database()); end $$",
        "do $$ begin execute format('alter database %I connection limit 9', current_database()); end $$",
    ],
)
def test_a_changed_schema_goes_no_further(databases: Databases, change: str) -> None:
    with databases.lent() as conninfo:
        changed = identity(conninfo)
        tell(conninfo, change)
    for _ in range(TIMES):
        with databases.lent() as conninfo:
            assert identity(conninfo) != changed
