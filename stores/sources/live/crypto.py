"""Crypto quotes from any exchange that `ccxt` reaches, without keys (extra ``crypto``; RF-12, C-35)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

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

SERVICE = "ccxt"

# Longest first: BTCUSDT is not a pair in US dollars.
_QUOTED_IN = ("USDT", "USDC", "USD", "EUR", "GBP", "MXN", "BRL", "BTC", "ETH")
_SHORTEST_BASE = 2
_SEPARATORS = str.maketrans("-_", "//")


@dataclass(frozen=True)
class CryptoQuotes:
    """The source ``quotes`` for crypto pairs; any other symbol is left to other sources.

    ``change_percent`` is that of the exchange's day or of the last 24 hours, as the exchange counts it; high,
    low and volume are of the last 24 hours.
    """

    ask: Ask
    name: str = field(default="quotes", init=False)

    async def fetch(self, query: SourceQuery) -> list[Quote]:
        """The quotes of those symbols that are pairs of the exchange. Raises LiveError, SettingsError."""
        pairs = {symbol: pair for symbol in query.symbols if (pair := pair_of(symbol))}
        tickers = await answers(self.ask, pairs.values())
        quotes = (_quote(symbol, pair, tickers.get(pair), query.now) for symbol, pair in pairs.items())
        return [quote for quote in quotes if quote]


def crypto_quotes(settings: LiveSettings | None = None) -> CryptoQuotes:
    """The source as the settings say. Raises SettingsError if the extra is not installed."""
    require_extra("ccxt", "crypto", SERVICE)
    return CryptoQuotes(_Exchange((settings or LiveSettings()).crypto_exchange))


def pair_of(symbol: str) -> str | None:
    """The pair as ccxt spells it, BTC/USD for BTCUSD, BTC-USD and btc/usd; None for what is no pair."""
    code = symbol.strip().upper().translate(_SEPARATORS)
    if "/" in code:
        base, _, quote = code.partition("/")
    else:
        quote = next((end for end in _QUOTED_IN if code.endswith(end)), "")
        base = code.removesuffix(quote)
    is_base = len(base) >= _SHORTEST_BASE and base.isascii() and base.isalnum()
    return f"{base}/{quote}" if is_base and quote in _QUOTED_IN and base != quote else None


def _quote(symbol: str, pair: str, ticker: Mapping[str, Any] | None, asked_at: datetime) -> Quote | None:
    if ticker is None:
        return None
    stamp = ticker.get("timestamp")
    return quote_or_none(
        SERVICE,
        symbol=symbol,
        price=decimal(ticker.get("last")),
        currency=pair.partition("/")[2],
        # Not every exchange says when; the price is then the one of now.
        as_of=datetime.fromtimestamp(stamp / 1000, UTC) if stamp else asked_at,
        change_percent=decimal(ticker.get("percentage")),
        volume=decimal(ticker.get("baseVolume")),
        open=decimal(ticker.get("open")),
        high=decimal(ticker.get("high")),
        low=decimal(ticker.get("low")),
        previous_close=decimal(ticker.get("previousClose")),
    )


class _Exchange(Library):
    """One exchange of ccxt as the boundary."""

    def __init__(self, exchange: str) -> None:
        super().__init__()
        self._name = exchange

    def open(self) -> Any:
        """See Library."""
        ccxt: Any = import_module("ccxt")
        if self._name not in ccxt.exchanges:
            raise SettingsError(sentences("exchange_unknown", service=SERVICE, name=self._name[:30]))
        client = getattr(ccxt, self._name)({"timeout": int(TIMEOUT_SECONDS * 1000), "enableRateLimit": True})
        # Numbers as the exchange wrote them, not as floats.
        client.number = str
        return client

    def ask(self, client: Any, names: Sequence[str]) -> Mapping[str, Mapping[str, Any] | None]:
        """See Library."""
        # One unknown pair among many would be an error for all of them.
        markets = client.load_markets()
        known = [pair for pair in names if pair in markets]
        tickers: Mapping[str, Mapping[str, Any] | None] = client.fetch_tickers(known) if known else {}
        return tickers

    def in_our_words(self, error: Exception) -> RecuerdoError:
        """See Library."""
        ccxt: Any = import_module("ccxt")
        if isinstance(error, (ccxt.RateLimitExceeded, ccxt.DDoSProtection)):
            return LiveError(sentences("rate_limited", service=SERVICE))
        if isinstance(error, ccxt.NetworkError):
            return LiveError(sentences("unreachable", service=SERVICE))
        return LiveError(sentences("refused", service=SERVICE))
