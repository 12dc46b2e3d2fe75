"""What an operator looks at when something seems wrong: facts of a database and of one conversation, never a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.migrations import migrations
from recuerdo.stores.postgres.scope import require_scope

CALLS = 100
"""Newest calls of a tool that are looked at."""


@dataclass(frozen=True)
class DatabaseFacts:
    """The server, its schema, and whether the role that logs in bypasses row-level security by itself."""

    version: str
    role: str
    bypasses_isolation: bool
    pooled: bool
    migration: int
    newest_migration: int
    bytes: int


@dataclass(frozen=True)
class JobFacts:
    """A job of the worker; instants are of the worker's clock."""

    name: str
    due_at: datetime
    last_run_at: datetime | None


@dataclass(frozen=True)
class WaitingFacts:
    """What waits for the worker: vectors, and turns whose key events are unread, with the oldest of each."""

    vectors: int
    vectors_since: datetime | None
    foreign_vectors: int
    unread_turns: int
    unread_since: datetime | None


@dataclass(frozen=True)
class ConversationFacts:
    """A conversation, whoever's it is. ``last_status`` is of its newest turn; ``unread`` turns wait to be read."""

    assistant: str
    user: str | None
    turns: int
    last_status: str | None
    unread: int


@dataclass(frozen=True)
class EventFacts:
    """The key events of one assistant's and type's, of a user: how many are open, closed, and archived by now."""

    assistant: str
    type: str
    open: int
    closed: int
    archived: int


async def database_facts(database: Database) -> DatabaseFacts:
    """The state of the server and the schema."""
    async with database.connection() as connection:
        row = await _one(
            connection,
            "select current_setting('server_version') as version, session_user::text as role,"
            " r.rolsuper or r.rolbypassrls as bypasses_isolation,"
            " (select max(number) from recuerdo.migrations) as migration,"
            " pg_database_size(current_database()) as bytes"
            " from pg_roles r where r.rolname = session_user",
        )
    return DatabaseFacts(
        **row, pooled=not database.prepares_statements, newest_migration=migrations()[-1].number
    )


async def job_facts(database: Database) -> Sequence[JobFacts]:
    """Every job of the worker that was ever entered, by name."""
    async with database.connection() as connection:
        cursor = connection.cursor(row_factory=class_row(JobFacts))
        await cursor.execute("select name, due_at, last_run_at from recuerdo.jobs order by name")
        return await cursor.fetchall()


async def waiting_facts(database: Database, tenant: str, embedder: str) -> WaitingFacts:
    """What of a tenant waits for the worker; ``foreign_vectors`` are of another embedder than ``embedder``."""
    require_scope(tenant=tenant)
    async with database.tenant(tenant) as connection:
        row = await _one(
            connection,
            "select count(vector_waiting_since) as vectors, min(vector_waiting_since) as vectors_since,"
            " count(*) filter (where embedder <> %(embedder)s) as foreign_vectors,"
            " (select count(*) from recuerdo.turns where tenant = %(tenant)s and events_unread) as unread_turns,"
            " (select min(started_at) from recuerdo.turns where tenant = %(tenant)s and events_unread)"
            " as unread_since"
            " from recuerdo.user_memory where tenant = %(tenant)s",
            {"tenant": tenant, "embedder": embedder},
        )
    return WaitingFacts(**row)


async def conversation_facts(database: Database, tenant: str, conversation: str) -> ConversationFacts | None:
    """A conversation of the tenant; None: there is none of that id."""
    require_scope(tenant=tenant, conversation=conversation)
    async with database.tenant(tenant) as connection:
        cursor = connection.cursor(row_factory=class_row(ConversationFacts))
        await cursor.execute(
            "select c.assistant, c.user_id as user, count(t.id) as turns,"
            " (array_agg(t.status order by t.number desc))[1] as last_status,"
            " count(*) filter (where t.events_unread) as unread"
            " from recuerdo.conversations c left join recuerdo.turns t"
            " on t.tenant = c.tenant and t.conversation = c.id and t.mode = 'live'"
            " where c.tenant = %s and c.id = %s group by c.assistant, c.user_id",
            (tenant, conversation),
        )
        return await cursor.fetchone()


async def event_facts(database: Database, tenant: str, user: str, archived: datetime) -> list[EventFacts]:
    """The user's events under every assistant; those closed before ``archived`` count as archived (C-9)."""
    require_scope(tenant=tenant, user=user)
    async with database.tenant(tenant) as connection:
        cursor = connection.cursor(row_factory=class_row(EventFacts))
        await cursor.execute(
            "select assistant, type, count(*) filter (where closed_at is null) as open,"
            " count(*) filter (where closed_at > %(archived)s) as closed,"
            " count(*) filter (where closed_at <= %(archived)s) as archived"
            " from recuerdo.key_events where tenant = %(tenant)s and user_id = %(user)s"
            " group by assistant, type order by assistant, type",
            {"tenant": tenant, "user": user, "archived": archived},
        )
        return await cursor.fetchall()


async def tool_arguments(
    database: Database, tenant: str, assistant: str, tool: str, conversation: str | None = None
) -> list[dict[str, Any]]:
    """The arguments of the newest calls of a tool in an assistant's conversations, newest first."""
    require_scope(tenant=tenant, assistant=assistant)
    async with database.tenant(tenant) as connection:
        cursor = await connection.execute(
            "select call->'args' as args from recuerdo.messages m"
            " join recuerdo.conversations c on c.tenant = m.tenant and c.id = m.conversation"
            " cross join lateral jsonb_array_elements(m.tool_calls) as call"
            " where m.tenant = %(tenant)s and c.assistant = %(assistant)s and m.tool_calls is not null"
            " and call->>'name' = %(tool)s"
            " and (%(conversation)s::text is null or m.conversation = %(conversation)s)"
            " order by m.created_at desc, m.position desc limit %(limit)s",
            {
                "tenant": tenant,
                "assistant": assistant,
                "tool": tool,
                "conversation": conversation,
                "limit": CALLS,
            },
        )
        return [row["args"] for row in await cursor.fetchall() if isinstance(row["args"], dict)]


async def _one(connection: Connection, query: Any, values: dict[str, Any] | None = None) -> dict[str, Any]:
    cursor = await connection.execute(query, values)
    row = await cursor.fetchone()
    assert row is not None, "an aggregate, or the role that is logged in"
    return row
