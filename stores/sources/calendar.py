"""When each market is open: sessions, holidays, early closes and daylight saving (RF-18, RF-29, RF-38, C-35).

Sessions of an exchange are built for about a year at a time and kept as plain intervals; forex and crypto
follow rules of their own (:mod:`recuerdo.stores.sources.exchanges`).
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from recuerdo.state.errors import InputError
from recuerdo.stores.sources.calendar_cache import CalendarCache
from recuerdo.stores.sources.exchanges.corrections import FIRST_DAY, LAST_DAY
from recuerdo.stores.sources.exchanges.forex import forex_sessions
from recuerdo.stores.sources.exchanges.library import build_sessions, out_of_range, sentences
from recuerdo.stores.sources.exchanges.names import CRYPTO, FOREX, canonical
from recuerdo.stores.sources.sessions import Sessions

_KEPT_WINDOWS = 64


@dataclass(frozen=True)
class MarketStatus:
    """Whether ``exchange`` trades at ``at``. All instants are aware; ``next_*`` in the exchange's own zone.

    Closed: ``next_open`` is given and ``next_close`` is None (A-42). Open: both are given, and ``next_close``
    comes first. A midday break counts as closed. A market that never closes has neither; ``next_open`` is
    None too where the published holidays of an exchange end before its next session.
    """

    exchange: str
    status: Literal["open", "closed"]
    at: datetime
    next_open: datetime | None
    next_close: datetime | None

    def in_zone(self, zone: ZoneInfo) -> Self:
        """The same, with every instant in ``zone``: the user's (IM-41)."""
        return replace(
            self,
            at=self.at.astimezone(zone),
            next_open=self.next_open.astimezone(zone) if self.next_open else None,
            next_close=self.next_close.astimezone(zone) if self.next_close else None,
        )


class MarketCalendar:
    """Market status by exchange; thread-safe.

    The first call for an exchange and year takes 0.04 to 0.3 s (the very first 0.4 s more, for the import of
    pandas), or 0.3 ms where a ``cache`` holds what was built once: run it off the event loop. Later ones take
    10 µs.
    """

    def __init__(self, cache: CalendarCache | None = None) -> None:
        self._cache = cache
        self._windows: dict[tuple[str, int], Sessions] = {}
        self._lock = Lock()

    def status(self, exchange: str, at: datetime) -> MarketStatus:
        """The status of ``exchange`` (MIC such as XNYS, "FOREX" or "24/7") at the aware instant ``at``.

        Raises InputError for a naive instant, an unknown exchange, or a date its calendar does not cover.
        """
        if at.tzinfo is None or at.utcoffset() is None:
            raise InputError(sentences("at_naive"))
        shown, code = exchange.strip().upper(), canonical(exchange)
        if not FIRST_DAY < at.date() < LAST_DAY:
            raise out_of_range(shown, at, FIRST_DAY, LAST_DAY)
        if code == CRYPTO:
            return MarketStatus(shown, "open", at, next_open=None, next_close=None)
        sessions = forex_sessions(at) if code == FOREX else self._sessions(code, at)
        return _status_within(sessions, shown, at)

    def _sessions(self, code: str, at: datetime) -> Sessions:
        key = (code, at.astimezone(UTC).year)
        found = self._windows.get(key)
        # The lock is for building alone: who asks for what is there never waits for it.
        return found or self._built(key, at)

    def _built(self, key: tuple[str, int], at: datetime) -> Sessions:
        with self._lock:
            if key not in self._windows:
                self._windows[key] = self._load_sessions(*key, at)
                if len(self._windows) > _KEPT_WINDOWS:
                    del self._windows[next(iter(self._windows))]
            return self._windows[key]

    def _load_sessions(self, code: str, year: int, at: datetime) -> Sessions:
        sessions = self._cache.get(code, year) if self._cache and code.isalnum() else None
        if sessions is None:
            sessions = build_sessions(code, at)
            if self._cache:
                self._cache.put(code, year, sessions)
        return sessions


def named_zone(name: str) -> ZoneInfo:
    """The time zone of an IANA name. Raises InputError for one that does not exist."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(sentences("zone_unknown", zone=name[:50])) from None


def _status_within(sessions: Sessions, exchange: str, at: datetime) -> MarketStatus:
    index = bisect_right(sessions.opens, at)
    is_open = index > 0 and at < sessions.closes[index - 1]
    next_open = sessions.opens[index].astimezone(sessions.zone) if index < len(sessions.opens) else None
    next_close = sessions.closes[index - 1].astimezone(sessions.zone) if is_open else None
    return MarketStatus(exchange, "open" if is_open else "closed", at, next_open, next_close)
