"""When a price is too old to be told without its age (IM-40)."""

from datetime import timedelta

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.instructions import exchange_of
from recuerdo.stores.sources.rows import Quote

LATE_WHILE_OPEN = timedelta(minutes=15)
"""Delayed feeds of exchanges are so late; more is stale."""

LATE_WHILE_CLOSED = timedelta(days=4)
"""A long weekend: the last close may be so old while nothing trades."""


def stale_note(data: Gathered, quote: Quote) -> str:
    """The age of a stale quote, to stand behind its price or time (", hace 3 días"); else nothing."""
    status = data.markets.get(exchange_of(quote.symbol))
    is_open = status is not None and status.status == "open"
    age = data.now - quote.as_of
    if age <= (LATE_WHILE_OPEN if is_open else LATE_WHILE_CLOSED):
        return ""
    return f", {data.phrasing.ago(age)}"
