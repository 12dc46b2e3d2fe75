"""Who changed a user's memory, when, and because of which message: ids only, written with the change."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

from recuerdo.stores.postgres.database import Connection

Action = Literal["added", "updated", "confirmed", "forgotten", "expired"]


Table = Literal["user_preferences", "user_memory", "user_symbols"]

_ITEM_COLUMN: dict[Table, LiteralString] = {
    "user_preferences": "key",
    "user_memory": "id::text",
    "user_symbols": "symbol",
}


@dataclass(frozen=True)
class Change:
    """One changed row. ``item_id`` is a memory's id, a preference's key or a symbol."""

    table: Table
    item_id: str
    action: Action
    turn: UUID | None = None
    message_id: str | None = None


async def write_audit(
    connection: Connection, tenant: str, actor: str, at: datetime, changes: Iterable[Change]
) -> None:
    """Write one entry for each change, in the transaction of ``connection``."""
    rows = [
        (tenant, at, actor, change.action, change.table, change.item_id, change.turn, change.message_id)
        for change in changes
    ]
    if rows:
        await connection.cursor().executemany(
            "insert into recuerdo.memory_audit"
            " (tenant, at, actor, action, table_name, item_id, turn_id, message_id)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s)",
            rows,
        )


async def delete_with_audit(
    connection: Connection,
    table: Table,
    where: LiteralString,
    values: dict[str, Any],
    action: Action,
    actor: str,
    at: datetime,
) -> int:
    """Delete the rows of ``table`` that ``where`` names, with an audit entry for each. Returns how many."""
    cursor = await connection.execute(
        f"with gone as (delete from recuerdo.{table} where {where}"
        f" returning tenant, {_ITEM_COLUMN[table]} as item),"
        " audited as (insert into recuerdo.memory_audit (tenant, at, actor, action, table_name, item_id)"
        " select tenant, %(audit_at)s, %(actor)s, %(action)s, %(table)s, item from gone"
        " group by tenant, item)"
        " select count(*) as rows from gone",
        {**values, "audit_at": at, "actor": actor, "action": action, "table": table},
    )
    row = await cursor.fetchone()
    return int(row["rows"]) if row else 0
