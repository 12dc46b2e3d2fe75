"""Who changed a user's memory, when, and because of which message: ids only, written with the change.

Entries cannot be changed or deleted: the roles that write have no such privilege, and a trigger refuses it to the
owner of the table as well (OR-12).
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from recuerdo.state.limits import MemoryStatus
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.scope import require_scope

Action = Literal[
    "added",
    "updated",
    "confirmed",
    "superseded",
    "activated",
    "deactivated",
    "published",
    "withdrawn",
    "forgotten",
    "expired",
    "granted",
    "revoked",
    "adopted",
]

Deletable = Literal["user_preferences", "user_memory", "user_symbols"]
Table = Literal[Deletable, "roles", "conversations"]

_ITEM_COLUMN: dict[Deletable, LiteralString] = {
    "user_preferences": "key",
    "user_memory": "id::text",
    "user_symbols": "symbol",
}

_KEY_BYTES = 32


@dataclass(frozen=True)
class Change:
    """One changed row. ``item_id`` is a memory's id, a preference's key, a symbol, a conversation's id, or whose
    role it is.

    ``content_hash`` is the keyed hash of a text (see ``content_hash``); the statuses are those of a memory, or
    names of roles.
    """

    table: Table
    item_id: str
    action: Action
    turn: UUID | None = None
    message_id: str | None = None
    content_hash: bytes | None = None
    previous_status: str | None = None
    new_status: str | None = None


@dataclass(frozen=True)
class AuditEntry:
    """What the audit says of one change. ``content_hash`` only where a text was published or withdrawn."""

    at: datetime
    actor: str
    action: Action
    item_id: str
    turn: UUID | None
    message_id: str | None
    content_hash: bytes | None
    previous_status: MemoryStatus | str | None
    new_status: MemoryStatus | str | None


async def write_audit(
    connection: Connection, tenant: str, actor: str, at: datetime, changes: Iterable[Change]
) -> None:
    """Write one entry for each change, in the transaction of ``connection``."""
    rows = [{**vars(change), "tenant": tenant, "actor": actor, "at": at} for change in changes]
    if rows:
        await connection.cursor().executemany(
            "insert into recuerdo.memory_audit (tenant, at, actor, action, table_name, item_id, turn_id,"
            " message_id, content_hash, previous_status, new_status)"
            " values (%(tenant)s, %(at)s, %(actor)s, %(action)s, %(table)s, %(item_id)s, %(turn)s,"
            " %(message_id)s, %(content_hash)s, %(previous_status)s, %(new_status)s)",
            rows,
        )


async def read_audit(database: Database, tenant: str, table: Table, item_id: str) -> Sequence[AuditEntry]:
    """Every entry of one item, oldest first. Raises ScopeError without a tenant."""
    require_scope(tenant=tenant)
    async with database.tenant(tenant) as connection:
        cursor = connection.cursor(row_factory=class_row(AuditEntry))
        await cursor.execute(
            "select at, actor, action, item_id, turn_id as turn, message_id, content_hash, previous_status,"
            " new_status from recuerdo.memory_audit"
            " where tenant = %s and table_name = %s and item_id = %s order by id",
            (tenant, table, item_id),
        )
        return await cursor.fetchall()


async def content_hash(connection: Connection, tenant: str, text: str) -> bytes:
    """HMAC-SHA-256 of ``text`` in UTF-8 with the tenant's key, which is made at first use (OR-12).

    It shows later which text was published, and tells nothing of it to who has no key: a plain hash of a short
    text can be guessed. The key stands in the database, so that every process comes to the same hash.
    """
    await connection.execute(
        "insert into recuerdo.audit_keys (tenant, key) values (%s, %s) on conflict do nothing",
        (tenant, secrets.token_bytes(_KEY_BYTES)),
    )
    key = await key_of(connection, tenant)
    assert key is not None, "just written, or there before"
    return hash_with(key, text)


async def key_of(connection: Connection, tenant: str) -> bytes | None:
    """The tenant's key of content hashes; None before its first use."""
    cursor = await connection.execute("select key from recuerdo.audit_keys where tenant = %s", (tenant,))
    row = await cursor.fetchone()
    return bytes(row["key"]) if row else None


def hash_with(key: bytes, text: str) -> bytes:
    """The content hash of ``text`` with the tenant's key: 32 bytes."""
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


async def delete_with_audit(
    connection: Connection,
    table: Deletable,
    where: LiteralString,
    values: dict[str, Any],
    action: Action,
    actor: str,
    at: datetime,
    *,
    turn: UUID | None = None,
    message_id: str | None = None,
) -> int:
    """Delete the rows of ``table`` that ``where`` names, with an audit entry for each. Returns how many.

    ``turn`` and ``message_id`` name the message that asked for it; None where none did.
    """
    cursor = await connection.execute(
        f"with gone as (delete from recuerdo.{table} where {where}"
        f" returning tenant, {_ITEM_COLUMN[table]} as item),"
        " audited as (insert into recuerdo.memory_audit (tenant, at, actor, action, table_name, item_id,"
        " turn_id, message_id)"
        " select tenant, %(audit_at)s, %(actor)s, %(action)s, %(table)s, item, %(audit_turn)s::uuid,"
        " %(audit_message)s::text from gone"
        " group by tenant, item)"
        " select count(*) as rows from gone",
        {
            **values,
            "audit_at": at,
            "actor": actor,
            "action": action,
            "table": table,
            "audit_turn": turn,
            "audit_message": message_id,
        },
    )
    row = await cursor.fetchone()
    return int(row["rows"]) if row else 0
