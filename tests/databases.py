"""Databases that one test after the other has to itself.

To copy a database takes hundreds of new files, to empty one takes milliseconds. So what a test gives back is
emptied and goes to the next, under a new name: a connection that somebody forgot finds nothing. One whose
schema the test has changed is dropped.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

Connection = psycopg.Connection[tuple[Any, ...]]

_END_OTHERS = """
select pg_terminate_backend(pid, 10000) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""

_OWN_TABLES = """
select nspname, relname from pg_class join pg_namespace space on space.oid = relnamespace
where relkind = 'r' and nspname not in ('pg_catalog', 'information_schema')
"""

_CATALOGS = """
select 'pg_catalog', relname from pg_class
where relkind = 'r' and not relisshared and relnamespace = 'pg_catalog'::regnamespace
    and relname not in ('pg_statistic', 'pg_statistic_ext_data', 'pg_namespace')
"""

# A row that is added or changed has a later xmin, and one that is removed is not counted.
_VERSION_OF_TABLE = sql.SQL("select {name}, count(*)::text, max(xmin::text::bigint)::text from {table}")

# Not the schemas for temporary tables: each session that has made one leaves its own behind.
_VERSION_OF_SCHEMAS = sql.SQL("""
select nspname, nspowner::text, nspacl::text from pg_namespace where nspname !~ '^pg_(toast_)?temp_'
""")

_VERSION_OF_DATABASE = sql.SQL("""
select datdba::text, datacl::text, concat_ws(' ', datconnlimit, (
    select string_agg(setting::text, ' ' order by setrole) from pg_db_role_setting setting
    where setdatabase = pg_database.oid))
from pg_database where datname = current_database()
""")

Version = set[tuple[Any, ...]]

_RESTART_SEQUENCES = "select setval(seqrelid, seqstart, false) from pg_sequence"


class Databases:
    """Copies of ``template``, each lent to one test at a time."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._numbers = count(1)
        self._free: deque[tuple[str, Version]] = deque()
        with self._connected(template) as connection:
            own = connection.execute(_OWN_TABLES).fetchall()
            catalogs = connection.execute(_CATALOGS).fetchall()
            # The rows of a fresh copy say which migrations have run: they belong to the schema.
            filled = [table for table in own if _has_rows(connection, table)]
        self._empty = sql.SQL(";").join(
            sql.SQL("delete from {}").format(sql.Identifier(*table)) for table in own if table not in filled
        )
        versions = [
            _VERSION_OF_TABLE.format(name=table[-1], table=sql.Identifier(*table))
            for table in [*catalogs, *filled]
        ]
        self._version = sql.SQL(" union all ").join([*versions, _VERSION_OF_SCHEMAS, _VERSION_OF_DATABASE])

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The connection string of a database as fresh as a copy. No other has its name, then or later."""
        name = f"{self._template}_{next(self._numbers)}"
        fresh = self._take(name)
        yield make_conninfo(self._server, dbname=name)
        if self._is_cleared(name, fresh):
            self._free.append((name, fresh))
        else:
            self._tell("drop database {} with (force)", name)

    def _take(self, name: str) -> Version:
        """Have a fresh database under ``name``, and say what the version of its schema is."""
        # Not the last one: a name is changed only when the session that emptied it has ended.
        if len(self._free) > 1:
            used, fresh = self._free.popleft()
            self._tell("alter database {} rename to {}", used, name)
            return fresh
        self._tell("create database {} template {}", name, self._template)
        with self._connected(name) as connection:
            return self._version_of(connection)

    def _is_cleared(self, name: str, fresh: Version) -> bool:
        """Empty a database, unless its schema is another now."""
        with self._connected(name) as connection:
            connection.execute(_END_OTHERS)
            if self._version_of(connection) != fresh:
                return False
            self._clear(connection)
            return True

    def _version_of(self, connection: Connection) -> Version:
        return set(connection.execute(self._version).fetchall())

    def _clear(self, connection: Connection) -> None:
        with connection.transaction():
            # No trigger guards what may not be deleted, and no order has to be kept.
            connection.execute("set local session_replication_role = replica")
            connection.execute(self._empty)
            connection.execute(_RESTART_SEQUENCES)

    def _tell(self, statement: str, *names: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    def _connected(self, name: str) -> Connection:
        return psycopg.connect(make_conninfo(self._server, dbname=name), autocommit=True)


def _has_rows(connection: Connection, table: tuple[str, str]) -> bool:
    query = sql.SQL("select exists(select from {})").format(sql.Identifier(*table))
    return bool(connection.execute(query).fetchall()[0][0])
