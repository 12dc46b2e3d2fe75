"""Step e: clock, market status, events and quotes (RF-12, RF-17 to RF-19, RF-58) as blocks."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from recuerdo.nodes.build_context.freshness import stale_note
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import as_data, fenced
from recuerdo.nodes.build_context.symbols import instrument
from recuerdo.state.blocks import REMOVED, Block, CountTokens, Tier, make_block, text_rung
from recuerdo.stores.postgres.platform import EconomicEvent, Quote
from recuerdo.stores.sources.calendar import MarketStatus

NEAR_EVENT = timedelta(days=7)
"""An event farther away than this is distant (A-14)."""

MOST_EVENTS = 12
"""Events told at all, near or distant: of more those of most impact, then the nearest."""

MOST_OTHER_QUOTES = 20
"""Quotes of symbols that the turn is not about."""

MOST_QUOTES = 15
"""Symbols of the turn with a quote in full; what a question about a large portfolio has beyond stands low."""


_IMPACT = ("low", "medium", "high")


def _state(data: Gathered, count: CountTokens) -> list[Block]:
    now = _now(data)
    main = _statuses([data.market], data) if data.market else []
    others = [status for code, status in sorted(data.markets.items()) if code != data.main_market]
    every = _statuses([*([data.market] if data.market else []), *others], data)
    rungs = [
        text_rung("full", fenced("market", [now, *every]), count),
        text_rung("essentials", fenced("market", [now, *main]), count, floor=True),
        REMOVED,
    ]
    return [make_block("market", "high", "turn", rungs, source="market", order=20, relevance=2.0)]


def _now(data: Gathered) -> str:
    """The only place with the date of today, with the offset of the user's time zone (RF-20)."""
    offset = data.phrasing.local(data.now).isoformat()[-len("+00:00") :]
    return data.phrasing.say("now", moment=data.phrasing.moment(data.now), offset=offset)


def _statuses(statuses: Sequence[MarketStatus], data: Gathered) -> list[str]:
    """A line for each state, with all exchanges that are in it."""
    by_state: dict[str, list[str]] = {}
    for status in statuses:
        by_state.setdefault(_status(status, data), []).append(status.exchange)
    say = data.phrasing.say
    return [
        say("market_state", exchanges=", ".join(exchanges), state=state)
        for state, exchanges in by_state.items()
    ]


def _status(status: MarketStatus, data: Gathered) -> str:
    phrasing = data.phrasing
    is_open = status.status == "open"
    if change := status.next_close if is_open else status.next_open:
        return phrasing.say("market_open" if is_open else "market_closed", at=phrasing.when(change))
    return phrasing.say("market_always" if is_open else "market_shut")


def _events(data: Gathered, count: CountTokens) -> list[Block]:
    """The economic calendar changes by the day, so it stands with what changes rarely (C-22)."""
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
    phrasing = data.lasting_phrasing
    told = [
        phrasing.say(
            "event",
            event=as_data(event.event),
            day=phrasing.day(event.date),
            impact=phrasing.value(event.impact),
        )
        for event in _weightiest(events)
    ]
    left_out = len(events) - len(told)
    lines = [*told, *([phrasing.say("not_detailed", count=left_out)] if left_out else [])]
    rungs = [
        text_rung("full", fenced(name, lines), count),
        text_rung("next one", fenced(name, lines[:1]), count, floor=True),
        REMOVED,
    ]
    return [make_block(name, tier, "profile", rungs, source="market", order=0)]


def _weightiest(events: Sequence[EconomicEvent]) -> list[EconomicEvent]:
    """In the order of their dates; one that is near may be worth less than one of high impact a little later."""
    by_impact = sorted(events, key=lambda event: (-_IMPACT.index(event.impact), event.date))
    return sorted(by_impact[:MOST_EVENTS], key=lambda event: (event.date, event.event))


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
        for place, symbol in enumerate(data.symbols[:MOST_QUOTES])
    ]
    others = [symbol for symbol in _quoted(data) if symbol not in data.symbols[:MOST_QUOTES]]
    if others:
        lines = data.phrasing.capped([_short(data, symbol) for symbol in others], MOST_OTHER_QUOTES)
        rungs = [text_rung("full", fenced("other_quotes", lines), count), REMOVED]
        blocks.append(make_block("other_quotes", "low", "turn", rungs, source="market", order=20))
    return blocks


def _quoted(data: Gathered) -> list[str]:
    """Every symbol that there is something to say of: asked about or quoted."""
    return list(dict.fromkeys([*data.symbols, *data.quotes]))


def _full(data: Gathered, symbol: str) -> str:
    """Everything that the quote has, further fields of the source included."""
    quote = data.quotes.get(symbol)
    if quote is None:
        return _missing(data, symbol)
    phrasing = data.phrasing
    known = instrument(symbol)
    prices = ("open", "high", "low", "previous_close")
    parts = [
        phrasing.say(
            "quote_price",
            name=f"{symbol} ({known.name})" if known else symbol,
            value=phrasing.price(quote.price),
            currency=quote.currency,
        ),
        *_change(data, quote),
        *([phrasing.say("quote_volume", value=phrasing.number(quote.volume))] if quote.volume else []),
        *(
            phrasing.say(f"quote_{field}", value=phrasing.price(amount))
            for field in prices
            if (amount := getattr(quote, field)) is not None
        ),
        *(f"{as_data(str(key))} {as_data(str(value))}" for key, value in quote.more.items()),
        phrasing.say("quote_as_of", value=_as_of(data, quote)),
    ]
    return ", ".join(parts)


def _short(data: Gathered, symbol: str) -> str:
    """The essentials of RF-58: symbol, price, change, time."""
    quote = data.quotes.get(symbol)
    if quote is None:
        return _missing(data, symbol)
    phrasing = data.phrasing
    change = [] if quote.change_percent is None else [phrasing.percent(quote.change_percent)]
    price = phrasing.say(
        "quote_short", symbol=symbol, value=phrasing.price(quote.price), currency=quote.currency
    )
    return ", ".join([price, *change, _as_of(data, quote)])


def _as_of(data: Gathered, quote: Quote) -> str:
    """The time of the price, with its age when it is stale."""
    return data.phrasing.when(quote.as_of) + stale_note(data, quote)


def _missing(data: Gathered, symbol: str) -> str:
    key = "symbol_unknown" if symbol in data.unknown_symbols else "quote_missing"
    return data.phrasing.say(key, symbol=symbol)


def _change(data: Gathered, quote: Quote) -> list[str]:
    if quote.change_percent is None:
        return []
    return [data.phrasing.say("quote_change_percent", value=data.phrasing.percent(quote.change_percent))]


MARKET_PARTS: Mapping[str, Callable[[Gathered, CountTokens], list[Block]]] = {
    "calendar": _state,
    "events": _events,
    "quotes": _quotes,
}
"""What writes the blocks, by the source whose data they show."""
