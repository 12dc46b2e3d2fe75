"""What a store of key events does, whatever keeps them, and one that keeps them in memory (LA-18 to LA-23)."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from recuerdo.state.errors import InputError
from recuerdo.state.key_events import (
    EventChange,
    EventFilter,
    EventPage,
    KeyEvent,
    NewEvent,
    Origin,
    Owner,
    Revision,
    changed,
    created,
    rank,
    require_aware,
)
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.key_events import (
    CLOSED_DAYS,
    PAGE,
    adoption,
    cleaned_change,
    cleaned_event,
    event_id_of,
    require_owner,
)
from recuerdo.stores.postgres.scope import require_scope

_sentences = load_sentences("recuerdo.state", "key_events_sentences.yaml")


class KeyEvents(Protocol):
    """The key events of one tenant and assistant, or, shared, of all its assistants (A-23).

    Every call names the owner: what is not his reads as if it were not there (LA-21). Open events never expire;
    closed ones can be read for some days (C-9). Every text goes through the filter for sensitive data (C-16).

    Raises ScopeError when the owner has neither user nor session, InputError for a time without a zone, and
    StoreError when what keeps the events is away.
    """

    async def create(self, owner: Owner, event: NewEvent, origin: Origin) -> KeyEvent:
        """Keep a new event. One whose key was used before is the event that was made then."""
        ...

    async def update(
        self, owner: Owner, event_id: UUID, change: EventChange, origin: Origin
    ) -> KeyEvent | None:
        """Change an event and note it in its history; of two at once none is lost (LA-20). None: no such event."""
        ...

    async def get(self, owner: Owner, event_id: UUID, now: datetime) -> KeyEvent | None:
        """One event with its history. None: no such event."""
        ...

    async def query(
        self, owner: Owner, which: EventFilter, now: datetime, *, limit: int = PAGE, offset: int = 0
    ) -> EventPage:
        """A page of the events in the order of A-18, closed ones only where they are asked for (LA-23)."""
        ...

    async def open(self, owner: Owner, limit: int, *, resolved: bool = True) -> list[KeyEvent]:
        """The first events that are not closed, without history (LA-22); ``resolved`` ones among them or not."""
        ...

    async def adopt(self, session: str, user: str, origin: Origin) -> list[UUID]:
        """The session's user is known now: its events become his, noted in their history (A-22)."""
        ...


class PreviewKeyEvents:
    """The key events of a preview: there are none, and whoever would write one is refused (LA-7, C-14)."""

    async def create(self, owner: Owner, event: NewEvent, origin: Origin) -> KeyEvent:
        """Raises InputError."""
        raise InputError(_sentences("event_preview"))

    async def update(
        self, owner: Owner, event_id: UUID, change: EventChange, origin: Origin
    ) -> KeyEvent | None:
        """Raises InputError."""
        raise InputError(_sentences("event_preview"))

    async def get(self, owner: Owner, event_id: UUID, now: datetime) -> KeyEvent | None:
        """None."""
        return None

    async def query(
        self, owner: Owner, which: EventFilter, now: datetime, *, limit: int = PAGE, offset: int = 0
    ) -> EventPage:
        """An empty page."""
        return EventPage((), 0)

    async def open(self, owner: Owner, limit: int, *, resolved: bool = True) -> list[KeyEvent]:
        """No event."""
        return []

    async def adopt(self, session: str, user: str, origin: Origin) -> list[UUID]:
        """Raises InputError."""
        raise InputError(_sentences("event_preview"))


@dataclass
class KeptEvents:
    """The key events of one tenant in memory, and the keys of the changes that were made of each."""

    events: dict[UUID, KeyEvent] = field(default_factory=dict)
    keys: set[tuple[UUID, str]] = field(default_factory=set)


class InMemoryKeyEvents:
    """Key events that last as long as the process: for tests and notebooks.

    The views of several assistants of one tenant are given the same ``kept``.
    """

    def __init__(
        self,
        tenant: str,
        assistant: str,
        *,
        shared: bool = False,
        closed_days: int = CLOSED_DAYS,
        kept: KeptEvents | None = None,
    ) -> None:
        require_scope(tenant=tenant, assistant=assistant)
        self._tenant = tenant
        self._assistant = assistant
        self._shared = shared
        self._closed_for = timedelta(days=closed_days)
        self._kept = KeptEvents() if kept is None else kept

    async def create(self, owner: Owner, event: NewEvent, origin: Origin) -> KeyEvent:
        """See :class:`KeyEvents`."""
        require_owner(owner, origin)
        event_id = event_id_of(self._tenant, self._assistant, owner, origin)
        made = await cleaned_event(event_id, self._assistant, owner, event, origin)
        if (before := self._kept.events.get(event_id)) is not None:
            return before
        return self._put(made, created(made, origin), origin)

    async def update(
        self, owner: Owner, event_id: UUID, change: EventChange, origin: Origin
    ) -> KeyEvent | None:
        """See :class:`KeyEvents`."""
        require_owner(owner, origin)
        change = await cleaned_change(change)
        event = self._visible(owner, event_id, origin.at)
        if event is None or (event_id, origin.key) in self._kept.keys:
            return event
        after = changed(event, change, origin)
        return event if after is None else self._put(*after, origin)

    async def get(self, owner: Owner, event_id: UUID, now: datetime) -> KeyEvent | None:
        """See :class:`KeyEvents`."""
        require_owner(owner)
        require_aware("now", now)
        return self._visible(owner, event_id, now)

    async def query(
        self, owner: Owner, which: EventFilter, now: datetime, *, limit: int = PAGE, offset: int = 0
    ) -> EventPage:
        """See :class:`KeyEvents`."""
        require_owner(owner)
        require_aware("now", now)
        found = [
            event
            for event in self._of(owner)
            if self._is_kept(event, now)
            and which.type in (None, event.type)
            and which.status in (None, event.status)
            and (event.status != "CLOSED" or which.closed or which.status == "CLOSED")
        ]
        found.sort(key=rank)
        return EventPage(tuple(found[offset : offset + limit]), len(found))

    async def open(self, owner: Owner, limit: int, *, resolved: bool = True) -> list[KeyEvent]:
        """See :class:`KeyEvents`."""
        require_owner(owner)
        left_out = {"CLOSED"} if resolved else {"CLOSED", "RESOLVED"}
        found = sorted((event for event in self._of(owner) if event.status not in left_out), key=rank)
        return [replace(event, history=None) for event in found[:limit]]

    async def adopt(self, session: str, user: str, origin: Origin) -> list[UUID]:
        """See :class:`KeyEvents`."""
        require_scope(session=session, user=user)
        require_aware("at", origin.at)
        require_scope(actor=origin.actor)
        made = replace(origin, session=origin.session or session, key=None)
        moved = sorted(self._of(Owner(None, session)), key=lambda event: event.id)
        for event in moved:
            revision = adoption(event.version + 1, user, made)
            self._put(replace(event, user=user, version=revision.number), revision, made)
        return [event.id for event in moved]

    def _put(self, event: KeyEvent, revision: Revision, origin: Origin) -> KeyEvent:
        kept = replace(event, history=(*(event.history or ()), revision))
        self._kept.events[event.id] = kept
        if origin.key is not None:
            self._kept.keys.add((event.id, origin.key))
        return kept

    def _of(self, owner: Owner) -> Iterable[KeyEvent]:
        return (event for event in self._kept.events.values() if self._is_of(owner, event))

    def _is_of(self, owner: Owner, event: KeyEvent) -> bool:
        if not self._shared and event.assistant != self._assistant:
            return False
        if owner.user is None:
            return event.user is None and event.session == owner.session
        return event.user == owner.user

    def _visible(self, owner: Owner, event_id: UUID, now: datetime) -> KeyEvent | None:
        event = self._kept.events.get(event_id)
        mine = event is not None and self._is_of(owner, event) and self._is_kept(event, now)
        return event if mine else None

    def _is_kept(self, event: KeyEvent, now: datetime) -> bool:
        return event.closed_at is None or event.closed_at > now - self._closed_for
