"""How long a memory may be kept, how long it may be, and from which confidence on it counts as confirmed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

MemoryStatus = Literal["low", "confirmed", "published", "withdrawn"]

SUMMARY_AFTER_MESSAGES = 15
"""Messages from which on there is a summary, unless the plan says another number (RF-31)."""

RULE_SUGGESTION_MIN_APPROVALS = 15
"""Manual approvals of one kind before a rule is suggested (OR-31). The same number as above by chance (C-31)."""

MEMORY_MAX_DAYS = 90
"""Days that what a user confirmed is kept after the last write or confirmation (RF-32, A-15)."""

LOW_CONFIDENCE_MAX_DAYS = 7
"""Days that what was inferred with low confidence is kept at most (OR-8, OR-9)."""

LOW_CONFIDENCE_BELOW = 0.6
"""Below this confidence, or without one, a fact counts as low (A-24)."""

MEMORY_MAX_CHARACTERS = 4000
"""Characters of a memory's text (IM-30)."""

CRITICAL_USES = 3
"""Turns that used a memory from which on it is proposed for publishing (A-26)."""

SYMBOL_INTEREST_DAYS = 30
"""Days over which mentions of a symbol are counted (A-3)."""

FREQUENT_MENTIONS = 3
"""Mentions within those days from which on a symbol counts as frequent (RF-8, A-3)."""

TURNS_KEPT_FOR_TIME_TRAVEL = 20
"""Checkpoints of a thread that stay when old ones are pruned."""


@dataclass(frozen=True)
class MemoryLimits:
    """What a deployment may set of these: it may only shorten the days (OR-9)."""

    low_confidence_days: int = LOW_CONFIDENCE_MAX_DAYS
    low_confidence_below: float = LOW_CONFIDENCE_BELOW

    def __post_init__(self) -> None:
        """Raise ValueError for days beyond the maximum."""
        if not 1 <= self.low_confidence_days <= LOW_CONFIDENCE_MAX_DAYS:
            raise ValueError(f"LOW_CONFIDENCE_MAX_DAYS must be from 1 to {LOW_CONFIDENCE_MAX_DAYS}")


DEFAULT_LIMITS = MemoryLimits()


def status_for(
    confidence: float | None, limits: MemoryLimits = DEFAULT_LIMITS
) -> Literal["low", "confirmed"]:
    """The status that a fact of this confidence (0 to 1, None: unknown) has when it is written (A-24)."""
    return "low" if confidence is None or confidence < limits.low_confidence_below else "confirmed"


def expiry(status: MemoryStatus, since: datetime, limits: MemoryLimits = DEFAULT_LIMITS) -> datetime | None:
    """The instant from which a memory written or confirmed at ``since`` is no longer returned (C-6).

    None for what a supervisor published: it has no expiry (C-7). What was withdrawn has expired (IM-51).
    """
    match status:
        case "published":
            return None
        case "withdrawn":
            return since
        case "low":
            return since + timedelta(days=limits.low_confidence_days)
        case "confirmed":
            return since + timedelta(days=MEMORY_MAX_DAYS)
