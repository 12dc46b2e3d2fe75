"""Usage, cost and the learnt factor through the real agent (RF-21, RF-34, OR-19, A-8, A-29)."""

import json
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from recuerdo.agent import Agent
from recuerdo.nodes.call_llm.offline import USAGE_ESTIMATED
from recuerdo.state.errors import BudgetError, ModelError
from recuerdo.state.plan import Plan, Price
from recuerdo.stores.plans import load_plan
from tests.recuerdo.carlos import CARLOS, CONVERSATION, House
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

PRICE = Price(input=Decimal("0.40"), cached_input=Decimal("0.10"), output=Decimal("1.60"))


class NamedModel(ScriptedModel):
    """A scripted model that a provider has a name for."""

    model_name: str = "test-model-2025-04-14"


class Counting(NamedModel):
    """Reports a factor times the tokens that the turn graph estimated for the request."""

    agent: Any = None
    factor: float = 1.0

    def _next(self, messages: list[Any], kwargs: dict[str, Any]) -> AIMessage:
        self.calls.append({"messages": messages, **kwargs})
        count = self.agent.services.counter.count
        size = sum(count(str(m.text)) + 4 for m in messages) + count(json.dumps(kwargs.get("tools", [])))
        return replied(input=round(size * self.factor))


def replied(text: str = "Vale.", *, input: int, output: int = 10, cached: int = 0, **more: Any) -> AIMessage:
    usage = {
        "input_tokens": input,
        "output_tokens": output,
        "total_tokens": input + output,
        "input_token_details": {"cache_read": cached},
    }
    return AIMessage(text, usage_metadata=usage, **more)


def priced() -> Plan:
    return load_plan("trading").model_copy(update={"prices": {"test-model": PRICE}})


async def say(agent: Agent, *texts: str) -> Any:
    turn = None
    for text in texts:
        turn = await agent.send(text, user=CARLOS, conversation=CONVERSATION)
    return turn


async def test_rf_21_or_19_a_29_usage_and_cost_of_a_conversation(open_agent: OpenAgent) -> None:
    replies = [replied(input=1200, output=300), replied(input=1500, output=250, cached=1000)]
    agent = await open_agent(model=NamedModel(replies=replies), plan=priced())
    turn = await say(agent, "Hola", "Hola")
    assert turn.record.usage == {"input": 1500, "cached": 1000, "uncached": 500, "output": 250, "total": 1750}
    assert turn.record.cost.units == Decimal("0.0007")
    assert turn.record.cost.units_without_cache == Decimal("0.001")
    assert turn.record.cost.saved_share == Decimal("0.3")
    usage = await agent.conversations.usage(CONVERSATION, user=CARLOS)
    assert (usage.input, usage.output, usage.total) == (2700, 550, 3250)
    assert (usage.cached, usage.uncached) == (1000, 1700)
    assert usage.units == Decimal("0.0007") + Decimal("0.00096")
    assert usage.units_without_cache == Decimal("0.001") + Decimal("0.00096")
    assert usage.saved_share == 1 - usage.units / usage.units_without_cache
    assert usage.unpriced == ()


async def test_a_29_a_model_without_a_price_is_said_to_have_none(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=NamedModel(replies=[replied(input=100)]))
    turn = await say(agent, "Hola")
    assert turn.record.cost.units is None and turn.record.cost.unpriced == ["test-model"]
    usage = await agent.conversations.usage(CONVERSATION, user=CARLOS)
    assert usage.units is None and usage.saved_share is None and usage.unpriced == ("test-model",)


async def test_rf_21_a_failed_turn_is_billed_for_the_calls_it_made(open_agent: OpenAgent) -> None:
    asks = replied(
        "",
        input=700,
        tool_calls=[{"name": "get_quote", "args": {"symbol": "AAPL"}, "id": "c", "type": "tool_call"}],
    )
    agent = await open_agent(model=NamedModel(replies=[asks, RuntimeError("away")]), plan=priced())
    with pytest.raises(ModelError):
        await say(agent, "Hola")
    usage = await agent.conversations.usage(CONVERSATION, user=CARLOS)
    assert usage.input == 700 and usage.units == Decimal("0.000296")


async def test_a_8_each_call_stands_in_the_record_beside_our_estimate(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=NamedModel(replies=[replied(input=900, cached=300)]))
    turn = await say(agent, "Hola")
    assert turn.record.calls == [
        {
            "family": "test-model",
            "estimated": turn.request["input_tokens"],
            "reported": 900,
            "cached": 300,
            "output": 10,
            "total": 910,
            "measured": True,
        }
    ]


async def test_a_8_the_factor_is_learnt_and_kept_for_the_next_process(
    open_agent: OpenAgent, house: House
) -> None:
    model = Counting(replies=[], factor=1.25)
    agent = await open_agent(model=model)
    model.agent = agent
    first = await say(agent, "Hola")
    assert first.record.estimate["factor"] == 1.0
    learnt = agent.services.factor.value
    assert learnt == first.record.calls[0]["reported"] / first.record.calls[0]["estimated"] > 1
    assert (await say(agent, "Hola")).record.estimate["factor"] == learnt
    async with house.open(model=NamedModel(replies=["Vale."])) as next_process:
        assert next_process.services.factor.value == pytest.approx(agent.services.factor.value)


async def test_a_8_rf_34_the_limits_are_kept_in_the_provider_s_tokens(open_agent: OpenAgent) -> None:
    model = Counting(replies=[], factor=1.25)
    agent = await open_agent(model=model)
    model.agent = agent
    await say(agent, "Hola")
    factor = agent.services.factor.value
    for number in range(6):
        turn = await say(agent, f"{number}: " + "una pregunta larga sobre AAPL " * 180)
        factor = turn.record.estimate["factor"]
        assert turn.request["input_tokens"] * factor <= 8000
        assert turn.record.calls[0]["reported"] <= 8000
    assert turn.record.steps, "something had to give way"
    assert turn.record.estimate["input_tokens"] <= 6000 / factor
    with pytest.raises(BudgetError, match="8000"):
        await say(agent, "hola " * 6600)


async def test_a_8_what_a_model_only_guesses_is_not_learnt(open_agent: OpenAgent) -> None:
    guess = replied(input=1500, response_metadata={USAGE_ESTIMATED: True})
    agent = await open_agent(model=NamedModel(replies=[guess]))
    turn = await say(agent, "Hola")
    assert turn.record.calls[0]["measured"] is False
    assert agent.services.factor.value == 1.0


async def test_a_8_a_provider_that_reports_nothing_is_no_fault(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=NamedModel(replies=[AIMessage("Vale.")]))
    turn = await say(agent, "Hola")
    assert turn.record.calls[0]["measured"] is False and turn.record.usage["total"] == 0


@pytest.mark.parametrize("layout", ["tail_system", "tail_user", "single"])
async def test_every_layout_answers_from_its_prompt(house: House, open_agent: OpenAgent, layout: str) -> None:
    agent = await open_agent(settings={"layout": layout})
    turn = await say(agent, "Mi objetivo es ganar 10% anual", "¿Cómo va AAPL?")
    assert "185.50" in turn.reply
    sent = turn.request["messages"]
    systems = [m for m in sent if isinstance(m, SystemMessage)]
    assert len(systems) == (2 if layout == "tail_system" else 1) and sent[0] is systems[0]
    assert isinstance(sent[-1], HumanMessage) and str(sent[-1].text).endswith("¿Cómo va AAPL?")
    assert "10% anual" in (await say(agent, "¿Cuál era mi objetivo?")).reply


async def test_every_layout_keeps_the_users_own_words_in_the_thread(open_agent: OpenAgent) -> None:
    agent = await open_agent(settings={"layout": "tail_user"})
    await say(agent, "Hola", "¿Cómo va AAPL?")
    stored = await agent.conversations.get(CONVERSATION, user=CARLOS)
    assert [m.content for m in stored if m.role == "user"] == ["Hola", "¿Cómo va AAPL?"]
    turn = await say(agent, "¿Y TSLA?")
    said = [str(m.text) for m in turn.request["messages"] if isinstance(m, HumanMessage)]
    assert said[:2] == ["Hola", "¿Cómo va AAPL?"]
