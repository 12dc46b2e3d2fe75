"""Which symbols a user asks about, counted from the turns that mention them (RF-8, RF-55)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import class_row

from recuerdo.state.levels import EPISODIC, Level
from recuerdo.state.limits import SYMBOL_INTEREST_DAYS
from recuerdo.stores.postgres.audit import delete_with_audit
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.scope import require_scope


@dataclass(frozen=True)
class Interest:
    """A symbol, in how many turns it was mentioned, and when last."""

    symbol: str
    count: int
    last_mentioned: datetime
    level: Level = EPISODIC


class SymbolInterest:
    """The symbols of interest of one tenant's users."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def of(self, user: str, now: datetime, *, days: int = SYMBOL_INTEREST_DAYS) -> list[Interest]:
        """What the user mentioned in the ``days`` before ``now``, most often mentioned first.

        Raises ScopeError without a user.
        """
        require_scope(user=user)
        return await self._database.read(
            self._tenant,
            "select symbol, count(*) as count, max(mentioned_at) as last_mentioned"
            " from recuerdo.user_symbols"
            " where tenant = %s and user_id = %s and mentioned_at > %s and mentioned_at <= %s"
            " group by symbol order by count desc, last_mentioned desc, symbol",
            (self._tenant, user, now - timedelta(days=days), now),
            rows=class_row(Interest),
        )


async def write_symbols(
    connection: Connection, tenant: str, user: str, symbols: Sequence[str], at: datetime, turn: UUID
) -> None:
    """Note that the turn mentioned the symbols; once for each, however often it is replayed."""
    if symbols:
        await connection.execute(
            "insert into recuerdo.user_symbols (tenant, user_id, symbol, turn_id, mentioned_at)"
            " select %s, %s, symbol, %s, %s from unnest(%s::text[]) as mentioned (symbol)"
            " on conflict do nothing",
            (tenant, user, turn, at, list(symbols)),
        )


async def forget_symbols(
    connection: Connection,
    tenant: str,
    user: str,
    symbols: Sequence[str],
    at: datetime,
    turn: UUID,
    message_id: str | None,
) -> None:
    """Delete the interest in symbols that the user takes back, with audit; a replay finds nothing more to delete."""
    if symbols:
        where = "tenant = %(tenant)s and user_id = %(user)s and symbol = any(%(symbols)s)"
        values = {"tenant": tenant, "user": user, "symbols": list(symbols)}
        await delete_with_audit(
            connection, "user_symbols", where, values, "forgotten", user, at, turn=turn, message_id=message_id
        )
