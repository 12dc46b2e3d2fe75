"""A turn goes on where its tools are, whatever was decided and wherever (OR-33, IM-49)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from recuerdo.agent import Agent
from recuerdo.state.errors import BusyError, InputError
from recuerdo.stores.postgres.roles import Roles
from tests.recuerdo.carlos import CARLOS, House
from tests.recuerdo.test_four_eyes import ORDER, SARA, Broker, asks, call, model, said, send
from tests.recuerdo.test_four_eyes import broker as broker  # a fixture
from tests.recuerdo.test_four_eyes import staff as staff  # a fixture
from tests.recuerdo.test_four_eyes_now import put_in_force

QUOTE = call("get_quote", "c2", symbol="AAPL")


class Shop:
    """An app and, beside it, a process such as the command line, which does not bring the app's tool."""

    def __init__(self, house: House, broker: Broker, stack: AsyncExitStack) -> None:
        self._house = house
        self._broker = broker
        self._stack = stack

    async def app(self, *replies: Any) -> Agent:
        return await self._open(self._broker.tools(), *replies)

    async def elsewhere(self) -> Agent:
        return await self._open([], "No model configured.")

    async def _open(self, tools: list[Any], *replies: Any) -> Agent:
        opening = self._house.open(plan="trading", model=model(*replies), tools=tools)
        return await self._stack.enter_async_context(opening)


@pytest.fixture
async def shop(house: House, staff: Roles, broker: Broker) -> AsyncIterator[Shop]:
    async with AsyncExitStack() as stack:
        shop = Shop(house, broker, stack)
        await put_in_force(await shop.app(), four_eyes=("place_order", "get_quote"))
        yield shop


@pytest.mark.parametrize(
    ("decision", "actor", "runs", "told"),
    [
        ("approve", SARA, 1, "order 1 of AAPL"),
        ("reject", SARA, 0, "a second person rejected it"),
        ("reject", CARLOS, 0, "the user took the request back"),
    ],
)
async def test_or_33_im_49_a_process_without_the_tool_keeps_the_decision_and_leaves_the_turn(
    shop: Shop, broker: Broker, decision: Any, actor: str, runs: int, told: str
) -> None:
    app = await shop.app(ORDER, "Hecho.")
    turn = await send(app)
    assert turn.pending is not None
    elsewhere = await shop.elsewhere()
    with pytest.raises(InputError, match="place_order"):
        await elsewhere.resume(turn.pending, decision, actor=actor)
    with pytest.raises(InputError, match="place_order"):
        await elsewhere.resume(turn.pending)
    with pytest.raises(BusyError, match="resume"):
        await send(app, "¿y bien?")
    done = await app.resume(turn.pending)
    assert (said(done), done.id, len(broker.orders)) == ("Hecho.", turn.id, runs)
    (result,) = [m for m in done.request["messages"] if isinstance(m, ToolMessage)]
    assert told in result.text


async def test_or_33_a_turn_that_waited_for_a_tool_of_the_app_too_is_left_to_it(
    shop: Shop, broker: Broker
) -> None:
    app = await shop.app(asks(call("place_order", symbol="AAPL"), QUOTE), "Hecho.")
    turn = await send(app)
    waiting = await app.governance.approvals.list("pending", actor=SARA)
    ids = {one.tool: one.id for one in waiting if one.user == CARLOS}
    elsewhere = await shop.elsewhere()
    await elsewhere.governance.approvals.decide(ids["place_order"], "approve", actor=SARA)
    with pytest.raises(InputError, match="place_order"):
        await elsewhere.resume(ids["get_quote"], "approve", actor=SARA)
    done = await app.resume(ids["get_quote"])
    assert (said(done), done.id, len(broker.orders)) == ("Hecho.", turn.id, 1)
