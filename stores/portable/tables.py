"""Which tables are carried over, and how a value of each type stands in SQLite and in JSON."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from recuerdo.stores.postgres.database import Connection

FORMAT = 1
"""Of the SQLite file; a file of another one is refused."""


@dataclass(frozen=True)
class PortableTable:
    """A table of long-term memory.

    ``texts`` hold what users wrote: the filter for sensitive data runs over them at the import. ``parent`` is
    the table that its column ``child_of`` points at. The rows of a ``numbered`` one have no key of their own.
    """

    name: LiteralString
    order: LiteralString
    texts: tuple[str, ...] = ()
    parent: LiteralString | None = None
    child_of: LiteralString = ""
    numbered: bool = False


TABLES: tuple[PortableTable, ...] = (
    PortableTable("user_memory", "created_at, id", texts=("text", "quote", "metadata")),
    PortableTable(
        "memory_revisions", "id", texts=("text",), parent="user_memory", child_of="memory_id", numbered=True
    ),
    PortableTable(
        "memory_publications",
        "id",
        texts=("reason",),
        parent="user_memory",
        child_of="memory_id",
        numbered=True,
    ),
    PortableTable("user_preferences", "user_id, key", texts=("value", "quote")),
    PortableTable("user_symbols", "user_id, symbol, turn_id"),
    PortableTable("key_events", "created_at, id", texts=("summary", "entities")),
    PortableTable(
        "key_event_changes", "event_id, number", texts=("fields",), parent="key_events", child_of="event_id"
    ),
    PortableTable("store_items", "namespace, key", texts=("value", "text")),
)
"""Parents before their children."""

# The tenant is named once in the file, and what waits for an index says nothing of the memory.
_LEFT_OUT = ("tenant", "vector_waiting_since")


@dataclass(frozen=True)
class Column:
    """A column that is carried over. ``kind`` is PostgreSQL's name of its type."""

    name: str
    kind: str
    required: bool

    def to_sqlite(self, value: Any) -> Any:
        """``value`` as SQLite keeps it."""
        match value:
            case _ if self.kind == "jsonb":
                return json.dumps(value, ensure_ascii=False)
            case datetime() | UUID():
                return as_text(value)
            case bool():
                return int(value)
        return value

    def from_sqlite(self, value: Any) -> Any:
        """What PostgreSQL is given. Raises Unfit for what is no such value: a file is not to be trusted."""
        wanted, read = _READERS[self.kind]
        if value is None and not self.required:
            return None
        if not isinstance(value, wanted):
            raise Unfit(self.name)
        try:
            return read(value)
        except (ValueError, OverflowError, RecursionError):
            raise Unfit(self.name) from None


class Unfit(ValueError):
    """A value that its column cannot have; the text is the column's name."""


def as_text(value: datetime | UUID) -> str:
    """An instant in UTC, ISO 8601; an id in its usual form."""
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(text)
    return instant


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(str(value))
    return float(value)


_READERS: dict[str, tuple[type | tuple[type, ...], Any]] = {
    "text": (str, str),
    "uuid": (str, UUID),
    "timestamptz": (str, _instant),
    "jsonb": (str, lambda text: Jsonb(json.loads(text))),
    "bytea": (bytes, bytes),
    "bool": (int, bool),
    "int4": (int, int),
    "int8": (int, int),
    "float4": ((int, float), _number),
    "float8": ((int, float), _number),
}


async def columns(connection: Connection, table: PortableTable) -> list[Column]:
    """The table's columns that are carried over, in order; numbers that the database gives itself are not."""
    cursor = await connection.execute(
        "select column_name as name, udt_name as kind, is_nullable = 'NO' as required"
        " from information_schema.columns where table_schema = 'recuerdo' and table_name = %s"
        " and is_identity = 'NO' and column_name <> all(%s) order by ordinal_position",
        (table.name, list(_LEFT_OUT)),
    )
    return [Column(**row) for row in await cursor.fetchall()]


def select(table: PortableTable, names: Sequence[Column]) -> Composed:
    """All rows of the table, in a fixed order; without a condition: row-level security is the condition."""
    listed = SQL(", ").join(Identifier(column.name) for column in names)
    return SQL("select {} from {} order by {}").format(
        listed, Identifier("recuerdo", table.name), SQL(table.order)
    )
