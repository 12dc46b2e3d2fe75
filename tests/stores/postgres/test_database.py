import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from recuerdo.state.errors import StoreError
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.migrations import migrations

START = """
import asyncio, sys
from recuerdo.stores.postgres.checkpoints import open_saver
from recuerdo.stores.postgres.database import Database
async def main():
    database = await Database.open(sys.argv[1])
    await open_saver(database)
    await database.close()
sys.stdin.readline()
asyncio.run(main())
"""


def test_four_processes_start_at_once_on_an_empty_database(empty_database_url: str) -> None:
    command = [sys.executable, "-c", START, empty_database_url]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=90)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors
    with psycopg.connect(empty_database_url) as connection:
        applied = connection.execute("select number from recuerdo.migrations").fetchall()
        assert applied == [(migration.number,) for migration in migrations()]
        invalid = connection.execute("select count(*) from pg_index where not indisvalid").fetchone()
        assert invalid == (0,)


async def test_rf_64_im_37_the_tables_exist_after_start(empty_database_url: str) -> None:
    database = await Database.open(empty_database_url)
    async with database.connection() as connection:
        cursor = await connection.execute(
            "select table_name from information_schema.tables where table_schema = 'recuerdo'"
        )
        tables = {row["table_name"] for row in await cursor.fetchall()}
    await database.close()
    assert {"conversations", "messages", "turns", "user_preferences", "user_memory"} <= tables


async def test_newer_database_is_refused(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("insert into recuerdo.migrations (number, name) values (9999, 'future')")
    with pytest.raises(StoreError, match="9999"):
        await Database.open(database_url)


@pytest.mark.parametrize(
    "conninfo",
    [
        "postgresql://someone:hush-hush@127.0.0.1:1/none",
        "postgresql://someone:hush@hush@127.0.0.1:1/none",
        "postgresql:/someone:hush-hush@127.0.0.1/none",
        "host=127.0.0.1 port=1 password=hush-hush nonsense",
    ],
)
async def test_no_answer_is_an_error_without_the_password(conninfo: str) -> None:
    with pytest.raises(StoreError) as failed:
        await Database.open(conninfo)
    texts = (str(failed.value), failed.value.sentence.es, str(failed.value.__cause__))
    assert "hush" not in "".join(texts)


async def test_missing_database_is_named_as_such(database_url: str) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        await Database.open(psycopg.conninfo.make_conninfo(database_url, dbname="nowhere"))


async def test_user_without_rights_is_told_what_is_missing(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("create role guest_of_the_test login")
    try:
        with pytest.raises(StoreError, match="permission"):
            await Database.open(psycopg.conninfo.make_conninfo(empty_database_url, user="guest_of_the_test"))
    finally:
        with psycopg.connect(empty_database_url, autocommit=True) as connection:
            connection.execute("drop role guest_of_the_test")


def end_all_backends(database_url: str) -> None:
    """Returns when they are gone."""
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )


async def test_fault_25_killed_backends_are_replaced(database: Database, database_url: str) -> None:
    async with database.connection() as connection:
        await connection.execute("select 1")
    end_all_backends(database_url)
    async with database.connection() as connection:
        row = await (await connection.execute("select 1 as one")).fetchone()
    assert row == {"one": 1}


async def test_fault_25_server_that_went_away_is_noticed_without_asking_it(
    database: Database, database_url: str
) -> None:
    """Every connection of the pool is gone; a tenant's work and a read each meet one."""
    async with AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(database.connection())
    end_all_backends(database_url)
    assert await database.read("A", "select 1 as one", ()) == [{"one": 1}]
    async with database.tenant("A") as connection:
        assert await (await connection.execute("select 1 as one")).fetchone() == {"one": 1}


async def test_fault_25_backend_killed_in_mid_read_is_a_clear_error(
    database: Database, database_url: str
) -> None:
    reading = asyncio.create_task(database.read("A", "select pg_sleep(30)", ()))
    kill = (
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and query like 'select pg_sleep%'"
    )
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
        for _ in range(1_000):
            if await (await other.execute(kill)).fetchall():
                break
            await asyncio.sleep(0.01)
    with pytest.raises(StoreError):
        await reading
    assert await database.read("A", "select 1 as one", ()) == [{"one": 1}]


async def test_fault_25_backend_killed_in_mid_run_is_a_clear_error(database: Database) -> None:
    with pytest.raises(StoreError):
        async with database.transaction() as connection:
            await connection.execute("select pg_terminate_backend(pg_backend_pid())")
    async with database.connection() as connection:
        await connection.execute("select 1")


async def test_fault_25_nothing_is_prepared_behind_a_pooler(database_url: str) -> None:
    direct = await Database.open(database_url)
    assert direct.prepares_statements
    await direct.close()
    socket = conninfo_to_dict(database_url)
    async with await asyncio.start_server(
        lambda reader, writer: pretend_to_pool(
            str(socket["host"]), int(socket.get("port") or 5432), reader, writer
        ),
        "127.0.0.1",
    ) as pooler:
        port = pooler.sockets[0].getsockname()[1]
        conninfo = psycopg.conninfo.make_conninfo(
            database_url, host="127.0.0.1", port=port, sslmode="disable"
        )
        pooled = await Database.open(conninfo)
        assert not pooled.prepares_statements
        await pooled.read("A", "select key from recuerdo.user_preferences where tenant = %s", ("A",))
        assert await pooled.read("A", "select name from pg_prepared_statements", ()) == []
        await pooled.close()


async def pretend_to_pool(
    folder: str, port: int, client: asyncio.StreamReader, answer: asyncio.StreamWriter
) -> None:
    """Pass everything on, but give the client a process id that is not the backend's, as PgBouncer does."""
    server, ask = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{port}")

    async def forward() -> None:
        while data := await client.read(65536):
            ask.write(data)
        ask.close()

    forwarding = asyncio.create_task(forward())
    ready = b""
    while not ready.endswith(b"Z\0\0\0\5I"):
        ready += await server.read(65536)
    key = ready.index(b"K\0\0\0\x0c") if b"K\0\0\0\x0c" in ready else ready.index(b"K\0\0\0")
    answer.write(ready[: key + 5] + (1).to_bytes(4, "big") + ready[key + 9 :])
    while data := await server.read(65536):
        answer.write(data)
    await forwarding
    answer.close()
