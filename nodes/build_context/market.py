"""Step e: clock, market status, events and quotes (RF-12, RF-17 to RF-19, RF-58) as blocks."""

from datetime import timedelta

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import as_data, fenced
from recuerdo.nodes.build_context.symbols import instrument
from recuerdo.state.blocks import REMOVED, Block, CountTokens, Tier, make_block, text_rung
from recuerdo.stores.postgres.platform import EconomicEvent, Quote
from recuerdo.stores.sources.calendar import MarketStatus

NEAR_EVENT = timedelta(days=7)
"""An event farther away than this is distant (A-14)."""

MISSING = "-"


def market_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Everything of the market that this turn may show."""
    return [*_state(data, count), *_events(data, count), *_quotes(data, count)]


def _state(data: Gathered, count: CountTokens) -> list[Block]:
    phrasing = data.phrasing
    now = phrasing.say(
        "now",
        moment=phrasing.moment(data.now),
        timezone=data.timezone.key,
        iso=phrasing.local(data.now).isoformat(timespec="seconds"),
    )
    main = [_status(data.market, data)] if data.market else []
    others = [_status(m, data) for code, m in sorted(data.markets.items()) if code != data.main_market]
    rungs = [
        text_rung("full", fenced("market", [now, *main, *others]), count),
        text_rung("essentials", fenced("market", [now, *main]), count, floor=True),
        REMOVED,
    ]
    return [make_block("market", "high", "turn", rungs, source="market", order=20, relevance=2.0)]


def _status(status: MarketStatus, data: Gathered) -> str:
    phrasing = data.phrasing
    if status.status == "open" and status.next_close is None:
        return phrasing.say("market_always", exchange=status.exchange)
    if status.status == "open" and status.next_close:
        return phrasing.say("market_open", exchange=status.exchange, close=phrasing.moment(status.next_close))
    opening = phrasing.moment(status.next_open) if status.next_open else MISSING
    return phrasing.say("market_closed", exchange=status.exchange, open=opening)


def _events(data: Gathered, count: CountTokens) -> list[Block]:
    horizon = data.phrasing.local(data.now).date() + NEAR_EVENT
    near = [event for event in data.events if event.date <= horizon]
    distant = [event for event in data.events if event.date > horizon]
    return [
        *_event_block("events", "high", near, data, count),
        *_event_block("distant_events", "medium", distant, data, count),
    ]


def _event_block(
    name: str, tier: Tier, events: list[EconomicEvent], data: Gathered, count: CountTokens
) -> list[Block]:
    if not events:
        return []
    phrasing = data.phrasing
    lines = [
        phrasing.say(
            "event",
            event=as_data(event.event),
            day=f"{phrasing.day(event.date)} ({event.date.isoformat()})",
            impact=as_data(event.impact),
        )
        for event in events
    ]
    rungs = [
        text_rung("full", fenced(name, lines), count),
        text_rung("next one", fenced(name, lines[:1]), count, floor=True),
        REMOVED,
    ]
    return [make_block(name, tier, "turn", rungs, source="market", order=0)]


def _quotes(data: Gathered, count: CountTokens) -> list[Block]:
    blocks = [
        make_block(
            f"quotes:{symbol}",
            "high",
            "turn",
            [
                text_rung("full", fenced("quotes", [_full(data, symbol)]), count),
                text_rung("essentials", fenced("quotes", [_short(data, symbol)]), count, floor=True),
                REMOVED,
            ],
            source="market",
            order=20,
            relevance=1.0 - place / 100,
        )
        for place, symbol in enumerate(data.symbols)
    ]
    others = [symbol for symbol in data.quotes if symbol not in data.symbols]
    if others:
        lines = [_short(data, symbol) for symbol in others]
        rungs = [text_rung("full", fenced("other_quotes", lines), count), REMOVED]
        blocks.append(make_block("other_quotes", "low", "turn", rungs, source="market", order=20))
    return blocks


def _full(data: Gathered, symbol: str) -> str:
    """Everything that the quote has, further fields of the source included."""
    quote = data.quotes.get(symbol)
    if quote is None:
        return _missing(data, symbol)
    phrasing = data.phrasing
    known = instrument(symbol)
    prices = ("open", "high", "low", "previous_close")
    parts = [
        _price(data, quote, f"{symbol} ({known.name})" if known else symbol),
        *_change(data, quote),
        *([phrasing.say("quote_volume", value=phrasing.number(quote.volume))] if quote.volume else []),
        *(
            phrasing.say(f"quote_{field}", value=phrasing.money(amount))
            for field in prices
            if (amount := getattr(quote, field)) is not None
        ),
        *(f"{as_data(str(key))} {as_data(str(value))}" for key, value in quote.more.items()),
        phrasing.say("quote_as_of", value=phrasing.moment(quote.as_of)),
    ]
    return ", ".join(parts)


def _short(data: Gathered, symbol: str) -> str:
    """The essentials of RF-58: symbol, price, change, time."""
    quote = data.quotes.get(symbol)
    if quote is None:
        return _missing(data, symbol)
    time = data.phrasing.say("quote_as_of", value=data.phrasing.moment(quote.as_of))
    return ", ".join([_price(data, quote, symbol), *_change(data, quote), time])


def _missing(data: Gathered, symbol: str) -> str:
    key = "symbol_unknown" if symbol in data.unknown_symbols else "quote_missing"
    return data.phrasing.say(key, symbol=symbol)


def _price(data: Gathered, quote: Quote, name: str) -> str:
    say, money = data.phrasing.say, data.phrasing.money
    return say("quote_price", name=name, value=money(quote.price), currency=quote.currency)


def _change(data: Gathered, quote: Quote) -> list[str]:
    if quote.change_percent is None:
        return []
    phrasing = data.phrasing
    return [phrasing.say("quote_change_percent", value=phrasing.percent(quote.change_percent))]
