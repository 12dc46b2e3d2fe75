"""What leaves long-term memory: all of one user on request, and what has expired (IM-43, RF-32, OR-8)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import LiteralString

from recuerdo.state.limits import MEMORY_MAX_DAYS
from recuerdo.stores.postgres.audit import delete_with_audit
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.scope import require_scope


async def forget_all(database: Database, tenant: str, user: str, at: datetime) -> int:
    """Delete every memory, preference and symbol of the user, with every assistant. Returns how many rows.

    The audit keeps only ids; vectors go with the next run of the worker. Conversations are another thing:
    see ``TurnLog.clear``. Raises ScopeError when the tenant or the user is missing.
    """
    require_scope(tenant=tenant, user=user)
    where = "tenant = %(tenant)s and user_id = %(user)s"
    values = {"tenant": tenant, "user": user}
    async with database.tenant(tenant) as connection:
        memories = await delete_with_audit(connection, "user_memory", where, values, "forgotten", user, at)
        preferences = await delete_with_audit(
            connection, "user_preferences", where, values, "forgotten", user, at
        )
        symbols = await delete_with_audit(connection, "user_symbols", where, values, "forgotten", user, at)
    return memories + preferences + symbols


async def delete_expired(
    database: Database, now: datetime, *, actor: str, tenant: str | None = None, spared: Sequence[str] = ()
) -> int:
    """Delete what has expired, of one tenant or (None) of every one but the spared, with audit. Returns how many rows.

    Reads never wait for this: they check the expiry themselves (IM-53).
    """
    ours: LiteralString = (
        " and (%(tenant)s::text is null or tenant = %(tenant)s) and tenant <> all(%(spared)s)"
    )
    over: LiteralString = "expires_at <= %(now)s" + ours
    mentioned: LiteralString = "mentioned_at <= %(oldest)s" + ours
    values = {
        "now": now,
        "oldest": now - timedelta(days=MEMORY_MAX_DAYS),
        "tenant": tenant,
        "spared": list(spared),
    }
    async with database.operator() as connection:
        memories = await delete_with_audit(connection, "user_memory", over, values, "expired", actor, now)
        preferences = await delete_with_audit(
            connection, "user_preferences", over, values, "expired", actor, now
        )
        symbols = await delete_with_audit(
            connection, "user_symbols", mentioned, values, "expired", actor, now
        )
    return memories + preferences + symbols
