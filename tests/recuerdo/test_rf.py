"""The rows of requirements.md through the real agent: what the model is sent, what is answered, what stays."""

from datetime import UTC, datetime
from typing import Any

import pytest

from recuerdo.agent import Agent
from recuerdo.state.errors import ModelError
from recuerdo.stores.plans import load_plan
from tests.recuerdo.carlos import (
    CARLOS,
    CONVERSATION,
    FRIDAY,
    PROFILE,
    SATURDAY,
    House,
    SettableClock,
    dialogue,
    prompt,
    sample,
    seed,
)
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

DISCLAIMER = "Esto no es asesoramiento financiero."
SHORT = "Entendido."


async def say(agent: Agent, *texts: str, conversation: str = CONVERSATION, user: str = CARLOS) -> Any:
    """Send the texts one after another; the last turn."""
    turn = None
    for text in texts:
        turn = await agent.send(text, user=user, conversation=conversation)
    return turn


async def rows(agent: Agent, query: str, *values: object) -> list[dict[str, Any]]:
    async with agent.services.database.connection() as connection:
        cursor = await connection.execute(query, values)
        return await cursor.fetchall()


def block(turn: Any, name: str) -> Any:
    return next((b for b in turn.record.blocks if b.name == name), None)


async def fail_once(agent: Agent, text: str) -> None:
    """A turn whose model call breaks: its question alone stays."""
    model = agent.services.model
    assert isinstance(model, ScriptedModel)
    *_, last = model.replies
    model.replies = [last] * len(model.calls) + [RuntimeError("away"), last]
    with pytest.raises(ModelError):
        await agent.send(text, user=CARLOS, conversation=CONVERSATION)


# The conversation


async def test_rf_1_a_greeting_carries_user_preferences_market_and_conversation(
    open_agent: OpenAgent,
) -> None:
    model = ScriptedModel(replies=[SHORT])
    turn = await say(await open_agent(model=model), "Hola")
    sent = "\n".join(str(m.text) for m in model.calls[0]["messages"])
    for name in ("user", "preferences", "market", "conversation"):
        assert f"<{name}>" in sent
        assert turn.context[name]
    assert "Carlos" in sent and CONVERSATION in sent


async def test_rf_2_the_history_has_every_message_in_order(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["R1", "R2"]))
    await seed(agent, preferences={"show_disclaimers": False})
    await say(agent, "M1", "M2")
    history = await agent.conversations.get(CONVERSATION, user=CARLOS)
    assert [m.content for m in history] == ["M1", "R1", "M2", "R2"]
    assert [m.role for m in history] == ["user", "assistant"] * 2
    assert all(m.at.utcoffset() is not None for m in history)
    info = await agent.conversations.info(CONVERSATION, user=CARLOS)
    assert info is not None and info.messages_count == 4


async def test_rf_42_the_conversation_block(open_agent: OpenAgent, clock: SettableClock) -> None:
    clock.set("2025-12-05T10:00:00-06:00")
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await say(agent, *["Hola"] * 4)
    clock.set(FRIDAY)
    conversation = (await say(agent, "Hola")).context["conversation"]
    assert conversation["id"] == CONVERSATION
    assert conversation["started_at"] == "2025-12-05T10:00:00-06:00"
    assert conversation["messages_count"] == 8


async def test_rf_43_no_summary_until_the_conversation_exceeds_15_messages(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await say(agent, *["Hola"] * 4)
    after_8 = (await say(agent, "Hola")).context["conversation"]
    assert (after_8["messages_count"], after_8["summary"]) == (8, None)
    await fail_once(agent, "Hola")
    await say(agent, *["Hola"] * 2)
    after_15 = (await say(agent, "Hola")).context["conversation"]
    assert (after_15["messages_count"], after_15["summary"]) == (15, None)
    after_17 = (await say(agent, "Hola")).context["conversation"]
    assert after_17["messages_count"] == 17
    assert "Hola" in after_17["summary"]


async def test_rf_43_a_summary_at_16(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await say(agent, *["Hola, me llamo Carlos"] * 7)
    after_14 = (await say(agent, "Hola")).context["conversation"]
    assert (after_14["messages_count"], after_14["summary"]) == (14, None)
    after_16 = (await say(agent, "Hola")).context["conversation"]
    assert after_16["messages_count"] == 16
    assert after_16["summary"]


async def test_rf_44_rf_53_recent_topics_oldest_first_without_duplicates(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    first = await say(agent, "Analiza AAPL")
    assert first.record.topic.name == "Análisis de AAPL"
    second = await say(agent, "¿Cómo se interpreta el RSI?")
    assert second.context["conversation"]["recent_topics"] == ["Análisis de AAPL"]
    third = await say(agent, "¿Cómo se interpreta el RSI?")
    topics = ["Análisis de AAPL", "Interpretación de RSI"]
    assert third.context["conversation"]["recent_topics"] == topics
    assert (await say(agent, "Hola")).context["conversation"]["recent_topics"] == topics


# The user


async def test_rf_36_the_user_block(agent: Agent) -> None:
    assert (await say(agent, "Hola")).context["user"] == {
        "id": CARLOS,
        "name": "Carlos",
        "plan": "premium",
        "risk_profile": "moderate",
        "experience": "intermediate",
        "language": "es",
        "timezone": "America/Mexico_City",
    }


async def test_rf_37_the_preferences_block(agent: Agent) -> None:
    assert (await say(agent, "Hola")).context["preferences"] == {
        "show_disclaimers": True,
        "preferred_timeframe": "4h",
        "favorite_indicators": ["RSI", "MACD"],
        "notification_style": "detailed",
    }


async def test_rf_7_rf_11_a_preference_is_remembered_and_replaced(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await say(agent, "usa siempre velas de 1h")
    before = (await agent.memory.preferences(user=CARLOS))["preferred_timeframe"]
    assert before.value == "1h"
    clock.forward(minutes=1)
    turn = await say(agent, "mejor usa 1d")
    assert turn.context["preferences"]["preferred_timeframe"] == "1h"
    after = (await agent.memory.preferences(user=CARLOS))["preferred_timeframe"]
    assert after.value == "1d" and after.updated_at > before.updated_at
    assert (await say(agent, "Hola")).context["preferences"]["preferred_timeframe"] == "1d"


async def test_rf_9_the_style_is_remembered_in_a_new_conversation(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await say(agent, "respóndeme breve")
    turn = await say(agent, "Hola", conversation="conv-457")
    assert turn.context["preferences"]["custom"] == {"communication_style": "brief"}
    assert "communication_style: brief" in prompt(turn.request)


async def test_rf_10_an_explanation_is_remembered_the_next_day(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    answer = "El RSI mide la fuerza relativa de los movimientos del precio."
    agent = await open_agent(model=ScriptedModel(replies=[answer]))
    clock.set("2025-12-04T10:00:00-06:00")
    learnt = (await say(agent, "¿qué es RSI?")).record.learnt
    assert [one.type for one in learnt] == ["memory"]
    clock.set(FRIDAY)
    turn = await say(agent, "¿recuerdas lo que me explicaste del RSI?", conversation="conv-457")
    assert "¿qué es RSI?" in prompt(turn.request) and answer in prompt(turn.request)
    assert "jueves 4 de diciembre de 2025" in prompt(turn.request)
    assert turn.record.memories == [str(m.id) for m in await agent.memory.list(user=CARLOS)]


async def test_rf_54_a_new_preference_is_found_and_audited(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await seed(agent, preferences={"favorite_indicators": ["RSI"]})
    turn = await say(agent, "siempre muéstrame el MACD")
    await say(agent, "siempre muéstrame el MACD")
    indicators = (await agent.memory.preferences(user=CARLOS))["favorite_indicators"].value
    assert indicators == ["RSI", "MACD"]
    audit = await rows(
        agent, "select message_id from recuerdo.memory_audit where turn_id = %s::uuid", turn.id
    )
    assert [row["message_id"] for row in audit] == [str(turn.request["messages"][-1].id)]


async def test_rf_55_symbols_of_interest_are_counted(open_agent: OpenAgent, clock: SettableClock) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await say(agent, "precio de TSLA", "¿y TSLA?")
    assert [s.count for s in await agent.memory.symbols(user=CARLOS)] == [2]
    clock.forward(minutes=5)
    await say(agent, "analiza Tesla, TSLA")
    (interest,) = await agent.memory.symbols(user=CARLOS)
    assert (interest.symbol, interest.count, interest.last_mentioned) == ("TSLA", 3, clock.now)


async def test_rf_20_the_user_s_region(agent: Agent) -> None:
    turn = await say(agent, "¿Cómo va AAPL?")
    assert turn.context["user"]["language"] == "es"
    assert turn.context["user"]["timezone"] == "America/Mexico_City"
    assert turn.context["market"]["next_close"].endswith("-06:00")
    assert "Responde en español" in prompt(turn.request)


# Market data


async def test_rf_12_prices_of_what_is_mentioned_held_or_frequent_only(agent: Agent) -> None:
    turn = await say(agent, "¿Cómo va AAPL?")
    assert "185.50" in prompt(turn.request)
    assert "NVDA" not in prompt(turn.request) and "140.25" not in prompt(turn.request)


async def test_rf_13_rf_40_positions_with_profit_and_loss(agent: Agent) -> None:
    turn = await say(agent, "¿Cómo va mi portafolio?")
    assert turn.context["portfolio"]["positions"] == [
        {"symbol": "AAPL", "quantity": 50.0, "avg_price": 175.0, "current_pnl": 525.0},
        {"symbol": "TSLA", "quantity": 20.0, "avg_price": 250.0, "current_pnl": -100.0},
    ]
    for figure in ("175.00", "525.00", "250.00", "-100.00"):
        assert figure in prompt(turn.request)


async def test_rf_40_no_portfolio_when_no_holding_is_concerned(agent: Agent) -> None:
    turn = await say(agent, "¿qué es RSI?")
    assert "portfolio" not in turn.context
    assert block(turn, "portfolio") is None
    assert "175.00" not in prompt(turn.request)


async def test_rf_14_rf_41_active_alerts_only(open_agent: OpenAgent) -> None:
    agent = await open_agent()
    alert = {"user": CARLOS, "symbol": "TSLA", "condition": ">=", "price": "300"}
    off = {**alert, "id": "off", "active": False}
    done = {**alert, "id": "done", "price": "301", "triggered_at": "2025-12-01T10:00:00Z"}
    await seed(agent, sample(alerts=[off, done]))
    turn = await say(agent, "¿Cómo va TSLA?")
    assert turn.context["portfolio"]["alerts"] == [{"symbol": "TSLA", "condition": "<=", "price": 240.0}]
    assert "TSLA <= 240" in prompt(turn.request)
    assert "300" not in prompt(turn.request) and "301" not in prompt(turn.request)


async def test_rf_16_rf_45_signals_for_users_with_access(open_agent: OpenAgent) -> None:
    agent = await open_agent()
    turn = await say(agent, "¿Cómo va AAPL?")
    signal = turn.context["ml_signals"]["AAPL"]
    assert (signal["prediction"], signal["confidence"]) == ("bullish", 0.72)
    assert signal["updated_at"] == "2025-12-05T10:25:00-06:00"
    assert "alcista" in prompt(turn.request)
    await seed(agent, sample(profiles=[{**PROFILE, "subscription": "free"}]))
    turn = await say(agent, "¿Cómo va AAPL?")
    assert "ml_signals" not in turn.context
    assert "ml_signals" not in prompt(turn.request) and "alcista" not in prompt(turn.request)


async def test_rf_17_rf_18_rf_38_the_clock_and_the_market(agent: Agent, clock: SettableClock) -> None:
    turn = await say(agent, "Hola")
    assert turn.context["market"]["current_time"] == FRIDAY
    assert "Ahora: viernes 5 de diciembre de 2025, 10:30 (-06:00)" in prompt(turn.request)
    assert turn.context["market"]["status"] == "open"
    clock.set(SATURDAY)
    closed = (await say(agent, "Hola")).context["market"]
    assert (closed["status"], closed["next_close"]) == ("closed", None)


async def test_c_20_the_next_close_is_that_of_the_exchange(agent: Agent) -> None:
    next_close = (await say(agent, "Hola")).context["market"]["next_close"]
    assert datetime.fromisoformat(next_close) == datetime(2025, 12, 5, 21, tzinfo=UTC)


async def test_rf_19_rf_39_events_to_come_by_date(open_agent: OpenAgent) -> None:
    agent = await open_agent()
    cpi = {"event": "CPI", "date": "2025-12-10", "impact": "high"}
    past = {"event": "Jobs Report", "date": "2025-12-04", "impact": "high"}
    await seed(agent, sample(events=[cpi, past]))
    turn = await say(agent, "Hola")
    assert turn.context["market"]["upcoming_events"] == [
        {"event": "Fed Minutes", "date": "2025-12-06", "impact": "high"},
        cpi,
    ]
    assert "Jobs Report" not in prompt(turn.request)


async def test_c_35_the_status_is_that_of_the_symbol_s_exchange(agent: Agent, clock: SettableClock) -> None:
    clock.set(SATURDAY)
    turn = await say(agent, "¿Debería comprar AAPL o BTCUSD ahora?")
    assert turn.record.symbols == ["AAPL", "BTCUSD"]
    assert "24/7: abierto" in prompt(turn.request)
    assert "El mercado de AAPL está cerrado" in prompt(turn.request)


async def test_im_41_the_next_opening_in_the_user_s_time_zone(agent: Agent, clock: SettableClock) -> None:
    clock.set(SATURDAY)
    turn = await say(agent, "¿Debería comprar AAPL ahora?")
    assert turn.context["market"]["next_open"] == "2025-12-08T08:30:00-06:00"
    assert "lunes 8 de diciembre de 2025, 08:30" in turn.reply


# The six steps


async def test_rf_46_company_names_are_symbols(agent: Agent) -> None:
    assert (await say(agent, "¿Cómo va mi posición de Tesla?")).record.symbols == ["TSLA"]


async def test_rf_47_eight_steps_in_order(open_agent: OpenAgent) -> None:
    agent = await open_agent()
    trace = (await say(agent, "¿Cómo va AAPL?")).record.trace
    steps = ["profile", "preferences", "history", "symbols", "market", "positions", "alerts", "signals"]
    assert [step["step"] for step in trace] == steps
    assert all(step["ms"] >= 0 and step["size"] >= 0 for step in trace)
    assert trace[-1]["status"] == "ok" and trace[-1]["size"] > 0
    await seed(agent, sample(profiles=[{**PROFILE, "subscription": "free"}]))
    trace = (await say(agent, "¿Cómo va AAPL?")).record.trace
    assert [step["step"] for step in trace] == steps
    assert trace[-1]["status"] == "skipped"


async def test_rf_48_a_9_6000_is_left_alone_and_6001_is_compressed(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))

    async def tokens_of(words: int, conversation: str) -> Any:
        return await say(agent, "hola" + " hola" * words, conversation=conversation)

    base = (await tokens_of(1000, "conv-001")).record.estimate["input_tokens"]
    exact = await tokens_of(1000 + 6000 - base, "conv-002")
    assert exact.record.estimate["before"] == 6000
    assert exact.record.steps == []
    over = await tokens_of(1001 + 6000 - base, "conv-003")
    assert over.record.estimate["before"] == 6001
    assert over.record.steps
    assert over.record.estimate["input_tokens"] <= 6000


async def test_rf_22_rf_49_data_first_then_history_and_never_the_message(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Vale. " * 150]))
    await say(agent, *[f"Pregunta {n}: " + "volumen y precio " * 60 for n in range(5)])
    before = sum(b.tokens for b in (await say(agent, "Hola")).record.blocks)
    message = "¿Cómo va AAPL?\n\n  Con  espacios\ty acentos: ñandú " + "y mucho más " * ((7500 - before) // 3)
    turn = await say(agent, message)
    assert turn.request["messages"][-1].text == message
    tiers = [step.tier for step in turn.record.steps]
    assert "high" in tiers and "critical" not in tiers
    assert tiers == sorted(tiers, key=["low", "medium", "high"].index)
    places = {step.block: place for place, step in enumerate(turn.record.steps)}
    assert max(place for name, place in places.items() if name != "history") < places["history"]
    assert turn.record.steps[0].tokens_before == turn.record.estimate["before"]
    assert turn.record.steps[-1].tokens_after == turn.record.estimate["input_tokens"] <= 8000


async def test_rf_50_role_context_and_instructions(open_agent: OpenAgent) -> None:
    turn = await say(await open_agent(), "Hola")
    sections = prompt(turn.request).split("# ")
    by_title = {section.partition("\n")[0]: section.partition("\n")[2].strip() for section in sections}
    plan = load_plan("trading")
    assert by_title["Rol"].startswith(plan.role[:40])
    assert plan.instructions[0] in by_title["Instrucciones"]
    assert "<user>" in by_title["Contexto"]
    assert "<instructions>" in by_title["Contexto"]
    assert "<market>" in by_title["Contexto de este turno"]


async def test_rf_51_prompt_history_message_and_the_answer_is_stored(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=["Primera.", "Segunda."])
    agent = await open_agent(model=model)
    await seed(agent, preferences={"show_disclaimers": False})
    turn = await say(agent, "Hola", "¿Qué tal?")
    sent = model.calls[-1]
    assert [m.type for m in sent["messages"]] == ["system", "human", "ai", "system", "human"]
    assert dialogue(turn.request) == ["Hola", "Primera.", "¿Qué tal?"]
    assert sent["messages"] == turn.request["messages"]
    assert sent["max_tokens"] == turn.request["max_output_tokens"] == 2000
    assert sent["tools"] == turn.request["tools"]
    history = await agent.conversations.get(CONVERSATION, user=CARLOS)
    assert history[-1].content == turn.reply == "Segunda."


async def test_rf_52_a_failed_turn_keeps_the_user_s_message(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await fail_once(agent, "¿Cómo va AAPL?")
    (message,) = await agent.conversations.get(CONVERSATION, user=CARLOS)
    assert (message.role, message.content, message.status) == ("user", "¿Cómo va AAPL?", "failed")
    turn = await say(agent, "¿Sigues ahí?")
    assert dialogue(turn.request) == ["¿Cómo va AAPL?", "¿Sigues ahí?"]
    history = await agent.conversations.get(CONVERSATION, user=CARLOS)
    assert [m.status for m in history] == ["failed", "ok", "ok"]


async def test_rf_24_the_estimate_comes_before_the_call(
    open_agent: OpenAgent, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="recuerdo")
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await fail_once(agent, "Hola")
    logged = [r.getMessage() for r in caplog.records if "estimated_input_tokens=" in r.getMessage()]
    assert len(logged) == 1
    turn = await say(agent, "Hola")
    assert turn.record.estimate["input_tokens"] == turn.request["input_tokens"] > 0
    assert datetime.fromisoformat(turn.record.estimate["at"]).utcoffset() is not None


async def test_rf_21_usage_of_a_conversation(open_agent: OpenAgent) -> None:
    replies = [
        ScriptedModel(replies=["a"])
        ._next([], {})
        .model_copy(update={"usage_metadata": {"input_tokens": i, "output_tokens": o, "total_tokens": i + o}})
        for i, o in ((1200, 300), (1500, 250))
    ]
    agent = await open_agent(model=ScriptedModel(replies=replies))
    await say(agent, "Hola", "Hola")
    usage = await agent.conversations.usage(CONVERSATION, user=CARLOS)
    assert (usage.input, usage.output, usage.total) == (2700, 550, 3250)


async def test_rf_34_tokens_and_output_are_limited(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Vale. " * 300]))
    for number in range(8):
        turn = await say(agent, f"{number}: " + "una pregunta larga sobre AAPL " * 100)
        assert turn.request["input_tokens"] <= 8000
        assert turn.request["max_output_tokens"] == 2000


# What stays


async def test_rf_64_im_37_the_tables(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["El RSI es un indicador."]))
    tables = {
        row["table_name"]
        for row in await rows(
            agent, "select table_name from information_schema.tables where table_schema = 'recuerdo'"
        )
    }
    assert {"conversations", "messages", "user_preferences", "user_memory"} <= tables
    await say(agent, "siempre mostrar disclaimer", "¿qué es RSI?")
    messages = await rows(
        agent,
        "select m.role from recuerdo.messages m join recuerdo.conversations c"
        " on c.tenant = m.tenant and c.id = m.conversation where c.user_id = %s",
        CARLOS,
    )
    assert len(messages) == 4
    (memory,) = await rows(agent, "select kind, embedding, embedder from recuerdo.user_memory")
    assert memory["kind"] == "question_answer"
    assert len(memory["embedding"]) > 100 and memory["embedder"]
    preferences = await rows(agent, "select key from recuerdo.user_preferences where user_id = %s", CARLOS)
    assert "show_disclaimers" in [row["key"] for row in preferences]


async def test_im_44_the_disclaimer_stands_once(open_agent: OpenAgent) -> None:
    said = f"AAPL sube. {DISCLAIMER}"
    agent = await open_agent(model=ScriptedModel(replies=["AAPL sube.", said, "AAPL sube."]))
    for _ in range(2):
        turn = await say(agent, "¿Cómo va AAPL?")
        assert turn.reply.count(DISCLAIMER) == 1
    stored = await agent.conversations.get(CONVERSATION, user=CARLOS)
    assert [m.content.count(DISCLAIMER) for m in stored if m.role == "assistant"] == [1, 1]
    await seed(agent, preferences={"show_disclaimers": False})
    assert (await say(agent, "¿Cómo va AAPL?")).reply == "AAPL sube."


async def test_c_16_no_long_term_row_holds_a_position(agent: Agent) -> None:
    await say(agent, "¿Cómo va mi inversión?", "recuerda que tengo 20 acciones de TSLA a 250")
    memories = await agent.memory.list(user=CARLOS)
    kept = [f"{m.text} {m.quote}" for m in memories]
    assert not any("20" in text or "250" in text or "-100" in text for text in kept)


async def test_la_7_im_15_a_preview_is_clean_and_billed(open_agent: OpenAgent, house: House) -> None:
    answer = "El RSI mide la fuerza del precio."
    agent = await open_agent(model=ScriptedModel(replies=[answer]))
    await say(agent, "siempre mostrar disclaimer", "¿qué es RSI?")
    before = await agent.conversations.usage(CONVERSATION, user=CARLOS)
    kept = await snapshot(agent)
    async with house.open(model=ScriptedModel(replies=["Vale."]), mode="preview") as preview:
        turn = await say(preview, "siempre usa velas de 1d: ¿recuerdas lo que es el RSI?")
        taught = await say(preview, "usa siempre velas de 1d", conversation="conv-new")
    assert dialogue(turn.request) == ["siempre usa velas de 1d: ¿recuerdas lo que es el RSI?"]
    assert answer not in prompt(turn.request) and "<preferences>" not in prompt(turn.request)
    assert turn.record.mode == "preview" and turn.record.memories == []
    assert taught.record.learnt == []
    assert await snapshot(agent) == kept
    after = await agent.conversations.usage(CONVERSATION, user=CARLOS)
    assert after.total > before.total
    (usage,) = await rows(agent, "select mode, usage from recuerdo.turns where id = %s::uuid", turn.id)
    assert usage["mode"] == "preview" and usage["usage"]["total"] > 0


async def snapshot(agent: Agent) -> dict[str, Any]:
    """Every row that a preview must leave alone."""
    tables = ("conversations", "messages", "user_preferences", "user_symbols", "user_memory", "memory_audit")
    kept = {table: await rows(agent, f"select * from recuerdo.{table} order by 1, 2, 3") for table in tables}
    kept["next"] = await rows(
        agent,
        "select checkpoint_id from checkpoints where thread_id like %s order by 1",
        f"%{CONVERSATION}",
    )
    return kept


async def test_im_45_the_record_of_the_last_good_turn_is_found_after_a_failed_one(
    open_agent: OpenAgent,
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Sí.", ConnectionError("down")]))
    good = await agent.send("Hola", user=CARLOS, conversation=CONVERSATION)
    with pytest.raises(ModelError):
        await agent.send("¿Y?", user=CARLOS, conversation=CONVERSATION)
    for conversation in (CONVERSATION, None):
        found = await agent.conversations.newest_record(conversation, user=CARLOS)
        assert found is not None and found.turn == good.id
    assert await agent.conversations.newest_record(user="somebody-else") is None
