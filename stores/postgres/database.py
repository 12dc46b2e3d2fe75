"""The pool of connections to PostgreSQL, with the schema up to date."""

import selectors
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar, overload

from psycopg import AsyncConnection, Error, OperationalError, ProgrammingError
from psycopg.abc import Params, QueryNoTemplate
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import InsufficientPrivilege
from psycopg.rows import AsyncRowFactory, DictRow, dict_row
from psycopg.sql import SQL, Composed
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from recuerdo.state.errors import StoreError
from recuerdo.state.limits import DEFAULT_LIMITS, MemoryLimits
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.migrations import migrate

_sentences = load_sentences(__package__)

Connection = AsyncConnection[DictRow]
Pool = AsyncConnectionPool[Connection]
Row = TypeVar("Row")

_CONNECT_SECONDS = 10
# The setting "role" is what SET ROLE sets.
_AS_TENANT = SQL(
    "begin {level}; select set_config('role', 'recuerdo_tenant', true),"
    " set_config('recuerdo.tenant', {tenant}, true)"
)
_READ_AS_TENANT = (
    "select set_config('role', 'recuerdo_tenant', true), set_config('recuerdo.tenant', %s, true)"
)
_SNAPSHOT = SQL("isolation level repeatable read")
# LangGraph's tables stand where the search path of the role that logged in says: "$user" would be another now.
_AS_OPERATOR = SQL(
    "begin; select set_config('search_path', string_agg(quote_ident(name), ','), true)"
    " from unnest(current_schemas(false)) as name; set local role recuerdo_operator"
)
# SQLSTATE classes that say the connection is gone, not that the statement was wrong.
_LOST = ("08", "57P")


class Database:
    """A pool whose connections commit each statement by themselves and give rows as dicts.

    Behind a pooler such as PgBouncer ``prepares_statements`` is False. ``limits`` are those of whatever is
    written through it (OR-9).

    It belongs to the event loop that opened it.
    """

    def __init__(
        self, pool: Pool, *, prepares_statements: bool, limits: MemoryLimits = DEFAULT_LIMITS
    ) -> None:
        self.pool = pool
        self.prepares_statements = prepares_statements
        self.limits = limits

    @classmethod
    async def open(cls, conninfo: str, *, pool_size: int = 8, limits: MemoryLimits = DEFAULT_LIMITS) -> Self:
        """Connect and migrate.

        Raises StoreError, which never shows the password, when the server does not answer or refuses us, or
        when the database is newer than this program.
        """
        pooled = await _prepare(_checked(conninfo))
        pool: Pool = AsyncConnectionPool(
            conninfo,
            connection_class=AsyncConnection[DictRow],
            kwargs={
                "autocommit": True,
                "prepare_threshold": None if pooled else 0,
                "row_factory": dict_row,
                "connect_timeout": _CONNECT_SECONDS,
            },
            min_size=1,
            max_size=pool_size,
            timeout=_CONNECT_SECONDS,
            # Without it the first calls after a restart of the server fail.
            check=_check,
            open=False,
        )
        try:
            await pool.open(wait=True, timeout=_CONNECT_SECONDS)
        except PoolTimeout as error:
            await pool.close()
            raise StoreError(_sentences("database_unreachable")) from error
        return cls(pool, prepares_statements=not pooled, limits=limits)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection, each statement its own transaction. StoreError when the server is away."""
        try:
            async with self.pool.connection() as connection:
                yield connection
        except (PoolTimeout, PoolClosed) as error:
            raise StoreError(_sentences("database_unreachable")) from error
        except OperationalError as error:
            if not _is_lost(error):
                raise
            raise StoreError(_sentences("database_unreachable")) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside one transaction: all is written, or nothing."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    @asynccontextmanager
    async def tenant(self, tenant: str, *, snapshot: bool = False) -> AsyncIterator[Connection]:
        """One transaction that sees and writes the rows of ``tenant`` and no other's, whatever it asks for (OR-6).

        With ``snapshot`` it sees all of them as they stand at its beginning.
        """
        level = _SNAPSHOT if snapshot else SQL("")
        async with self._begun(_AS_TENANT.format(level=level, tenant=tenant)) as connection:
            yield connection

    @overload
    async def read(
        self, tenant: str, query: QueryNoTemplate, values: Params, *, binary: bool = ...
    ) -> list[DictRow]: ...

    @overload
    async def read(
        self,
        tenant: str,
        query: QueryNoTemplate,
        values: Params,
        *,
        rows: AsyncRowFactory[Row],
        binary: bool = ...,
    ) -> list[Row]: ...

    async def read(
        self,
        tenant: str,
        query: QueryNoTemplate,
        values: Params,
        *,
        rows: AsyncRowFactory[Any] = dict_row,
        binary: bool = False,
    ) -> list[Any]:
        """The rows of one query under :meth:`tenant`: the whole transaction is one trip to the server.

        It cannot write. Raises StoreError when the server is away.
        """
        async with self.connection() as connection:
            cursor = connection.cursor(binary=binary, row_factory=rows)
            async with connection.pipeline():
                await connection.execute("begin read only")
                await connection.execute(_READ_AS_TENANT, (tenant,))
                await cursor.execute(query, values)
                await connection.execute("commit")
            return await cursor.fetchall()

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[Connection]:
        """One transaction that sees every tenant's rows: for the worker, never on behalf of a user."""
        async with self._begun(_AS_OPERATOR) as connection:
            yield connection

    @asynccontextmanager
    async def _begun(self, begin: SQL | Composed) -> AsyncIterator[Connection]:
        """Role and tenant end with the transaction, so behind a pooler nobody else inherits them."""
        async with self.connection() as connection:
            # One trip to the server, not three.
            await connection.execute(begin, prepare=False)
            try:
                yield connection
            except BaseException:
                if not connection.closed:
                    await connection.rollback()
                raise
            await connection.commit()

    async def close(self) -> None:
        """Close the pool."""
        await self.pool.close()


async def _check(connection: Connection) -> None:
    """Raise OperationalError for a connection that is gone, as a pool's check does.

    A server that went away leaves its farewell, or the end of the stream, to be read. Where there is nothing to read
    nothing is asked, so that a connection costs no trip to the server.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        if selector.select(0):
            await AsyncConnectionPool.check_connection(connection)


def _checked(conninfo: str) -> str:
    try:
        conninfo_to_dict(conninfo)
    except ProgrammingError:
        # The reason that libpq gives quotes the text, and so perhaps the password.
        raise StoreError(_sentences("database_url_invalid")) from None
    return conninfo


async def _prepare(conninfo: str) -> bool:
    """Bring the schema up to date; return whether a pooler stands between."""
    try:
        async with await AsyncConnection.connect(
            conninfo,
            autocommit=True,
            prepare_threshold=None,
            row_factory=dict_row,
            connect_timeout=_CONNECT_SECONDS,
        ) as connection:
            await migrate(connection)
            return await _is_pooled(connection)
    except InsufficientPrivilege as error:
        raise StoreError(_sentences("database_not_permitted")) from error
    except OperationalError as error:
        # libpq quotes parts of the address, and so, in an address with a slip, perhaps the password.
        raise StoreError(_sentences(_connection_fault(error))) from None


async def _is_pooled(connection: Connection) -> bool:
    """Whether a pooler such as PgBouncer stands between: its process id is not that of the backend.

    There a prepared statement may meet another backend that does not know it.
    """
    cursor = await connection.execute("select pg_backend_pid() as pid")
    row = await cursor.fetchone()
    return row is None or row["pid"] != connection.info.backend_pid


def _connection_fault(error: Error) -> str:
    message = str(error)
    if "authentication" in message or "role" in message:
        return "database_refused"
    if "does not exist" in message:
        return "database_missing"
    return "database_unreachable"


def _is_lost(error: OperationalError) -> bool:
    return error.sqlstate is None or error.sqlstate.startswith(_LOST)
