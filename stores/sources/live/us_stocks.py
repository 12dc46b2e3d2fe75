"""Quotes of US stocks from Alpaca's market data (`alpaca-py`, extra ``us-stocks``; RF-12)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import SecretStr

from recuerdo.state.errors import RecuerdoError, SettingsError
from recuerdo.stores.sources.live.service import (
    TIMEOUT_SECONDS,
    Ask,
    Library,
    LiveError,
    LiveSettings,
    answers,
    decimal,
    quote_or_none,
    require_extra,
    sentences,
)
from recuerdo.stores.sources.registry import SourceQuery
from recuerdo.stores.sources.rows import Quote

SERVICE = "Alpaca"

_NEW_YORK = ZoneInfo("America/New_York")
# A ticker of New York, with a class after a dot: an ill-formed one would be an error for all that are asked.
_TICKER = re.compile(r"[A-Z]{1,5}(\.[A-Z])?")
_PERCENT_DIGITS = Decimal("0.0001")


@dataclass(frozen=True)
class UsStockQuotes:
    """The source ``quotes`` for stocks and funds of the United States; other symbols are left to others.

    Prices are those of the feed that the keys give access to (IEX without a subscription), in US dollars.
    """

    ask: Ask
    name: str = field(default="quotes", init=False)

    async def fetch(self, query: SourceQuery) -> list[Quote]:
        """The quotes of those symbols that Alpaca knows. Raises LiveError, SettingsError."""
        tickers = {symbol: ticker for symbol in query.symbols if (ticker := ticker_of(symbol))}
        snapshots = await answers(self.ask, tickers.values())
        quotes = (_quote(symbol, snapshots.get(ticker)) for symbol, ticker in tickers.items())
        return [quote for quote in quotes if quote]


def us_stock_quotes(settings: LiveSettings | None = None) -> UsStockQuotes:
    """The source as the settings say. Raises SettingsError if the extra or a key is missing."""
    require_extra("alpaca", "us-stocks", SERVICE)
    found = settings or LiveSettings()
    if found.alpaca_key is None or found.alpaca_secret is None:
        names = "ALPACA_API_KEY_ID, ALPACA_API_SECRET_KEY"
        raise SettingsError(sentences("keys_missing", service=SERVICE, names=names))
    return UsStockQuotes(_Snapshots(found.alpaca_key, found.alpaca_secret))


def ticker_of(symbol: str) -> str | None:
    """The symbol as Alpaca spells it, BRK.B for brk-b and BRK/B; None for what is no ticker of New York."""
    ticker = symbol.strip().upper().replace("-", ".").replace("/", ".")
    return ticker if _TICKER.fullmatch(ticker) else None


def _quote(symbol: str, snapshot: Mapping[str, Any] | None) -> Quote | None:
    trade = (snapshot or {}).get("latestTrade")
    if snapshot is None or not trade:
        return None
    price, traded_at = decimal(trade.get("p")), trade.get("t")
    today, previous = _sessions(snapshot, traded_at)
    closed = decimal(previous.get("c"))
    return quote_or_none(
        SERVICE,
        symbol=symbol,
        price=price,
        currency="USD",
        as_of=traded_at,
        change_percent=_change(price, closed),
        volume=decimal(today.get("v")),
        open=decimal(today.get("o")),
        high=decimal(today.get("h")),
        low=decimal(today.get("l")),
        previous_close=closed,
    )


def _sessions(snapshot: Mapping[str, Any], traded_at: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The daily bar of the session of a trade, and of the one before it.

    Before the opening the latest bar is still that of the last session: there is none of today then.
    """
    latest, before = snapshot.get("dailyBar") or {}, snapshot.get("prevDailyBar") or {}
    day, session = _day(traded_at), _day(latest.get("t"))
    return ({}, latest) if day and session and day > session else (latest, before)


def _day(instant: Any) -> date | None:
    try:
        return datetime.fromisoformat(instant).astimezone(_NEW_YORK).date()
    except (TypeError, ValueError):
        return None


def _change(price: Decimal | None, closed: Decimal | None) -> Decimal | None:
    """By how much per cent the price is over the close before."""
    if price is None or not closed:
        return None
    return ((price / closed - 1) * 100).quantize(_PERCENT_DIGITS)


class _Snapshots(Library):
    """Alpaca's snapshots as the boundary."""

    def __init__(self, key: SecretStr, secret: SecretStr) -> None:
        super().__init__()
        self._key, self._secret = key, secret

    def open(self) -> Any:
        """See Library."""
        library: Any = import_module("alpaca.data.historical.stock")

        class _Client(library.StockHistoricalDataClient):  # type: ignore[misc]
            """With a time-out, which the library has none of, and without its waiting when it is refused."""

            def _one_request(self, method: str, url: str, opts: dict[str, Any], retry: int) -> Any:
                return super()._one_request(method, url, {**opts, "timeout": TIMEOUT_SECONDS}, 0)

        return _Client(self._key.get_secret_value(), self._secret.get_secret_value(), raw_data=True)

    def ask(self, client: Any, names: Sequence[str]) -> Mapping[str, Mapping[str, Any] | None]:
        """See Library."""
        requests: Any = import_module("alpaca.data.requests")
        request = requests.StockSnapshotRequest(symbol_or_symbols=list(names))
        found: Mapping[str, Mapping[str, Any] | None] = client.get_stock_snapshot(request)
        return found

    def in_our_words(self, error: Exception) -> RecuerdoError:
        """See Library."""
        library: Any = import_module("alpaca.common.exceptions")
        http: Any = import_module("requests.exceptions")
        status = error.status_code if isinstance(error, library.APIError) else None
        if status in (401, 403):
            return SettingsError(sentences("keys_refused", service=SERVICE))
        if status == 429:
            return LiveError(sentences("rate_limited", service=SERVICE))
        if isinstance(error, http.RequestException) or (status and status >= 500):
            return LiveError(sentences("unreachable", service=SERVICE))
        return LiveError(sentences("refused", service=SERVICE))
