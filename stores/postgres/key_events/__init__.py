"""Key events in PostgreSQL: what a user and his agents see of them, and what operators do."""

from recuerdo.stores.postgres.key_events.operators import (
    OperatorEvents,
    OperatorFilter,
    TypeCount,
)
from recuerdo.stores.postgres.key_events.store import CLOSED_DAYS, PAGE, PostgresKeyEvents, adopt_events
from recuerdo.stores.postgres.key_events.writing import (
    adoption,
    change_key,
    cleaned_change,
    cleaned_event,
    event_id_of,
    require_owner,
)

__all__ = [
    "CLOSED_DAYS",
    "PAGE",
    "OperatorEvents",
    "OperatorFilter",
    "PostgresKeyEvents",
    "TypeCount",
    "adopt_events",
    "adoption",
    "change_key",
    "cleaned_change",
    "cleaned_event",
    "event_id_of",
    "require_owner",
]
