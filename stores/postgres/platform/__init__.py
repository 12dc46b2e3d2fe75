"""The platform's own data in PostgreSQL: its tables, how they are loaded, and as sources of a turn.

The rows themselves are those of every source: :mod:`recuerdo.stores.sources.rows`.
"""

from recuerdo.stores.postgres.platform.sample import PlatformSample, parse_sample
from recuerdo.stores.postgres.platform.sources import platform_sources
from recuerdo.stores.postgres.platform.tables import Platform
from recuerdo.stores.sources.rows import (
    Alert,
    CourseProgress,
    EconomicEvent,
    Position,
    Profile,
    Quote,
    Signal,
)

__all__ = [
    "Alert",
    "CourseProgress",
    "EconomicEvent",
    "Platform",
    "PlatformSample",
    "Position",
    "Profile",
    "Quote",
    "Signal",
    "parse_sample",
    "platform_sources",
]
