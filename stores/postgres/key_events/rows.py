"""Rows of key events: how they are read and written."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from recuerdo.state.key_events import KeyEvent, Revision
from recuerdo.stores.postgres.database import Connection

COLUMNS: LiteralString = """id, assistant, type, summary, entities, status, priority, confidence,
    user_id as user, session, created_at, updated_at, closed_at, version"""

RANKED: LiteralString = """case status when 'RESOLVED' then 1 when 'CLOSED' then 2 else 0 end,
    updated_at desc, id"""
"""The order of A-18, closed ones last."""


def event_of(row: dict[str, Any]) -> KeyEvent:
    """The event of a row."""
    return KeyEvent(**{**row, "entities": tuple(row["entities"])})


async def with_history(connection: Connection, tenant: str, events: Sequence[KeyEvent]) -> list[KeyEvent]:
    """The events with all their changes."""
    cursor = await connection.execute(
        "select event_id, number, at, action, actor, session, turn_id as turn, fields"
        " from recuerdo.key_event_changes where tenant = %s and event_id = any(%s) order by number",
        (tenant, [event.id for event in events]),
    )
    histories: defaultdict[UUID, list[Revision]] = defaultdict(list)
    for row in await cursor.fetchall():
        event_id = row.pop("event_id")
        fields = {name: (old, new) for name, (old, new) in row["fields"].items()}
        histories[event_id].append(Revision(**{**row, "fields": fields}))
    return [replace(event, history=tuple(histories[event.id])) for event in events]


async def insert_event(connection: Connection, tenant: str, event: KeyEvent) -> bool:
    """Write a new event; False when there is one of its id already."""
    cursor = await connection.execute(
        "insert into recuerdo.key_events"
        " (tenant, id, assistant, user_id, session, type, summary, entities, status, priority, confidence,"
        " created_at, updated_at, closed_at, version)"
        " values (%(tenant)s, %(id)s, %(assistant)s, %(user)s, %(session)s, %(type)s, %(summary)s,"
        " %(entities)s, %(status)s, %(priority)s, %(confidence)s, %(created_at)s, %(updated_at)s,"
        " %(closed_at)s, %(version)s) on conflict (tenant, id) do nothing",
        {**vars(event), "entities": Jsonb(list(event.entities)), "tenant": tenant},
    )
    return bool(cursor.rowcount)


async def insert_revision(
    connection: Connection, tenant: str, event_id: UUID, revision: Revision, key: str | None
) -> None:
    """Write one change of an event."""
    await connection.execute(
        "insert into recuerdo.key_event_changes"
        " (tenant, event_id, number, at, action, actor, session, turn_id, key, fields)"
        " values (%(tenant)s, %(event)s, %(number)s, %(at)s, %(action)s, %(actor)s, %(session)s, %(turn)s,"
        " %(key)s, %(fields)s)",
        {
            **vars(revision),
            "tenant": tenant,
            "event": event_id,
            "key": key,
            "fields": Jsonb({name: list(values) for name, values in revision.fields.items()}),
        },
    )


async def was_made(connection: Connection, tenant: str, event_id: UUID, key: str) -> bool:
    """Whether the event has the change with that key already."""
    cursor = await connection.execute(
        "select 1 from recuerdo.key_event_changes where tenant = %s and event_id = %s and key = %s",
        (tenant, event_id, key),
    )
    return await cursor.fetchone() is not None
