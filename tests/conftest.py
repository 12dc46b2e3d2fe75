"""One PostgreSQL server for the whole run, and a database of its own for each test that asks for one."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from recuerdo.stores.postgres.checkpoints import open_saver
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.embedded import EmbeddedServer
from tests.databases import Databases

TEMPLATE = "recuerdo_template"
# What a power cut would spoil is made anew by the next run.
UNSAFE_AND_FAST = ("fsync", "synchronous_commit", "full_page_writes")


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Connection string of a running server."""
    server = EmbeddedServer(tmp_path_factory.mktemp("postgres"))
    conninfo = server.start()
    _run(conninfo, *(f"alter system set {name} = off" for name in UNSAFE_AND_FAST), "select pg_reload_conf()")
    yield conninfo
    server.stop()


@pytest.fixture(scope="session")
def database_template(postgres_server: str) -> str:
    """Name of a database with the schema and LangGraph's tables in place, to copy from."""
    _run(postgres_server, f"create database {TEMPLATE}")
    asyncio.run(_fill(make_conninfo(postgres_server, dbname=TEMPLATE)))
    return TEMPLATE


@pytest.fixture(scope="session")
def databases(postgres_server: str, database_template: str) -> Databases:
    """Migrated databases to lend."""
    return Databases(postgres_server, database_template)


@pytest.fixture(scope="session")
def empty_databases(postgres_server: str) -> Databases:
    """Databases without anything in them to lend."""
    return Databases(postgres_server, "template1")


@pytest.fixture
def empty_database_url(empty_databases: Databases) -> Iterator[str]:
    """Connection string of a database without anything in it."""
    with empty_databases.lent() as conninfo:
        yield conninfo


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """Connection string of a migrated database that only this test uses."""
    with databases.lent() as conninfo:
        yield conninfo


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database that only this test uses."""
    database = await Database.open(database_url)
    yield database
    await database.close()


def _run(server: str, *statements: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


async def _fill(conninfo: str) -> None:
    database = await Database.open(conninfo)
    await open_saver(database)
    await database.close()
