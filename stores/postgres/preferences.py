"""What a user prefers, one value per key, with the sentence that said so (RF-7, RF-11, RF-54)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from recuerdo.state.levels import EPISODIC, Level
from recuerdo.state.limits import DEFAULT_LIMITS, MemoryLimits, expiry, status_for
from recuerdo.stores.postgres.arguments import checked_name
from recuerdo.stores.postgres.audit import Action, Change, delete_with_audit, write_audit
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import without_sensitive

_COLUMNS = """key, value, quote, message_id, turn_id as turn, language, confidence,
    created_at, updated_at, expires_at"""

# A replay of the turn that wrote the value writes nothing; the same value said again moves its dates.
_UPSERT = """
insert into recuerdo.user_preferences as kept
    (tenant, user_id, key, value, quote, message_id, turn_id, language, confidence,
     created_at, updated_at, expires_at)
values
    (%(tenant)s, %(user)s, %(key)s, %(value)s, %(quote)s, %(message_id)s, %(turn)s, %(language)s,
     %(confidence)s, %(at)s, %(at)s, %(expires_at)s)
on conflict (tenant, user_id, key) do update set
    value = excluded.value, quote = excluded.quote, message_id = excluded.message_id,
    turn_id = excluded.turn_id, language = excluded.language, confidence = excluded.confidence,
    updated_at = excluded.updated_at, expires_at = excluded.expires_at,
    created_at = case when kept.expires_at > excluded.updated_at
        then kept.created_at else excluded.created_at end
where (kept.turn_id, kept.value) is distinct from (excluded.turn_id, excluded.value)
    or excluded.turn_id is null
returning xmax = 0 as added
"""


@dataclass(frozen=True)
class PreferenceChange:
    """A preference to write; ``confidence`` 0 to 1, an explicit statement is 1 (A-24).

    ``value`` is plain JSON data.
    """

    key: str
    value: Any
    quote: str
    message_id: str | None
    language: str
    confidence: float = 1.0


@dataclass(frozen=True)
class Preference:
    """A preference in force."""

    key: str
    value: Any
    quote: str
    message_id: str | None
    turn: UUID | None
    language: str
    confidence: float
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    level: Level = EPISODIC


class Preferences:
    """The preferences of one tenant's users. Every method raises ScopeError when the user is missing."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def all(self, user: str, now: datetime) -> dict[str, Preference]:
        """Every preference that is in force at ``now``, by key (RF-32, IM-53)."""
        require_scope(user=user)
        found = await self._database.read(
            self._tenant,
            f"select {_COLUMNS} from recuerdo.user_preferences"
            " where tenant = %s and user_id = %s and expires_at > %s order by key",
            (self._tenant, user, now),
            rows=class_row(Preference),
        )
        return {preference.key: preference for preference in found}

    async def set(
        self, user: str, change: PreferenceChange, at: datetime, *, turn: UUID | None = None
    ) -> None:
        """Write one preference, with its audit entry. Raises InputError for a key that cannot be one."""
        require_scope(user=user)
        checked_name("key", change.key)
        async with self._database.tenant(self._tenant) as connection:
            await write_preferences(connection, self._tenant, user, [change], at, turn, self._database.limits)

    async def delete(self, user: str, key: str, at: datetime) -> bool:
        """Forget one preference; False when there is none."""
        require_scope(user=user)
        where = "tenant = %(tenant)s and user_id = %(user)s and key = %(key)s"
        values = {"tenant": self._tenant, "user": user, "key": key}
        async with self._database.tenant(self._tenant) as connection:
            return bool(
                await delete_with_audit(connection, "user_preferences", where, values, "forgotten", user, at)
            )


async def write_preferences(
    connection: Connection,
    tenant: str,
    user: str,
    changes: Sequence[PreferenceChange],
    at: datetime,
    turn: UUID | None,
    limits: MemoryLimits = DEFAULT_LIMITS,
) -> None:
    """Write the changes with audit in the transaction of ``connection``; a replay writes nothing twice."""
    audit = []
    for change in changes:
        cursor = await connection.execute(
            _UPSERT,
            {
                "tenant": tenant,
                "user": user,
                "key": change.key,
                "value": Jsonb(await without_sensitive(change.value)),
                "quote": await without_sensitive(change.quote),
                "message_id": change.message_id,
                "turn": turn,
                "language": change.language,
                "confidence": change.confidence,
                "at": at,
                "expires_at": expiry(status_for(change.confidence, limits), at, limits),
            },
        )
        if written := await cursor.fetchone():
            action: Action = "added" if written["added"] else "updated"
            audit.append(Change("user_preferences", change.key, action, turn, change.message_id))
    await write_audit(connection, tenant, user, at, audit)


async def forget_preferences(
    connection: Connection,
    tenant: str,
    user: str,
    keys: Sequence[str],
    at: datetime,
    turn: UUID,
    message_id: str | None,
) -> None:
    """Delete preferences that the user takes back, with audit; a replay finds nothing more to delete."""
    if keys:
        where = "tenant = %(tenant)s and user_id = %(user)s and key = any(%(keys)s)"
        values = {"tenant": tenant, "user": user, "keys": list(keys)}
        await delete_with_audit(
            connection,
            "user_preferences",
            where,
            values,
            "forgotten",
            user,
            at,
            turn=turn,
            message_id=message_id,
        )
