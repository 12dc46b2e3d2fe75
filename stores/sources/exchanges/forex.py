"""The week of the currency market."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from recuerdo.stores.sources.sessions import Sessions

_NEW_YORK = ZoneInfo("America/New_York")
_TURN = time(17)
_SATURDAY = 5
# Dealing stops on these two days everywhere; on other holidays of one country the others go on.
_HOLIDAYS = ((1, 1), (12, 25))
_AROUND = timedelta(days=10)


def forex_sessions(at: datetime) -> Sessions:
    """The weeks around ``at``. A day of dealing begins at 17:00 in New York on the day before and ends at
    17:00; days that follow each other are one interval, so a week runs from Sunday to Friday.
    """
    local = at.astimezone(_NEW_YORK).date()
    days = [day for day in _days(local - _AROUND, local + _AROUND) if _is_dealing(day)]
    starts = [day for before, day in pairwise(days) if day - before > timedelta(days=1)]
    ends = [before for before, day in pairwise(days) if day - before > timedelta(days=1)]
    return Sessions(
        zone=_NEW_YORK,
        opens=tuple(_turn(day - timedelta(days=1)) for day in [days[0], *starts]),
        closes=tuple(_turn(day) for day in [*ends, days[-1]]),
    )


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=count) for count in range((last - first).days + 1)]


def _is_dealing(day: date) -> bool:
    return day.weekday() < _SATURDAY and (day.month, day.day) not in _HOLIDAYS


def _turn(day: date) -> datetime:
    return datetime.combine(day, _TURN, _NEW_YORK).astimezone(UTC)
