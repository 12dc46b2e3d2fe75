"""Rows and loaded data for the tests of what a turn's facts say."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from recuerdo.nodes.build_context.asked import asked_kinds
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.market import MARKET_PARTS
from recuerdo.state.blocks import Block, CountTokens
from recuerdo.stores.sources.calendar import MarketStatus
from recuerdo.stores.sources.rows import Alert, CourseProgress, Position, Profile, Quote
from recuerdo.stores.tokens import TokenCounter

NOW = datetime.fromisoformat("2025-12-05T10:30:00-06:00")
count = TokenCounter().count


def market_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Everything of the market."""
    return [block for build in MARKET_PARTS.values() for block in build(data, count)]


def profile(**changes: Any) -> Profile:
    values = {
        "user": "u",
        "name": "Carlos",
        "subscription": "premium",
        "risk_profile": "moderate",
        "experience": "intermediate",
        "language": "es",
        "timezone": "America/Mexico_City",
    }
    return Profile(**{**values, **changes})


def position(symbol: str, quantity: str, average: str, currency: str = "USD") -> Position:
    return Position(
        user="u", symbol=symbol, quantity=Decimal(quantity), avg_price=Decimal(average), currency=currency
    )


def quote(symbol: str, price: str, currency: str = "USD", age: timedelta = timedelta(), **more: Any) -> Quote:
    return Quote(symbol=symbol, price=Decimal(price), currency=currency, as_of=NOW - age, **more)


def alert(symbol: str, condition: str, price: str) -> Alert:
    return Alert.model_validate(
        {
            "user": "u",
            "id": f"{symbol}{condition}{price}",
            "symbol": symbol,
            "condition": condition,
            "price": price,
        }
    )


def course(name: str, topic: str, percent: str, lesson: str | None = None, days: int = 0) -> CourseProgress:
    return CourseProgress(
        user="u",
        course=name,
        topic=topic,
        percent=Decimal(percent),
        next_lesson=lesson,
        updated_at=NOW - timedelta(days=days),
    )


def opened(exchange: str, close: str = "2025-12-05T21:00:00+00:00") -> MarketStatus:
    return MarketStatus(exchange, "open", NOW, NOW + timedelta(days=3), datetime.fromisoformat(close))


def gathered(text: str = "", language: str = "es", **loaded: Any) -> Gathered:
    """Loaded data; ``quotes`` as a list."""
    quotes = {one.symbol: one for one in loaded.pop("quotes", ())}
    values = {"profile": profile(), "text": text, "asked": asked_kinds(text), "quotes": quotes}
    return Gathered(NOW, language, "analysis", 1.0, **{**values, **loaded})


def lines(blocks: list[Block], name: str, rung: int = 0) -> list[str]:
    """The facts of a block in one of its renderings; none when there is no such block."""
    found = [block for block in blocks if block["name"] == name]
    text = found[0]["rungs"][rung]["text"] if found else ""
    return [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ")]
