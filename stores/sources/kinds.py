"""The kinds of platform data: what each gives, whom an answer may be shared with, and for how long."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from recuerdo.stores.sources.rows import (
    Alert,
    CourseProgress,
    EconomicEvent,
    Position,
    Profile,
    Quote,
    Row,
    Signal,
)

MARKET_REFRESH = timedelta(seconds=60)
"""How old the market's data may be (RF-35, RN-006)."""

ALWAYS_ASKED = timedelta(0)
"""A user who has just changed something of his own sees it at once."""


@dataclass(frozen=True)
class Kind:
    """One kind of data. ``shared_by``: an answer about a symbol or about the whole market serves every user of
    the tenant; what is a user's own is never shown to another one (fault 27: langgraph 8753).
    """

    row: type[Row]
    shared_by: Literal["symbol", "tenant", "user"]
    refresh: timedelta
    single: bool = False


KINDS: Mapping[str, Kind] = {
    "profile": Kind(Profile, "user", ALWAYS_ASKED, single=True),
    "quotes": Kind(Quote, "symbol", MARKET_REFRESH),
    "positions": Kind(Position, "user", ALWAYS_ASKED),
    "alerts": Kind(Alert, "user", ALWAYS_ASKED),
    "signals": Kind(Signal, "symbol", MARKET_REFRESH),
    "education": Kind(CourseProgress, "user", ALWAYS_ASKED),
    "events": Kind(EconomicEvent, "tenant", MARKET_REFRESH),
}
"""Every kind by the name of its source."""
