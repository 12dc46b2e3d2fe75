"""Loading platform data into PostgreSQL: all of it or nothing, within the tenant, exact."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.platform import (
    CourseProgress,
    EconomicEvent,
    Platform,
    Position,
    Quote,
    parse_sample,
    platform_sources,
)
from recuerdo.stores.sources.files import DataError, Reading, read_folder
from recuerdo.stores.sources.registry import SourceQuery, Sources
from recuerdo.stores.sources.rows import Row

NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)


def progress(**changes: Any) -> CourseProgress:
    values = {"user": "user-123", "course": "Curso RSI", "topic": "RSI", "percent": "60", "updated_at": NOW}
    return CourseProgress(**{**values, **changes})


def quote(symbol: str, price: str = "1.50") -> Quote:
    return Quote(symbol=symbol, price=Decimal(price), currency="USD", as_of=NOW, more={"pe": "28.1"})


async def test_rf_15_progress_of_courses(database: Database) -> None:
    platform = Platform(database, "t1")
    done = progress(course="Velas", topic="velas japonesas", percent="100", next_lesson=None)
    going_on = progress(next_lesson="Divergencias")
    await platform.load_batches([(CourseProgress, [done, going_on])])
    assert await platform.education("user-123") == [going_on, done]
    assert await platform.education("user-2") == []
    assert await Platform(database, "t2").education("user-123") == []
    with pytest.raises(ScopeError):
        await platform.education("")
    source = next(source for source in platform_sources(database) if source.name == "education")
    assert await source.fetch(SourceQuery("t1", "user-123", (), NOW)) == [going_on, done]
    assert await source.fetch(SourceQuery("t1", None, (), NOW)) == []


async def test_rf_19_rf_39_events_of_the_day_anywhere_by_date(database: Database) -> None:
    days = ["2025-12-20", "2025-12-06", "2025-12-04", "2025-12-05", "2026-06-01"]
    events = [{"event": f"Fed {day}", "date": day, "impact": "high"} for day in days]
    await Platform(database, "t1").load(parse_sample({"events": events}))
    for now in (NOW, datetime(2025, 12, 6, 3, tzinfo=UTC)):
        fetched = await Sources(platform_sources(database), clock=lambda now=now: now).fetch(
            "events", SourceQuery("t1", "user-123", (), now)
        )
        # On the 6th in UTC it is still the 5th in Mexico.
        assert [event.date.day for event in fetched.value] == [5, 6, 20]


async def test_c_21_stored_times_have_an_offset_and_money_is_exact(database: Database) -> None:
    await Platform(database, "t1").load_batches([(Quote, [quote("AAPL", "185.5000")])])
    async with database.tenant("t1") as connection:
        cursor = await connection.execute(
            "select as_of, price, pg_typeof(price)::text as type from recuerdo.platform_quotes"
        )
        row = await cursor.fetchone()
    assert row is not None
    assert row["as_of"].utcoffset() is not None and row["as_of"] == NOW
    assert (str(row["price"]), row["type"]) == ("185.5000", "numeric")
    (read,) = await Platform(database, "t1").quotes(["AAPL"])
    assert read.more == {"pe": "28.1"}


async def test_a_position_of_quantity_zero_is_closed(database: Database) -> None:
    platform = Platform(database, "t1")
    values = {"user": "user-123", "symbol": "AAPL", "avg_price": Decimal(175), "currency": "USD"}
    await platform.load_batches([(Position, [Position(quantity=Decimal(50), **values)])])
    assert len(await platform.positions("user-123")) == 1
    await platform.load_batches([(Position, [Position(quantity=Decimal("0.0"), **values)])])
    assert await platform.positions("user-123") == []


def batches_that_break() -> Iterator[tuple[type[Row], list[Row]]]:
    yield Quote, [quote("AAPL")]
    yield CourseProgress, [progress()]
    raise InputError(parse_error())


def parse_error() -> Any:
    with pytest.raises(InputError) as raised:
        parse_sample({"quotes": 3})
    return raised.value.sentence


async def test_all_or_nothing(database: Database) -> None:
    platform = Platform(database, "t1")
    with pytest.raises(InputError):
        await platform.load_batches(batches_that_break())
    assert await platform.quotes(["AAPL"]) == []
    assert await platform.education("user-123") == []
    assert await platform.load_batches([]) == {}


async def test_a_folder_with_one_wrong_line_at_its_end_changes_nothing(
    database: Database, tmp_path: Path
) -> None:
    platform = Platform(database, "t1")
    await platform.load_batches([(Quote, [quote("S1", "9")])])
    lines = [f"S{n},{n}.25,USD,2025-12-05T16:30:00Z" for n in range(12_000)]
    file = tmp_path / "quotes.csv"
    file.write_text("\n".join(["symbol,price,currency,as_of", *lines, "X,x,USD,2025-12-05T16:30:00Z"]))
    with pytest.raises(DataError, match=r"quotes\.csv:12002: price"):
        await platform.load_batches(read_folder(tmp_path, Reading()))
    assert [str(q.price) for q in await platform.quotes(["S1", "S2"])] == ["9"]
    file.write_text("\n".join(["symbol,price,currency,as_of", *lines]))
    assert await platform.load_batches(read_folder(tmp_path, Reading())) == {Quote: 12_000}
    assert [str(q.price) for q in await platform.quotes(["S1", "S11999"])] == ["1.25", "11999.25"]
    assert await Platform(database, "t2").quotes(["S1"]) == []


async def test_two_loads_at_once_and_two_tenants(database: Database) -> None:
    first, second = Platform(database, "t1"), Platform(database, "t2")
    await asyncio.gather(
        first.load_batches([(Quote, [quote("AAPL", "1")])]),
        second.load_batches([(Quote, [quote("AAPL", "2")])]),
        first.load_batches([(EconomicEvent, [EconomicEvent(event="e", date=NOW.date(), impact="low")])]),
    )
    assert [str(q.price) for q in await first.quotes(["AAPL"])] == ["1"]
    assert [str(q.price) for q in await second.quotes(["AAPL"])] == ["2"]
    assert len(await first.events(NOW.date(), NOW.date())) == 1


async def test_rf_35_a_quote_of_the_table_is_read_once_a_minute(database: Database) -> None:
    platform = Platform(database, "t1")
    clock = [NOW]
    sources = Sources(platform_sources(database), clock=lambda: clock[0])
    query = SourceQuery("t1", "user-123", ("AAPL",), NOW)
    prices = []
    for seconds in (0, 59, 61):
        await platform.load_batches([(Quote, [quote("AAPL", str(seconds))])])
        clock[0] = NOW + timedelta(seconds=seconds)
        prices.append(str((await sources.fetch("quotes", query)).value[0].price))
    assert prices == ["0", "0", "61"]
