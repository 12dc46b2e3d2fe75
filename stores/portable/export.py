"""Long-term memory written out: a tenant as ``memory.db``, one user as plain data."""

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.sql import SQL, Identifier

from recuerdo.state.errors import InputError
from recuerdo.state.os_errors import system_reason
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.stores.memory_store.namespaces import encode_label
from recuerdo.stores.portable.tables import FORMAT, TABLES, Column, PortableTable, as_text, columns, select
from recuerdo.stores.postgres.checkpoints import summaries_of
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.retention import ITEMS_OF_USER, tables_of_users
from recuerdo.stores.postgres.scope import require_scope

sentences = load_sentences(__package__)

_ROWS_AT_ONCE = 500
_OF_THE_SEARCH = ("embedder", "analyzer", "asks")


async def export_tenant(
    database: Database, tenant: str, path: Path, now: datetime, *, replace: bool = False
) -> dict[str, int]:
    """Write all long-term memory of ``tenant`` into one SQLite file at ``path`` (OR-6). Returns rows by table.

    As it stood at one moment, whatever is written meanwhile; without what has expired by ``now``. Nobody but its
    owner may read the file. Raises ScopeError, InputError when the file is there and is not to be replaced or
    cannot be written.
    """
    require_scope(tenant=tenant)
    if not replace and await asyncio.to_thread(path.exists):
        raise InputError(sentences("export_exists", path=path))
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        file = await asyncio.to_thread(_create, draft)
        try:
            counts = await _write(database, tenant, file, now)
        finally:
            await asyncio.to_thread(file.close)
        await asyncio.to_thread(draft.replace, path)
    except (OSError, sqlite3.OperationalError) as error:
        raise InputError(sentences("export_no_access", path=path, reason=_reason(error))) from None
    finally:
        await asyncio.to_thread(draft.unlink, missing_ok=True)
    return counts


async def export_user(
    database: Database, tenant: str, user: str, now: datetime
) -> dict[str, list[dict[str, Any]]]:
    """What is kept of a user and is in force at ``now``, as plain data by table (IM-43).

    Long-term memory, an app's items under his name, conversations with their messages and running summaries,
    and the rows of every other table that names him: turns with their records, tool calls, approvals, evidence.
    Left out is what only serves the search (embeddings and terms), and what forgetting him leaves alone too: the
    audit (ids alone), roles, and the copy of the platform's own data. Raises ScopeError.
    """
    require_scope(tenant=tenant, user=user)
    values = {"user": user, "label": encode_label(user), "now": now}
    async with database.tenant(tenant, snapshot=True) as connection:
        exported = {table.name: await _of_user(connection, table, values) for table in TABLES}
        exported["conversations"] = await _conversations(connection, user)
        for name in await tables_of_users(connection):
            if name not in exported:
                exported[name] = await _rows_of(connection, name, values)
    summaries = await summaries_of(database, tenant, [kept["id"] for kept in exported["conversations"]])
    for kept in exported["conversations"]:
        kept["summary"] = summaries.get(kept["id"])
    return exported


async def _write(database: Database, tenant: str, file: sqlite3.Connection, now: datetime) -> dict[str, int]:
    async with database.tenant(tenant, snapshot=True) as connection:
        counts = {table.name: await _copy(connection, table, file, now) for table in TABLES}
    about = {"format": str(FORMAT), "tenant": tenant, "exported_at": now.isoformat()}
    await asyncio.to_thread(_finish, file, about)
    return counts


async def _copy(connection: Connection, table: PortableTable, file: sqlite3.Connection, now: datetime) -> int:
    names = await columns(connection, table)
    await asyncio.to_thread(_create_table, file, table, names)
    copied = 0
    async with connection.cursor(name="export") as cursor:
        await cursor.execute(select(table, names), {"now": now})
        while rows := await cursor.fetchmany(_ROWS_AT_ONCE):
            await asyncio.to_thread(_insert, file, table, names, rows)
            copied += len(rows)
    return copied


def _create(path: Path) -> sqlite3.Connection:
    path.touch(mode=0o600, exist_ok=False)
    return sqlite3.connect(path, check_same_thread=False)


def _create_table(file: sqlite3.Connection, table: PortableTable, names: Sequence[Column]) -> None:
    listed = ", ".join(f'"{column.name}"' for column in names)
    file.execute(f'create table "{table.name}" ({listed})')


def _insert(
    file: sqlite3.Connection, table: PortableTable, names: Sequence[Column], rows: Sequence[DictRow]
) -> None:
    places = ", ".join("?" * len(names))
    values = [[column.to_sqlite(row[column.name]) for column in names] for row in rows]
    file.executemany(f'insert into "{table.name}" values ({places})', values)


def _finish(file: sqlite3.Connection, about: dict[str, str]) -> None:
    file.execute("create table about (name text primary key, value text not null)")
    file.executemany("insert into about values (?, ?)", about.items())
    file.commit()


async def _of_user(
    connection: Connection, table: PortableTable, values: dict[str, Any]
) -> list[dict[str, Any]]:
    of_user: LiteralString = "user_id = %(user)s"
    if table.name == "store_items":
        # Whose an app's item is, its namespace or its key says: see MemoryStore.
        of_user = ITEMS_OF_USER
    if table.name == "key_event_changes":
        of_user = "event_id in (select id from recuerdo.key_events where user_id = %(user)s)"
    kept = [
        column
        for column in await columns(connection, table)
        if column.kind != "bytea" and column.name not in _OF_THE_SEARCH
    ]
    cursor = await connection.execute(select(table, kept, of_user), values)
    return [_plain(row) for row in await cursor.fetchall()]


async def _rows_of(connection: Connection, name: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """The user's rows of any table, as JSON; those that have expired are left out."""
    query = SQL(
        "select to_jsonb(kept) - 'tenant' as kept from {} kept where user_id = %(user)s"
        " and coalesce((to_jsonb(kept) ->> 'expires_at')::timestamptz > %(now)s, true) order by 1"
    )
    cursor = await connection.execute(query.format(Identifier("recuerdo", name)), values)
    return [row["kept"] for row in await cursor.fetchall()]


async def _conversations(connection: Connection, user: str) -> list[dict[str, Any]]:
    cursor = await connection.execute(
        "select v.id, v.assistant, v.started_at, coalesce(jsonb_agg(jsonb_build_object('role', m.role,"
        " 'content', m.content, 'at', m.created_at) order by t.number, m.position)"
        " filter (where m.id is not null), '[]') as messages"
        " from recuerdo.conversations v"
        " left join recuerdo.turns t on t.tenant = v.tenant and t.conversation = v.id"
        " left join recuerdo.messages m on m.tenant = t.tenant and m.turn_id = t.id"
        " where v.user_id = %s group by v.tenant, v.id order by v.started_at, v.id",
        (user,),
    )
    return [_plain(row) for row in await cursor.fetchall()]


def _plain(row: DictRow) -> dict[str, Any]:
    return {
        name: as_text(value) if isinstance(value, UUID | datetime) else value for name, value in row.items()
    }


def _reason(error: OSError | sqlite3.OperationalError) -> Sentence | str:
    return system_reason(error) if isinstance(error, OSError) else str(error)
