"""Level 1 through ``agent.level_1``: of one run alone, and gone when the run is over (OR-3, OR-4, OR-5)."""

import asyncio
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool

from recuerdo.agent import Agent
from recuerdo.level_1 import Level1
from recuerdo.stores.plans import load_plan
from recuerdo.turn import Turn
from tests.recuerdo.carlos import CARLOS
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

ANA = "user-456"
SYMBOLS = {"conv-carlos": "TSLA", "conv-ana": "AAPL"}


@dataclass
class Desk:
    """A tool whose calls all wait until the test lets them go on."""

    asked: set[str] = field(default_factory=set)
    both: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    def tools(self) -> list[BaseTool]:
        @tool
        async def news_of(symbol: str) -> str:
            """News of a symbol."""
            self.asked.add(symbol)
            if self.asked == set(SYMBOLS.values()):
                self.both.set()
            await self.go_on.wait()
            return f"Nothing new about {symbol}."

        return [news_of]


class AsksForNews(ScriptedModel):
    """Asks for news of the symbol that its request names, once; so it can serve several runs at once."""

    def _next(self, messages, kwargs):  # type: ignore[no-untyped-def]
        said = str(messages[-1].text)
        for symbol in SYMBOLS.values():
            if messages[-1].type == "human" and symbol in said:
                call = {"name": "news_of", "args": {"symbol": symbol}, "id": f"call-{symbol}"}
                return AIMessage("", tool_calls=[call])
        return AIMessage("Sin novedades.")


async def two_runs(agent: Agent, desk: Desk) -> list["asyncio.Task[Turn]"]:
    """Two users talk to the same agent; both runs stand in a call of the tool."""
    runs = [
        asyncio.create_task(agent.send(f"¿Debería comprar {symbol}?", user=user, conversation=conversation))
        for user, (conversation, symbol) in zip((CARLOS, ANA), SYMBOLS.items(), strict=True)
    ]
    await asyncio.wait_for(desk.both.wait(), 30)
    return runs


async def test_or_4_two_runs_of_one_agent_at_once_do_not_see_each_others_level_1(
    open_agent: OpenAgent,
) -> None:
    desk = Desk()
    plan = load_plan("trading").model_copy(update={"tools": ("news_of",)})
    agent = await open_agent(model=AsksForNews(replies=[""]), plan=plan, tools=desk.tools())
    runs = await two_runs(agent, desk)
    carlos = await agent.level_1("conv-carlos", user=CARLOS)
    ana = await agent.level_1("conv-ana", user=ANA)
    assert carlos is not None and ana is not None and carlos.turn != ana.turn
    for level, own, others in ((carlos, "TSLA", "AAPL"), (ana, "AAPL", "TSLA")):
        assert level.calls == [{"tool": "news_of", "arguments": {"symbol": own}}]
        assert level.symbols == [own]
        assert {"role": "human", "text": f"¿Debería comprar {own}?"} in level.thread
        assert others not in str(vars(level))
    # Nor does either user see the other's by naming his conversation.
    assert await agent.level_1("conv-ana", user=CARLOS) is None
    assert await agent.level_1("conv-carlos", user=ANA) is None
    desk.go_on.set()
    await asyncio.gather(*runs)


async def test_or_5_or_3_level_1_shows_thread_arguments_and_intent_and_is_gone_at_the_end(
    open_agent: OpenAgent,
) -> None:
    desk = Desk()
    plan = load_plan("trading").model_copy(update={"tools": ("news_of",)})
    agent = await open_agent(model=AsksForNews(replies=[""]), plan=plan, tools=desk.tools())
    runs = await two_runs(agent, desk)
    level: Level1 | None = await agent.level_1("conv-carlos", user=CARLOS)
    assert level is not None
    assert (level.status, level.intent) == ("running", "trade")
    assert level.confidence is not None and 0 < level.confidence <= 1
    assert level.thread[0] == {"role": "human", "text": "¿Debería comprar TSLA?"}
    assert level.calls == [{"tool": "news_of", "arguments": {"symbol": "TSLA"}}]
    desk.go_on.set()
    await asyncio.gather(*runs)
    for conversation, user in (("conv-carlos", CARLOS), ("conv-ana", ANA)):
        assert await agent.level_1(conversation, user=user) is None
