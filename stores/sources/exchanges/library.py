"""Sessions of the exchanges that `exchange-calendars` knows, corrected, as plain intervals."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.sources.exchanges.corrections import FIRST_DAY, LAST_DAY, corrected
from recuerdo.stores.sources.exchanges.names import CRYPTO, FOREX, WELL_KNOWN, canonical
from recuerdo.stores.sources.sessions import Sessions

sentences = load_sentences("recuerdo.stores.sources", "calendar_sentences.yaml")

_SHOWN_ZONES = {"XMEX": "America/Mexico_City"}
# Longer than any run of holidays, so that the session before and after an instant lies in its window.
_MARGIN = timedelta(days=40)


def build_sessions(code: str, at: datetime) -> Sessions:
    """The sessions of the UTC year of ``at`` and some weeks on either side.

    Raises InputError for an unknown ``code`` or a day that its published holidays do not cover.
    """
    calendar = _calendar_class(code)
    first, last = _bounds(calendar)
    day = at.astimezone(UTC).date()
    if not first <= day <= last:
        raise out_of_range(code, at, first, last)
    start = max(first, date(day.year, 1, 1) - _MARGIN)
    end = min(last, date(day.year, 12, 31) + _MARGIN)
    parts = list(_parts(calendar(start=start.isoformat(), end=end.isoformat()).schedule))
    # One that follows another at once is no opening.
    joined = {start for (_, end), (start, _) in pairwise(parts) if start == end}
    return Sessions(
        zone=ZoneInfo(_SHOWN_ZONES.get(calendar.name, str(calendar.tz))),
        opens=tuple(start for start, _ in parts if start not in joined),
        closes=tuple(end for _, end in parts if end not in joined),
    )


def has_calendar(code: str) -> bool:
    """Whether ``code``, in any spelling, names a market whose hours are known."""
    name = canonical(code)
    if name in (CRYPTO, FOREX):
        return True
    try:
        _calendar_class(name)
    except InputError:
        return False
    return True


def out_of_range(code: str, at: datetime, first: date, last: date) -> InputError:
    """The error for an instant outside of what the calendar of ``code`` covers."""
    return InputError(
        sentences("instant_out_of_range", exchange=code[:20], date=at.date(), first=first, last=last)
    )


def _calendar_class(code: str) -> Any:
    # pandas takes about a second to import: only who asks for an exchange pays it.
    from exchange_calendars import calendar_utils
    from exchange_calendars.errors import InvalidCalendarName

    try:
        name = calendar_utils.resolve_alias(code)
    except InvalidCalendarName:
        raise _unknown(code) from None
    found = getattr(calendar_utils, f"{name}ExchangeCalendar", None)
    if found is None:
        raise _unknown(code)
    return corrected(name, found)


def _bounds(calendar: Any) -> tuple[date, date]:
    """First and last day that the calendar's holidays are known for, within our own range."""
    first, last = calendar.bound_min(), calendar.bound_max()
    return (
        max(FIRST_DAY, first.date()) if first else FIRST_DAY,
        min(LAST_DAY, last.date()) if last else LAST_DAY,
    )


def _parts(schedule: Any) -> Iterator[tuple[datetime, datetime]]:
    """The intervals of a schedule, split at midday breaks."""
    for opening, pause, resume, close in schedule.itertuples(index=False):
        if pause == pause:  # NaT, no break, is not equal to itself
            yield opening.to_pydatetime(), pause.to_pydatetime()
            yield resume.to_pydatetime(), close.to_pydatetime()
        else:
            yield opening.to_pydatetime(), close.to_pydatetime()


def _unknown(code: str) -> InputError:
    return InputError(sentences("exchange_unknown", exchange=code[:20], known=WELL_KNOWN))
