"""Step g: active alerts (RF-14, RF-41); those of the topic are High, the others Medium (RF-60)."""

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal

from recuerdo.nodes.build_context.freshness import stale_note
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, Rung, make_block, text_rung
from recuerdo.stores.sources.rows import Alert, Quote

_HOLDS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}

MOST_ALERTS = 20
"""Alerts told one by one, of the turn's symbols and beside them."""


def related_alerts(data: Gathered) -> list[Alert]:
    """Those of the turn's symbols; all, where the message asks for alerts and names no symbol."""
    if not data.symbols and "alerts" in data.asked:
        return data.alerts
    return [alert for alert in data.alerts if alert.symbol in data.symbols]


def alert_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Related alerts, and the others while the turn is about symbols at all."""
    related = related_alerts(data)
    others = [alert for alert in data.alerts if alert not in related] if data.symbols else []
    blocks = []
    if related:
        rungs = [
            _rung("full", "alerts", [_line(data, alert) for alert in related], data, count),
            _rung("essentials", "alerts", [_short(data, a) for a in related], data, count, floor=True),
            REMOVED,
        ]
        blocks.append(make_block("alerts", "high", "turn", rungs, source="alerts", order=20, relevance=1.5))
    if others:
        lines = [_short(data, alert) for alert in others]
        rungs = [
            _rung("full", "other_alerts", lines, data, count),
            text_rung("one line", fenced("other_alerts", lines[:1]), count),
            REMOVED,
        ]
        blocks.append(make_block("other_alerts", "medium", "turn", rungs, source="alerts", order=10))
    return blocks


def _rung(
    name: str, part: str, lines: list[str], data: Gathered, count: CountTokens, *, floor: bool = False
) -> Rung:
    return text_rung(name, fenced(part, data.phrasing.capped(lines, MOST_ALERTS)), count, floor=floor)


def is_reached(alert: Alert, price: Decimal) -> bool:
    """Whether ``price`` fulfils the alert's condition."""
    return _HOLDS[alert.condition](price, alert.price)


def _short(data: Gathered, alert: Alert) -> str:
    return data.phrasing.say(
        "alert", symbol=alert.symbol, condition=alert.condition, price=data.phrasing.number(alert.price)
    )


def _line(data: Gathered, alert: Alert) -> str:
    """With the price, how far the alert's level is from it, and whether the price has reached it now."""
    quote = data.quotes.get(alert.symbol)
    if quote is None:
        return f"{_short(data, alert)} ({data.phrasing.say('alert_without_price')})"
    say = data.phrasing.say
    state = say("alert_reached" if is_reached(alert, quote.price) else "alert_waiting")
    price = say("alert_price", price=data.phrasing.price(quote.price)) + stale_note(data, quote)
    return f"{_short(data, alert)} ({price}; {_distance(data, alert, quote)}; {state})"


def _distance(data: Gathered, alert: Alert, quote: Quote) -> str:
    phrasing = data.phrasing
    distance = alert.price - quote.price
    said = phrasing.say("alert_distance", distance=phrasing.price(distance))
    return f"{said}, {phrasing.percent(distance / quote.price * 100)}" if quote.price else said
