"""How long a memory may be kept, and from which confidence on it counts as confirmed."""

from datetime import datetime, timedelta
from typing import Literal

MemoryStatus = Literal["low", "confirmed", "published"]

MEMORY_MAX_DAYS = 90
"""Days that what a user confirmed is kept after the last write or confirmation (RF-32, A-15)."""

LOW_CONFIDENCE_MAX_DAYS = 7
"""Days that what was inferred with low confidence is kept (OR-8)."""

LOW_CONFIDENCE_BELOW = 0.6
"""Below this confidence, or without one, a fact counts as low (A-24)."""

SYMBOL_INTEREST_DAYS = 30
"""Days over which mentions of a symbol are counted (A-3)."""

FREQUENT_MENTIONS = 3
"""Mentions within those days from which on a symbol counts as frequent (RF-8, A-3)."""

TURNS_KEPT_FOR_TIME_TRAVEL = 20
"""Checkpoints of a thread that stay when old ones are pruned."""


def status_for(confidence: float | None) -> Literal["low", "confirmed"]:
    """The status that a fact of this confidence (0 to 1, None: unknown) has when it is written (A-24)."""
    return "low" if confidence is None or confidence < LOW_CONFIDENCE_BELOW else "confirmed"


def expiry(status: MemoryStatus, since: datetime) -> datetime | None:
    """The instant from which a memory written or confirmed at ``since`` is no longer returned (C-6).

    None for what a supervisor published: it has no expiry (C-7).
    """
    if status == "published":
        return None
    days = LOW_CONFIDENCE_MAX_DAYS if status == "low" else MEMORY_MAX_DAYS
    return since + timedelta(days=days)
