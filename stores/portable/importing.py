"""``memory.db`` read back. The file is not trusted: types, limits, sensitive data and ids are checked."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg.errors import DataError, IntegrityError, ProgramLimitExceeded
from psycopg.sql import SQL, Composed, Identifier, Placeholder
from psycopg.types.json import Jsonb

from recuerdo.state.errors import InputError
from recuerdo.state.limits import MEMORY_MAX_DAYS, expiry
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.portable.rows import check_row, derived_of_item, derived_of_memory
from recuerdo.stores.portable.tables import FORMAT, TABLES, Column, PortableTable, Unfit, columns, plain_json
from recuerdo.stores.postgres.audit import Change, write_audit
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.governance_audit import GovernanceAudit
from recuerdo.stores.postgres.memories.rows import clean_metadata
from recuerdo.stores.postgres.publishing import audit_imported
from recuerdo.stores.postgres.roles import role_of, roles_of
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import storable_json, without_sensitive

sentences = load_sentences(__package__)

_ROWS_AT_ONCE = 500
_MAY_PUBLISH = ("owner", "supervisor")

Row = dict[str, Any]


@dataclass(frozen=True)
class Imported:
    """What an import did: rows written by table, rows that were there already, facts no longer published."""

    written: dict[str, int]
    present: int
    unpublished: int


async def import_tenant(
    database: Database,
    tenant: str,
    path: Path,
    actor: str,
    now: datetime,
    *,
    audit: GovernanceAudit | None = None,
) -> Imported:
    """Write a tenant's ``memory.db`` into ``tenant``: all of it, or nothing (OR-6).

    Rows that are there already stay as they are. Vectors wait for the index; nothing is embedded again.
    Where the tenant has roles, a published fact stays so only when ``actor`` may publish (OR-11); else it is
    a confirmed one with its 90 days. Where it has none, as in an empty installation, the file is believed: who
    imports is who sets up. With ``audit`` the chain says what came in as published.

    Raises ScopeError, and InputError for a file that is no such export, was altered into something that cannot be,
    or whose ids belong to another tenant of this database.
    """
    require_scope(tenant=tenant, actor=actor)
    file = await asyncio.to_thread(_open, path)
    with closing(file):
        return await _Import(database, tenant, path, actor, now, audit).run(file)


class _Import:
    """One import under way."""

    def __init__(
        self,
        database: Database,
        tenant: str,
        path: Path,
        actor: str,
        now: datetime,
        audit: GovernanceAudit | None,
    ) -> None:
        self._database = database
        self._tenant = tenant
        self._path = path
        self._actor = actor
        self._now = now
        self._audit = audit
        self._published: list[UUID] = []
        self._keeps_published = True
        self._present = 0
        self._unpublished = 0

    async def run(self, file: sqlite3.Connection) -> Imported:
        self._keeps_published = await self._may_publish()
        async with self._database.tenant(self._tenant) as connection:
            written = {table.name: await self._copy(connection, table, file) for table in TABLES}
            if self._audit and self._published:
                published, actor = self._published, self._actor
                await audit_imported(connection, self._tenant, self._audit, published, actor, self._now)
        return Imported(written, self._present, self._unpublished)

    async def _may_publish(self) -> bool:
        async with self._database.tenant(self._tenant) as connection:
            if not await roles_of(connection, self._tenant):
                return True
            return await role_of(connection, self._tenant, self._actor) in _MAY_PUBLISH

    async def _copy(self, connection: Connection, table: PortableTable, file: sqlite3.Connection) -> int:
        known = _in_file(file, table, await columns(connection, table), self._path)
        insert = _insert(table, known)
        written = 0
        for rows in _batches(file, table, known, self._path):
            values = [{**await self._row(table, known, row), "tenant": self._tenant} for row in rows]
            written += await self._write(connection, table, insert, values)
        return written

    async def _row(self, table: PortableTable, known: Sequence[Column], row: Row) -> Row:
        """A row as it may be written: sensitive data taken out, limits kept, what is derived made anew."""
        try:
            await asyncio.to_thread(check_row, table, row)
        except Unfit as error:
            raise self._broken(f"{table.name}.{error}") from None
        row = row | {name: self._not_in_future(row[name]) for name in _past(known)}
        clean = await _without_sensitive(table, row)
        changed = "text" in clean and clean["text"] != row["text"]
        row |= {name: _wrapped(row[name], value) for name, value in clean.items()}
        match table.name:
            case "user_memory":
                row = self._in_time(row)
                row |= await asyncio.to_thread(derived_of_memory, row, changed=changed)
            case "store_items":
                row |= await asyncio.to_thread(derived_of_item, row, changed=changed)
            case "user_preferences":
                row["expires_at"] = min(row["expires_at"], self._latest("confirmed", row["updated_at"]))
            case "memory_revisions":
                row["expires_at"] = min(row["expires_at"], self._latest("confirmed", row["at"]))
        return row

    def _not_in_future(self, instant: datetime | None) -> datetime | None:
        """What is told as past: no later than now. A clock that went back, or an altered file."""
        return None if instant is None else min(instant, self._now)

    def _in_time(self, row: Row) -> Row:
        if row["status"] == "published" and not self._keeps_published:
            self._unpublished += 1
            row |= {"status": "confirmed", "expires_at": self._latest("confirmed", row["updated_at"])}
        if row["status"] != "published":
            latest = self._latest(row["status"], row["confirmed_at"] or row["updated_at"])
            row["expires_at"] = min(row["expires_at"] or latest, latest)
        return {**row, "vector_waiting_since": self._now}

    def _latest(self, status: Any, since: datetime) -> datetime:
        """The latest moment to which what was written at ``since`` may be kept."""
        if status not in ("low", "confirmed", "withdrawn"):
            raise self._broken("user_memory.status")
        latest = expiry(status, since)
        assert latest is not None, f"{status} expires within {MEMORY_MAX_DAYS} days"
        return latest

    def _broken(self, place: str) -> InputError:
        return InputError(sentences("import_broken", path=self._path, place=place))

    async def _write(
        self, connection: Connection, table: PortableTable, insert: Composed, rows: Sequence[Row]
    ) -> int:
        written: list[Row] = []
        for row in rows:
            try:
                cursor = await connection.execute(insert, row)
            except (IntegrityError, DataError, ProgramLimitExceeded) as error:
                name = error.diag.column_name or error.diag.constraint_name or ""
                raise self._broken(f"{table.name}.{name}") from None
            if cursor.rowcount:
                written.append(row)
            else:
                self._present += 1
                await self._check_own(connection, table, row)
        if table.name == "user_memory":
            self._published += [row["id"] for row in written if row["status"] == "published"]
        changes = [change for row in written if (change := _change(table, row)) is not None]
        await write_audit(connection, self._tenant, self._actor, self._now, changes)
        return len(written)

    async def _check_own(self, connection: Connection, table: PortableTable, row: Row) -> None:
        """What was not written must be there, and be ours: ids are unique beyond one tenant."""
        if table.name != "user_memory":
            return
        cursor = await connection.execute("select 1 from recuerdo.user_memory where id = %s", (row["id"],))
        if await cursor.fetchone() is None:
            raise InputError(sentences("import_foreign", path=self._path))


def _change(table: PortableTable, row: Row) -> Change | None:
    """What the audit says of a row that was written: whatever it says of one that is deleted."""
    match table.name:
        case "user_memory":
            return Change("user_memory", str(row["id"]), "added", row["turn_id"], row["message_id"])
        case "user_preferences":
            return Change("user_preferences", row["key"], "added", row["turn_id"], row["message_id"])
        case "user_symbols":
            return Change("user_symbols", row["symbol"], "added", row["turn_id"])
    return None


def _past(known: Sequence[Column]) -> Iterator[str]:
    """The columns that tell when something happened."""
    return (column.name for column in known if column.kind == "timestamptz" and column.name != "expires_at")


async def _without_sensitive(table: PortableTable, row: Row) -> Row:
    """The row's texts, without sensitive data, that are there."""
    texts = {name: plain_json(row[name]) for name in table.texts if row[name] is not None}
    clean: Row = storable_json(await without_sensitive(texts))
    if "metadata" in texts:
        clean["metadata"] = storable_json(await clean_metadata(texts["metadata"]))
    return clean


def _open(path: Path) -> sqlite3.Connection:
    """The export at ``path``, for reading only."""
    if not path.is_file():
        raise InputError(sentences("import_missing", path=path))
    try:
        file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        file.row_factory = sqlite3.Row
        found = file.execute("select value from about where name = 'format'").fetchone()
    except sqlite3.Error:
        raise InputError(sentences("import_no_export", path=path)) from None
    if found is None or found["value"] != str(FORMAT):
        raise InputError(sentences("import_other_format", path=path, known=FORMAT))
    return file


def _in_file(
    file: sqlite3.Connection, table: PortableTable, known: Sequence[Column], path: Path
) -> list[Column]:
    """The columns that are to be written, in order.

    What the file lacks is null, or the table's default. A column that the table lacks is of a newer program.
    """
    try:
        present = {row["name"] for row in file.execute(f'pragma table_info("{table.name}")')}
    except sqlite3.Error:
        raise InputError(sentences("import_no_export", path=path)) from None
    if not present:
        raise InputError(sentences("import_no_export", path=path))
    if present - {column.name for column in known}:
        raise InputError(sentences("import_other_format", path=path, known=FORMAT))
    for column in known:
        if column.name not in present and column.required and not column.has_default:
            raise InputError(sentences("import_broken", path=path, place=f"{table.name}.{column.name}"))
    return [column for column in known if column.name in present or not column.has_default]


def _batches(
    file: sqlite3.Connection, table: PortableTable, known: Sequence[Column], path: Path
) -> Iterator[list[Row]]:
    """The table's rows in the file, some at a time, each value checked; a column that is not there is None."""
    try:
        cursor = file.execute(f'select * from "{table.name}"')
        present = {name for name, *_ in cursor.description}
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield [
                {
                    column.name: column.from_sqlite(row[column.name]) if column.name in present else None
                    for column in known
                }
                for row in rows
            ]
    except sqlite3.Error:
        raise InputError(sentences("import_no_export", path=path)) from None
    except Unfit as error:
        raise InputError(sentences("import_broken", path=path, place=f"{table.name}.{error}")) from None


def _insert(table: PortableTable, known: Sequence[Column]) -> Composed:
    """What is there already stays; a child without a parent of this tenant is left out."""
    kinds = {"tenant": "text", **{column.name: column.kind for column in known}}
    if table.name == "user_memory":
        kinds["vector_waiting_since"] = "timestamptz"
    return SQL("insert into {} ({}) select {} where {} on conflict do nothing").format(
        Identifier("recuerdo", table.name),
        SQL(", ").join(map(Identifier, kinds)),
        SQL(", ").join(_typed(name, kind) for name, kind in kinds.items()),
        SQL(" and ").join([SQL("true"), *_conditions(table, known)]),
    )


def _conditions(table: PortableTable, known: Sequence[Column]) -> Iterator[Composed]:
    if table.parent:
        yield SQL("exists (select 1 from {} where id = {})").format(
            Identifier("recuerdo", table.parent), Placeholder(table.child_of)
        )
    if table.numbered:
        # Their numbers are the database's own: the same entry is known by what it says.
        same = SQL(" and ").join(
            SQL("k.{} is not distinct from {}").format(
                Identifier(column.name), _typed(column.name, column.kind)
            )
            for column in known
        )
        yield SQL("not exists (select 1 from {} k where {})").format(Identifier("recuerdo", table.name), same)


def _typed(name: str, kind: str) -> Composed:
    return SQL("{}::{}").format(Placeholder(name), Identifier(kind))


def _wrapped(before: Any, value: Any) -> Any:
    return Jsonb(value) if isinstance(before, Jsonb) else value
