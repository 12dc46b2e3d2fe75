"""Which tables are carried over, and how a value of each type stands in SQLite and in JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from recuerdo.state.key_events import LONGEST_SUMMARY
from recuerdo.state.limits import MEMORY_MAX_CHARACTERS, MEMORY_MAX_DAYS
from recuerdo.stores.postgres.arguments import LONGEST_NAME
from recuerdo.stores.postgres.database import Connection

FORMAT = 1
"""Of the SQLite file; a file of another one is refused. Columns may be added to the tables without a new one:
those that a file lacks get their default, or are derived; those that a table lacks make it a newer format.
"""


@dataclass(frozen=True)
class PortableTable:
    """A table of long-term memory.

    ``texts`` hold what users wrote: the filter for sensitive data runs over them at the import. ``names`` are kept
    as they stand or not at all. ``longest`` gives the characters that a column may have, ``shapes`` what JSON it
    holds. ``parent`` is the table that its column ``child_of`` points at. The rows of a ``numbered`` one have no
    key of their own. What is not ``in_force`` at ``now`` any more is not exported, swept or not (fault 10).
    """

    name: LiteralString
    order: LiteralString
    in_force: LiteralString = "true"
    texts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    longest: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, type] = field(default_factory=dict)
    parent: LiteralString | None = None
    child_of: LiteralString = ""
    numbered: bool = False


_UNEXPIRED: LiteralString = "(expires_at is null or expires_at > %(now)s)"
_OF_MEMORY_IN_FORCE: LiteralString = f"memory_id in (select id from recuerdo.user_memory where {_UNEXPIRED})"

TABLES: tuple[PortableTable, ...] = (
    PortableTable(
        "user_memory",
        "created_at, id",
        _UNEXPIRED,
        texts=("text", "quote", "metadata"),
        names=("kind",),
        longest={"text": MEMORY_MAX_CHARACTERS},
        shapes={"metadata": dict},
    ),
    PortableTable(
        "memory_revisions",
        "id",
        f"{_UNEXPIRED} and {_OF_MEMORY_IN_FORCE}",
        texts=("text",),
        longest={"text": MEMORY_MAX_CHARACTERS},
        parent="user_memory",
        child_of="memory_id",
        numbered=True,
    ),
    PortableTable(
        "memory_publications",
        "id",
        _OF_MEMORY_IN_FORCE,
        texts=("reason",),
        parent="user_memory",
        child_of="memory_id",
        numbered=True,
    ),
    PortableTable(
        "user_preferences",
        "user_id, key",
        _UNEXPIRED,
        texts=("value", "quote"),
        names=("key",),
        longest={"value": MEMORY_MAX_CHARACTERS},
    ),
    PortableTable(
        "user_symbols",
        "user_id, symbol, turn_id",
        f"mentioned_at > %(now)s - interval '{MEMORY_MAX_DAYS} days'",
        longest={"symbol": LONGEST_NAME},
    ),
    PortableTable(
        "key_events",
        "created_at, id",
        texts=("summary", "entities"),
        names=("type",),
        longest={"summary": LONGEST_SUMMARY},
        shapes={"entities": list},
    ),
    PortableTable(
        "key_event_changes",
        "event_id, number",
        texts=("fields",),
        shapes={"fields": dict},
        parent="key_events",
        child_of="event_id",
    ),
    PortableTable("store_items", "namespace, key", _UNEXPIRED, texts=("value", "text")),
)
"""Parents before their children."""

# The tenant is named once in the file, and what waits for an index says nothing of the memory.
_LEFT_OUT = ("tenant", "vector_waiting_since")


@dataclass(frozen=True)
class Column:
    """A column that is carried over. ``kind`` is PostgreSQL's name of its type.

    Where ``has_default``, a row need not name it; without ``required`` it may be null.
    """

    name: str
    kind: str
    required: bool
    has_default: bool

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


def plain_json(value: Any) -> Any:
    """The plain data of a JSON value, anything else as it is."""
    return value.obj if isinstance(value, Jsonb) else value


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
        "select column_name as name, udt_name as kind, is_nullable = 'NO' as required,"
        " column_default is not null as has_default"
        " from information_schema.columns where table_schema = 'recuerdo' and table_name = %s"
        " and is_identity = 'NO' and column_name <> all(%s) order by ordinal_position",
        (table.name, list(_LEFT_OUT)),
    )
    return [Column(**row) for row in await cursor.fetchall()]


def select(table: PortableTable, names: Sequence[Column], of_user: LiteralString = "true") -> Composed:
    """All rows of the table that are in force at ``now``, in a fixed order.

    Whose they are, row-level security says, and ``of_user`` where it is given.
    """
    listed = SQL(", ").join(Identifier(column.name) for column in names)
    return SQL("select {} from {} where {} and {} order by {}").format(
        listed, Identifier("recuerdo", table.name), SQL(table.in_force), SQL(of_user), SQL(table.order)
    )
