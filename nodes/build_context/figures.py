"""What positions cost, are worth and have earned: exact decimals, one currency at a time (RF-13, RF-40).

Nothing is rounded here; amounts are rounded where they are written (:meth:`Phrasing.money`). Nothing is
converted: there is no rate, so a quote in another currency than the position's is no price for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal

from recuerdo.stores.sources.rows import Position, Quote

EXACT = Context(prec=200)
"""What figures are computed and written under.

Rows have at most 18 digits before the point and 40 behind it, so that no product, sum or per cent of them needs
more; under Python's 28 the largest of them could not be rounded to cents.
"""


@dataclass(frozen=True)
class Holding:
    """One open position with what can be computed of it; None for what cannot.

    A short position has a negative quantity. ``cost`` and ``value`` are what it was opened for and what it is
    worth now, both without sign; ``weight`` is the share, 0 to 100, of the value of all positions in its currency.
    """

    position: Position
    price: Decimal | None
    weight: Decimal | None = None

    @property
    def is_short(self) -> bool:
        """Whether it was sold first, so that it earns when the price falls."""
        return self.position.quantity < 0

    @property
    def cost(self) -> Decimal:
        """Average price x quantity."""
        return abs(self.position.avg_price * self.position.quantity)

    @property
    def value(self) -> Decimal | None:
        """Price x quantity."""
        return None if self.price is None else abs(self.price * self.position.quantity)

    @property
    def profit(self) -> Decimal | None:
        """(price - average price) x quantity (RF-40)."""
        if self.price is None:
            return None
        return (self.price - self.position.avg_price) * self.position.quantity

    @property
    def profit_percent(self) -> Decimal | None:
        """Profit in per cent of the cost; None also for what cost nothing."""
        return percent_of(self.profit, self.cost)


@dataclass(frozen=True)
class Total:
    """All positions in one currency together; ``unpriced`` names those without a price, then there is no profit."""

    currency: str
    cost: Decimal
    value: Decimal | None
    profit: Decimal | None
    unpriced: tuple[str, ...]

    @property
    def profit_percent(self) -> Decimal | None:
        """Profit in per cent of the cost; None also for what cost nothing."""
        return percent_of(self.profit, self.cost)


def percent_of(part: Decimal | None, whole: Decimal) -> Decimal | None:
    """``part`` in per cent of ``whole``; None where there is none."""
    return part / whole * 100 if part is not None and whole else None


def holdings(positions: Iterable[Position], quotes: Mapping[str, Quote]) -> list[Holding]:
    """The positions in their order, with prices and weights."""
    found = [Holding(position, _price(position, quotes)) for position in positions]
    values = {total.currency: total.value for total in totals(found)}
    return [_weighed(holding, values[currency_of(holding.position)]) for holding in found]


def totals(found: Iterable[Holding]) -> list[Total]:
    """One total per currency, by its code; never a sum over currencies."""
    by_currency: dict[str, list[Holding]] = {}
    for holding in found:
        by_currency.setdefault(currency_of(holding.position), []).append(holding)
    return [_total(currency, group) for currency, group in sorted(by_currency.items())]


def currency_of(row: Position | Quote) -> str:
    """The code of a row's currency, in capitals but for GBp, the pence in which London quotes."""
    return row.currency if row.currency == "GBp" else row.currency.upper()


def _price(position: Position, quotes: Mapping[str, Quote]) -> Decimal | None:
    quote = quotes.get(position.symbol)
    return quote.price if quote and currency_of(quote) == currency_of(position) else None


def _weighed(holding: Holding, all_value: Decimal | None) -> Holding:
    return replace(holding, weight=percent_of(holding.value, all_value) if all_value else None)


def _total(currency: str, group: Sequence[Holding]) -> Total:
    profits = [one.profit for one in group if one.profit is not None]
    values = [one.value for one in group if one.value is not None]
    complete = len(values) == len(group)
    return Total(
        currency=currency,
        cost=sum((one.cost for one in group), Decimal(0)),
        value=sum(values, Decimal(0)) if complete else None,
        profit=sum(profits, Decimal(0)) if complete else None,
        unpriced=tuple(dict.fromkeys(one.position.symbol for one in group if one.price is None)),
    )
