"""``memory.db`` read back. The file is not trusted: types, limits, sensitive data and ids are checked."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.errors import DataError, IntegrityError
from psycopg.sql import SQL, Composed, Identifier, Placeholder
from psycopg.types.json import Jsonb

from recuerdo.state.errors import InputError
from recuerdo.state.limits import MEMORY_MAX_CHARACTERS, MEMORY_MAX_DAYS, expiry
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.portable.tables import FORMAT, TABLES, Column, PortableTable, Unfit, columns
from recuerdo.stores.postgres.audit import Change, write_audit
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.memories.rows import words_digest
from recuerdo.stores.postgres.roles import Roles, role_of
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import storable_json, without_sensitive
from recuerdo.stores.recall.analysis import ANALYZER, analyse

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


async def import_tenant(database: Database, tenant: str, path: Path, actor: str, now: datetime) -> Imported:
    """Write a tenant's ``memory.db`` into ``tenant``: all of it, or nothing (OR-6).

    Rows that are there already stay as they are. Vectors wait for the index; nothing is embedded again.
    Where the tenant has roles, a published fact stays so only when ``actor`` may publish (OR-11); else it is
    a confirmed one with its 90 days. Raises ScopeError, and InputError for a file that is no such export,
    was altered into something that cannot be, or whose ids belong to another tenant of this database.
    """
    require_scope(tenant=tenant, actor=actor)
    file = await asyncio.to_thread(_open, path)
    with closing(file):
        return await _Import(database, tenant, path, actor, now).run(file)


class _Import:
    """One import under way."""

    def __init__(self, database: Database, tenant: str, path: Path, actor: str, now: datetime) -> None:
        self._database = database
        self._tenant = tenant
        self._path = path
        self._actor = actor
        self._now = now
        self._keeps_published = True
        self._present = 0
        self._unpublished = 0

    async def run(self, file: sqlite3.Connection) -> Imported:
        self._keeps_published = await self._may_publish()
        async with self._database.tenant(self._tenant) as connection:
            written = {table.name: await self._copy(connection, table, file) for table in TABLES}
        return Imported(written, self._present, self._unpublished)

    async def _may_publish(self) -> bool:
        if not await Roles(self._database, self._tenant).all():
            return True
        async with self._database.tenant(self._tenant) as connection:
            return await role_of(connection, self._tenant, self._actor) in _MAY_PUBLISH

    async def _copy(self, connection: Connection, table: PortableTable, file: sqlite3.Connection) -> int:
        known = await columns(connection, table)
        insert = _insert(table, known)
        written = 0
        for rows in _batches(file, table, known, self._path):
            values = [{**await self._row(table, row), "tenant": self._tenant} for row in rows]
            written += await self._write(connection, table, insert, values)
        return written

    async def _row(self, table: PortableTable, row: Row) -> Row:
        """A row as it may be written: sensitive data taken out, limits kept."""
        texts = {name: _value(row[name]) for name in table.texts if row[name] is not None}
        clean = storable_json(await without_sensitive(texts))
        changed = clean != texts
        row = {**row, **{name: _wrapped(row[name], clean[name]) for name in texts}}
        if table.name == "user_memory":
            row = self._memory(row, changed)
        if table.name == "store_items" and changed:
            row |= _not_embedded(row)
        if table.name == "user_preferences":
            row["expires_at"] = min(row["expires_at"], self._latest("confirmed", row["updated_at"]))
        return row

    def _memory(self, row: Row, changed: bool) -> Row:
        if len(row["text"]) > MEMORY_MAX_CHARACTERS:
            raise InputError(sentences("import_broken", path=self._path, place="user_memory.text"))
        if row["status"] == "published" and not self._keeps_published:
            self._unpublished += 1
            row |= {"status": "confirmed", "expires_at": self._latest("confirmed", row["updated_at"])}
        if row["status"] != "published":
            latest = self._latest(row["status"], row["confirmed_at"] or row["updated_at"])
            row["expires_at"] = min(row["expires_at"] or latest, latest)
        if changed:
            row |= _not_embedded(row) | {"asks": analyse(row["text"], row["language"]).asks}
            row["words"] = words_digest(row["text"])
        return {**row, "vector_waiting_since": self._now}

    def _latest(self, status: Any, since: datetime) -> datetime:
        """The latest moment to which what was written at ``since`` may be kept."""
        if status not in ("low", "confirmed", "withdrawn"):
            raise InputError(sentences("import_broken", path=self._path, place="user_memory.status"))
        latest = expiry(status, min(since, self._now))
        assert latest is not None, f"{status} expires within {MEMORY_MAX_DAYS} days"
        return latest

    async def _write(
        self, connection: Connection, table: PortableTable, insert: Composed, rows: Sequence[Row]
    ) -> int:
        written = 0
        for row in rows:
            try:
                cursor = await connection.execute(insert, row)
            except (IntegrityError, DataError) as error:
                place = f"{table.name}.{error.diag.column_name or error.diag.constraint_name or ''}"
                raise InputError(sentences("import_broken", path=self._path, place=place)) from None
            if cursor.rowcount:
                written += 1
                await self._audit(connection, table, row)
            else:
                self._present += 1
                await self._check_own(connection, table, row)
        return written

    async def _audit(self, connection: Connection, table: PortableTable, row: Row) -> None:
        if table.name == "user_memory":
            change = Change("user_memory", str(row["id"]), "added", row["turn_id"], row["message_id"])
            await write_audit(connection, self._tenant, self._actor, self._now, [change])

    async def _check_own(self, connection: Connection, table: PortableTable, row: Row) -> None:
        """What was not written must be there, and be ours: ids are unique beyond one tenant."""
        if table.name != "user_memory":
            return
        cursor = await connection.execute("select 1 from recuerdo.user_memory where id = %s", (row["id"],))
        if await cursor.fetchone() is None:
            raise InputError(sentences("import_foreign", path=self._path))


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


def _batches(
    file: sqlite3.Connection, table: PortableTable, known: Sequence[Column], path: Path
) -> Iterator[list[Row]]:
    """The table's rows in the file, some at a time, each value checked."""
    listed = ", ".join(f'"{column.name}"' for column in known)
    try:
        cursor = file.execute(f'select {listed} from "{table.name}"')
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield [{column.name: column.from_sqlite(row[column.name]) for column in known} for row in rows]
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


def _value(value: Any) -> Any:
    return value.obj if isinstance(value, Jsonb) else value


def _wrapped(before: Any, value: Any) -> Any:
    return Jsonb(value) if isinstance(before, Jsonb) else value


def _not_embedded(row: Row) -> Row:
    """What the search needs of a text that is no longer the one that was embedded."""
    text = row["text"]
    terms = analyse(text, row.get("language", "es")).terms if text is not None else None
    return {
        "embedding": None,
        "embedder": None,
        "terms": terms,
        "analyzer": ANALYZER if terms is not None else None,
    }
