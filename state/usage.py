"""What the calls of a turn used, as the provider counts it, and what that costs (RF-21, OR-19, A-8, A-29)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from typing_extensions import TypedDict

from recuerdo.state.counting import model_family
from recuerdo.state.plan import Price

_PER_MILLION = -6


class CallUsage(TypedDict):
    """One call of the model.

    ``estimated`` is our own count of its input tokens, ``reported`` the provider's, of which ``cached`` came
    from its cache. ``measured`` is False where the report is a guess too (the offline responder) or missing:
    nothing is learnt from it. ``family`` names the model without host and version.
    """

    family: str
    estimated: int
    reported: int
    cached: int
    output: int
    total: int
    measured: bool


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider reports them, and their cost in usage units by the plan's price table.

    ``cached`` is the part of ``input`` that the provider had in its cache. The units are None while no call
    had a price; ``unpriced`` names the model families that had none, and ``unreported`` counts the calls whose
    provider reported nothing, so that a sum is known to lack them.
    """

    input: int = 0
    output: int = 0
    total: int = 0
    cached: int = 0
    units: Decimal | None = None
    units_without_cache: Decimal | None = None
    unpriced: tuple[str, ...] = ()
    unreported: int = 0

    @property
    def uncached(self) -> int:
        """Input tokens that the provider had to read anew."""
        return self.input - self.cached

    @property
    def saved_share(self) -> Decimal | None:
        """The share of the cost that the cache saved, 0 to 1, measured; None without a price (OR-19)."""
        if self.units is None or not self.units_without_cache:
            return None
        return 1 - self.units / self.units_without_cache

    def as_json(self) -> dict[str, Any]:
        """As it is kept: units as decimal text, and only where there are any."""
        tokens = {"input": self.input, "output": self.output, "total": self.total, "cached": self.cached}
        units = {"units": self.units, "units_without_cache": self.units_without_cache}
        return {
            **tokens,
            **{name: f"{value:f}" for name, value in units.items() if value is not None},
            **({"unpriced": list(self.unpriced)} if self.unpriced else {}),
            **({"unreported": self.unreported} if self.unreported else {}),
        }


def usage_of(calls: Sequence[CallUsage], prices: Mapping[str, Price]) -> Usage:
    """The sum of the calls. Exact: units are decimals, prices are per million tokens."""
    by_family = {model_family(name): price for name, price in prices.items()}
    reported = [call for call in calls if call["total"]]
    priced = [(call, by_family[call["family"]]) for call in reported if call["family"] in by_family]
    return Usage(
        input=sum(call["reported"] for call in calls),
        output=sum(call["output"] for call in calls),
        total=sum(call["total"] for call in calls),
        cached=sum(call["cached"] for call in calls),
        units=_total([_units(call, price, call["cached"]) for call, price in priced]),
        units_without_cache=_total([_units(call, price, 0) for call, price in priced]),
        unpriced=tuple(sorted({call["family"] for call in calls} - by_family.keys())),
        unreported=len(calls) - len(reported),
    )


def _units(call: CallUsage, price: Price, cached: int) -> Decimal:
    uncached = call["reported"] - cached
    spent = uncached * price.input + cached * price.cached_input + call["output"] * price.output
    return spent.scaleb(_PER_MILLION)


def _total(units: Sequence[Decimal]) -> Decimal | None:
    return sum(units, Decimal(0)) if units else None
