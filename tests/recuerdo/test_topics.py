"""Topics and intent through the agent: what the record says, what the model is sent, what the next turn knows."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from recuerdo.agent import Agent
from recuerdo.graph.turn import TurnContext
from recuerdo.stores.postgres.checkpoints import thread_of
from tests.recuerdo.carlos import (
    AAPL,
    CARLOS,
    CONVERSATION,
    NVDA,
    SATURDAY,
    TENANT,
    TSLA,
    SettableClock,
    prompt,
    sample,
)
from tests.recuerdo.carlos import seed as load
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

SHORT = "Entendido."
AAPL_VOLUME = "52,340,000"
BTC = {"symbol": "BTCUSD", "price": "91000", "currency": "USD", "as_of": TSLA["as_of"]}


async def say(agent: Agent, *texts: str) -> Any:
    turn = None
    for text in texts:
        turn = await agent.send(text, user=CARLOS, conversation=CONVERSATION)
    return turn


def blocks(turn: Any) -> dict[str, Any]:
    return {block.name: block for block in turn.record.blocks}


class FailingEmbeddings(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise RuntimeError("away")

    def embed_query(self, text: str) -> list[float]:
        raise RuntimeError("away")


@pytest.fixture
async def talker(open_agent: OpenAgent) -> Agent:
    return await open_agent(model=ScriptedModel(replies=[SHORT]))


async def test_rf_6_a_change_of_topic_is_found_and_the_context_follows(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await load(agent, sample(positions=[]))
    before = await say(agent, "Analiza AAPL", "¿y el volumen?", "¿lo vendo?", "explícame más")
    assert AAPL_VOLUME in prompt(before.request)
    turn = await say(agent, "Ahora hablemos de TSLA: ¿qué opinas?")
    topic = turn.record.topic
    assert (topic.name, topic.changed, topic.returned_to) == ("Análisis de TSLA", True, False)
    assert topic.reason == "symbols"
    assert "quotes:TSLA" in blocks(turn)
    assert "quotes:AAPL" not in blocks(turn)
    assert "245.00" in prompt(turn.request)
    assert AAPL_VOLUME not in prompt(turn.request)
    after = await say(agent, "¿y el volumen?")
    assert after.record.symbols == ["TSLA"]
    assert after.context["conversation"]["recent_topics"] == ["Análisis de AAPL", "Análisis de TSLA"]


async def test_rf_6_a_change_without_a_symbol_leaves_the_old_one_behind(talker: Agent) -> None:
    turn = await say(talker, "Analiza AAPL", "Cambiando de tema, ¿tienes alguna receta de pasta?")
    assert (turn.record.topic.name, turn.record.topic.reason) == ("Receta de pasta", "marker")
    assert turn.record.symbols == []
    assert "quotes:AAPL" not in blocks(turn)


async def test_a_2_the_reason_and_the_similarity_stand_in_the_record(talker: Agent) -> None:
    turn = await say(talker, "Analiza AAPL", "What do you know about cooking pasta?")
    topic = turn.record.topic
    assert (topic.changed, topic.reason) == (True, "similarity")
    assert topic.similarity < 0.25
    assert (await say(talker, "¿Y Tesla?")).record.topic.similarity is None


async def test_im_32_a_turn_goes_on_when_the_embedder_fails(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]), embeddings=FailingEmbeddings())
    turn = await say(agent, "Analiza AAPL", "What do you know about cooking pasta?")
    assert turn.reply.startswith(SHORT)
    assert (turn.record.topic.name, turn.record.topic.changed) == ("Análisis de AAPL", False)


async def test_im_42_returning_to_an_earlier_topic_brings_its_symbols_back(talker: Agent) -> None:
    turn = await say(talker, "Analiza AAPL", "¿Y TSLA?", "volviendo a Apple")
    assert turn.record.symbols == ["AAPL"]
    assert (turn.record.topic.changed, turn.record.topic.returned_to) == (True, True)
    assert "quotes:AAPL" in blocks(turn)


async def test_im_42_a_topic_is_found_again_by_its_subject(talker: Agent) -> None:
    turn = await say(talker, "Analiza GLD", "¿Cómo se interpreta el RSI?", "back to gold")
    assert turn.record.symbols == ["GLD"]
    assert (turn.record.topic.name, turn.record.topic.returned_to) == ("Análisis de GLD", True)
    again = await say(talker, "lo de antes del RSI, ¿sirve para cripto?")
    assert (again.record.topic.name, again.record.topic.returned_to) == ("Interpretación de RSI", True)


async def test_rf_25_follow_ups_keep_topic_and_symbols(talker: Agent) -> None:
    await say(talker, "Analiza AAPL")
    for text in ("¿Y qué opinas del volumen?", "¿lo vendo?", "and what about it?", "explícame más"):
        turn = await say(talker, text)
        assert (turn.record.symbols, turn.record.topic.changed) == (["AAPL"], False)
        assert AAPL_VOLUME in prompt(turn.request)


async def test_rf_44_rf_53_a_13_each_subject_once_oldest_first(talker: Agent) -> None:
    await say(talker, "Analiza AAPL", "¿Debería comprar AAPL?", "How do I read the RSI?", "Analyze AAPL")
    turn = await say(talker, "¿Qué es el RSI?", "gracias")
    assert turn.context["conversation"]["recent_topics"] == ["Análisis de AAPL", "RSI interpretation"]


async def test_a_13_ten_topics_at_most(talker: Agent) -> None:
    names = ["AAPL", "MSFT", "TSLA", "NVDA", "AMZN", "META", "NFLX", "AMD", "INTC", "KO", "PEP"]
    turn = await say(talker, *(f"Analiza {name}" for name in names), "gracias")
    assert turn.context["conversation"]["recent_topics"] == [f"Análisis de {name}" for name in names[1:]]


async def test_c_35_on_saturday_a_stock_is_closed_and_bitcoin_open(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await load(agent, sample(quotes=[AAPL, TSLA, NVDA, BTC]))
    clock.set(SATURDAY)
    turn = await say(agent, "Compara AAPL con BTC")
    assert turn.record.symbols == ["AAPL", "BTCUSD"]
    market = prompt(turn.request).split("<market>")[1].split("</market>")[0]
    assert "XNAS" in market
    assert "24/7" in market
    assert turn.context["market"]["status"] == "closed"


async def _works(agent: Agent, text: str) -> list[Any]:
    """Level 1 of a turn after each of its steps."""
    return [
        state.get("work")
        async for state in agent.graph.astream(
            {"messages": [HumanMessage(text)]},
            {"configurable": {"thread_id": thread_of(TENANT, CONVERSATION)}},
            context=TurnContext(user=CARLOS, conversation=CONVERSATION, tenant=TENANT),
            stream_mode="values",
        )
    ]


async def test_or_5_level_1_shows_intent_topic_and_tool_arguments_while_the_run_goes_on(
    open_agent: OpenAgent,
) -> None:
    @tool
    def news_of(symbol: str) -> str:
        """News of a symbol."""
        return f"Nothing new about {symbol}."

    asks = AIMessage("", tool_calls=[{"name": "news_of", "args": {"symbol": "TSLA"}, "id": "c1"}])
    agent = await open_agent(model=ScriptedModel(replies=[asks, SHORT]), tools=[news_of])
    works: Sequence[Any] = await _works(agent, "¿Debería comprar TSLA?")
    understood = [work for work in works if work and "topic" in work]
    assert {(w["intent"], w["intent_confidence"]) for w in understood} == {("trade", 0.9)}
    assert {w["topic"]["topic"]["label"] for w in understood} == {"Operar con TSLA"}
    sent = [
        message for work in understood if work.get("requests") for message in work["requests"][-1]["messages"]
    ]
    calls = [
        call["args"] for message in sent if isinstance(message, AIMessage) for call in message.tool_calls
    ]
    assert {"symbol": "TSLA"} in calls
    assert not works[-1]


async def test_or_5_a_33_the_record_keeps_the_intent_with_its_confidence(talker: Agent) -> None:
    clear = (await say(talker, "¿Debería comprar TSLA?")).record
    assert (clear.intent, clear.intent_confidence) == ("trade", 0.9)
    assert (await say(talker, "mmm")).record.intent_confidence < 0.5
