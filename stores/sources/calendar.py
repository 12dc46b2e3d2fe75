"""When each market is open: sessions, holidays, early closes and daylight saving (RF-18, RF-29, RF-38, C-35).

Sessions come from `exchange-calendars`, built for about a year at a time and kept as plain intervals.
Mexico is corrected, forex and crypto follow rules of their own.
"""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from threading import Lock
from typing import Any, Literal
from zoneinfo import ZoneInfo

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.sources.calendar_cache import CalendarCache
from recuerdo.stores.sources.sessions import Sessions

sentences = load_sentences(__package__, "calendar_sentences.yaml")

CRYPTO = "24/7"
FOREX = "FOREX"
_WELL_KNOWN = "XNYS, XNAS, XMEX, XMAD, XLON, FOREX, 24/7"

_NEW_YORK = ZoneInfo("America/New_York")
_FOREX_TURN = time(17)
_FRIDAY, _SUNDAY = 4, 6

_OWN_ALIASES = {"BMV": "XMEX", "BME": "XMAD"}
# Tel Aviv moved its weekend on that day, and the library cannot build a span that holds both weeks.
_KNOWN_FROM = {"XTAE": date(2026, 1, 5)}
_SHOWN_ZONES = {"XMEX": "America/Mexico_City"}
_FIRST_DAY, _LAST_DAY = date(1990, 1, 1), date(2100, 12, 31)
# Longer than any run of holidays, so that the session before and after an instant lies in its window.
_MARGIN = timedelta(days=40)
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


class MarketCalendar:
    """Market status by exchange; thread-safe. The first call for an exchange and year takes about 0.1 s (the
    very first about 1 s more, for the import of pandas): run it off the event loop. Later ones take 10 µs.
    With a ``cache`` what was built once is read from there.
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
        code = exchange.strip().upper()
        if not _FIRST_DAY < at.date() < _LAST_DAY:
            raise _out_of_range(code, at, _FIRST_DAY, _LAST_DAY)
        if code == CRYPTO:
            return MarketStatus(code, "open", at, next_open=None, next_close=None)
        if code == FOREX:
            return _status_within(_forex_week(at), code, at)
        return _status_within(self._sessions(code, at), code, at)

    def _sessions(self, code: str, at: datetime) -> Sessions:
        key = (code, at.astimezone(UTC).year)
        with self._lock:
            if key not in self._windows:
                self._windows[key] = self._load_sessions(code, at)
                if len(self._windows) > _KEPT_WINDOWS:
                    del self._windows[next(iter(self._windows))]
            return self._windows[key]

    def _load_sessions(self, code: str, at: datetime) -> Sessions:
        year = at.astimezone(UTC).year
        sessions = self._cache.get(code, year) if self._cache and code.isalnum() else None
        if sessions is None:
            sessions = _build_sessions(code, at)
            if self._cache:
                self._cache.put(code, year, sessions)
        return sessions


def _status_within(sessions: Sessions, exchange: str, at: datetime) -> MarketStatus:
    index = bisect_right(sessions.opens, at)
    is_open = index > 0 and at < sessions.closes[index - 1]
    next_open = sessions.opens[index].astimezone(sessions.zone) if index < len(sessions.opens) else None
    next_close = sessions.closes[index - 1].astimezone(sessions.zone) if is_open else None
    return MarketStatus(exchange, "open" if is_open else "closed", at, next_open, next_close)


def _forex_week(at: datetime) -> Sessions:
    """Three weeks around ``at``: forex trades from Sunday 17:00 to Friday 17:00 in New York."""
    local = at.astimezone(_NEW_YORK).date()
    sunday = local - timedelta(days=(local.weekday() - _SUNDAY) % 7)
    sundays = [sunday + timedelta(weeks=week) for week in (-1, 0, 1)]
    return Sessions(
        zone=_NEW_YORK,
        opens=tuple(_forex_turn(day) for day in sundays),
        closes=tuple(_forex_turn(day + timedelta(days=5)) for day in sundays),
    )


def _forex_turn(day: date) -> datetime:
    return datetime.combine(day, _FOREX_TURN, _NEW_YORK).astimezone(UTC)


def _build_sessions(code: str, at: datetime) -> Sessions:
    """The sessions of the UTC year of ``at`` and some weeks on either side."""
    calendar_class = _calendar_class(code)
    day = at.astimezone(UTC).date()
    first, last = _bounds(calendar_class)
    if not first <= day <= last:
        raise _out_of_range(code, at, first, last)
    start = max(first, date(day.year, 1, 1) - _MARGIN)
    end = min(last, date(day.year, 12, 31) + _MARGIN)
    try:
        schedule = calendar_class(start=start.isoformat(), end=end.isoformat()).schedule
    except NotImplementedError:  # holidays by the Orthodox Easter, which pandas 3 cannot compute in bulk
        raise InputError(sentences("exchange_unavailable", exchange=code)) from None
    opens, closes = _intervals(schedule)
    return Sessions(ZoneInfo(_SHOWN_ZONES.get(calendar_class.name, str(calendar_class.tz))), opens, closes)


def _calendar_class(code: str) -> Any:
    # pandas takes about a second to import: only who asks for an exchange pays it.
    from exchange_calendars import calendar_utils
    from exchange_calendars.errors import InvalidCalendarName

    try:
        name = calendar_utils.resolve_alias(_OWN_ALIASES.get(code, code))
    except InvalidCalendarName:
        raise _unknown(code) from None
    found = getattr(calendar_utils, f"{name}ExchangeCalendar", None)
    if found is None:  # "24/5": weekdays in UTC, which is no market's week
        raise _unknown(code)
    return _mexico_by_new_york(found) if name == "XMEX" else found


def _mexico_by_new_york(mexican: Any) -> Any:
    """The Mexican calendar with New York's hours: BMV moves with the daylight saving of the United States,
    which Mexico no longer has; and with the day in 2024 on which the president took office.
    """
    import pandas as pd

    class _Mexico(mexican):  # type: ignore[misc]
        tz = _NEW_YORK
        open_times = ((None, time(9, 30)),)
        close_times = ((None, time(16)),)

        @property
        def adhoc_holidays(self) -> list[Any]:
            return [*super().adhoc_holidays, pd.Timestamp("2024-10-01")]

    return _Mexico


def _bounds(calendar_class: Any) -> tuple[date, date]:
    """First and last day that the calendar's holidays are known for, within our own range."""
    first, last = calendar_class.bound_min(), calendar_class.bound_max()
    return (
        max(_KNOWN_FROM.get(calendar_class.name, _FIRST_DAY), first.date() if first else _FIRST_DAY),
        min(_LAST_DAY, last.date() if last else _LAST_DAY),
    )


def _intervals(schedule: Any) -> tuple[tuple[datetime, ...], tuple[datetime, ...]]:
    """Opens and closes of a schedule, split at midday breaks and joined where a session follows at once."""
    parts: list[tuple[Any, Any]] = []
    for start, pause, resume, end in schedule.itertuples(index=False):
        if pause == pause:  # NaT, no break, is not equal to itself
            parts += [(start, pause), (resume, end)]
        else:
            parts.append((start, end))
    parts = [(start.to_pydatetime(), end.to_pydatetime()) for start, end in parts]
    joined = {start for (_, end), (start, _) in pairwise(parts) if start == end}
    opens = tuple(start for start, _ in parts if start not in joined)
    closes = tuple(end for _, end in parts if end not in joined)
    return opens, closes


def _unknown(code: str) -> InputError:
    return InputError(sentences("exchange_unknown", exchange=code[:20], known=_WELL_KNOWN))


def _out_of_range(code: str, at: datetime, first: date, last: date) -> InputError:
    return InputError(
        sentences("instant_out_of_range", exchange=code, date=at.date(), first=first, last=last)
    )
