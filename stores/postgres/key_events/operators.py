"""What operators do with key events: list, filter, export, count by type; each view leaves a row (IM-16)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from recuerdo.state.key_events import (
    EventPage,
    EventStatus,
    KeyEvent,
    asked_type,
    named_status,
    require_aware,
    require_text,
)
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.key_events.rows import COLUMNS, event_of, with_history
from recuerdo.stores.postgres.scope import require_scope

ViewAction = Literal["listed", "shown", "exported", "types"]

_MATCHES: LiteralString = """tenant = %(tenant)s
    and (%(assistant)s::text is null or assistant = %(assistant)s)
    and (%(user)s::text is null or user_id = %(user)s)
    and (%(session)s::text is null or session = %(session)s)
    and (%(type)s::text is null or type = %(type)s)
    and (%(status)s::text is null or status = %(status)s)
    and (%(since)s::timestamptz is null or created_at >= %(since)s)
    and (%(until)s::timestamptz is null or created_at < %(until)s)
    and (not %(unresolved)s or user_id is null)"""


@dataclass(frozen=True)
class OperatorFilter:
    """Which events of the tenant; None: all. ``since`` and ``until`` (aware, excluded) are of the creation.

    ``unresolved``: only those of sessions whose user is not identified (LA-33). Archived ones are among them.
    """

    assistant: str | None = None
    user: str | None = None
    session: str | None = None
    type: str | None = None
    status: EventStatus | None = None
    since: datetime | None = None
    until: datetime | None = None
    unresolved: bool = False

    def __post_init__(self) -> None:
        """Raises InputError for what no event can match: another status, a text that cannot be kept, a naive time."""
        object.__setattr__(self, "type", asked_type(self.type))
        for name in ("assistant", "user", "session"):
            require_text(name, getattr(self, name))
        if self.status is not None:
            named_status(self.status)
        require_aware("since", self.since)
        require_aware("until", self.until)

    def as_data(self) -> dict[str, Any]:
        """What was asked for, as JSON data."""
        given = {name: value for name, value in vars(self).items() if value}
        return {n: v.isoformat() if isinstance(v, datetime) else v for n, v in given.items()}


@dataclass(frozen=True)
class TypeCount:
    """How many events of a type the tenant has, how many of them are not closed, and under which assistants."""

    type: str
    events: int
    open: int
    assistants: Sequence[str]


@dataclass(frozen=True)
class View:
    """One look of an operator at key events: who, when, at what (IM-16)."""

    at: datetime
    actor: str
    action: ViewAction
    filter: dict[str, Any]
    ids: list[UUID]


class OperatorEvents:
    """All key events of one tenant, for its operators. Each call names who looks, and is audited.

    Raises ScopeError when the actor is missing.
    """

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def list(
        self, which: OperatorFilter, actor: str, at: datetime, *, limit: int, offset: int = 0
    ) -> EventPage:
        """A page of the events that match, last changed first, with their histories."""
        return await self._look("listed", which, actor, at, limit, offset)

    async def export(self, which: OperatorFilter, actor: str, at: datetime) -> Sequence[KeyEvent]:
        """All events that match, last changed first, with their histories."""
        return (await self._look("exported", which, actor, at, None, 0)).events

    async def get(self, event_id: UUID, actor: str, at: datetime) -> KeyEvent | None:
        """One event with its history; None: the tenant has none of that id."""
        require_scope(actor=actor)
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                f"select {COLUMNS} from recuerdo.key_events where tenant = %s and id = %s",
                (self._tenant, event_id),
            )
            found = [event_of(row) for row in await cursor.fetchall()]
            await self._note(connection, View(at, actor, "shown", {"id": str(event_id)}, _ids(found)))
            return next(iter(await with_history(connection, self._tenant, found)), None)

    async def types(self, actor: str, at: datetime) -> Sequence[TypeCount]:
        """The types that events have, by name: of every assistant, for a plan serves any number of them (IM-18)."""
        require_scope(actor=actor)
        async with self._database.tenant(self._tenant) as connection:
            await self._note(connection, View(at, actor, "types", {}, []))
            cursor = connection.cursor(row_factory=class_row(TypeCount))
            await cursor.execute(
                "select type, count(*) as events, count(*) filter (where status <> 'CLOSED') as open,"
                " array_agg(distinct assistant order by assistant) as assistants"
                " from recuerdo.key_events where tenant = %s group by type order by type",
                (self._tenant,),
            )
            return await cursor.fetchall()

    async def count(self, types: Sequence[str]) -> dict[str, int]:
        """How many events have each of these types; those that none has are left out. Shows no event to anybody."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                "select type, count(*) as events from recuerdo.key_events"
                " where tenant = %s and type = any(%s) group by type",
                (self._tenant, list(types)),
            )
            return {row["type"]: row["events"] for row in await cursor.fetchall()}

    async def plans_of(self, assistants: Sequence[str]) -> dict[str, str]:
        """The plan that each of these assistants last answered under; without an answer it has none."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                "select distinct on (c.assistant) c.assistant, t.record->>'plan' as plan"
                " from recuerdo.conversations c join recuerdo.turns t"
                " on t.tenant = c.tenant and t.conversation = c.id and t.record is not null"
                " where c.tenant = %s and c.assistant = any(%s) order by c.assistant, t.started_at desc",
                (self._tenant, list(assistants)),
            )
            return {row["assistant"]: row["plan"] for row in await cursor.fetchall()}

    async def views(self, *, limit: int = 100) -> Sequence[View]:
        """Who looked at what, newest first."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(View))
            await cursor.execute(
                "select at, actor, action, filter, ids from recuerdo.key_event_views where tenant = %s"
                " order by id desc limit %s",
                (self._tenant, limit),
            )
            return await cursor.fetchall()

    async def _look(
        self,
        action: ViewAction,
        which: OperatorFilter,
        actor: str,
        at: datetime,
        limit: int | None,
        offset: int,
    ) -> EventPage:
        require_scope(actor=actor)
        values = {**vars(which), "tenant": self._tenant, "limit": limit, "offset": offset}
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                f"select {COLUMNS} from recuerdo.key_events where {_MATCHES}"
                " order by updated_at desc, id limit %(limit)s offset %(offset)s",
                values,
            )
            found = [event_of(row) for row in await cursor.fetchall()]
            cursor = await connection.execute(
                f"select count(*) as total from recuerdo.key_events where {_MATCHES}", values
            )
            counted = await cursor.fetchone()
            await self._note(connection, View(at, actor, action, which.as_data(), _ids(found)))
            events = await with_history(connection, self._tenant, found)
        return EventPage(tuple(events), counted["total"] if counted else 0)

    async def _note(self, connection: Connection, view: View) -> None:
        await connection.execute(
            "insert into recuerdo.key_event_views (tenant, at, actor, action, filter, ids)"
            " values (%(tenant)s, %(at)s, %(actor)s, %(action)s, %(filter)s, %(ids)s)",
            {**vars(view), "filter": Jsonb(view.filter), "tenant": self._tenant},
        )


def _ids(events: Sequence[KeyEvent]) -> list[UUID]:
    return [event.id for event in events]
