"""How the user's positions stand, for "my largest position" and "the one that loses most" (RF-25, RF-27)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from recuerdo.nodes.build_context.figures import Holding, currency_of, holdings, percent_of
from recuerdo.nodes.build_context.symbols.references import Standings
from recuerdo.stores.sources.rows import Position, Quote


def standings_of(positions: Sequence[Position], quotes: Mapping[str, Quote]) -> Standings:
    """Symbols with the highest market value and gain first, several positions in one symbol together.

    Empty where they cannot be compared: a price is missing, or there is more than one currency and no rate. Gains
    in per cent are compared over currencies too.
    """
    found = holdings(positions, quotes)
    if any(holding.value is None for holding in found):
        return Standings()
    values, profits, costs = (_sums(found, part) for part in ("value", "profit", "cost"))
    percents = {symbol: percent_of(profits[symbol], costs[symbol]) for symbol in values}
    by_percent = () if None in percents.values() else _highest_first(percents)
    if len({currency_of(position) for position in positions}) != 1:
        return Standings(percent=by_percent)
    return Standings(_highest_first(values), _highest_first(profits), by_percent)


def _sums(found: Sequence[Holding], part: str) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for holding in found:
        symbol = holding.position.symbol
        sums[symbol] = sums.get(symbol, Decimal(0)) + getattr(holding, part)
    return sums


def _highest_first(figures: Mapping[str, Decimal | None]) -> tuple[str, ...]:
    return tuple(sorted(figures, key=lambda symbol: -(figures[symbol] or Decimal(0))))
