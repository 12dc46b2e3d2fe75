"""One PostgreSQL server for the whole run, and a database of its own for each test that asks for one."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recuerdo.stores.postgres.checkpoints import open_saver
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.embedded import EmbeddedServer

TEMPLATE = "recuerdo_template"
_numbers = count(1)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Connection string of a running server."""
    server = EmbeddedServer(tmp_path_factory.mktemp("postgres"))
    yield server.start()
    server.stop()


@pytest.fixture(scope="session")
def database_template(postgres_server: str) -> str:
    """Name of a database with the schema and LangGraph's tables in place, to copy from."""
    _run(postgres_server, sql.SQL("create database {}").format(sql.Identifier(TEMPLATE)))
    asyncio.run(_fill(make_conninfo(postgres_server, dbname=TEMPLATE)))
    return TEMPLATE


@pytest.fixture
def empty_database_url(postgres_server: str) -> Iterator[str]:
    """Connection string of a database without anything in it."""
    yield from _new_database(postgres_server, "template1")


@pytest.fixture
def database_url(postgres_server: str, database_template: str) -> Iterator[str]:
    """Connection string of a migrated database that only this test uses."""
    yield from _new_database(postgres_server, database_template)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database that only this test uses."""
    database = await Database.open(database_url)
    yield database
    await database.close()


def _new_database(server: str, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    _run(
        server,
        sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template)),
    )
    yield make_conninfo(server, dbname=name)
    _run(server, sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def _run(server: str, statement: sql.Composed) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement)


async def _fill(conninfo: str) -> None:
    database = await Database.open(conninfo)
    await open_saver(database)
    await database.close()
