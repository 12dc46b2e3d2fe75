"""The user's positions by their market value, for "my largest position" (RF-25, RF-27)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from recuerdo.nodes.build_context.figures import currency_of, holdings
from recuerdo.stores.sources.rows import Position, Quote


def symbols_by_value(positions: Sequence[Position], quotes: Mapping[str, Quote]) -> tuple[str, ...]:
    """Symbols with the highest market value first, several positions in one symbol together.

    Empty where values cannot be compared: a price is missing, or there is more than one currency and no rate.
    """
    if len({currency_of(position) for position in positions}) != 1:
        return ()
    values: dict[str, Decimal] = {}
    for holding in holdings(positions, quotes):
        if holding.value is None:
            return ()
        symbol = holding.position.symbol
        values[symbol] = values.get(symbol, Decimal(0)) + holding.value
    return tuple(sorted(values, key=lambda symbol: -values[symbol]))
