"""Quotes from daily bars, as they stood at the clock."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from recuerdo.state.errors import InputError
from recuerdo.stores.sources.historical import HistoricalQuotes, sample_quotes
from recuerdo.stores.sources.registry import SourceQuery, Sources

BARS = """\
symbol,date,close,currency,open,volume,close_time,zone
AAPL,2025-12-05,185.50,USD,183.10,52340000,,
AAPL,2025-12-04,183.30,USD,,,,
BTCUSD,2025-12-05,97000.10,USD,,,23:59,UTC
"""


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


@pytest.fixture
def quotes(tmp_path: Path) -> HistoricalQuotes:
    file = tmp_path / "bars.csv"
    file.write_text(BARS)
    return HistoricalQuotes.read(file)


def test_rf_12_the_last_close_before_the_clock(quotes: HistoricalQuotes) -> None:
    assert quotes.quote("AAPL", at("2025-12-04T15:59:59-05:00")) is None
    first = quotes.quote("AAPL", at("2025-12-05T15:59:59-05:00"))
    assert first is not None and first.price == Decimal("183.30")
    assert (first.as_of, first.previous_close) == (at("2025-12-04T16:00:00-05:00"), None)
    second = quotes.quote("AAPL", at("2025-12-05T21:00:00+00:00"))
    assert second is not None
    assert (second.price, second.previous_close) == (Decimal("185.50"), Decimal("183.30"))
    assert (second.change_percent, second.open, second.volume) == (
        Decimal("1.20"),
        Decimal("183.10"),
        52340000,
    )


def test_after_the_last_bar_the_price_stays_and_its_age_shows(quotes: HistoricalQuotes) -> None:
    quote = quotes.quote("BTCUSD", at("2027-01-01T00:00:00+00:00"))
    assert quote is not None
    assert (quote.price, quote.as_of) == (Decimal("97000.10"), at("2025-12-05T23:59:00+00:00"))
    assert quotes.quote("ZZZZ", at("2027-01-01T00:00:00+00:00")) is None


@pytest.mark.parametrize(
    "now", ["1999-03-01T12:00:00+09:00", "2025-12-05T10:30:00-06:00", "2031-11-30T23:00:00+00:00"]
)
async def test_the_sample_has_prices_at_any_date(now: str) -> None:
    query = SourceQuery("t1", None, ("AAPL", "BTCUSD", "ZZZZ"), at(now))
    fetched = await Sources([sample_quotes()], clock=lambda: at(now)).fetch("quotes", query)
    assert [quote.symbol for quote in fetched.value] == ["AAPL", "BTCUSD"]
    for quote, longest in zip(fetched.value, (dt.timedelta(days=4), dt.timedelta(days=1)), strict=True):
        assert dt.timedelta(0) <= at(now) - quote.as_of <= longest
        assert abs(quote.change_percent) < 15


def test_the_sample_goes_on_without_a_jump_where_it_begins_again() -> None:
    sample = sample_quotes()
    days = (at("2025-11-03T23:00:00+00:00") + dt.timedelta(days=days) for days in range(60))
    found = [quote for day in days if (quote := sample.quote("AAPL", day))]
    assert len({quote.as_of for quote in found}) == 44
    assert {quote.as_of.weekday() for quote in found} == {0, 1, 2, 3, 4}
    assert max(abs(quote.change_percent or 0) for quote in found) < 8


def test_a_wrong_file_says_where(tmp_path: Path) -> None:
    file = tmp_path / "bars.csv"
    file.write_text(BARS + "TSLA,2025-12-05,0,USD,,,,Mars/Base\nAAPL,2025-12-04,1,USD\n")
    with pytest.raises(InputError) as raised:
        HistoricalQuotes.read(file)
    for part in (
        "bars.csv:5: close: it must be more than 0",
        "bars.csv:5: zone:",
        "bars.csv:6: the same row",
    ):
        assert part in str(raised.value)
