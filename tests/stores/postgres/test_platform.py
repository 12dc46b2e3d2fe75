from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.platform import Platform, parse_sample, platform_sources
from recuerdo.stores.sources.registry import SourceQuery

NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)


def carlos() -> dict[str, Any]:
    user = {"user": "user-123"}
    return {
        "profiles": [
            {
                **user,
                "name": "Carlos",
                "subscription": "premium",
                "risk_profile": "moderate",
                "experience": "intermediate",
                "language": "es",
                "timezone": "America/Mexico_City",
                "entitlements": ["ml_signals"],
            }
        ],
        "quotes": [
            {"symbol": "AAPL", "price": "185.50", "currency": "USD", "as_of": NOW, "more": {"pe": "28.1"}},
            {"symbol": "TSLA", "price": "245.00", "currency": "USD", "as_of": NOW},
        ],
        "positions": [
            {**user, "symbol": "TSLA", "quantity": "20", "avg_price": "250.00", "currency": "USD"},
            {**user, "symbol": "AAPL", "quantity": "50", "avg_price": "175.00", "currency": "USD"},
        ],
        "alerts": [
            {**user, "id": "a1", "symbol": "TSLA", "condition": "<=", "price": "240"},
            {**user, "id": "a2", "symbol": "TSLA", "condition": ">=", "price": "300", "active": False},
            {**user, "id": "a3", "symbol": "TSLA", "condition": ">=", "price": "230", "triggered_at": NOW},
        ],
        "signals": [{"symbol": "AAPL", "prediction": "bullish", "confidence": "0.72", "updated_at": NOW}],
        "events": [
            {"event": "Fed Minutes", "date": "2025-12-06", "impact": "high"},
            {"event": "Jobs", "date": "2025-12-04", "impact": "high", "country": "US"},
        ],
    }


@pytest.fixture
async def platform(database: Database) -> Platform:
    platform = Platform(database, "t1")
    await platform.load(parse_sample(carlos()))
    return platform


async def test_rf_36_profile(platform: Platform) -> None:
    profile = await platform.profile("user-123")
    assert profile is not None
    assert (profile.name, profile.subscription, profile.entitlements) == (
        "Carlos",
        "premium",
        ("ml_signals",),
    )
    assert await platform.profile("nobody") is None


async def test_rf_12_rf_40_money_is_exact(platform: Platform) -> None:
    quotes = {quote.symbol: quote for quote in await platform.quotes(["AAPL", "TSLA", "ZZZZ"])}
    positions = await platform.positions("user-123")
    assert [position.symbol for position in positions] == ["AAPL", "TSLA"]
    profits = [(quotes[p.symbol].price - p.avg_price) * p.quantity for p in positions]
    assert profits == [Decimal("525.00"), Decimal("-100.00")]
    assert str(quotes["AAPL"].price) == "185.50"
    assert quotes["AAPL"].more == {"pe": "28.1"}


async def test_rf_41_only_active_alerts(platform: Platform) -> None:
    (alert,) = await platform.alerts("user-123")
    assert (alert.symbol, alert.condition, alert.price) == ("TSLA", "<=", 240)


async def test_rf_45_signals(platform: Platform) -> None:
    (signal,) = await platform.signals(["AAPL", "TSLA"])
    assert (signal.prediction, signal.confidence, signal.updated_at) == ("bullish", Decimal("0.72"), NOW)


async def test_rf_19_events_within_the_dates(platform: Platform) -> None:
    (event,) = await platform.events(date(2025, 12, 5), date(2025, 12, 31))
    assert (event.event, event.date, event.impact) == ("Fed Minutes", date(2025, 12, 6), "high")


async def test_load_again_replaces_rows_of_the_same_key(platform: Platform) -> None:
    sample = carlos()
    sample["quotes"][0]["price"] = "190.25"
    await platform.load(parse_sample(sample))
    assert [str(quote.price) for quote in await platform.quotes(["AAPL"])] == ["190.25"]
    assert len(await platform.positions("user-123")) == 2


async def test_load_is_all_or_nothing(database: Database) -> None:
    platform = Platform(database, "t1")
    sample = parse_sample(carlos())
    broken = sample.signals[0].model_copy(update={"confidence": Decimal(7)})
    with pytest.raises(Exception, match="check constraint"):
        await platform.load(sample.model_copy(update={"signals": (broken,)}))
    assert await platform.profile("user-123") is None


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("quotes", "price", "many"),
        ("quotes", "price", "NaN"),
        ("quotes", "as_of", "2025-12-05T10:00:00"),
        ("profiles", "timezone", "Mars/Olympus"),
        ("alerts", "condition", "about"),
        ("signals", "confidence", "1.5"),
        ("positions", "colour", "blue"),
    ],
)
def test_wrong_sample_says_where(kind: str, field: str, value: str) -> None:
    sample = carlos()
    sample[kind][0][field] = value
    with pytest.raises(InputError, match=rf"{kind}\.0\.{field}"):
        parse_sample(sample)


async def test_c_11_platform_data_keeps_to_its_scope(database: Database, platform: Platform) -> None:
    other = Platform(database, "t2")
    assert await other.positions("user-123") == []
    assert await other.quotes(["AAPL"]) == []
    assert await platform.positions("other") == []
    with pytest.raises(ScopeError):
        await platform.alerts("")
    with pytest.raises(ScopeError):
        Platform(database, "")


async def test_rf_63_the_same_data_behind_the_source_protocol(database: Database, platform: Platform) -> None:
    sources = {source.name: source for source in platform_sources(database)}
    query = SourceQuery("t1", "user-123", ("AAPL",), NOW)
    assert await sources["profile"].fetch(query) == await platform.profile("user-123")
    assert await sources["quotes"].fetch(query) == await platform.quotes(["AAPL"])
    assert await sources["positions"].fetch(query) == await platform.positions("user-123")
    assert await sources["alerts"].fetch(query) == await platform.alerts("user-123")
    assert await sources["signals"].fetch(query) == await platform.signals(["AAPL"])
    assert [event.event for event in await sources["events"].fetch(query)] == ["Fed Minutes"]
    anonymous = SourceQuery("t1", None, ("AAPL",), NOW + timedelta(days=60))
    assert await sources["profile"].fetch(anonymous) is None
    assert [await sources[name].fetch(anonymous) for name in ("positions", "alerts", "events")] == [
        [],
        [],
        [],
    ]
