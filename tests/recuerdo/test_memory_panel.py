"""What the memory panel's settings do, through the real agent (LA-2 to LA-17, LA-7, C-1, C-4, C-5, C-13, C-14, C-28,
C-30, A-17, A-22, IM-10, IM-15)."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, tool

from recuerdo.agent import Agent
from recuerdo.panel import Panel
from recuerdo.state.errors import ModelError, ScopeError
from recuerdo.state.key_events import EventFilter, NewEvent, Origin, Owner
from recuerdo.state.plan import EventType, KeyEventSettings, Plan, Summary
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.audit import read_audit
from recuerdo.stores.postgres.key_events import PostgresKeyEvents
from tests.recuerdo.carlos import CARLOS, TENANT, House, dialogue, prompt
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

ENABLED, ROUNDS, FULL = "memory.short_term.enabled", "memory.short_term.rounds", "memory.full_context.rounds"
SAID = "Bien."


@tool
def get_price(symbol: str) -> str:
    """The price of a symbol."""
    return f"PRECIO-{symbol}"


@tool
def place_order(symbol: str) -> str:
    """Place an order."""
    return f"ORDEN-{symbol}"


@tool
def broken_feed(symbol: str) -> str:
    """A feed that is down."""
    raise ValueError("feed down")


@tool
def long_report() -> str:
    """A report of 200 kB."""
    return "ventas " * 28_600


get_price.metadata = {"read_only": True}


def asking(*wanted: tuple[str, dict[str, Any]], text: str = "") -> AIMessage:
    made = [
        {"name": name, "args": args, "id": f"call-{place}", "type": "tool_call"}
        for place, (name, args) in enumerate(wanted)
    ]
    return AIMessage(text, tool_calls=made)


def price(symbol: str, text: str = "") -> AIMessage:
    return asking(("get_price", {"symbol": symbol}), text=text)


def plan_of(**changes: Any) -> Plan:
    """The trading plan with other settings of the panel; no summary takes a reply of the model's."""
    paths = {"enabled": ENABLED, "rounds": ROUNDS, "full": FULL}
    plan = Panel(load_plan("trading")).changed({paths[name]: value for name, value in changes.items()}).plan
    memory = plan.memory.model_copy(update={"summary": Summary(by="extractive")})
    return plan.model_copy(update={"memory": memory})


async def talk(
    open_agent: OpenAgent,
    replies: Sequence[Any],
    texts: Sequence[str],
    plan: Plan | None = None,
    tools: Sequence[BaseTool] = (get_price, place_order, broken_feed, long_report),
) -> Any:
    """Play one turn a text; returns the last turn."""
    agent = await open_agent(model=ScriptedModel(replies=list(replies)), plan=plan or plan_of(), tools=tools)
    turn = None
    for text in texts:
        turn = await agent.send(text, user="u", conversation="c")
    return turn


def results(request: Any) -> list[str]:
    return [str(m.text) for m in request["messages"] if isinstance(m, ToolMessage)]


def asked_for(request: Any) -> list[dict[str, Any]]:
    return [c["args"] for m in request["messages"] if isinstance(m, AIMessage) for c in m.tool_calls]


async def test_la_2_la_3_of_five_rounds_two_are_sent(open_agent: OpenAgent) -> None:
    turn = await talk(open_agent, [SAID], [f"Pregunta {n}" for n in range(1, 7)], plan_of(rounds=2))
    questions = [text for text in dialogue(turn.request) if text.startswith("Pregunta")]
    assert questions == ["Pregunta 4", "Pregunta 5", "Pregunta 6"]


async def test_la_5_c_30_off_sends_no_text_of_an_earlier_round_and_the_history_still_grows(
    open_agent: OpenAgent,
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[SAID]), plan=plan_of(enabled=False))
    for number in range(12):
        await agent.send(f"Me llamo Ana {number}", user=CARLOS, conversation="c")
    turn = await agent.send("¿Cómo me llamo?", user=CARLOS, conversation="c")
    assert dialogue(turn.request) == ["¿Cómo me llamo?"]
    assert "Ana" not in str(turn.request["messages"]), (
        "neither history, nor summary, nor what was learnt of it"
    )
    assert len(await agent.conversations.get("c", user=CARLOS)) == 26
    other = await agent.send("¿Cómo me llamo?", user=CARLOS, conversation="d")
    assert "Ana" in prompt(other.request), "long-term memory of other conversations is another thing"


async def test_la_5_c_28_off_nothing_that_comes_from_an_earlier_round_is_sent(open_agent: OpenAgent) -> None:
    texts = ["¿Cómo va NVDA?", "¿Y su volumen?"]
    agent = await open_agent(model=ScriptedModel(replies=[SAID]), plan=plan_of(enabled=False))
    for text in texts:
        off = await agent.send(text, user="u", conversation="c")
    assert off.record.symbols == [] and "NVDA" not in str(off.request["messages"])
    block = {block.name for block in off.record.blocks}
    assert "conversation" in block and "conversation_so_far" not in block
    alone = await agent.send(texts[1], user="u", conversation="d")
    assert dialogue(alone.request) == dialogue(off.request)
    agent = await open_agent(model=ScriptedModel(replies=[SAID]), plan=plan_of())
    for text in texts:
        on = await agent.send(text, user="u", conversation="e")
    assert on.record.symbols == ["NVDA"] and "NVDA" in prompt(on.request)


@pytest.mark.parametrize("tools_called", [False, True])
@pytest.mark.parametrize("full", [0, 1])
async def test_la_3_with_one_round_what_broke_off_does_not_push_the_last_answer_out(
    open_agent: OpenAgent, tools_called: bool, full: int
) -> None:
    broken: list[Any] = [price("MSFT")] if tools_called else []
    model = ScriptedModel(replies=[SAID, *broken, ConnectionError("down"), "Sigo aquí."])
    agent = await open_agent(model=model, plan=plan_of(rounds=1, full=full), tools=[get_price])
    await agent.send("Me llamo Ana", user="u", conversation="c")
    with pytest.raises(ModelError):
        await agent.send("¿Y MSFT?", user="u", conversation="c")
    turn = await agent.send("¿Cómo me llamo?", user="u", conversation="c")
    said = [text for text in dialogue(turn.request) if text]
    assert said[0] == "Me llamo Ana" and said[1].startswith(SAID)
    assert said[2:] == ["¿Y MSFT?", "¿Cómo me llamo?"]
    empty = [m for m in turn.request["messages"] if not str(m.text).strip()]
    assert all(isinstance(m, AIMessage) and m.tool_calls for m in empty), "no empty message"
    assert len(empty) == (tools_called and full)
    assert results(turn.request) == ["PRECIO-MSFT"] * (tools_called and full)
    last = await agent.send("¿Y ahora?", user="u", conversation="c")
    assert "Me llamo Ana" not in dialogue(last.request), "one finished round"


async def test_la_8_la_9_la_12_only_the_newest_round_has_its_trace(open_agent: OpenAgent) -> None:
    replies = [x for n in (1, 2, 3) for x in (price(f"S{n}"), f"Respuesta {n}")] + [SAID]
    texts = ["uno", "dos", "tres", "cuatro"]
    turn = await talk(open_agent, replies, texts, plan_of(full=1))
    assert results(turn.request) == ["PRECIO-S3"] and asked_for(turn.request) == [{"symbol": "S3"}]
    whole = str(turn.request["messages"])
    assert "Respuesta 1" in whole and "uno" in whole
    assert "S1" not in whole and "S2" not in whole
    none = await talk(open_agent, replies, [f"{text} más" for text in texts], plan_of(full=0))
    assert results(none.request)[-1:] == []


async def test_la_14_la_15_by_rounds_not_by_replies(open_agent: OpenAgent) -> None:
    first = [price("A1"), price("A2"), SAID]
    second = [price("B1", "Miro."), price("B2", "Sigo."), price("B3"), SAID]
    third = [price("C1"), SAID]
    turn = await talk(
        open_agent, [*first, *second, *third, SAID], ["uno", "dos", "tres", "cuatro"], plan_of(full=2)
    )
    assert results(turn.request) == [f"PRECIO-{one}" for one in ("B1", "B2", "B3", "C1")]


async def test_la_15_parallel_calls_of_which_one_fails_are_one_trace(open_agent: OpenAgent) -> None:
    both = asking(("get_price", {"symbol": "A"}), ("broken_feed", {"symbol": "B"}))
    turn = await talk(open_agent, [both, SAID, SAID], ["uno", "dos"], plan_of(full=1))
    assert len(results(turn.request)) == 2 and asked_for(turn.request) == [{"symbol": "A"}, {"symbol": "B"}]
    off = await talk(open_agent, [both, SAID, SAID], ["tres", "cuatro"], plan_of(full=0))
    assert results(off.request) == []


async def test_c_13_the_five_newest_traces_and_not_the_sixth(open_agent: OpenAgent) -> None:
    replies = [x for n in range(1, 7) for x in (price(f"S{n}"), SAID)] + [SAID]
    turn = await talk(open_agent, replies, [f"ronda {n}" for n in range(1, 8)], plan_of(full=5))
    assert results(turn.request) == [f"PRECIO-S{n}" for n in range(2, 7)]
    assert "S1" not in str(turn.request["messages"])


async def test_c_28_off_with_full_context_sends_no_trace_and_the_value_stays(open_agent: OpenAgent) -> None:
    plan = plan_of(enabled=False, full=5)
    turn = await talk(open_agent, [price("A"), SAID, SAID], ["uno", "dos"], plan)
    assert results(turn.request) == [] and dialogue(turn.request) == ["dos"]
    assert plan.memory.full_context.rounds == 5


async def test_c_28_more_traces_than_rounds_are_as_many_as_there_are(open_agent: OpenAgent) -> None:
    replies = [x for n in range(1, 4) for x in (price(f"S{n}"), SAID)] + [SAID]
    turn = await talk(open_agent, replies, [f"ronda {n}" for n in range(1, 5)], plan_of(rounds=1, full=5))
    assert results(turn.request) == ["PRECIO-S3"]


async def test_la_17_five_rounds_of_traces_cost_more_than_one(open_agent: OpenAgent) -> None:
    replies = [x for n in range(1, 6) for x in (price(f"S{n}"), SAID)] + [SAID]
    texts = [f"ronda {n}" for n in range(1, 7)]
    tokens = []
    for full in (1, 5):
        agent = await open_agent(
            model=ScriptedModel(replies=list(replies)), plan=plan_of(full=full), tools=[get_price]
        )
        for text in texts:
            turn = await agent.send(text, user="u", conversation=f"full-{full}")
        tokens.append(turn.record.estimate["input_tokens"])
    assert tokens[1] > tokens[0]


async def test_la_15_c_5_a_result_of_200_kb_is_carried_whole_or_not_at_all(open_agent: OpenAgent) -> None:
    turn = await talk(open_agent, [asking(("long_report", {})), SAID, SAID], ["uno", "dos"], plan_of(full=1))
    assert turn.record.estimate["input_tokens"] <= 8000
    assert len(results(turn.request)) == len(asked_for(turn.request))


async def test_c_1_c_4_thirty_rounds_are_twenty_messages_and_the_last_three_verbatim(
    open_agent: OpenAgent,
) -> None:
    texts = [f"Mi dato {n}" for n in range(1, 32)]
    turn = await talk(open_agent, [SAID], texts)
    said = dialogue(turn.request)
    assert len(said) <= 20 and said[-1] == "Mi dato 31" and said[-3] == "Mi dato 30"
    assert said[0].startswith("Mi dato"), "whole rounds"
    assert turn.record.summary_covers + len(said) >= 61


async def test_a_17_a_round_whose_turn_failed_is_not_torn(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=[price("A"), ConnectionError("down"), SAID, SAID])
    agent = await open_agent(model=model, plan=plan_of(full=2), tools=[get_price])
    with pytest.raises(Exception, match=r".+"):
        await agent.send("uno", user="u", conversation="c")
    await agent.send("dos", user="u", conversation="c")
    turn = await agent.send("tres", user="u", conversation="c")
    assert len(results(turn.request)) == len(asked_for(turn.request))
    assert [text for text in dialogue(turn.request) if text in ("uno", "dos", "tres")] == [
        "uno",
        "dos",
        "tres",
    ]


# Preview


TYPES = (EventType(name="Reembolso", description="Pide su dinero."),)


def with_events(agent_type: str = "loop") -> Plan:
    changes: dict[str, Any] = {
        "key_events": KeyEventSettings(enabled=True, types=TYPES),
        "agent_type": agent_type,
    }
    return load_plan("trading").model_copy(update=changes)


async def tables(agent: Agent) -> dict[str, list[str]]:
    """Every row of every table that has a tenant, and LangGraph's checkpoints; turns of previews apart."""
    kept: dict[str, list[str]] = {}
    async with agent.services.database.connection() as connection:
        cursor = await connection.execute(
            "select c.table_schema || '.' || c.table_name as name from information_schema.columns c"
            " join information_schema.tables t using (table_schema, table_name)"
            " where c.table_schema in ('recuerdo', 'public') and t.table_type = 'BASE TABLE'"
            " and c.column_name in ('tenant', 'thread_id')"
        )
        names = sorted(row["name"] for row in await cursor.fetchall())
        assert {"recuerdo.key_events", "recuerdo.user_memory", "recuerdo.user_symbols"} <= set(names)
        for name in names:
            where = " where mode = 'live'" if name == "recuerdo.turns" else ""
            cursor = await connection.execute(f"select t::text as row from {name} t{where}")  # type: ignore[arg-type]
            kept[name] = sorted(row["row"] for row in await cursor.fetchall())
    return kept


def remembering(call: str = "c0") -> list[Any]:
    """What a model does that writes to every memory that it can reach."""
    event = asking(("create_key_event", {"event_type": "Reembolso", "summary": "Espera su dinero"}))
    memory = asking(("MemoryTool", {"operation": "add", "text": "Prefiere la ventanilla del piso dos"}))
    return [event, memory, SAID]


SECRET = (
    "Recuerda que prefiero la ventanilla. Usa siempre velas de 1d. ¿Cómo va NVDA? #MEMORY# llamar los lunes"
)


@pytest.mark.parametrize("agent_type", ["loop", "agent"])
async def test_la_7_c_14_im_15_a_preview_leaves_its_usage_and_nothing_else_in_any_table(
    open_agent: OpenAgent, house: House, agent_type: str
) -> None:
    live = await open_agent(model=ScriptedModel(replies=[SAID]), plan=with_events(agent_type))
    await live.send("siempre mostrar disclaimer", user=CARLOS, conversation="c")
    owner, origin = Owner(CARLOS, "c"), Origin(live.services.clock(), CARLOS, "c")
    events = PostgresKeyEvents(live.services.database, TENANT, live.assistant)
    event = await events.create(owner, NewEvent("Reembolso", "Asunto abierto"), origin)
    before = await tables(live)
    model = ScriptedModel(replies=remembering())
    async with house.open(model=model, plan=with_events(agent_type), mode="preview") as preview:
        first = await preview.send(SECRET, user=CARLOS, conversation="c")
        model.replies[:] = [*[SAID] * len(model.calls), SAID]
        second = await preview.send("¿Qué te acabo de decir?", user=CARLOS, conversation="c")
    assert await tables(live) == before
    assert dialogue(second.request) == ["¿Qué te acabo de decir?"], "a clean context each time"
    for turn in (first, second):
        asked = prompt(turn.requests[0])
        assert (
            turn.record.memory == "empty (preview)"
            and turn.record.model_dump()["memory"] == "empty (preview)"
        )
        assert turn.record.memories == turn.record.events == [] and turn.record.learnt == []
        assert str(event.id) not in asked and "<memories>" not in asked and "<preferences>" not in asked
    async with live.services.database.tenant(TENANT) as connection:
        cursor = await connection.execute("select mode, usage from recuerdo.turns where mode = 'preview'")
        billed = await cursor.fetchall()
    assert len(billed) == 2 and all(row["usage"]["total"] > 0 for row in billed)
    after = await live.send("¿Qué recuerdas de mí?", user=CARLOS, conversation="c")
    assert after.record.memory == "in use" and after.record.events == [str(event.id)]
    for leak in ("ventanilla", "lunes", "velas de 1d", "Espera su dinero"):
        assert leak not in str(after.request["messages"])
    assert "NVDA" not in str(after.context.get("symbols_of_interest", ""))


#


def refund() -> AIMessage:
    return asking(("create_key_event", {"event_type": "Reembolso", "summary": "El pedido 4471 no llegó"}))


async def test_a_22_an_identified_user_claims_a_conversation_that_began_anonymously(
    open_agent: OpenAgent,
) -> None:
    model = ScriptedModel(replies=[refund(), SAID, "Hola, Carlos."])
    agent = await open_agent(model=model, plan=with_events())
    await agent.send("No me llegó el pedido 4471", conversation="S1")
    turn = await agent.send("Soy Carlos", user=CARLOS, conversation="S1")
    assert dialogue(turn.request)[0] == "No me llegó el pedido 4471", "the same conversation goes on"
    (event_id,) = turn.record.events
    kept = await agent.conversations.get("S1", user=CARLOS)
    assert [m.content for m in kept if m.role == "user"] == ["No me llegó el pedido 4471", "Soy Carlos"]
    assert [one.id for one in await agent.conversations.list(user=CARLOS)] == ["S1"]
    elsewhere = await agent.send("¿Y mi pedido?", user=CARLOS, conversation="S2")
    assert elsewhere.record.events == [event_id]
    events = PostgresKeyEvents(agent.services.database, TENANT, agent.assistant)
    page = await events.query(Owner(CARLOS, None), EventFilter(), agent.services.clock())
    assert [(r.action, r.actor) for r in page.events[0].history or ()] == [
        ("created", "S1"),
        ("adopted", CARLOS),
    ]
    entries = await read_audit(agent.services.database, TENANT, "conversations", "S1")
    assert [(entry.action, entry.actor) for entry in entries] == [("adopted", CARLOS)]


async def test_a_22_a_claimed_conversation_is_closed_to_others_and_to_the_anonymous(
    open_agent: OpenAgent,
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[refund(), SAID]), plan=with_events())
    await agent.send("No me llegó el pedido 4471", conversation="S1")
    await agent.send("Soy Carlos", user=CARLOS, conversation="S1")
    before = await tables(agent)
    for user in ("otra", None):
        with pytest.raises(ScopeError):
            await agent.send("¿Qué pasó?", user=user, conversation="S1")
        assert list(await agent.conversations.get("S1", user=user)) == []
        assert await agent.conversations.info("S1", user=user) is None
    assert await tables(agent) == before
    assert (await agent.send("¿Qué pasó?", conversation="S3")).record.events == []


async def test_a_22_another_assistant_does_not_claim_it_and_a_preview_leaves_it_anonymous(
    open_agent: OpenAgent, house: House
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[refund(), SAID]), plan=with_events())
    await agent.send("No me llegó el pedido 4471", conversation="S1")
    other = await open_agent(model=ScriptedModel(replies=[SAID]), plan=with_events(), assistant="otro")
    with pytest.raises(ScopeError):
        await other.send("Hola", user=CARLOS, conversation="S1")
    async with house.open(model=ScriptedModel(replies=[SAID]), plan=with_events(), mode="preview") as preview:
        await preview.send("Soy Carlos", user=CARLOS, conversation="S1")
    assert await agent.conversations.info("S1", user=None) is not None
    assert (await agent.send("¿Y?", conversation="S1")).record.number == 2
