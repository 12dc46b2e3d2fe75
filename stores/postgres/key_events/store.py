"""The key events that a user and his agents see: one tenant, one assistant or all, one owner (LA-18 to LA-23)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from recuerdo.state.key_events import (
    EventChange,
    EventFilter,
    EventPage,
    KeyEvent,
    NewEvent,
    Origin,
    Owner,
    changed,
    created,
    require_aware,
)
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.key_events.rows import (
    COLUMNS,
    RANKED,
    event_of,
    insert_event,
    insert_revision,
    was_made,
    with_history,
)
from recuerdo.stores.postgres.key_events.writing import (
    adoption,
    cleaned_change,
    cleaned_event,
    event_id_of,
    require_owner,
)
from recuerdo.stores.postgres.scope import require_scope

CLOSED_DAYS = 90
"""Days that a closed event can be read after it was closed (C-9)."""

PAGE = 10
"""Events of one page."""

_KEPT: LiteralString = "(closed_at is null or closed_at > %(archived)s)"


class PostgresKeyEvents:
    """The key events of one tenant in PostgreSQL; see ``KeyEvents`` in ``stores/memory_store/events.py``."""

    def __init__(
        self,
        database: Database,
        tenant: str,
        assistant: str,
        *,
        shared: bool = False,
        closed_days: int = CLOSED_DAYS,
    ) -> None:
        require_scope(tenant=tenant, assistant=assistant)
        self._database = database
        self._tenant = tenant
        self._assistant = assistant
        self._shared = shared
        self._closed_for = timedelta(days=closed_days)

    async def create(self, owner: Owner, event: NewEvent, origin: Origin) -> KeyEvent:
        """Keep a new event. One whose key was used before is the event that was made then."""
        async with self._database.tenant(self._tenant) as connection:
            return await self.create_in(connection, owner, event, origin)

    async def create_in(
        self, connection: Connection, owner: Owner, event: NewEvent, origin: Origin
    ) -> KeyEvent:
        """As :meth:`create`, in a transaction of the tenant that is open."""
        require_owner(owner, origin)
        event_id = event_id_of(self._tenant, self._assistant, owner, origin)
        made = await cleaned_event(event_id, self._assistant, owner, event, origin)
        if await insert_event(connection, self._tenant, made):
            await insert_revision(connection, self._tenant, event_id, created(made, origin), origin.key)
        return await self._read(connection, event_id)

    async def update(
        self, owner: Owner, event_id: UUID, change: EventChange, origin: Origin
    ) -> KeyEvent | None:
        """Change an event and note it in its history. None: no such event of the owner's.

        Writers of one event wait for each other, and each changes only the fields that it names: nothing is lost.
        """
        async with self._database.tenant(self._tenant) as connection:
            return await self.update_in(connection, owner, event_id, change, origin)

    async def update_in(
        self, connection: Connection, owner: Owner, event_id: UUID, change: EventChange, origin: Origin
    ) -> KeyEvent | None:
        """As :meth:`update`, in a transaction of the tenant that is open."""
        require_owner(owner, origin)
        change = await cleaned_change(change)
        event = await self._visible(connection, owner, event_id, origin.at, lock=" for update")
        if event is None:
            return None
        if origin.key is None or not await was_made(connection, self._tenant, event_id, origin.key):
            await self._write(connection, event, change, origin)
        return await self._read(connection, event_id)

    async def get(self, owner: Owner, event_id: UUID, now: datetime) -> KeyEvent | None:
        """One event with its history. None: no such event of the owner's, or closed too long ago."""
        require_owner(owner)
        require_aware("now", now)
        async with self._database.tenant(self._tenant) as connection:
            event = await self._visible(connection, owner, event_id, now)
            return (await with_history(connection, self._tenant, [event]))[0] if event else None

    async def query(
        self, owner: Owner, which: EventFilter, now: datetime, *, limit: int = PAGE, offset: int = 0
    ) -> EventPage:
        """A page of the owner's events in the order of A-18, with their histories."""
        require_owner(owner)
        require_aware("now", now)
        where, values = self._of(owner)
        values |= {"archived": now - self._closed_for, "limit": limit, "offset": offset}
        values |= {"type": which.type, "status": which.status}
        where += " and (%(type)s::text is null or type = %(type)s)"
        where += " and (%(status)s::text is null or status = %(status)s)"
        closed = which.closed or which.status == "CLOSED"
        where += f" and {_KEPT}" if closed else " and status <> 'CLOSED'"
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                f"select {COLUMNS} from recuerdo.key_events where {where}"
                f" order by {RANKED} limit %(limit)s offset %(offset)s",
                values,
            )
            found = [event_of(row) for row in await cursor.fetchall()]
            cursor = await connection.execute(
                f"select count(*) as total from recuerdo.key_events where {where}", values
            )
            counted = await cursor.fetchone()
            events = await with_history(connection, self._tenant, found)
        return EventPage(tuple(events), counted["total"] if counted else 0)

    async def open(self, owner: Owner, limit: int, *, resolved: bool = True) -> list[KeyEvent]:
        """The owner's first events that are not closed, in the order of A-18, without history (LA-22)."""
        require_owner(owner)
        where, values = self._of(owner)
        # As the partial indexes are written, so that the first few are read, of however many.
        where += " and status <> 'CLOSED'" + ("" if resolved else " and (status = 'RESOLVED') = false")
        found = await self._database.read(
            self._tenant,
            f"select {COLUMNS} from recuerdo.key_events where {where}"
            " order by (status = 'RESOLVED'), updated_at desc, id limit %(limit)s",
            {**values, "limit": limit},
        )
        return [event_of(row) for row in found]

    async def adopt(self, session: str, user: str, origin: Origin) -> list[UUID]:
        """The session's user is known now: its events become his (A-22). Returns their ids."""
        assistant = None if self._shared else self._assistant
        async with self._database.tenant(self._tenant) as connection:
            return await adopt_events(connection, self._tenant, assistant, session, user, origin)

    async def _visible(
        self, connection: Connection, owner: Owner, event_id: UUID, now: datetime, lock: LiteralString = ""
    ) -> KeyEvent | None:
        where, values = self._of(owner)
        cursor = await connection.execute(
            f"select {COLUMNS} from recuerdo.key_events where {where} and {_KEPT} and id = %(id)s{lock}",
            {**values, "archived": now - self._closed_for, "id": event_id},
        )
        row = await cursor.fetchone()
        return event_of(row) if row else None

    async def _read(self, connection: Connection, event_id: UUID) -> KeyEvent:
        """The event that this transaction has written."""
        cursor = await connection.execute(
            f"select {COLUMNS} from recuerdo.key_events where tenant = %s and id = %s",
            (self._tenant, event_id),
        )
        row = await cursor.fetchone()
        assert row is not None, "it was written or locked before"
        return (await with_history(connection, self._tenant, [event_of(row)]))[0]

    async def _write(
        self, connection: Connection, event: KeyEvent, change: EventChange, origin: Origin
    ) -> None:
        if (made := changed(event, change, origin)) is None:
            return
        after, revision = made
        await connection.execute(
            "update recuerdo.key_events set summary = %(summary)s, entities = %(entities)s, status = %(status)s,"
            " priority = %(priority)s, updated_at = %(updated_at)s, closed_at = %(closed_at)s,"
            " version = %(version)s where tenant = %(tenant)s and id = %(id)s",
            {**vars(after), "entities": Jsonb(list(after.entities)), "tenant": self._tenant},
        )
        await insert_revision(connection, self._tenant, event.id, revision, origin.key)

    def _of(self, owner: Owner) -> tuple[LiteralString, dict[str, Any]]:
        """The condition that holds for the owner's events, and its values."""
        where: LiteralString = "tenant = %(tenant)s"
        if not self._shared:
            where += " and assistant = %(assistant)s"
        where += (
            " and user_id is null and session = %(session)s"
            if owner.user is None
            else " and user_id = %(user)s"
        )
        return where, {"tenant": self._tenant, "assistant": self._assistant, **vars(owner)}


async def adopt_events(
    connection: Connection, tenant: str, assistant: str | None, session: str, user: str, origin: Origin
) -> list[UUID]:
    """Give the events of an anonymous session to its user, in the transaction of ``connection`` (A-22).

    ``assistant`` None: those of every assistant. Returns their ids. Raises ScopeError when a name is missing.
    """
    require_scope(session=session, user=user, actor=origin.actor)
    require_aware("at", origin.at)
    cursor = await connection.execute(
        "update recuerdo.key_events set user_id = %(user)s, version = version + 1"
        " where tenant = %(tenant)s and user_id is null and session = %(session)s"
        " and (%(assistant)s::text is null or assistant = %(assistant)s) returning id, version",
        {"tenant": tenant, "assistant": assistant, "session": session, "user": user},
    )
    moved: Sequence[dict[str, Any]] = await cursor.fetchall()
    made = replace(origin, session=origin.session or session)
    for row in moved:
        await insert_revision(connection, tenant, row["id"], adoption(row["version"], user, made), None)
    return sorted(row["id"] for row in moved)
