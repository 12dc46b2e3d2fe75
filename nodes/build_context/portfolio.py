"""Step f: open positions with their profit and loss (RF-13, RF-40, RF-56) as blocks."""

from collections import defaultdict
from decimal import Decimal

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung
from recuerdo.stores.postgres.platform import Position


def portfolio_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Mentioned positions, critical; the others, Low; nothing when no holding is concerned."""
    if not data.concerns_holding:
        return []
    mentioned = [p for p in data.positions if data.resolved_by == "portfolio" or p.symbol in data.symbols]
    others = [p for p in data.positions if p not in mentioned]
    lines = [_line(data, p) for p in mentioned]
    if data.resolved_by == "portfolio" and len(mentioned) > 1:
        lines += _totals(data, mentioned)
    blocks = [
        make_block(
            "portfolio",
            "critical",
            "turn",
            [text_rung("full", fenced("portfolio", lines), count)],
            source="positions",
        )
    ]
    if others:
        rungs = [
            text_rung("full", fenced("other_positions", [_line(data, p) for p in others]), count),
            REMOVED,
        ]
        blocks.append(make_block("other_positions", "low", "turn", rungs, source="positions", order=30))
    return blocks


def _line(data: Gathered, position: Position) -> str:
    phrasing = data.phrasing
    values = {
        "symbol": position.symbol,
        "quantity": phrasing.number(position.quantity),
        "average": phrasing.money(position.avg_price),
        "currency": position.currency,
    }
    profit = data.profit(position)
    if profit is None:
        return phrasing.say("position_without_price", **values)
    return phrasing.say(
        "position",
        **values,
        price=phrasing.money(data.quotes[position.symbol].price),
        profit=phrasing.money(profit),
        percent=phrasing.percent(profit_percent(position, profit)),
    )


def profit_percent(position: Position, profit: Decimal) -> Decimal:
    """Profit in per cent of what was paid; 0 for a position that cost nothing."""
    cost = abs(position.avg_price * position.quantity)
    return profit / cost * 100 if cost else Decimal(0)


def _totals(data: Gathered, positions: list[Position]) -> list[str]:
    """One total per currency; none for a currency in which a price is missing."""
    by_currency: dict[str, list[Decimal | None]] = defaultdict(list)
    for position in positions:
        by_currency[position.currency].append(data.profit(position))
    totals = {
        currency: sum((p for p in profits if p is not None), Decimal(0))
        for currency, profits in by_currency.items()
        if None not in profits
    }
    say, money = data.phrasing.say, data.phrasing.money
    return [say("portfolio_total", profit=money(total), currency=c) for c, total in sorted(totals.items())]
