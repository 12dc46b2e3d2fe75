"""The platform's tables as sources of a turn."""

import datetime as dt
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.platform.tables import Platform
from recuerdo.stores.sources.registry import SourceQuery
from recuerdo.stores.sources.rows import Alert, CourseProgress, EconomicEvent, Position, Profile

EVENT_HORIZON_DAYS = 45
"""How far ahead the events source looks."""


@dataclass(frozen=True)
class PlatformSource:
    """One kind of platform data from PostgreSQL, behind the source protocol."""

    name: str
    read: Callable[[Platform, SourceQuery], Awaitable[Any]]
    database: Database

    async def fetch(self, query: SourceQuery) -> Any:
        """The rows for the query; a ``Profile`` or None for ``profile``."""
        return await self.read(Platform(self.database, query.tenant), query)


def platform_sources(database: Database) -> list[PlatformSource]:
    """Every kind as a source; an anonymous user has no profile, positions, alerts or courses."""
    readers: dict[str, Callable[[Platform, SourceQuery], Awaitable[Any]]] = {
        "profile": _profile,
        "quotes": lambda platform, query: platform.quotes(query.symbols),
        "positions": _positions,
        "alerts": _alerts,
        "signals": lambda platform, query: platform.signals(query.symbols),
        "education": _education,
        "events": _events,
    }
    return [PlatformSource(name, read, database) for name, read in readers.items()]


async def _profile(platform: Platform, query: SourceQuery) -> Profile | None:
    return await platform.profile(query.user) if query.user else None


async def _positions(platform: Platform, query: SourceQuery) -> list[Position]:
    return await platform.positions(query.user) if query.user else []


async def _alerts(platform: Platform, query: SourceQuery) -> list[Alert]:
    return await platform.alerts(query.user) if query.user else []


async def _education(platform: Platform, query: SourceQuery) -> list[CourseProgress]:
    return await platform.education(query.user) if query.user else []


async def _events(platform: Platform, query: SourceQuery) -> list[EconomicEvent]:
    """From the earliest day that it is anywhere: which of them are past depends on the user's time zone."""
    earliest = (query.now.astimezone(dt.UTC) - dt.timedelta(hours=12)).date()
    return await platform.events(earliest, earliest + dt.timedelta(days=EVENT_HORIZON_DAYS + 1))
