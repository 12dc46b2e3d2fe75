"""Live quotes over recorded answers at our own boundary: no library, no network (RF-12, C-35, IM-40)."""

import asyncio
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from threading import current_thread, main_thread
from types import ModuleType
from typing import Any, ClassVar

import pytest
from pydantic import SecretStr

from recuerdo.state.errors import RecuerdoError, SettingsError
from recuerdo.stores.sources.live import combined, crypto, service, us_stocks
from recuerdo.stores.sources.live.combined import CombinedQuotes
from recuerdo.stores.sources.live.crypto import CryptoQuotes, crypto_quotes, pair_of
from recuerdo.stores.sources.live.service import LiveError, LiveSettings
from recuerdo.stores.sources.live.us_stocks import UsStockQuotes, ticker_of, us_stock_quotes
from recuerdo.stores.sources.registry import SourceQuery, Sources

NOW = datetime.fromisoformat("2025-12-05T10:30:00-06:00")
KEY, SECRET = "PKTEST0000000000KEY", "secret-value-never-shown"

# The shapes are those of ccxt 4.5.90 (unified tickers with numbers as text) and of alpaca-py 0.44.0 (raw
# snapshots as its JSON is read); the values are made up.
KRAKEN: dict[str, dict[str, Any]] = {
    "BTC/USD": {
        "symbol": "BTC/USD",
        "timestamp": None,
        "datetime": None,
        "high": "92050.00000",
        "low": "88080.00000",
        "bid": "89430.40000",
        "bidVolume": "2.000",
        "ask": "89430.50000",
        "askVolume": "1.000",
        "vwap": "90233.40125",
        "open": "90120.00000",
        "close": "89430.50000",
        "last": "89430.50000",
        "previousClose": None,
        "change": "-689.5",
        "percentage": "-0.7650909897913892",
        "average": "89775.2",
        "baseVolume": "1967.18423411",
        "quoteVolume": "177505724.3291215666375",
        "info": {"c": ["89430.50000", "0.00024911"], "o": "90120.00000"},
        "indexPrice": None,
        "markPrice": None,
    }
}
BINANCE: dict[str, dict[str, Any]] = {
    "BTC/USDT": {
        **KRAKEN["BTC/USD"],
        "symbol": "BTC/USDT",
        "timestamp": 1764950400123,
        "datetime": "2025-12-05T16:00:00.123Z",
        "last": "89430.01000000",
        "previousClose": "89525.00000000",
        "percentage": "-0.105",
    }
}
ALPACA: dict[str, dict[str, Any] | None] = json.loads("""{
  "AAPL": {
    "latestTrade": {"t": "2025-12-05T16:29:58.123456789Z", "x": "V", "p": 278.78, "s": 100, "c": ["@"], "i": 5296,
                    "z": "C"},
    "latestQuote": {"t": "2025-12-05T16:29:59.1Z", "ax": "V", "ap": 278.8, "as": 2, "bx": "V", "bp": 278.77,
                    "bs": 1, "c": ["R"], "z": "C"},
    "minuteBar": {"t": "2025-12-05T16:29:00Z", "o": 278.7, "h": 278.9, "l": 278.6, "c": 278.78, "v": 1203, "n": 20,
                  "vw": 278.75},
    "dailyBar": {"t": "2025-12-05T05:00:00Z", "o": 280.54, "h": 281.14, "l": 278.05, "c": 278.78, "v": 1265325,
                 "n": 13000, "vw": 279.4},
    "prevDailyBar": {"t": "2025-12-04T05:00:00Z", "o": 284.1, "h": 284.73, "l": 278.59, "c": 280.7, "v": 1304567,
                     "n": 14000, "vw": 281.2}
  },
  "BRK.B": {
    "latestTrade": {"t": "2025-12-05T13:05:00Z", "x": "V", "p": 505.05, "s": 1, "c": ["@"], "i": 1, "z": "A"},
    "latestQuote": null,
    "minuteBar": null,
    "dailyBar": {"t": "2025-12-04T05:00:00Z", "o": 500.0, "h": 506.0, "l": 499.1, "c": 500.05, "v": 4000, "n": 40,
                 "vw": 503.0},
    "prevDailyBar": {"t": "2025-12-03T05:00:00Z", "o": 498.0, "h": 501.0, "l": 497.0, "c": 499.0, "v": 3900, "n": 39,
                     "vw": 499.9}
  },
  "QUIET": {"latestTrade": null, "latestQuote": null, "minuteBar": null, "dailyBar": null, "prevDailyBar": null},
  "GONE": null
}""")


class Recorded:
    """The boundary: a recorded answer, and what was asked."""

    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self.answer = answer
        self.asked: list[list[str]] = []
        self.off_loop = False

    def __call__(self, names: Sequence[str]) -> Mapping[str, Any]:
        self.asked.append(list(names))
        self.off_loop = current_thread() is not main_thread()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def query(*symbols: str) -> SourceQuery:
    return SourceQuery("t", None, symbols, NOW)


# Crypto


async def test_rf_12_a_crypto_quote_is_exact_and_spelled_as_asked() -> None:
    recorded = Recorded(KRAKEN)
    [quote] = await CryptoQuotes(recorded).fetch(query("BTCUSD", "AAPL", "NOPEUSD"))
    assert recorded.asked == [["BTC/USD", "NOPE/USD"]]
    assert recorded.off_loop
    assert (quote.symbol, quote.price, quote.currency) == ("BTCUSD", Decimal("89430.50000"), "USD")
    assert quote.change_percent == Decimal("-0.7650909897913892")
    assert (quote.open, quote.high, quote.low) == (Decimal("90120"), Decimal("92050"), Decimal("88080"))
    assert (quote.volume, quote.previous_close) == (Decimal("1967.18423411"), None)
    assert quote.as_of == NOW


async def test_a_ticker_that_says_when_bears_that_instant() -> None:
    [quote] = await CryptoQuotes(Recorded(BINANCE)).fetch(query("BTCUSDT"))
    assert quote.as_of == datetime(2025, 12, 5, 16, 0, 0, 123000, UTC)
    assert (quote.currency, quote.previous_close) == ("USDT", Decimal("89525"))


async def test_one_pair_in_two_spellings_is_asked_once_and_answered_twice() -> None:
    recorded = Recorded(KRAKEN)
    quotes = await CryptoQuotes(recorded).fetch(query("BTCUSD", "BTC-USD"))
    assert recorded.asked == [["BTC/USD"]]
    assert [quote.symbol for quote in quotes] == ["BTCUSD", "BTC-USD"]


@pytest.mark.parametrize(
    ("symbol", "pair"),
    [
        *(("BTCUSD", "BTC/USD"), ("btc/usd", "BTC/USD"), ("BTC-USD", "BTC/USD"), ("BTC_USDT", "BTC/USDT")),
        *(("BTCUSDT", "BTC/USDT"), ("SHIBUSDC", "SHIB/USDC"), ("ETHBTC", "ETH/BTC"), ("BTCMXN", "BTC/MXN")),
        *(("AAPL", None), ("BRK.B", None), ("BRK-B", None), ("USD", None), ("USDUSD", None), ("", None)),
        *(
            ("BTC/ZZZ", None),
            ("/USD", None),
            ("BTC/USD/X", None),
            ("ЖЖЖUSD", None),
            ("B.TUSD", None),
        ),
    ],
)
def test_c_35_what_is_a_pair(symbol: str, pair: str | None) -> None:
    assert pair_of(symbol) == pair


# US stocks


async def test_rf_12_a_stock_quote_with_the_change_over_the_close_before() -> None:
    recorded = Recorded(ALPACA)
    [quote] = await UsStockQuotes(recorded).fetch(query("AAPL", "BTCUSD", "WALMEX", "PHM.MC"))
    assert recorded.asked == [["AAPL"]]
    assert recorded.off_loop
    assert (quote.symbol, quote.price, quote.currency) == ("AAPL", Decimal("278.78"), "USD")
    assert quote.as_of == datetime(2025, 12, 5, 16, 29, 58, 123456, UTC)
    assert (quote.previous_close, quote.change_percent) == (Decimal("280.7"), Decimal("-0.6840"))
    assert (quote.open, quote.high, quote.low) == (Decimal("280.54"), Decimal("281.14"), Decimal("278.05"))
    assert quote.volume == Decimal("1265325")


async def test_before_the_opening_the_last_session_is_the_one_before() -> None:
    [quote] = await UsStockQuotes(Recorded(ALPACA)).fetch(query("BRK-B"))
    assert quote.symbol == "BRK-B"
    assert (quote.previous_close, quote.change_percent) == (Decimal("500.05"), Decimal("0.9999"))
    assert (quote.open, quote.volume) == (None, None)


async def test_rf_12_symbols_without_a_trade_or_unknown_have_no_quote() -> None:
    assert await UsStockQuotes(Recorded(ALPACA)).fetch(query("QUIET", "GONE", "ZZZZ")) == []


@pytest.mark.parametrize(
    ("symbol", "ticker"),
    [
        *(("AAPL", "AAPL"), ("f", "F"), ("BRK.B", "BRK.B"), ("brk-b", "BRK.B"), ("BRK/B", "BRK.B")),
        *(("BTCUSD", None), ("BTC/USD", None), ("PHM.MC", None), ("", None), ("AAPL;", None), ("ÑAM", None)),
    ],
)
def test_what_is_a_ticker_of_new_york(symbol: str, ticker: str | None) -> None:
    assert ticker_of(symbol) == ticker


# What both share


@pytest.mark.parametrize("source", [CryptoQuotes, UsStockQuotes])
async def test_nothing_is_asked_for_no_symbol_of_its_own(source: Any) -> None:
    recorded = Recorded({})
    assert await source(recorded).fetch(query("ABCDEFGHIJ", "")) == []
    assert recorded.asked == []


@pytest.mark.parametrize("price", [None, "NaN", "Infinity", True, "-1", "", {}, "1e40"])
async def test_im_40_nonsense_of_one_symbol_does_not_cost_the_others(price: Any) -> None:
    answer = {**KRAKEN, "ETH/USD": {**KRAKEN["BTC/USD"], "last": price}}
    quotes = await CryptoQuotes(Recorded(answer)).fetch(query("ETHUSD", "BTCUSD"))
    assert [quote.symbol for quote in quotes] == ["BTCUSD"]


async def test_rf_12_through_the_registry_a_live_quote_is_asked_once_a_minute() -> None:
    recorded = Recorded(KRAKEN)
    sources = Sources([CryptoQuotes(recorded)], clock=lambda: NOW)
    first = await sources.fetch("quotes", query("BTCUSD"))
    again = await sources.fetch("quotes", query("BTCUSD"))
    assert (first.status, first.value) == ("ok", again.value)
    assert recorded.asked == [["BTC/USD"]]
    await sources.close()


async def test_im_40_through_the_registry_a_failing_service_costs_its_block_only() -> None:
    failing = CryptoQuotes(Recorded(LiveError(service.sentences("unreachable", service="ccxt"))))
    sources = Sources([failing], clock=lambda: NOW)
    assert (await sources.fetch("quotes", query("BTCUSD"))).status == "unavailable"
    await sources.close()


# Stocks and crypto together


async def test_c_35_stocks_and_crypto_from_one_source() -> None:
    source = CombinedQuotes((UsStockQuotes(Recorded(ALPACA)), CryptoQuotes(Recorded(KRAKEN))))
    quotes = await source.fetch(query("AAPL", "BTCUSD", "ZZZZ"))
    assert {quote.symbol: quote.price for quote in quotes} == {
        "AAPL": Decimal("278.78"),
        "BTCUSD": Decimal("89430.5"),
    }


async def test_im_40_a_part_that_fails_costs_its_own_symbols() -> None:
    failure = LiveError(service.sentences("rate_limited", service="Alpaca"))
    source = CombinedQuotes((UsStockQuotes(Recorded(failure)), CryptoQuotes(Recorded(KRAKEN))))
    assert [quote.symbol for quote in await source.fetch(query("AAPL", "BTCUSD"))] == ["BTCUSD"]
    with pytest.raises(LiveError, match="too many requests"):
        await source.fetch(query("AAPL"))


# Settings


def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LiveSettings.model_config, "env_file", None)
    for name in ("ALPACA_API_KEY_ID", "ALPACA_API_SECRET_KEY", "RECUERDO_CRYPTO_EXCHANGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("build", "module", "extra"),
    [
        (crypto_quotes, crypto, r"recuerdo\[crypto\]"),
        (us_stock_quotes, us_stocks, r"recuerdo\[us-stocks\]"),
        (combined.live_quotes, us_stocks, r"recuerdo\[us-stocks\]"),
    ],
)
def test_a_missing_extra_says_what_to_install(
    build: Any, module: Any, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_environment(monkeypatch)
    monkeypatch.setattr(service, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=extra) as caught:
        build()
    assert "pip install" in caught.value.sentence.es


@pytest.mark.parametrize("given", [{}, {"ALPACA_API_KEY_ID": KEY}, {"ALPACA_API_SECRET_KEY": SECRET}])
def test_missing_keys_are_named_and_never_shown(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    no_environment(monkeypatch)
    monkeypatch.setattr(service, "find_spec", lambda name: object())
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match="ALPACA_API_KEY_ID, ALPACA_API_SECRET_KEY") as caught:
        us_stock_quotes()
    assert KEY not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_keys_are_read_from_the_environment_and_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    no_environment(monkeypatch)
    monkeypatch.setattr(service, "find_spec", lambda name: object())
    monkeypatch.setenv("ALPACA_API_KEY_ID", KEY)
    monkeypatch.setenv("ALPACA_API_SECRET_KEY", SECRET)
    shown = f"{us_stock_quotes()!r} {LiveSettings()!r} {vars(us_stock_quotes())!r}"
    assert KEY not in shown
    assert SECRET not in shown


# The libraries' side of the boundary, over stand-ins with their names and error classes


def module(name: str, **parts: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(parts)
    return made


class FakeNetworkError(Exception):
    pass


class FakeRateLimit(FakeNetworkError):
    pass


class FakeDDoS(FakeNetworkError):
    pass


class FakeKraken:
    opened: ClassVar[list[dict[str, Any]]] = []
    failure: Exception | None = None

    def __init__(self, options: dict[str, Any]) -> None:
        self.opened.append(options)
        self.number: Any = float

    def load_markets(self) -> dict[str, Any]:
        if FakeKraken.failure:
            raise FakeKraken.failure
        return {"BTC/USD": {}}

    def fetch_tickers(self, pairs: list[str]) -> dict[str, Any]:
        assert self.number is str
        return {pair: KRAKEN[pair] for pair in pairs}


@pytest.fixture
def ccxt(monkeypatch: pytest.MonkeyPatch) -> type[FakeKraken]:
    made = module(
        "ccxt",
        exchanges=["kraken"],
        kraken=FakeKraken,
        NetworkError=FakeNetworkError,
        RateLimitExceeded=FakeRateLimit,
        DDoSProtection=FakeDDoS,
    )
    monkeypatch.setitem(sys.modules, "ccxt", made)
    monkeypatch.setattr(service, "find_spec", lambda name: object())
    monkeypatch.setattr(FakeKraken, "opened", [])
    monkeypatch.setattr(FakeKraken, "failure", None)
    no_environment(monkeypatch)
    return FakeKraken


async def test_ccxt_is_opened_once_with_a_time_out_and_asked_for_known_pairs_only(
    ccxt: type[FakeKraken],
) -> None:
    source = crypto_quotes()
    assert ccxt.opened == []
    both = await asyncio.gather(source.fetch(query("BTCUSD", "NOPEUSD")), source.fetch(query("BTCUSD")))
    assert [[quote.symbol for quote in quotes] for quotes in both] == [["BTCUSD"], ["BTCUSD"]]
    assert ccxt.opened == [{"timeout": 5000, "enableRateLimit": True}]
    assert await source.fetch(query("NOPEUSD")) == []


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (FakeRateLimit("https://host/?q=1"), "too many requests"),
        (FakeDDoS("https://host/?q=1"), "too many requests"),
        (FakeNetworkError("https://host/?q=1"), "does not answer"),
        (ValueError("https://host/?q=1"), "could not give"),
    ],
)
async def test_errors_of_ccxt_are_said_in_our_words(
    ccxt: type[FakeKraken], failure: Exception, says: str
) -> None:
    ccxt.failure = failure
    with pytest.raises(LiveError, match=says) as caught:
        await crypto_quotes().fetch(query("BTCUSD"))
    assert "host" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_an_exchange_that_ccxt_does_not_know(
    ccxt: type[FakeKraken], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECUERDO_CRYPTO_EXCHANGE", "nowhere")
    with pytest.raises(SettingsError, match="RECUERDO_CRYPTO_EXCHANGE"):
        await crypto_quotes().fetch(query("BTCUSD"))


class FakeAPIError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"{status} {SECRET}")
        self.status_code = status


class FakeRequestError(OSError):
    pass


class FakeClient:
    failure: Exception | None = None
    sent: ClassVar[list[Any]] = []

    def __init__(self, key: str, secret: str, *, raw_data: bool) -> None:
        assert (key, secret, raw_data) == (KEY, SECRET, True)

    def _one_request(self, method: str, url: str, opts: dict[str, Any], retry: int) -> Any:
        self.sent.append((opts, retry))
        if self.failure:
            raise self.failure
        return ALPACA

    def get_stock_snapshot(self, request: Any) -> Any:
        opts = {"params": {"symbols": ",".join(request["symbol_or_symbols"])}}
        return self._one_request("GET", "https://host", opts, 3)


@pytest.fixture
def alpaca(monkeypatch: pytest.MonkeyPatch) -> type[FakeClient]:
    for made in (
        module("alpaca.data.requests", StockSnapshotRequest=dict),
        module("alpaca.data.historical.stock", StockHistoricalDataClient=FakeClient),
        module("alpaca.common.exceptions", APIError=FakeAPIError),
        module("requests.exceptions", RequestException=FakeRequestError),
    ):
        monkeypatch.setitem(sys.modules, made.__name__, made)
    for parent in ("alpaca", "alpaca.data", "alpaca.data.historical", "alpaca.common"):
        monkeypatch.setitem(sys.modules, parent, module(parent, __path__=[]))
    monkeypatch.setattr(service, "find_spec", lambda name: object())
    monkeypatch.setattr(FakeClient, "failure", None)
    monkeypatch.setattr(FakeClient, "sent", [])
    return FakeClient


def stocks() -> UsStockQuotes:
    return us_stock_quotes(
        LiveSettings.model_construct(alpaca_key=SecretStr(KEY), alpaca_secret=SecretStr(SECRET))
    )


async def test_alpaca_is_asked_with_a_time_out_and_without_its_own_waiting(alpaca: type[FakeClient]) -> None:
    quotes = await stocks().fetch(query("AAPL", "BRK.B"))
    assert [quote.symbol for quote in quotes] == ["AAPL", "BRK.B"]
    assert alpaca.sent == [({"params": {"symbols": "AAPL,BRK.B"}, "timeout": 5.0}, 0)]


@pytest.mark.parametrize(
    ("failure", "error", "says"),
    [
        (FakeAPIError(401), SettingsError, "does not accept the keys"),
        (FakeAPIError(403), SettingsError, "does not accept the keys"),
        (FakeAPIError(429), LiveError, "too many requests"),
        (FakeAPIError(500), LiveError, "does not answer"),
        (FakeAPIError(400), LiveError, "could not give"),
        (FakeRequestError(f"timed out {KEY}"), LiveError, "does not answer"),
        (KeyError("t"), LiveError, "could not give"),
    ],
)
async def test_errors_of_alpaca_are_said_in_our_words(
    alpaca: type[FakeClient],
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
    error: type[RecuerdoError],
    says: str,
) -> None:
    alpaca.failure = failure
    with caplog.at_level(logging.DEBUG), pytest.raises(error, match=says) as caught:
        await stocks().fetch(query("AAPL"))
    shown = f"{caught.value} {caught.value.sentence.es} {caplog.text}"
    assert KEY not in shown
    assert SECRET not in shown
    assert caught.value.__cause__ is None


async def test_the_example_of_the_guide_is_a_source() -> None:
    guide = (Path(combined.__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    code = guide.split("```python\n")[1].split("```")[0]
    example: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), example)
    recorded = Recorded({"WALMEX.MX": {"last": "61.20"}, "BIMBOA.MX": None})
    sources = Sources([example["ExampleQuotes"](recorded)], clock=lambda: NOW)
    found = await sources.fetch("quotes", query("WALMEX", "BIMBOA", "BRK.B"))
    assert [(quote.symbol, quote.price) for quote in found.value] == [("WALMEX", Decimal("61.20"))]
    assert recorded.asked == [["BIMBOA.MX", "WALMEX.MX"]]
    await sources.close()
