"""What the library's calendars get wrong, put right in subclasses; the library itself stays as it is.

Each correction is a function from a calendar class to one that knows better. pandas is imported by whoever
builds a calendar, not by whoever imports this module: it takes about a second.
"""

from collections.abc import Iterator
from copy import copy
from datetime import date, datetime, time, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

FIRST_DAY, LAST_DAY = date(1990, 1, 1), date(2100, 12, 31)
"""What is asked of a calendar at most."""

_NEW_YORK = ZoneInfo("America/New_York")
_WEEKDAYS = (0, 1, 2, 3, 4)


def corrected(name: str, calendar: Any) -> Any:
    """The calendar class of exchange ``name`` with every correction that concerns it."""
    own = _BY_EXCHANGE.get(name)
    return _with_asked_offsets(own(calendar) if own else calendar)


def _with_asked_offsets(calendar: Any) -> Any:
    """Every calendar: pandas 3 no longer asks date offsets that are written outside of it.

    Orthodox feasts (Athens, Belgrade, Bucharest, Nicosia) then fail, Jewish ones (Tel Aviv) silently become
    the Western Easter, and special weeks (Tel Aviv, Mumbai, Moscow) silently are common ones. So those
    offsets are asked here, one date at a time, and the days off of special weeks are listed one by one.
    """

    class _Asked(calendar):  # type: ignore[misc]
        @property
        def regular_holidays(self) -> Any:
            return _asked(super().regular_holidays)

        @property
        def special_closes(self) -> list[Any]:
            return [(moment, _asked(days)) for moment, days in super().special_closes]

        @cached_property
        def day(self) -> Any:
            weeks = getattr(self, "special_weekmasks", ())
            return _session_days(self, weeks) if weeks else super().day

    return _Asked


def _asked(days: Any) -> Any:
    """The same holidays, with rules of ours in place of those that pandas does not ask."""
    from exchange_calendars.exchange_calendar import HolidayCalendar

    rules = getattr(days, "rules", None) or []
    if not any(_own_offsets(rule) for rule in rules):
        return days
    return HolidayCalendar([_AskedRule(rule) if _own_offsets(rule) else rule for rule in rules])


def _own_offsets(rule: Any) -> bool:
    return any(_is_own(offset) for offset in _offsets(rule))


def _is_own(offset: Any) -> bool:
    return type(offset).__module__.startswith("exchange_calendars")


def _offsets(rule: Any) -> list[Any]:
    offset = getattr(rule, "offset", None)
    return offset if isinstance(offset, list) else [offset]


class _AskedRule:
    """A holiday rule as the library's calendars know it, whose offsets are asked by their own method."""

    def __init__(self, rule: Any) -> None:
        self.name = rule.name
        self._rule = rule

    def dates(self, start_date: Any, end_date: Any, return_name: bool = False) -> Any:
        """The holidays between two days, both included; with ``return_name`` as a series of the name."""
        import pandas as pd

        years = range(start_date.year - 1, end_date.year + 2)
        days = pd.DatetimeIndex([self._in_year(year) for year in years])
        first = max(start_date, self._rule.start_date or start_date)
        last = min(end_date, self._rule.end_date or end_date)
        within = days[(days >= first) & (days <= last)]
        if self._rule.days_of_week is not None:
            within = within[within.day_of_week.isin(self._rule.days_of_week)]
        return pd.Series(self.name, index=within) if return_name else within

    def _in_year(self, year: int) -> Any:
        import pandas as pd

        day = pd.Timestamp(year, self._rule.month, self._rule.day)
        for offset in _offsets(self._rule):
            day = pd.Timestamp(offset._apply(day)) if _is_own(offset) else day + offset
        return day


def _session_days(calendar: Any, weeks: Any) -> Any:
    """The business day of a calendar with special weeks: every day of the week but those listed."""
    import pandas as pd
    from pandas.tseries.offsets import CustomBusinessDay

    days = pd.date_range(FIRST_DAY, LAST_DAY)
    is_session = _by_weekday(days, calendar.weekmask)
    for first, last, weekmask in weeks:
        within = (days >= (first or days[0])) & (days <= (last or days[-1]))
        is_session[within] = _by_weekday(days[within], weekmask)
    return CustomBusinessDay(
        holidays=[*calendar.adhoc_holidays, *days[~is_session]],
        calendar=calendar.regular_holidays,
        weekmask="1111111",
    )


def _by_weekday(days: Any, weekmask: str) -> Any:
    """For each day, whether its weekday is on in a mask such as "1111100" (Monday first)."""
    return days.day_of_week.isin([weekday for weekday, on in enumerate(weekmask) if on == "1"])


def _mexico(mexican: Any) -> Any:
    """BMV moves with the daylight saving of the United States, which Mexico no longer has.

    It is closed on the day on which a president takes office (every six years from 2024-10-01, by law), and
    its session of 24 December is short: that it ends with New York's is our reading, no hour is published
    ahead.
    """
    import pandas as pd
    from exchange_calendars.exchange_calendar import HolidayCalendar
    from exchange_calendars.pandas_extensions.holiday import Holiday

    class _Mexico(mexican):  # type: ignore[misc]
        tz = _NEW_YORK
        open_times = ((None, time(9, 30)),)
        close_times = ((None, time(16)),)

        @property
        def adhoc_holidays(self) -> list[Any]:
            inaugurations = [pd.Timestamp(year, 10, 1) for year in range(2024, 2101, 6)]
            return [*super().adhoc_holidays, *inaugurations]

        @property
        def special_closes(self) -> list[Any]:
            christmas_eve = Holiday(
                "Christmas Eve", month=12, day=24, start_date="2024-12-24", days_of_week=_WEEKDAYS
            )
            return [(time(13), HolidayCalendar([christmas_eve]))]

    return _Mexico


def _brazil(brazilian: Any) -> Any:
    """B3 opens by its own clock and, since Brazil gave up daylight saving in 2019, closes with New York."""
    import pandas as pd

    changes = (
        (pd.Timestamp(day), time(17) if is_summer else time(18)) for day, is_summer in _clock_changes()
    )

    class _Brazil(brazilian):  # type: ignore[misc]
        close_times = (*brazilian.close_times, *changes)

    return _Brazil


def _clock_changes() -> Iterator[tuple[date, bool]]:
    """The days on which New York's clock changes from 2020 on, and whether summer begins."""
    noons = (datetime(2020, 1, 1, 12, tzinfo=_NEW_YORK) + timedelta(days=count) for count in range(29_500))
    for before, noon in pairwise(noons):
        if before.dst() != noon.dst():
            yield noon.date(), bool(noon.dst())


def _chicago(futures: Any) -> Any:
    """Globex pauses each day from 16:00 to 17:00; the library lets one day run into the next."""

    class _Globex(futures):  # type: ignore[misc]
        close_times = ((None, time(16)),)

    return _Globex


def _mumbai(indian: Any) -> Any:
    """The hour of trading at Diwali (Muhurat), and the Sunday on which the budget of 2026 was presented."""
    import pandas as pd

    hours = {"2024-11-01": (time(18), time(19)), "2025-10-21": (time(13, 45), time(14, 45))}
    days = {pd.Timestamp(day): hour for day, hour in hours.items()}

    class _Mumbai(indian):  # type: ignore[misc]
        @property
        def adhoc_holidays(self) -> list[Any]:
            return [day for day in super().adhoc_holidays if day not in days]

        @property
        def special_opens_adhoc(self) -> list[Any]:
            return [(opening, pd.DatetimeIndex([day])) for day, (opening, _) in days.items()]

        @property
        def special_closes_adhoc(self) -> list[Any]:
            return [(close, pd.DatetimeIndex([day])) for day, (_, close) in days.items()]

        @property
        def special_weekmasks(self) -> list[Any]:
            budget_week = (pd.Timestamp("2026-01-26"), pd.Timestamp("2026-02-01"), "1111101")
            return [*super().special_weekmasks, budget_week]

    return _Mumbai


def _tel_aviv(israeli: Any) -> Any:
    """No trading on the Sunday before the first week from Monday to Friday."""
    import pandas as pd

    class _TelAviv(israeli):  # type: ignore[misc]
        @property
        def adhoc_holidays(self) -> list[Any]:
            return [*super().adhoc_holidays, pd.Timestamp("2026-01-04")]

    return _TelAviv


def _bucharest(romanian: Any) -> Any:
    """Epiphany and Saint John's, public holidays in Romania since 2024 (law 52/2023)."""
    import pandas as pd

    class _Bucharest(romanian):  # type: ignore[misc]
        @property
        def adhoc_holidays(self) -> list[Any]:
            added = [pd.Timestamp(year, 1, day) for year in range(2024, 2101) for day in (6, 7)]
            return [*super().adhoc_holidays, *added]

    return _Bucharest


def _seoul(korean: Any) -> Any:
    """An hour later on the day of the college entrance exam; closed on election days and, from 2026, on
    Constitution Day.

    Elections are held by law on a Wednesday and are public holidays. The library knows both until 2025.
    """
    import pandas as pd

    exams = ["2021-11-18", "2022-11-17", "2023-11-16", "2024-11-14", "2025-11-13", "2026-11-19"]
    elections = ["2026-06-03", "2028-04-12"]
    hour = timedelta(hours=1)

    class _Seoul(korean):  # type: ignore[misc]
        @property
        def adhoc_holidays(self) -> list[Any]:
            days = [*elections, *(f"{year}-07-17" for year in range(2026, LAST_DAY.year + 1))]
            return [*super().adhoc_holidays, *map(pd.Timestamp, days)]

        @property
        def special_offsets_adhoc(self) -> list[Any]:
            later = (hour, hour, hour, hour, pd.DatetimeIndex(exams))
            return [*super().special_offsets_adhoc, later]

    return _Seoul


def _singapore(singaporean: Any) -> Any:
    """A midday break since 2017-11-13, and the morning only on the eves of Christmas, New Year and Lunar New Year
    that are weekdays.
    """
    import pandas as pd

    since = pd.Timestamp("2017-11-13")
    lunar = ["2018-02-15", "2019-02-04", "2020-01-24", "2021-02-11", "2022-01-31", "2024-02-09"]
    eves = [pd.Timestamp(day) for day in (*lunar, "2025-01-28", "2026-02-16")]
    eves += [pd.Timestamp(day) for day in _weekdays((12, 24), (12, 31)) if day >= since.date()]

    class _Singapore(singaporean):  # type: ignore[misc]
        break_start_times = ((None, None), (since, time(12)))
        break_end_times = ((None, None), (since, time(13)))

        @property
        def special_closes_adhoc(self) -> list[Any]:
            return [*super().special_closes_adhoc, (time(12), pd.DatetimeIndex(eves))]

    return _Singapore


def _weekdays(*days: tuple[int, int]) -> Iterator[date]:
    """Those of the months and days that are weekdays, in every year."""
    for year in range(FIRST_DAY.year, LAST_DAY.year + 1):
        yield from (day for day in (date(year, *one) for one in days) if day.weekday() in _WEEKDAYS)


def _johannesburg(south_african: Any) -> Any:
    """Closed at noon on the last weekdays before Christmas and of the year, since 2017 at the latest."""
    import pandas as pd

    ends = (date(year, 12, day) for year in range(2017, LAST_DAY.year + 1) for day in (24, 31))
    last = pd.DatetimeIndex([day - timedelta(days=max(0, day.weekday() - 4)) for day in ends])

    class _Johannesburg(south_african):  # type: ignore[misc]
        @property
        def special_closes_adhoc(self) -> list[Any]:
            return [*super().special_closes_adhoc, (time(12), last)]

    return _Johannesburg


def _buenos_aires(argentine: Any) -> Any:
    """Holidays that the law moves to a Monday (27.399), from 2024 on, where the library's rules miss them; no
    session on 31 December and a short one on the 24th; opening at 10:30 since 2025-07-28.

    On bridge days between holidays BYMA trades without settlement, so that they are sessions.
    """
    import pandas as pd
    from exchange_calendars.exchange_calendar import HolidayCalendar

    first_year = 2024
    years = range(first_year, LAST_DAY.year + 1)
    moved = [_moved_in_argentina(date(year, *day)) for year in years for day in _MOVABLE]
    last_days = [day for day in _weekdays((12, 31)) if day.year >= first_year]
    short = [day for day in _weekdays((12, 24)) if day.year >= first_year]
    before = pd.Timestamp(first_year - 1, 12, 31)

    class _BuenosAires(argentine):  # type: ignore[misc]
        open_times = (*argentine.open_times, (pd.Timestamp("2025-07-28"), time(10, 30)))

        @property
        def regular_holidays(self) -> Any:
            rules = super().regular_holidays.rules
            return HolidayCalendar(
                [_until(rule, before) if rule.name.startswith(_MOVABLE_NAMES) else rule for rule in rules]
            )

        @property
        def adhoc_holidays(self) -> list[Any]:
            return [*super().adhoc_holidays, *map(pd.Timestamp, [*moved, *last_days])]

        @property
        def special_closes(self) -> list[Any]:
            closes = super().special_closes
            return [
                (moment, HolidayCalendar([_until(rule, before) for rule in days.rules]))
                for moment, days in closes
            ]

        @property
        def special_closes_adhoc(self) -> list[Any]:
            return [*super().special_closes_adhoc, (time(15), pd.DatetimeIndex(short))]

    return _BuenosAires


_MOVABLE = ((6, 17), (8, 17), (10, 12), (11, 20))
_MOVABLE_NAMES = (
    "Martin Miguel de Guemes",
    "San Martin",
    "Day of Respect for Cultural Diversity",
    "Day of National Sovereignty",
)
# Decree 614/2025 lets the government move one that falls on a weekend.
_MOVED_BY_DECREE = {date(2025, 10, 12): date(2025, 10, 10)}


def _moved_in_argentina(day: date) -> date:
    """Tuesday and Wednesday to the Monday before, Thursday and Friday to the Monday after."""
    weekday = day.weekday()
    if weekday in (1, 2):
        return day - timedelta(days=weekday)
    if weekday in (3, 4):
        return day + timedelta(days=7 - weekday)
    return _MOVED_BY_DECREE.get(day, day)


def _until(rule: Any, last: Any) -> Any:
    """The same holiday rule, in force until ``last``."""
    ended = copy(rule)
    ended.end_date = min(last, rule.end_date or last)
    return ended


_BY_EXCHANGE = {
    "BVMF": _brazil,
    "CMES": _chicago,
    "XBOM": _mumbai,
    "XBSE": _bucharest,
    "XBUE": _buenos_aires,
    "XJSE": _johannesburg,
    "XKRX": _seoul,
    "XMEX": _mexico,
    "XSES": _singapore,
    "XTAE": _tel_aviv,
}
