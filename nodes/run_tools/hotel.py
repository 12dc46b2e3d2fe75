"""The tools of the hotel (C-39): prices, reservations and discounts, on the tables of ``stores.postgres.hotel``."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from recuerdo.nodes.build_context.history import READ_ONLY
from recuerdo.nodes.run_tools.ledger import IDEMPOTENCY_KEY, once
from recuerdo.nodes.run_tools.requested import OWN_EFFECT
from recuerdo.nodes.run_tools.tools import call_of
from recuerdo.state.errors import InputError
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.hotel import Hotel, Reservation


async def get_rates(check_in: date, nights: int, config: RunnableConfig) -> str:
    """Get the price of every type of room for a stay, and how many are free. check_in as YYYY-MM-DD."""
    with _as_tool_error():
        offers = await _hotel(config).offers(check_in, nights)
    if not offers:
        raise ToolException("the hotel has no rooms")
    return "\n".join(
        f"{one.room}: {one.price} {one.currency} a night, {one.total} {one.currency} for {nights} nights,"
        f" {one.free} free"
        for one in offers
    )


async def create_reservation(
    room: str, guest: str, check_in: date, nights: int, config: RunnableConfig
) -> str:
    """Reserve a room of a type that get_rates lists, for a guest, from check_in (YYYY-MM-DD) for so many nights."""
    call, hotel = call_of(config), _hotel(config)
    key = UUID(config["configurable"][IDEMPOTENCY_KEY])

    async def effect(connection: Connection) -> str:
        made = await hotel.reserve(connection, key, room, guest, check_in, nights, call.services.clock())
        return f"Reserved. {_described(made)}"

    return await _written(config, effect)


async def apply_discount(reservation: str, discount_pct: float, nights: int, config: RunnableConfig) -> str:
    """Apply a discount in per cent to a reservation. nights: those of the reservation, as it says itself."""
    hotel = _hotel(config)

    async def effect(connection: Connection) -> str:
        changed = await hotel.discount(connection, reservation, Decimal(str(discount_pct)), nights)
        return f"Discount applied. {_described(changed)}"

    return await _written(config, effect)


async def _written(config: RunnableConfig, effect: Callable[[Connection], Awaitable[str]]) -> str:
    with _as_tool_error():
        return await once(config, effect)


@contextmanager
def _as_tool_error() -> Iterator[None]:
    """What a caller can cause goes back to the model."""
    try:
        yield
    except InputError as error:
        raise ToolException(error.sentence.en) from None


def _hotel(config: RunnableConfig) -> Hotel:
    call = call_of(config)
    return Hotel(call.services.database, call.caller.tenant)


def _described(one: Reservation) -> str:
    discount = f", discount {one.discount_pct.normalize():f} %" if one.discount_pct else ""
    return (
        f"{one.id}: {one.room} for {one.guest}, {one.nights} nights from {one.check_in.isoformat()}{discount},"
        f" total {one.total} {one.currency}"
    )


HOTEL_TOOLS: dict[str, BaseTool] = {
    function.__name__: StructuredTool.from_function(
        coroutine=function, metadata={mark: True}, handle_tool_error=True
    )
    for function, mark in (
        (get_rates, READ_ONLY),
        (create_reservation, OWN_EFFECT),
        (apply_discount, OWN_EFFECT),
    )
}
