"""Memories that are kept for good, or too long, against the entries of their publication (OR-11, OR-12)."""

import hmac
from collections.abc import Mapping
from typing import Any, LiteralString

from recuerdo.stores.postgres.audit import hash_with, key_of
from recuerdo.stores.postgres.database import Connection

# The condition is that of the index. Without a supervisor a memory is kept for 90 days.
_KEPT: LiteralString = """
select kept.id::text as subject, kept.text, kept.status, noted.action, noted.details::jsonb ->> 'content_hash' as hash,
    exists (select from recuerdo.held_before b
        where b.tenant = %(tenant)s and b.kind = 'memory' and b.subject = kept.id::text) as before
from recuerdo.user_memory kept
left join lateral (
    select g.action, g.details from recuerdo.governance_audit g
    where g.tenant = kept.tenant and g.subject = kept.id::text
        and g.action in ('memory.published', 'memory.withdrawn')
    order by g.number desc limit 1
) noted on true
where kept.tenant = %(tenant)s and (kept.status = 'published' or kept.expires_at is null
    or (kept.status <> 'withdrawn'
        and kept.expires_at - greatest(kept.created_at, kept.updated_at, kept.confirmed_at) > interval '91 days'))
"""


async def find_kept(connection: Connection, tenant: str) -> str | None:
    """A memory that nobody published, or that says something else since, and that does not expire in time."""
    rows = await (await connection.execute(_KEPT, {"tenant": tenant})).fetchall()
    key = await key_of(connection, tenant) if rows else None
    return next((row["subject"] for row in rows if not _is_noted(row, key)), None)


def _is_noted(row: Mapping[str, Any], key: bytes | None) -> bool:
    if row["action"] is None:
        return bool(row["before"])
    if (row["status"], row["action"]) != ("published", "memory.published") or key is None:
        return False
    return hmac.compare_digest(str(row["hash"]), hash_with(key, row["text"]).hex())
