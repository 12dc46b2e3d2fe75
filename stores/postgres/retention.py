"""What leaves the store: all of one user on request, and what has expired (IM-43, RF-32, OR-8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString

from psycopg import sql

from recuerdo.state.errors import BusyError
from recuerdo.state.limits import MEMORY_MAX_DAYS
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.memory_store.namespaces import encode_label
from recuerdo.stores.postgres.approvals import Approvals
from recuerdo.stores.postgres.audit import Deletable, delete_with_audit
from recuerdo.stores.postgres.checkpoints import delete_threads
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.evidence import keep_objections
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.tool_calls import keep_unknown_calls

_sentences = load_sentences(__package__)

_AUDITED: Final[tuple[Deletable, ...]] = ("user_memory", "user_preferences", "user_symbols")

NOT_FORGOTTEN: Final = {
    "memory_audit": "ids only, and it cannot be changed",
    "plan_revisions": "an approved eval case holds words without what is known to name a person, and is signed",
    "roles": "who may do what is not what somebody said",
    "platform_profiles": "the platform's own data: here is only a copy",
    "platform_positions": "the platform's own data: here is only a copy",
    "platform_alerts": "the platform's own data: here is only a copy",
    "platform_education": "the platform's own data: here is only a copy",
}
"""Tables with a user in them that forgetting a user leaves alone, and why."""

# Whatever table names a user, also one that is made later. What nobody may delete from is a log of its own.
_TABLES_OF_USERS: LiteralString = """
select class.relname as name
from pg_class class join pg_attribute att on att.attrelid = class.oid and att.attname = 'user_id'
where class.relnamespace = 'recuerdo'::regnamespace and class.relkind in ('r', 'p')
    and not class.relname = any(%(left)s) and has_table_privilege(class.oid, 'delete')
order by class.relname
"""

ITEMS_OF_USER: LiteralString = (
    "(key in (%(user)s, %(label)s) or %(label)s = any(string_to_array(namespace, '.')))"
)
"""An app's own items whose key or one of whose labels is the user's name; ``label`` is that name as a label."""

_CONVERSATIONS: LiteralString = """
select id, coalesce(lease_until > clock_timestamp(), false) as busy
from recuerdo.conversations where tenant = %(tenant)s and user_id = %(user)s order by id for update
"""

# The clock went back since: from now on it is kept as long as what is written now, and no longer.
_REDATE: LiteralString = """
update recuerdo.{table} set expires_at = %(now)s + (expires_at - updated_at),
    created_at = least(created_at, %(now)s), updated_at = %(now)s
where updated_at > %(now)s + interval '1 minute' and expires_at is not null
"""


@dataclass(frozen=True)
class Forgotten:
    """What forgetting a user took away: rows of long-term memory, conversations, and whose vectors follow."""

    remembered: int
    conversations: int
    assistants: Sequence[str]


async def forget_user(
    database: Database, tenant: str, user: str, at: datetime, *, approvals: Approvals | None = None
) -> Forgotten:
    """Delete everything of the user, with every assistant: all of it, or nothing (IM-43).

    Memories, published ones too (C-7), with their history; preferences, symbols, conversations with turns,
    messages, records and checkpoints, events, and an app's items under the user's name, be it label or key. The
    audit keeps only ids; vectors go with the next run of the worker at the latest. Calls whose outcome nobody knows
    stay to be settled, without him. With ``approvals`` the audit also says which requests that waited went with him.

    Raises ScopeError when the tenant or the user is missing, BusyError while a turn of the user's runs.
    """
    require_scope(tenant=tenant, user=user)
    require_aware(at)
    values = {"tenant": tenant, "user": user, "label": encode_label(user)}
    where: LiteralString = "tenant = %(tenant)s and user_id = %(user)s"
    async with database.tenant(tenant) as connection:
        conversations = await _idle_conversations(connection, values)
        waited = await approvals.withdraw(connection, actor=user, at=at, user=user) if approvals else []
        cursor = await connection.execute(
            f"select distinct assistant from recuerdo.user_memory where {where} order by assistant", values
        )
        assistants = [row["assistant"] for row in await cursor.fetchall()]
        remembered = sum(
            [
                await delete_with_audit(connection, table, where, values, "forgotten", user, at)
                for table in _AUDITED
            ]
        )
        await connection.execute(
            f"delete from recuerdo.store_items where tenant = %(tenant)s and {ITEMS_OF_USER}", values
        )
        await keep_objections(connection, tenant, user)
        await keep_unknown_calls(connection, tenant, user, at)
        await _delete_other_rows(connection, values)
        if approvals:
            await approvals.audit_withdrawn(connection, waited)
        # LangGraph's tables belong to the role that logged in, and no tenant's may touch them.
        await connection.execute("set local role none")
        await delete_threads(connection, tenant, conversations)
    return Forgotten(remembered, len(conversations), assistants)


async def delete_expired(
    database: Database, now: datetime, *, actor: str, tenant: str | None = None, spared: Sequence[str] = ()
) -> int:
    """Delete what has expired, of one tenant or (None) of every one but the spared, with audit. Returns how many rows.

    Reads never wait for this: they check the expiry themselves (IM-53). What is dated in the future, because the
    clock went back, is dated anew, so that it is not kept longer than anything else. Old texts in the history of
    a memory go without an entry: that of their memory's change stays.
    """
    require_aware(now)
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
        for table in ("user_memory", "user_preferences"):
            await connection.execute(_REDATE.replace("{table}", table) + ours, values)
        memories = await delete_with_audit(connection, "user_memory", over, values, "expired", actor, now)
        preferences = await delete_with_audit(
            connection, "user_preferences", over, values, "expired", actor, now
        )
        symbols = await delete_with_audit(
            connection, "user_symbols", mentioned, values, "expired", actor, now
        )
        await connection.execute(f"delete from recuerdo.memory_revisions where {over}", values)
    return memories + preferences + symbols


async def _idle_conversations(connection: Connection, values: dict[str, Any]) -> list[str]:
    """The user's conversations, locked. A turn that ran on would write its messages and checkpoint afterwards."""
    cursor = await connection.execute(_CONVERSATIONS, values)
    rows = await cursor.fetchall()
    if any(row["busy"] for row in rows):
        raise BusyError(_sentences("conversation_busy"))
    return [row["id"] for row in rows]


async def tables_of_users(connection: Connection) -> list[str]:
    """Every table of ours with a user in it, but for those that forgetting leaves alone; also one made later."""
    cursor = await connection.execute(_TABLES_OF_USERS, {"left": list(NOT_FORGOTTEN)})
    return [row["name"] for row in await cursor.fetchall()]


async def _delete_other_rows(connection: Connection, values: dict[str, Any]) -> None:
    for name in await tables_of_users(connection):
        table = sql.Identifier("recuerdo", name)
        await connection.execute(
            sql.SQL("delete from {} where tenant = %(tenant)s and user_id = %(user)s").format(table), values
        )
