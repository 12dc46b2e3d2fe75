"""One statement is learnt once: the memory tool and the learner on the same words (ET-9, ET-12, RF-7, OR-3)."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from recuerdo.agent import Agent
from recuerdo.graph import turn as turn_graph
from recuerdo.nodes.call import Call
from recuerdo.nodes.run_tools import node
from recuerdo.state.turn import TurnState, TurnUpdate
from recuerdo.stores.postgres.roles import Roles
from recuerdo.turn import Turn
from tests.recuerdo.carlos import CARLOS, CONVERSATION, House
from tests.recuerdo.conftest import OpenAgent
from tests.recuerdo.test_four_eyes import SARA
from tests.recuerdo.test_four_eyes import staff as staff  # a fixture
from tests.recuerdo.test_memory import rows
from tests.recuerdo.test_memory_in_agent import ASK, calls_tool, plan_with, say, scripted, texts, tool_answers
from tests.scripted import ScriptedModel

CAR = "El coche pasa la revisión en mayo"
NOTED = "Apunta que el coche pasa la revisión en mayo"


class Reader(ScriptedModel):
    """A reply that is a function is given the request, so that it can name an id that the tool has given."""

    def _next(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        reply = self.replies[min(len(self.calls), len(self.replies) - 1)]
        if callable(reply):
            self.replies[len(self.calls)] = reply(messages)
        return super()._next(messages, kwargs)


def of_last_id(**arguments: Any) -> Callable[[list[BaseMessage]], AIMessage]:
    """A call for the memory whose id the tool gave last."""

    def call(messages: list[BaseMessage]) -> AIMessage:
        answer = next(str(m.text) for m in reversed(messages) if m.type == "tool")
        asked = calls_tool(memory_id=answer.split("memory_id: ")[-1][:36], **arguments)
        asked.tool_calls[0]["id"] = "call-2"
        return asked

    return call


def given_id(turn: Turn) -> str:
    return tool_answers(turn)[0]["result"].split("memory_id: ")[-1][:36]


async def opened(open_agent: OpenAgent, *replies: Any, **memory: Any) -> tuple[Agent, Reader]:
    model = Reader(replies=[*replies, "Hecho"])
    return await open_agent(plan=plan_with(**memory), model=model), model


@pytest.mark.parametrize(
    ("said", "saved"),
    [
        (NOTED, CAR),
        (NOTED, "El coche del usuario pasa la revisión en mayo"),
        (NOTED, "Revisión del coche en mayo"),
        (NOTED, "El coche del usuario pasa la revisión en mayo en Lugo, según dijo"),
        (NOTED, "ITV del coche en mayo"),
        ("Ahora vivo en Vigo", "Vive en Vigo"),
        ("Ya no vivo en Lugo, ahora vivo en Vigo", "El usuario vive en Vigo"),
        ("Please remember that my car has its inspection in May", "The user's car inspection is in May"),
    ],
)
async def test_et_9_the_id_that_the_tool_gave_is_good_in_later_turns(
    open_agent: OpenAgent, said: str, saved: str
) -> None:
    agent, model = await opened(open_agent, calls_tool(mode="add", memory=saved))
    given = given_id(await say(agent, said))
    assert [(str(m.id), m.text) for m in await agent.memory.list(user=CARLOS)] == [(given, saved)]
    scripted(model, calls_tool(mode="update", memory_id=given, memory="Tiene una moto"), "Hecho")
    assert "Memory updated" in tool_answers(await say(agent, "¿Qué tal?"))[-1]["result"]
    assert await texts(agent) == ["Tiene una moto"]
    scripted(model, calls_tool(mode="delete", memory_id=given), "Hecho")
    assert "deleted" in tool_answers(await say(agent, "¿Y hoy?"))[-1]["result"]
    assert await texts(agent) == []


@pytest.mark.parametrize("agent_type", ["loop", "agent", "flow"])
async def test_et_9_it_is_so_for_every_type_of_agent(open_agent: OpenAgent, agent_type: str) -> None:
    plan = plan_with().model_copy(update={"agent_type": agent_type})
    model = ScriptedModel(replies=[calls_tool(mode="add", memory="Revisión del coche en mayo"), "Hecho"])
    agent = await open_agent(plan=plan, model=model)
    given = given_id(await say(agent, NOTED))
    assert [str(m.id) for m in await agent.memory.list(user=CARLOS)] == [given]


async def test_et_9_what_the_tool_adds_and_updates_in_one_turn_keeps_its_id(open_agent: OpenAgent) -> None:
    better = "El coche pasa la revisión en mayo, en Lugo"
    agent, _ = await opened(
        open_agent, calls_tool(mode="add", memory=CAR), of_last_id(mode="update", memory=better)
    )
    given = given_id(await say(agent, NOTED))
    assert [(str(m.id), m.text) for m in await agent.memory.list(user=CARLOS)] == [(given, better)]


async def test_et_9_et_12_an_update_of_the_turn_is_not_replaced(open_agent: OpenAgent) -> None:
    agent, model = await opened(open_agent)
    old = await agent.memory.remember(CAR, user=CARLOS, metadata={"tags": ["coche"]})
    update = calls_tool(mode="update", memory_id=str(old.id), memory="Revisión del coche en junio")
    scripted(model, update, "Hecho")
    turn = await say(agent, "Apunta que el coche pasa la revisión en junio")
    (kept,) = await agent.memory.list(user=CARLOS)
    assert (kept.id, kept.text, kept.metadata) == (old.id, "Revisión del coche en junio", {"tags": ["coche"]})
    assert turn.record.learnt == []
    assert [(one.type, one.value) for one in turn.record.confirmed] == [("memory", str(old.id))]


async def test_et_9_the_text_before_an_update_is_not_learnt_again(open_agent: OpenAgent) -> None:
    agent, model = await opened(open_agent)
    old = await agent.memory.remember(CAR, user=CARLOS)
    update = calls_tool(mode="update", memory_id=str(old.id), memory="Cita en el taller en verano")
    scripted(model, update, "Hecho")
    await say(agent, f"{NOTED}. Mejor en verano")
    assert await texts(agent) == ["Cita en el taller en verano"]


@pytest.mark.parametrize("memory", [{}, ASK])
async def test_et_9_a_memory_that_the_tool_deleted_is_not_learnt_again(
    open_agent: OpenAgent, memory: dict[str, Any]
) -> None:
    agent, model = await opened(open_agent, **memory)
    old = await agent.memory.remember("Es vegetariano", user=CARLOS)
    scripted(model, calls_tool(mode="delete", memory_id=str(old.id)), "Hecho")
    turn = await say(agent, "Soy vegetariano. Bueno, borra eso")
    assert await texts(agent) == []
    assert "¿Lo recuerdo?" not in turn.reply


async def test_et_9_what_was_added_and_deleted_in_one_turn_is_not_learnt(open_agent: OpenAgent) -> None:
    agent, _ = await opened(open_agent, calls_tool(mode="add", memory=CAR), of_last_id(mode="delete"))
    await say(agent, f"{NOTED}. Bueno, borra eso")
    assert await texts(agent) == []


async def test_et_9_a_new_value_is_learnt_though_the_tool_deleted_the_old_one(open_agent: OpenAgent) -> None:
    agent, model = await opened(open_agent)
    old = await agent.memory.remember("Vive en Lugo", user=CARLOS)
    scripted(model, calls_tool(mode="delete", memory_id=str(old.id)), "Hecho")
    await say(agent, "Ahora vivo en Vigo")
    assert await texts(agent) == ["Ahora vivo en Vigo"]


async def test_et_9_what_the_same_words_replace_goes_all_the_same(open_agent: OpenAgent) -> None:
    agent, _ = await opened(open_agent, calls_tool(mode="add", memory="Vive en Vigo"))
    old = await agent.memory.remember("Vivo en Lugo", user=CARLOS)
    turn = await say(agent, "Ahora vivo en Vigo")
    assert await texts(agent) == ["Vive en Vigo"]
    assert [one.value for one in turn.record.forgotten] == [str(old.id)]


@pytest.mark.parametrize(
    ("said", "saved", "learnt"),
    [
        (f"{NOTED}. Soy alérgico a las plumas.", CAR, "Soy alérgico a las plumas"),
        (
            f"{NOTED}. Apunta que la moto pasa la revisión en mayo.",
            "Revisión del coche en mayo",
            "la moto pasa la revisión en mayo",
        ),
        (
            "Apunta que la reunión del lunes es a las 9. Apunta que la reunión del martes es a las 10.",
            "La reunión del lunes es a las 9",
            "la reunión del martes es a las 10",
        ),
        ("Apunta que no como carne", "Vive en Lugo", "no como carne"),
    ],
)
async def test_et_9_what_the_tool_did_not_save_is_learnt(
    open_agent: OpenAgent, said: str, saved: str, learnt: str
) -> None:
    agent, _ = await opened(open_agent, calls_tool(mode="add", memory=saved))
    given = given_id(await say(agent, said))
    stored = {memory.text: str(memory.id) for memory in await agent.memory.list(user=CARLOS)}
    assert set(stored) == {saved, learnt}
    assert stored[saved] == given


async def test_et_9_c_8_what_the_user_said_is_his_word_though_the_tool_inferred_it(
    open_agent: OpenAgent,
) -> None:
    agent, _ = await opened(open_agent, calls_tool(mode="add", memory=CAR), by_tool="inferred")
    given = given_id(await say(agent, NOTED))
    assert [(str(m.id), m.status) for m in await agent.memory.list(user=CARLOS)] == [(given, "confirmed")]


# Preferences


async def preference(agent: Agent) -> Any:
    return (await agent.memory.preferences(user=CARLOS))["preferred_timeframe"].value


async def test_et_9_rf_7_a_preference_is_learnt_and_the_tools_memory_of_it_stays(
    open_agent: OpenAgent,
) -> None:
    agent, model = await opened(open_agent, calls_tool(mode="add", memory="Prefiere velas de 1d"))
    given = given_id(await say(agent, "usa siempre velas de 1d"))
    assert await preference(agent) == "1d"
    assert [str(m.id) for m in await agent.memory.list(user=CARLOS)] == [given]
    scripted(model, calls_tool(mode="delete", memory_id=given), "Hecho")
    assert "deleted" in tool_answers(await say(agent, "¿Qué tal?"))[-1]["result"]


@pytest.mark.parametrize(
    ("said", "kept"), [("Prefiero velas de 1d. Bueno, borra eso", "4h"), ("Prefiero velas de 1h", "1h")]
)
async def test_et_9_rf_7_a_preference_that_the_tool_deleted_is_not_learnt_again_but_another_is(
    open_agent: OpenAgent, said: str, kept: str
) -> None:
    agent, model = await opened(open_agent)
    old = await agent.memory.remember("Usa siempre velas de 1d", user=CARLOS)
    scripted(model, calls_tool(mode="delete", memory_id=str(old.id)), "Hecho")
    await say(agent, said)
    assert await texts(agent) == []
    assert await preference(agent) == kept


# Turns that stop and go on


async def test_et_9_or_33_it_is_so_in_a_turn_that_waited_for_a_second_person(
    open_agent: OpenAgent, staff: Roles, house: House
) -> None:
    plan = plan_with().model_copy(update={"four_eyes": ("MemoryTool",)})
    model = ScriptedModel(replies=[calls_tool(mode="add", memory="Revisión del coche en mayo"), "Hecho"])
    agent = await open_agent(plan=plan, model=model)
    waiting = await say(agent, NOTED)
    assert waiting.pending is not None
    assert await texts(agent) == []
    house.clock.forward(hours=2)
    done = await agent.resume(waiting.pending, "approve", actor=SARA)
    assert [str(m.id) for m in await agent.memory.list(user=CARLOS)] == [given_id(done)]


async def test_et_9_a_call_that_ran_before_the_turn_broke_off_counts_too(
    open_agent: OpenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = []

    async def run_tools(state: TurnState, call: Call) -> TurnUpdate:
        """As when the process dies after the call and before its checkpoint: the node runs again."""
        for _ in range(2):
            update = await node.run_tools(state, call)
            edits.append((update["work"] or {}).get("memory_edits"))
        return update

    monkeypatch.setattr(turn_graph, "run_tools", run_tools)
    agent, _ = await opened(open_agent, calls_tool(mode="add", memory="Revisión del coche en mayo"))
    given = given_id(await say(agent, NOTED))
    assert edits == [[{"id": given, "before": None}]] * 2
    assert [str(m.id) for m in await agent.memory.list(user=CARLOS)] == [given]


async def test_or_3_et_9_what_the_tool_deleted_stays_in_no_state(open_agent: OpenAgent) -> None:
    agent, model = await opened(open_agent)
    old = await agent.memory.remember("Colecciona sellos", user=CARLOS)
    scripted(model, calls_tool(mode="delete", memory_id=str(old.id)), "Hecho")
    turn = await say(agent, "Olvida mi afición")
    assert await agent.level_1(CONVERSATION, user=CARLOS) is None
    assert "sellos" not in turn.record.model_dump_json()
    kept = await rows(agent, "select blob from checkpoint_blobs union all select blob from checkpoint_writes")
    assert kept != []
    assert [row for row in kept if b"sellos" in (row["blob"] or b"")] == []
