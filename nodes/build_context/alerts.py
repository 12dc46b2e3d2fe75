"""Step g: active alerts (RF-14, RF-41); those of the topic are High, the others Medium (RF-60)."""

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung
from recuerdo.stores.postgres.platform import Alert


def alert_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Alerts of the turn's symbols, and the others while the turn is about symbols at all."""
    if not data.symbols:
        return []
    related = [alert for alert in data.alerts if alert.symbol in data.symbols]
    others = [alert for alert in data.alerts if alert.symbol not in data.symbols]
    blocks = []
    if related:
        rungs = [
            text_rung("full", fenced("alerts", [_line(data, alert) for alert in related]), count),
            text_rung("essentials", fenced("alerts", [_short(data, a) for a in related]), count, floor=True),
            REMOVED,
        ]
        blocks.append(make_block("alerts", "high", "turn", rungs, source="alerts", order=20, relevance=1.5))
    if others:
        lines = [_short(data, alert) for alert in others]
        rungs = [
            text_rung("full", fenced("other_alerts", lines), count),
            text_rung("one line", fenced("other_alerts", lines[:1]), count),
            REMOVED,
        ]
        blocks.append(make_block("other_alerts", "medium", "turn", rungs, source="alerts", order=10))
    return blocks


def _values(data: Gathered, alert: Alert) -> dict[str, object]:
    return {
        "symbol": alert.symbol,
        "condition": alert.condition,
        "price": data.phrasing.number(alert.price),
    }


def _short(data: Gathered, alert: Alert) -> str:
    return data.phrasing.say("alert", **_values(data, alert))


def _line(data: Gathered, alert: Alert) -> str:
    quote = data.quotes.get(alert.symbol)
    if quote is None or not quote.price:
        return _short(data, alert)
    phrasing = data.phrasing
    return phrasing.say(
        "alert_with_distance",
        **_values(data, alert),
        current=phrasing.money(quote.price),
        distance=phrasing.percent((alert.price - quote.price) / quote.price * 100),
    )
