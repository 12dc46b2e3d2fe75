"""Step f: open positions with their figures (RF-13, RF-40, RF-56, RF-61) as blocks."""

from collections.abc import Sequence
from decimal import Decimal

from recuerdo.nodes.build_context.figures import Holding, Total, currency_of, totals
from recuerdo.nodes.build_context.freshness import stale_note
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung

MOST_IN_FULL = 15
"""Positions told in full where the question is about all of them; they are the ones of most weight."""

MOST_NAMED = 15
"""Symbols without a price that the line of the total names."""

MOST_OTHERS = 20
"""Positions told at all where the question is about another one."""


def portfolio_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Mentioned positions, critical; the others, Low; nothing when no holding is concerned.

    A question about the whole portfolio mentions all. Of many that are mentioned the weightiest are critical with
    the totals, and the rest stands High in short lines, so that a hundred positions never fill a request that
    cannot give way.
    """
    if not data.concerns_holding:
        return []
    found = data.holdings
    if data.resolved_by == "portfolio":
        return _in_question(data, found, _whole(data, found), count)
    mentioned = [one for one in found if one.position.symbol in data.symbols]
    others = [one for one in found if one.position.symbol not in data.symbols]
    return [*_in_question(data, mentioned, [], count), *_others(data, others, count)]


def _in_question(
    data: Gathered, found: Sequence[Holding], first: list[str], count: CountTokens
) -> list[Block]:
    by_weight = _by_weight(found)[:MOST_IN_FULL] if len(found) > MOST_IN_FULL else found
    rest = [one for one in found if one not in by_weight]
    return [*_mentioned(data, by_weight, first, count), *_rest_of_the_whole(data, rest, count)]


def _by_weight(found: Sequence[Holding]) -> list[Holding]:
    return sorted(found, key=lambda one: one.weight or Decimal(0), reverse=True)


def _mentioned(data: Gathered, found: Sequence[Holding], first: list[str], count: CountTokens) -> list[Block]:
    lines = [*first, *(_full(data, one) for one in found)]
    if not lines:
        return []
    rung = text_rung("full", fenced("portfolio", lines), count)
    return [make_block("portfolio", "critical", "turn", [rung], source="positions")]


def _rest_of_the_whole(data: Gathered, rest: Sequence[Holding], count: CountTokens) -> list[Block]:
    if not rest:
        return []
    number = data.phrasing.say("positions_more", count=len(rest))
    rungs = [
        text_rung("short", fenced("more_positions", [_short(data, one) for one in rest]), count),
        text_rung("number", fenced("more_positions", [number]), count, floor=True),
        REMOVED,
    ]
    return [make_block("more_positions", "high", "turn", rungs, source="positions", order=20)]


def _others(data: Gathered, others: Sequence[Holding], count: CountTokens) -> list[Block]:
    if not others:
        return []
    shown = _by_weight(others)[:MOST_OTHERS] if len(others) > MOST_OTHERS else others
    lines = [_short(data, one) for one in shown]
    if len(others) > len(shown):
        lines.append(data.phrasing.say("positions_more", count=len(others) - len(shown)))
    rungs = [text_rung("full", fenced("other_positions", lines), count), REMOVED]
    return [make_block("other_positions", "low", "turn", rungs, source="positions", order=30)]


def _whole(data: Gathered, found: Sequence[Holding]) -> list[str]:
    """Totals of more than one position; that there are none, where that is known."""
    if found:
        return [_total_line(data, total) for total in totals(found)] if len(found) > 1 else []
    asked = next((one["status"] for one in data.providers if one["name"] == "positions"), "skipped")
    is_known = asked == "empty" and data.profile is not None
    return [data.phrasing.say("positions_none")] if is_known else []


def _head(data: Gathered, holding: Holding) -> str:
    phrasing, position = data.phrasing, holding.position
    return phrasing.say(
        "position",
        symbol=position.symbol,
        quantity=phrasing.number(position.quantity),
        average=phrasing.price(position.avg_price),
        currency=currency_of(position),
    )


def _full(data: Gathered, holding: Holding) -> str:
    """Everything that is known of a position."""
    phrasing, currency = data.phrasing, currency_of(holding.position)
    cost = phrasing.money(holding.cost, currency)
    parts = [_head(data, holding) + phrasing.say("cost_short" if holding.is_short else "cost", cost=cost)]
    quote = data.quotes.get(holding.position.symbol)
    if holding.price is not None and quote:
        parts.append(
            phrasing.say("position_price", price=phrasing.price(holding.price)) + stale_note(data, quote)
        )
    parts.append(_profit(data, holding))
    if holding.weight is not None and len(data.positions) > 1:
        parts.append(phrasing.say("position_weight", weight=phrasing.share(holding.weight)))
    return ", ".join(parts)


def _short(data: Gathered, holding: Holding) -> str:
    return f"{_head(data, holding)}, {_profit(data, holding)}"


def _profit(data: Gathered, holding: Holding) -> str:
    phrasing, currency = data.phrasing, currency_of(holding.position)
    if holding.profit is not None:
        return _gain(data, "profit", holding.profit, holding.profit_percent, currency)
    quote = data.quotes.get(holding.position.symbol)
    if quote is None:
        return phrasing.say("profit_without_price")
    return phrasing.say("profit_in_other_currency", currency=currency_of(quote))


def _gain(data: Gathered, key: str, profit: Decimal, percent: Decimal | None, currency: str) -> str:
    phrasing = data.phrasing
    said = phrasing.say(key, profit=phrasing.money(profit, currency), currency=currency)
    return said if percent is None else f"{said} ({phrasing.percent(percent)})"


def _total_line(data: Gathered, total: Total) -> str:
    phrasing, currency = data.phrasing, total.currency
    cost = phrasing.say("total_cost", cost=phrasing.money(total.cost, currency))
    if total.profit is None or total.value is None:
        missing = phrasing.listed(total.unpriced, MOST_NAMED)
        return ", ".join([phrasing.say("total_unpriced", currency=currency, symbols=missing), cost])
    gain = _gain(data, "total_profit", total.profit, total.profit_percent, currency)
    return ", ".join([gain, cost, phrasing.say("total_value", value=phrasing.money(total.value, currency))])
