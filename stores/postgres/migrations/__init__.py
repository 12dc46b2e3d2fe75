"""The numbered SQL files here bring the schema ``recuerdo`` up to date, whoever starts at the same time."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from psycopg import AsyncConnection, sql
from psycopg.rows import DictRow

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import load_sentences

_sentences = load_sentences("recuerdo.stores.postgres")

# Any constant will do, so long as nothing else in the database locks the same one.
_LOCK = 0x5265_6375_6572_646F


@dataclass(frozen=True)
class Migration:
    """One numbered file: ``0001_tables.sql`` is number 1, name ``tables``."""

    number: int
    name: str
    statements: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration, in order."""
    found = [entry for entry in files(__package__).iterdir() if entry.name.endswith(".sql")]
    return tuple(
        Migration(int(number), name.removesuffix(".sql"), entry.read_text(encoding="utf-8"))
        for entry in sorted(found, key=lambda entry: entry.name)
        for number, _, name in [entry.name.partition("_")]
    )


async def migrate(connection: AsyncConnection[DictRow]) -> None:
    """Apply what is missing, in one transaction. Raises StoreError when the database is newer than we are."""
    newest = migrations()[-1].number
    if await _applied(connection) == newest:
        return
    async with connection.transaction():
        # Held to the end of the transaction: it cannot leak, also behind a pooler.
        await connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        applied = await _applied(connection)
        if applied > newest:
            raise StoreError(_sentences("database_newer", found=applied, known=newest))
        for migration in migrations()[applied:]:
            await connection.execute(sql.SQL(migration.statements))
            await connection.execute(
                "insert into recuerdo.migrations (number, name) values (%s, %s)",
                (migration.number, migration.name),
            )


async def _applied(connection: AsyncConnection[DictRow]) -> int:
    # Not to_regclass: within a transaction it may still answer from before the lock was waited for.
    cursor = await connection.execute(
        "select 1 from pg_catalog.pg_tables where schemaname = 'recuerdo' and tablename = 'migrations'"
    )
    if await cursor.fetchone() is None:
        return 0
    cursor = await connection.execute("select coalesce(max(number), 0) as number from recuerdo.migrations")
    row = await cursor.fetchone()
    return int(row["number"]) if row else 0
