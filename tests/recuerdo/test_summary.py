"""The summary through the real agent: by the model where there is one, extractive else, and never in the stream."""

import asyncio
import json
import logging
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from pydantic import Field

from recuerdo.agent import Agent
from recuerdo.nodes.update_memory import summarise
from recuerdo.state.plan import Memory, Plan, ShortTerm, Summary
from recuerdo.state.record import SummaryRecord
from recuerdo.stores.plans import load_plan
from tests.fake_openai import FakeOpenAI, text
from tests.recuerdo.carlos import CARLOS, CONVERSATION, House, dialogue, prompt
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

GOAL = "mi objetivo es 10% anual"
STOP = "mi stop-loss de AAPL es 170"
MARK = "Resumida por el modelo"
GOOD = json.dumps({"goals": ["10% anual"], "figures": ["stop-loss de AAPL: 170"], "points": [MARK]})
DROPPED = json.dumps({"goals": ["ganar dinero"], "points": [MARK]})
INVENTED = json.dumps({"goals": ["10% anual"], "figures": ["stop-loss de AAPL: 999"], "points": [MARK]})


class Summariser(ScriptedModel):
    """Answers turns with its replies, and requests for a summary with ``summary``."""

    summary: Any
    summaries: list[dict[str, Any]] = Field(default_factory=list)

    def _next(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        if not asks_for_summary(messages):
            return super()._next(messages, kwargs)
        self.summaries.append({"messages": messages, **kwargs})
        if isinstance(self.summary, Exception):
            raise self.summary
        usage = {"input_tokens": 700, "output_tokens": 70, "total_tokens": 770}
        return AIMessage(self.summary, usage_metadata=usage)  # type: ignore[arg-type]


class Slow(Summariser):
    """Never comes to an end of a summary."""

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if asks_for_summary(messages):
            await asyncio.Event().wait()
        return await super()._agenerate(messages, *args, **kwargs)


def asks_for_summary(messages: list[BaseMessage]) -> bool:
    return str(messages[-1].text).startswith("<summary>")


def model(summary: Any = GOOD, kind: type[Summariser] = Summariser) -> Summariser:
    return kind(replies=["Entendido."], summary=summary)


def small(**summary: Any) -> Plan:
    """The trading plan with a window of two rounds, so that a summary comes soon."""
    memory = Memory(short_term=ShortTerm(max_messages=5), summary=Summary(after_messages=4, **summary))
    return load_plan("trading").model_copy(update={"memory": memory})


async def say(agent: Agent, *texts: str) -> Any:
    turn = None
    for said in texts:
        turn = await agent.send(said, user=CARLOS, conversation=CONVERSATION)
    return turn


async def summary_of(agent: Agent) -> str:
    """What the next turn would be told."""
    return str((await say(agent, "¿Sigues?")).context["conversation"]["summary"])


async def test_rf_4_the_model_writes_the_summary_where_there_is_one(open_agent: OpenAgent) -> None:
    writer = model()
    agent = await open_agent(model=writer, plan=small())
    turns = [await say(agent, said) for said in (GOAL, STOP, "Hola", "Hola")]
    by_model = SummaryRecord(by="model")
    assert [turn.record.summary for turn in turns] == [None, None, by_model, by_model]
    first, second = writer.summaries
    assert GOAL in first["messages"][1].text and STOP in second["messages"][1].text
    assert first["max_tokens"] == 800
    assert await summary_of(agent) == (
        f"- Objetivo: 10% anual\n- Dato del usuario: stop-loss de AAPL: 170\n- {MARK}"
    )


async def test_rf_4_it_extends_the_summary_before(open_agent: OpenAgent) -> None:
    writer = model()
    agent = await open_agent(model=writer, plan=small())
    await say(agent, GOAL, STOP, *["Hola"] * 2)
    assert len(writer.summaries) > 1
    for asked in writer.summaries[1:]:
        before, _, said = asked["messages"][1].text.partition("<conversation>")
        assert MARK in before and GOAL not in said


async def test_rf_21_the_summarys_tokens_count_in_the_turns_usage(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=model(), plan=small())
    usages = [(await say(agent, said)).record.usage["total"] for said in (GOAL, STOP, "Hola")]
    assert usages == [1500, 1500, 1500 + 770]


@pytest.mark.parametrize("summary", [DROPPED, INVENTED, "No sé resumir.", "", RuntimeError("sk-secret")])
async def test_rf_5_rf_28_whatever_the_model_writes_goal_and_stop_survive(
    open_agent: OpenAgent, summary: Any
) -> None:
    agent = await open_agent(model=model(summary), plan=small())
    await say(agent, GOAL, STOP, *["Hola"] * 3)
    turn = await say(agent, "¿Sigues?")
    assert not any(GOAL in said for said in dialogue(turn.request))
    told = turn.context["conversation"]["summary"]
    assert "10% anual" in told and "AAPL" in told and "170" in told and "999" not in told
    assert told in prompt(turn.request)


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        ("No sé resumir.", "unreadable"),
        ("{}", "unreadable"),
        (RuntimeError("away: sk-secret"), "failed"),
        (TimeoutError(), "timed_out"),
    ],
)
async def test_rf_4_a_model_that_fails_never_fails_the_turn(
    open_agent: OpenAgent, caplog: pytest.LogCaptureFixture, summary: Any, reason: Any
) -> None:
    agent = await open_agent(model=model(summary), plan=small())
    with caplog.at_level(logging.DEBUG, "recuerdo"):
        turn = await say(agent, GOAL, STOP, "Hola")
    assert turn.reply.startswith("Entendido.")
    assert turn.record.summary == SummaryRecord(by="extractive", reason=reason)
    assert turn.record.usage["total"] == 1500 + (770 if reason == "unreadable" else 0)
    assert f"- Objetivo: {GOAL}\n" in await summary_of(agent)
    assert "sk-secret" not in caplog.text


async def test_rf_4_a_slow_model_is_not_waited_for(
    open_agent: OpenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summarise, "SECONDS", 0.05)
    agent = await open_agent(model=model(kind=Slow), plan=small())
    turn = await say(agent, GOAL, STOP, "Hola")
    assert turn.record.summary == SummaryRecord(by="extractive", reason="timed_out")
    assert f"- Objetivo: {GOAL}\n" in await summary_of(agent)


async def test_rf_4_the_plan_may_keep_the_model_out(open_agent: OpenAgent) -> None:
    writer = model()
    agent = await open_agent(model=writer, plan=small(by="extractive"))
    turn = await say(agent, GOAL, STOP, "Hola")
    assert turn.record.summary == SummaryRecord(by="extractive", reason="plan")
    assert writer.summaries == []


async def test_rf_4_the_offline_responder_is_not_asked(open_agent: OpenAgent) -> None:
    agent = await open_agent(plan=small())
    turn = await say(agent, GOAL, STOP, "Hola")
    assert turn.record.summary == SummaryRecord(by="extractive", reason="offline")
    assert f"- Objetivo: {GOAL}\n" in await summary_of(agent)


async def test_c_2_the_model_is_asked_only_when_a_summary_is_due(open_agent: OpenAgent) -> None:
    writer = model()
    agent = await open_agent(model=writer)
    turns = [await say(agent, f"Hola {number}") for number in range(12)]
    written = [turn.record.number for turn in turns if turn.record.summary]
    assert written == [8, 10], "the 16th message, and the one that fills the window"
    assert len(writer.summaries) == 2


async def test_rf_5_the_stop_of_message_2_reaches_the_27th(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Entendido."]))
    turn = await say(agent, STOP, *[f"¿Qué opinas de la noticia {n}?" for n in range(13)])
    assert not any(STOP in said for said in dialogue(turn.request))
    assert STOP in prompt(turn.request)


@pytest.mark.parametrize("summary", [GOOD, json.dumps({"points": ["Tarjeta 4111 1111 1111 1111"]}), ""])
async def test_rf_33_nothing_sensitive_reaches_the_summariser_or_the_summary(
    open_agent: OpenAgent, summary: str
) -> None:
    writer = model(summary)
    agent = await open_agent(model=writer, plan=small())
    secret = "mi tarjeta es 4111 1111 1111 1111 y tengo 25000 USD en la cuenta 0123456789"
    await say(agent, secret, *["Hola"] * 2)
    asked = "".join(str(m.text) for call in writer.summaries for m in call["messages"])
    assert "mi tarjeta es [***]" in asked
    told = await summary_of(agent)
    assert not any(part in asked + told for part in ("4111", "25000", "0123456789"))


async def test_fault_23_the_summarys_tokens_never_reach_any_stream(open_agent: OpenAgent) -> None:
    writer = model()
    agent = await open_agent(model=writer, plan=small())
    streamed = ""
    for said in (GOAL, STOP, "Hola", "Hola"):
        config: Any = {"configurable": {"thread_id": "bare", "user": CARLOS}}
        stream = agent.graph.astream(
            {"messages": [HumanMessage(said)]}, config, stream_mode=["messages", "custom"]
        )
        async for mode, payload in stream:
            if mode == "messages":
                streamed += str(payload[0].text)
            elif payload["type"] == "token":
                streamed += payload["text"]
    assert writer.summaries
    assert "Entendido." in streamed
    assert MARK not in streamed and "{" not in streamed


async def test_fault_23_a_consumer_reads_the_reply_alone(open_agent: OpenAgent) -> None:
    writer = model()
    agent = await open_agent(model=writer, plan=small())
    for said in (GOAL, STOP, "Hola"):
        chunks = [c async for c in agent.stream(said, user=CARLOS, conversation=CONVERSATION)]
        turn = chunks[-1].turn
        assert turn is not None and "".join(c.text for c in chunks) == turn.reply
        assert len(turn.requests) == 1, "the summary's request is none of the turn's"
    assert writer.summaries


async def test_rf_4_a_summary_over_http_limits_its_output(house: House) -> None:
    replies = [text("Vale", input_tokens=100), text("Vale"), text("Vale"), text(GOOD, output_tokens=70)]
    with FakeOpenAI(replies) as server:
        settings = {"openai_api_key": "sk-very-secret", "openai_base_url": server.url, "model": "tiny"}
        async with house.open(settings=settings, plan=small()) as agent:
            turn = await say(agent, GOAL, STOP, "Hola")
    assert turn.record.summary == SummaryRecord(by="model")
    assert turn.record.usage["output"] == 5 + 70
    asked = server.requests[3]
    assert asked["max_tokens"] == 800 and "tools" not in asked
    assert [m["role"] for m in asked["messages"]] == ["system", "user"]


async def test_a_summary_of_an_older_checkpoint_goes_on(open_agent: OpenAgent) -> None:
    agent = await open_agent(plan=small())
    await say(agent, "Hola", "Hola", "Hola")
    config: Any = {"configurable": {"thread_id": await thread(agent)}}
    old = {"text": f"- El usuario dijo: {STOP}\n- El usuario dijo: {GOAL}", "covers": 2, "left_window": 2}
    await agent.graph.aupdate_state(config, {"summary": old}, as_node="update_memory")
    turn = await say(agent, "Hola", "Hola")
    assert turn.record.summary is not None
    assert (await summary_of(agent)).startswith(f"- Objetivo: {GOAL}\n- Dato del usuario: {STOP}\n")


async def thread(agent: Agent) -> str:
    async with agent.services.database.connection() as connection:
        cursor = await connection.execute("select distinct thread_id from checkpoints")
        (row,) = await cursor.fetchall()
    return str(row["thread_id"])
