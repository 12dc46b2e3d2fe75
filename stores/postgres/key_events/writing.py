"""What holds for every writer of key events, whatever keeps them: owner, identity, no sensitive data."""

import json
from dataclasses import replace
from uuid import UUID, uuid4, uuid5

from recuerdo.state.key_events import (
    EventChange,
    KeyEvent,
    NewEvent,
    Origin,
    Owner,
    Revision,
    require_aware,
)
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import without_sensitive

_EVENT_IDS = UUID("0d0f0a3c-5a53-4e0b-9c0a-6a2f1f3f4c58")


def require_owner(owner: Owner, origin: Origin | None = None) -> None:
    """Raise ScopeError for an owner without name, InputError for a change without time zone."""
    if owner.user is None:
        require_scope(session=owner.session)
    else:
        require_scope(user=owner.user)
    if owner.session is not None:
        require_scope(session=owner.session)
    if origin is not None:
        require_scope(actor=origin.actor)
        require_aware("at", origin.at)
        if origin.key is not None:
            require_scope(key=origin.key)


def change_key(*parts: str | None) -> str:
    """The key of a change that is made once: short and storable, whatever texts of a model's it stands for."""
    return str(uuid5(_EVENT_IDS, json.dumps(parts)))


def event_id_of(tenant: str, assistant: str, owner: Owner, origin: Origin) -> UUID:
    """The id of a new event: the same for the same key of the same owner, so that a replay makes no second one."""
    if origin.key is None:
        return uuid4()
    whose = ("user", owner.user) if owner.user is not None else ("session", owner.session)
    return uuid5(_EVENT_IDS, "\0".join(map(str, (tenant, assistant, *whose, origin.key))))


async def cleaned_event(
    event_id: UUID, assistant: str, owner: Owner, event: NewEvent, origin: Origin
) -> KeyEvent:
    """The event as it is kept, its texts without sensitive data (C-16)."""
    return KeyEvent(
        id=event_id,
        assistant=assistant,
        type=event.type,
        summary=await without_sensitive(event.summary),
        entities=tuple(await without_sensitive(event.entities)),
        status=event.status,
        priority=event.priority,
        confidence=event.confidence,
        user=owner.user,
        session=owner.session,
        created_at=origin.at,
        updated_at=origin.at,
        closed_at=origin.at if event.status == "CLOSED" else None,
        version=1,
    )


async def cleaned_change(change: EventChange) -> EventChange:
    """The change with its texts as they are kept (C-16)."""
    entities = change.entities
    return replace(
        change,
        summary=await without_sensitive(change.summary),
        entities=None if entities is None else tuple(await without_sensitive(entities)),
    )


def adoption(number: int, user: str, origin: Origin) -> Revision:
    """The entry for an event that a session gives to its user (A-22)."""
    return Revision(
        number, origin.at, "adopted", origin.actor, origin.session, origin.turn, {"user": (None, user)}
    )
