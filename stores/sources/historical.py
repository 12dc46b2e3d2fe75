"""Quotes as they stood at the clock, from daily bars: for demos and tests of any date (RF-12).

The bars come from a CSV or JSON file: ``symbol, date, close, currency``, and optionally ``open, high, low,
volume``, and ``close_time`` with ``zone`` (16:00 in New York where they are not given). A bar is known from its
close on.
"""

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from recuerdo.stores.sources.files import read_rows
from recuerdo.stores.sources.registry import SourceQuery
from recuerdo.stores.sources.rows import Amount, Day, Name, Quote, Row, Symbol, TimeZone

_CLOSE, _ZONE = dt.time(16), "America/New_York"
_WEEK = 7
_NOT_MOVED = dt.timedelta(0)


class Bar(Row):
    """One day of one symbol."""

    keys = ("symbol", "date")

    symbol: Symbol
    date: Day
    close: Annotated[Amount, Field(gt=0)]
    currency: Name
    open: Amount | None = None
    high: Amount | None = None
    low: Amount | None = None
    volume: Amount | None = None
    close_time: dt.time = _CLOSE
    zone: TimeZone = _ZONE

    def closed_at(self, later: dt.timedelta) -> dt.datetime:
        """The instant of its close, when the bar is moved by whole days."""
        return dt.datetime.combine(self.date + later, self.close_time, ZoneInfo(self.zone))


@dataclass(frozen=True)
class HistoricalQuotes:
    """The source ``quotes`` from daily bars: the last close before the query's instant.

    With ``repeats`` the file, cut to whole weeks, is laid end to end before and after itself, so that there are
    prices at any date; without it there is no quote before the first bar, and after the last one it stays.
    """

    bars: Mapping[str, Sequence[Bar]]
    repeats: bool = False
    name: str = field(default="quotes", init=False)

    @classmethod
    def of(cls, bars: Iterable[Bar]) -> "HistoricalQuotes":
        """From bars in any order."""
        by_symbol: dict[str, list[Bar]] = {}
        for bar in sorted(bars, key=lambda bar: bar.date):
            by_symbol.setdefault(bar.symbol, []).append(bar)
        return cls(by_symbol)

    @classmethod
    def read(cls, file: Path) -> "HistoricalQuotes":
        """From a CSV or JSON file. Raises InputError that names the lines which are wrong."""
        return cls.of(bar for batch in read_rows(file, Bar) for bar in batch)

    async def fetch(self, query: SourceQuery) -> list[Quote]:
        """Quotes of those symbols that the file has, as of ``query.now``."""
        quotes = (self.quote(symbol, query.now) for symbol in query.symbols)
        return [quote for quote in quotes if quote]

    def quote(self, symbol: str, now: dt.datetime) -> Quote | None:
        """The quote of ``symbol`` at the aware instant ``now``."""
        bars = self.bars.get(symbol, ())
        # A bar of tomorrow's date may have closed already, where the day begins before it does here.
        days = (now.date() + dt.timedelta(days=days) for days in range(1, -_WEEK, -1))
        if not self.repeats:
            return self._last(bars, now)
        return next(filter(None, (self._repeated(bars, day, now) for day in days)), None)

    @staticmethod
    def _last(bars: Sequence[Bar], now: dt.datetime) -> Quote | None:
        closed = bisect_right(bars, now, key=lambda bar: bar.closed_at(_NOT_MOVED))
        if not closed:
            return None
        return _quote(bars, closed - 1, _NOT_MOVED, bars[closed - 2].close if closed > 1 else None)

    def _repeated(self, bars: Sequence[Bar], day: dt.date, now: dt.datetime) -> Quote | None:
        """The quote of the bar that falls on ``day``, if it has closed by ``now``."""
        turns = (day - self._first).days // self._span.days
        later = turns * self._span
        place = bisect_right(bars, day - later, key=lambda bar: bar.date) - 1
        if place < 0 or bars[place].date != day - later or bars[place].closed_at(later) > now:
            return None
        # The bar before the first one is the last one, of the time before.
        return _quote(bars, place, later, bars[place - 1].close)

    @cached_property
    def _first(self) -> dt.date:
        return min(bars[0].date for bars in self.bars.values())

    @cached_property
    def _span(self) -> dt.timedelta:
        """Whole weeks, so that a Monday stays a Monday."""
        last = max(bars[-1].date for bars in self.bars.values())
        return dt.timedelta(weeks=max(1, ((last - self._first).days + 1) // _WEEK))


def _quote(bars: Sequence[Bar], place: int, later: dt.timedelta, before: Decimal | None) -> Quote:
    bar = bars[place]
    return Quote(
        symbol=bar.symbol,
        price=bar.close,
        currency=bar.currency,
        as_of=bar.closed_at(later),
        change_percent=_percent(bar.close, before) if before else None,
        volume=bar.volume,
        open=bar.open,
        high=bar.high,
        low=bar.low,
        previous_close=before,
    )


def _percent(close: Decimal, before: Decimal) -> Decimal:
    return ((close - before) / before * 100).quantize(Decimal("0.01"))


def sample_quotes() -> HistoricalQuotes:
    """Made-up prices of a few well-known symbols at any date. They are no market's."""
    with as_file(files(__package__) / "sample_bars.json") as file:
        return replace(HistoricalQuotes.read(file), repeats=True)
