"""Rows of requirements.md on the budget, the order of the prompt and the record, through the real agent."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from pydantic import Field

from recuerdo.agent import Agent
from recuerdo.state.errors import ModelError
from recuerdo.state.plan import FullContext, Limits, Memory, Plan, ShortTerm, Summary
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.preferences import PreferenceChange, Preferences
from tests.recuerdo.carlos import (
    AAPL,
    AAPL_POSITION,
    CARLOS,
    CONVERSATION,
    FRIDAY,
    PROFILE,
    SAMPLE,
    TENANT,
    TSLA,
    House,
    SettableClock,
    dialogue,
    prompt,
    sample,
    seed,
)
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

SHORT = "Entendido."
STOP = "Mi stop-loss de AAPL es 170"
FILLER = " hola" * 6000
"""Words of a message that alone is over the target: what can give way goes to its floor, and the floors stay."""

DISTANT = {"event": "GDP", "date": "2026-01-04", "impact": "low"}


async def say(agent: Agent, *texts: str, conversation: str = CONVERSATION) -> Any:
    """Send the texts one after another; the last turn."""
    turn = None
    for text in texts:
        turn = await agent.send(text, user=CARLOS, conversation=conversation)
    return turn


def block(turn: Any, name: str) -> Any:
    return next(b for b in turn.record.blocks if b.name == name)


def part(request: Any, name: str) -> str:
    """The fenced part of that name; empty when the request has none."""
    _, opened, rest = prompt(request).partition(f"<{name}>\n")
    return rest.partition(f"</{name}>")[0] if opened else ""


def whole(request: Any) -> str:
    """The request's texts in the order in which they are sent."""
    return "\n".join(str(message.text) for message in request["messages"])


def plan_with(memory: Memory | None = None, limits: Limits | None = None) -> Plan:
    given = {"memory": memory, "limits": limits}
    changed = {name: value for name, value in given.items() if value is not None}
    return load_plan("trading").model_copy(update=changed)


def window_of(messages: int) -> Plan:
    """The trading plan with at most so many messages, and a summary as soon as one has left the window."""
    summary = Summary(after_messages=4, by="extractive")
    return plan_with(Memory(short_term=ShortTerm(max_messages=messages), summary=summary))


def calls(*asked: tuple[str, dict[str, Any]]) -> AIMessage:
    """A reply that calls tools."""
    made: list[Any] = [
        {"name": name, "args": args, "id": f"call-{number}", "type": "tool_call"}
        for number, (name, args) in enumerate(asked)
    ]
    return AIMessage("", tool_calls=made)


def report_of(lines: int) -> BaseTool:
    """A tool that changes nothing and says much."""

    @tool
    def read_report() -> str:
        """Read the report."""
        return "ventas 12\n" * lines

    read_report.metadata = {"read_only": True}
    return read_report


@tool
def place_order(symbol: str) -> str:
    """Place an order."""
    return f"ordered {symbol}"


# The window


async def test_rf_3_c_1_at_most_six_messages_and_a_summary_of_the_others(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]), plan=window_of(6))
    await say(agent, STOP, *[f"Mi precio objetivo de AAPL es {200 + n}" for n in range(4)])
    turn = await say(agent, "Mensaje 11")
    newest = [f"Mi precio objetivo de AAPL es {n}" for n in (202, 203)]
    said = dialogue(turn.request)
    assert [text for text in said if not text.startswith(SHORT)] == [*newest, "Mensaje 11"]
    assert len(said) == 5 and said[-1] == "Mensaje 11"
    summary = part(turn.request, "summary")
    assert "170" in summary and "201" in summary


# Compression


async def test_rf_23_the_recent_is_verbatim_and_the_old_is_summarised(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    old = f"{STOP}. " + "El oro es otro asunto. " * 60
    await say(agent, old, *["Hola " * 300] * 3, "El soporte reciente está en 181")
    turn = await say(agent, "¿Cómo va AAPL?" + " hola" * 4500)
    said = dialogue(turn.request)
    assert "El soporte reciente está en 181" in said
    assert old not in said and "170" in part(turn.request, "summary")
    assert "history" in [step.block for step in turn.record.steps]


EXTRACTIVE = Memory(summary=Summary(by="extractive"))
UNLIMITED = plan_with(EXTRACTIVE, Limits(compress_above=50_000, max_input=50_000))
QUESTION = "¿Cómo va mi posición de TSLA?"


async def told_at_length(open_agent: OpenAgent, *conversations: str) -> Agent:
    """Conversations with 8,000 tokens of history, of which only the end is short; nothing was cut until now."""
    long = [AIMessage("Vale." + " vale" * 1150)] * 7
    replies = [*long, *[AIMessage(SHORT)] * 2]
    agent = await open_agent(model=ScriptedModel(replies=replies * len(conversations)), plan=UNLIMITED)
    for conversation in conversations:
        await say(agent, STOP, *[f"Pregunta {n}" for n in range(8)], conversation=conversation)
    return agent


async def test_rf_56_what_is_critical_is_byte_identical(open_agent: OpenAgent) -> None:
    unlimited = await told_at_length(open_agent, "conv-1", "conv-2")
    limited = await open_agent(model=ScriptedModel(replies=[SHORT]), plan=plan_with(EXTRACTIVE))
    uncut = await say(unlimited, QUESTION, conversation="conv-1")
    cut = await say(limited, QUESTION, conversation="conv-2")
    assert uncut.record.steps == [] and uncut.record.estimate["input_tokens"] >= 9000
    assert cut.record.estimate["before"] >= 9000 and cut.record.estimate["input_tokens"] <= 6000
    assert sum(b.tokens for b in cut.record.blocks if b.tier == "critical") < 1500
    assert dialogue(cut.request)[-4:] == dialogue(uncut.request)[-4:]
    assert dialogue(cut.request)[-1] == QUESTION
    assert part(cut.request, "portfolio") == part(uncut.request, "portfolio")
    assert "TSLA" in part(cut.request, "portfolio")


async def test_rf_57_older_messages_are_summarised_and_not_lost(open_agent: OpenAgent) -> None:
    await told_at_length(open_agent, CONVERSATION)
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]), plan=plan_with(EXTRACTIVE))
    turn = await say(agent, QUESTION)
    assert STOP not in dialogue(turn.request)
    assert "170" in part(turn.request, "summary")
    (*_, last) = [step for step in turn.record.steps if step.block == "history"]
    assert (last.tier, last.action) == ("high", "compressed")


async def test_rf_58_a_quote_keeps_the_essentials(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    more = {f"ratio_{n}": f"7{n}.77" for n in range(11)}
    await seed(agent, sample(quotes=[{**AAPL, "more": more}, TSLA]))
    full = await say(agent, "¿Cómo va AAPL?", conversation="conv-1")
    assert "ratio_10 710.77" in part(full.request, "quotes") and "52" in part(full.request, "quotes")
    cut = await say(agent, "¿Cómo va AAPL?" + FILLER, conversation="conv-2")
    assert block(cut, "quotes:AAPL").rung == "essentials"
    essentials = part(cut.request, "quotes")
    for kept in ("AAPL", "185.50", "+1.20 %", "10:29"):
        assert kept in essentials
    assert "ratio" not in essentials and "183.10" not in essentials


async def remember(agent: Agent, key: str, value: Any, quote: str) -> None:
    change = PreferenceChange(key, value, quote, None, "es")
    await Preferences(agent.services.database, TENANT).set(CARLOS, change, datetime.fromisoformat(FRIDAY))


async def test_rf_59_keys_and_values_stay_and_the_prose_goes(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    note = "porque así me lo enseñó mi abuela"
    await remember(agent, "show_disclaimers", True, f"muestra siempre el aviso {note}")
    await remember(agent, "preferred_timeframe", "1h", f"usa velas de 1h {note}")
    full = await say(agent, "Hola", conversation="conv-1")
    assert part(full.request, "preferences").count(note) == 2
    preferences = part((await say(agent, "Hola" + FILLER, conversation="conv-2")).request, "preferences")
    assert note not in preferences
    assert "- show_disclaimers: sí\n" in preferences and "- preferred_timeframe: 1h\n" in preferences
    assert "- favorite_indicators: RSI, MACD\n" in preferences


async def test_c_25_an_endless_value_does_not_take_the_short_ones_with_it(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await remember(agent, "note", "mi nota " * 2000, "mi nota")
    turn = await say(agent, "Hola" + FILLER)
    preferences = part(turn.request, "preferences")
    assert block(turn, "preferences").rung == "keys and short values"
    assert "- show_disclaimers: sí\n" in preferences and "- notification_style: detailed\n" in preferences
    (note,) = [line for line in preferences.splitlines() if line.startswith("- note: ")]
    assert note.endswith("…") and agent.services.counter.count(note.removeprefix("- note: ")) <= 20
    assert turn.record.estimate["input_tokens"] <= 8000


async def test_c_25_an_endless_name_does_not_take_the_region_with_it(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await seed(agent, sample(profiles=[{**PROFILE, "name": "Carlos de la Vega " * 1000}]))
    turn = await say(agent, "Hola" + FILLER)
    user = part(turn.request, "user")
    assert block(turn, "user").rung == "essentials"
    assert "Nombre: Carlos de la Vega" in user and "America/Mexico_City" in user
    assert "show_disclaimers: sí" in part(turn.request, "preferences")


def crowded() -> Any:
    """Platform data with much that a turn about AAPL can do without."""
    others = ("MSFT", "GOOGL", "AMZN", "META", "NFLX", "INTC", "KO", "PEP")
    positions = [{**AAPL_POSITION, "symbol": symbol} for symbol in others]
    quotes = [{**TSLA, "symbol": symbol} for symbol in others]
    return sample(
        quotes=[AAPL, TSLA, *quotes],
        positions=[AAPL_POSITION, *positions],
        events=[*SAMPLE["events"], DISTANT],
    )


async def over_by(agent: Agent, tokens: int) -> Any:
    """A turn about AAPL whose request is so many tokens over the target before compression."""
    base = (await say(agent, "¿Cómo va AAPL?" + " hola" * 1000, conversation="conv-1")).record.estimate
    words = 1000 + 6000 + tokens - base["input_tokens"]
    turn = await say(agent, "¿Cómo va AAPL?" + " hola" * words, conversation="conv-2")
    assert turn.record.estimate["before"] == 6000 + tokens
    return turn


async def test_rf_60_what_is_unrelated_gives_way_before_anything_high(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await seed(agent, sample(events=[*SAMPLE["events"], DISTANT]))
    turn = await say(agent, "¿Cómo va AAPL?" + FILLER)
    assert {"other_alerts", "distant_events"} <= {b.name for b in turn.record.blocks if b.tier == "medium"}
    for name in ("other_alerts", "distant_events"):
        assert len(part(turn.request, name).splitlines()) <= 1
    places = {
        tier: [n for n, s in enumerate(turn.record.steps) if s.tier == tier] for tier in ("medium", "high")
    }
    assert max(places["medium"]) < min(places["high"])
    assert "Fed Minutes" in part(turn.request, "events")


async def test_rf_62_100_tokens_over_change_low_items_only(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]))
    await seed(agent, crowded())
    turn = await over_by(agent, 100)
    before = await say(agent, "¿Cómo va AAPL?", conversation="conv-3")
    assert sum(b.tokens for b in before.record.blocks if b.tier == "low") >= 300
    assert {step.tier for step in turn.record.steps} == {"low"}
    assert turn.record.estimate["input_tokens"] <= 6000


async def test_rf_61_rf_62_low_is_removed_first_then_medium_then_high(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    clock.set("2025-12-04T10:00:00-06:00")
    agent = await open_agent(model=ScriptedModel(replies=["El RSI mide la fuerza del precio de AAPL."]))
    await seed(agent, crowded())
    await say(agent, "¿qué es RSI?", *["precio de AAPL"] * 3, conversation="conv-0")
    clock.set(FRIDAY)
    turn = await over_by(agent, 1000)
    steps = turn.record.steps
    tiers = [step.tier for step in steps]
    assert tiers == sorted(tiers, key=["low", "medium", "high"].index)
    assert set(tiers) == {"low", "medium", "high"}
    low = {b.name for b in turn.record.blocks if b.tier == "low"}
    assert low == {"memories", "other_positions", "other_quotes", "interests"}
    assert {step.block for step in steps if step.tier == "low" and step.action == "removed"} == low


async def test_c_26_recalled_lines_vanish_and_the_tool_result_stays(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    clock.set("2025-12-04T10:00:00-06:00")
    asked = calls(("get_quote", {"symbol": "TSLA"}))
    model = ScriptedModel(replies=["El RSI mide la fuerza del precio.", SHORT, asked, SHORT])
    agent = await open_agent(model=model)
    await say(agent, "¿qué es RSI?", conversation="conv-0")
    clock.set(FRIDAY)
    question = "¿recuerdas lo que me explicaste del RSI?"
    assert "mide la fuerza" in part((await say(agent, question, conversation="conv-1")).request, "memories")
    turn = await say(agent, question + FILLER, conversation="conv-2")
    assert part(turn.request, "memories") == ""
    (result,) = [m for m in turn.request["messages"] if isinstance(m, ToolMessage)]
    assert result.text.startswith("TSLA: price 245.00")


async def test_c_5_the_older_trace_goes_first_and_the_record_says_so(open_agent: OpenAgent) -> None:
    asked = calls(("read_report", {}))
    model = ScriptedModel(replies=[asked, SHORT, asked, SHORT, SHORT])
    memory = Memory(full_context=FullContext(rounds=2), summary=Summary(by="extractive"))
    agent = await open_agent(model=model, plan=plan_with(memory), tools=[report_of(280)])
    await say(agent, "Lee el informe", "Léelo otra vez")
    turn = await say(agent, "¿Y bien?" + " hola" * 5800)
    assert turn.record.estimate["before"] >= 9000
    steps = [(s.block, s.action) for s in turn.record.steps if s.block.startswith("tool_trace")]
    assert steps == [("tool_trace:2", "removed")]
    (result,) = [m for m in turn.request["messages"] if isinstance(m, ToolMessage)]
    assert result.text.startswith("ventas 12\nventas 12")


async def test_c_5_im_10_beyond_the_limit_read_only_results_go_and_actions_stay(
    open_agent: OpenAgent,
) -> None:
    asked = calls(("place_order", {"symbol": "AAPL"}), ("read_report", {}))
    model = ScriptedModel(replies=[asked, SHORT, SHORT])
    agent = await open_agent(model=model, tools=[place_order, report_of(280)])
    await say(agent, "Compra y lee el informe")
    turn = await say(agent, "¿Y bien?" + FILLER + " hola" * 500)
    assert [s.to_rung for s in turn.record.steps if s.block == "tool_trace:1"] == [
        "read-only results cleared"
    ]
    ordered, report = [m for m in turn.request["messages"] if isinstance(m, ToolMessage)]
    assert ordered.text == "ordered AAPL"
    assert "ventas" not in report.text and f"referencia {report.id}" in report.text
    (caller,) = [m for m in turn.request["messages"] if isinstance(m, AIMessage) and m.tool_calls]
    assert [call["args"] for call in caller.tool_calls] == [{"symbol": "AAPL"}, {}]


# The estimate


class TickingClock(SettableClock):
    """A clock that moves on by a second whenever it is read."""

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


class TimedModel(ScriptedModel):
    """Notes the clock at each of its calls."""

    clock: Any
    called: list[datetime] = Field(default_factory=list)

    def _next(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        self.called.append(self.clock())
        return super()._next(messages, kwargs)


async def test_rf_24_the_estimate_is_earlier_than_the_call(
    open_agent: OpenAgent, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="recuerdo")
    ticking = TickingClock()
    model = TimedModel(replies=[SHORT, RuntimeError("away")], clock=ticking)
    agent = await open_agent(model=model, clock=ticking)
    turn = await say(agent, "Hola")
    (called,) = model.called
    assert (
        datetime.fromisoformat(turn.record.at) < datetime.fromisoformat(turn.record.estimate["at"]) < called
    )
    with pytest.raises(ModelError):
        await say(agent, "Hola")
    logged = [r.getMessage() for r in caplog.records if "estimated_input_tokens=" in r.getMessage()]
    assert len(logged) == 2 and f"={turn.record.estimate['input_tokens']}" in logged[0]


# The order of the prompt


async def told(agent: Agent, clock: SettableClock) -> Any:
    """A turn whose request has memories, a summary, history, a position, an alert and an event."""
    clock.set("2025-12-04T10:00:00-06:00")
    await say(agent, "¿qué es RSI?", conversation="conv-0")
    clock.set(FRIDAY)
    await say(agent, STOP, *[f"Mi precio objetivo de AAPL es {200 + n}" for n in range(4)])
    return await say(agent, "¿recuerdas lo que te dije del RSI? ¿Y mi posición de TSLA?")


STABLE_END = load_plan("trading").instructions[-1]


@pytest.mark.parametrize("layout", ["tail_system", "tail_user", "single"])
async def test_or_17_the_stable_part_ends_before_any_memory_event_summary_or_history(
    open_agent: OpenAgent, clock: SettableClock, layout: str
) -> None:
    pack = "Ficha de producto: la comisión es 0,1 %"
    plan = window_of(6)
    plan = plan.model_copy(update={"instructions": (*plan.instructions, pack)})
    model = ScriptedModel(replies=["El RSI mide la fuerza del precio."])
    agent = await open_agent(model=model, plan=plan, settings={"layout": layout})
    text = whole((await told(agent, clock)).request)
    end = text.index(pack) + len(pack)
    later = ["<memories>\n", "<summary>\n", "<events>\n", "<user>\n", "<preferences>\n"]
    for start in (*later, "Mi precio objetivo de AAPL es 203"):
        assert text.index(start) > end


@pytest.mark.parametrize("layout", ["tail_system", "tail_user"])
async def test_c_22_the_order_of_the_prompt(open_agent: OpenAgent, clock: SettableClock, layout: str) -> None:
    model = ScriptedModel(replies=["El RSI mide la fuerza del precio."])
    agent = await open_agent(model=model, plan=window_of(6), settings={"layout": layout})
    text = whole((await told(agent, clock)).request)
    order = (
        "# Rol\n",
        STABLE_END,
        "<user>\n",
        "<preferences>\n",
        "<summary>\n",
        "Mi precio objetivo de AAPL es 203",
        "<market>\n",
        "<portfolio>\n",
        "<alerts>\n",
        "<memories>\n",
        "La pregunta se refiere a: TSLA",
        "¿recuerdas lo que te dije del RSI?",
    )
    places = [text.index(start) for start in order]
    assert places == sorted(places)
    assert text.endswith("¿Y mi posición de TSLA?")


@pytest.mark.parametrize("layout", ["tail_system", "tail_user", "single"])
async def test_c_22_im_14_or_18_a_minute_and_a_new_event_leave_the_stable_part_alone(
    open_agent: OpenAgent, clock: SettableClock, layout: str
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SHORT]), settings={"layout": layout})
    first = whole((await say(agent, "¿Cómo va AAPL?")).request)
    clock.forward(seconds=60)
    await seed(agent, sample(events=[*SAMPLE["events"], {**DISTANT, "date": "2025-12-08"}]))
    second = whole((await say(agent, "¿Cómo va AAPL?")).request)
    assert ", 10:30 (" in first and ", 10:31 (" in second and "GDP" in second
    end = first.index(STABLE_END) + len(STABLE_END)
    assert second.encode().startswith(first[:end].encode())


# The record


class Away:
    """A source that does not answer."""

    name = "events"

    async def fetch(self, query: Any) -> Any:
        raise ConnectionError


async def test_im_35_an_entry_for_every_provider(house: House, clock: SettableClock) -> None:
    async with house.open() as agent:
        await seed(agent, sample(profiles=[{**PROFILE, "subscription": "free"}]))
    async with house.open(sources=[Away()]) as agent:
        record = (await say(agent, "¿Cómo va AAPL?")).record
    asked = {provider["name"]: provider for provider in record.providers}
    assert set(asked) == {
        *("profile", "quotes", "positions", "alerts", "signals", "education", "events", "calendar"),
        *("preferences", "interests", "history", "memories"),
    }
    assert len(record.providers) == len(asked)
    assert all(provider["ms"] >= 0 for provider in asked.values())
    status = {name: provider["status"] for name, provider in asked.items()}
    assert (status["quotes"], status["memories"]) == ("ok", "empty")
    assert (status["events"], status["signals"]) == ("unavailable", "skipped")
    tokens = {b.name: b.tokens for b in record.blocks}
    assert asked["quotes"]["tokens"] == tokens["quotes:AAPL"] + tokens["other_quotes"] > 0
    assert asked["profile"]["tokens"] == tokens["user"] > 0
    assert asked["calendar"]["tokens"] == tokens["market"] > 0
    assert asked["events"]["tokens"] == asked["memories"]["tokens"] == 0
