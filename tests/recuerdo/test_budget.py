"""The hard limit in a running agent: what gives way, what is refused, and what a refusal says (RF-34, C-3)."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, tool

from recuerdo.agent import Agent
from recuerdo.graph.turn import TurnContext
from recuerdo.state.errors import BudgetError, ModelError, SettingsError
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.checkpoints import thread_of
from recuerdo.stores.tokens import TokenCounter
from tests.recuerdo.carlos import CARLOS, CONVERSATION, TENANT, House, dialogue
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel
from tests.wire import wire_tokens

HARD_LIMIT = 8000
LAYOUTS = ["tail_system", "tail_user", "single"]

count = TokenCounter().count


async def say(agent: Agent, text: str, conversation: str = CONVERSATION) -> Any:
    return await agent.send(text, user=CARLOS, conversation=conversation)


def asks(name: str, *arguments: dict[str, Any]) -> AIMessage:
    """A reply that calls one tool with each of the arguments, side by side."""
    asked = [{"name": name, "args": args, "id": f"call-{n}"} for n, args in enumerate(arguments)]
    return AIMessage("", tool_calls=asked)


def results(request: Any) -> list[ToolMessage]:
    return [message for message in request["messages"] if isinstance(message, ToolMessage)]


def asked(request: Any) -> list[Any]:
    """Arguments of every call that the request shows."""
    replies = [message for message in request["messages"] if isinstance(message, AIMessage)]
    return [call["args"] for reply in replies for call in reply.tool_calls]


def assert_within_the_limit(turn: Any) -> None:
    for request in turn.requests:
        tokens = wire_tokens(request["messages"], count, request["tools"])
        assert tokens <= request["input_tokens"] <= HARD_LIMIT


def assert_paired(messages: list[AnyMessage]) -> None:
    calls = [c["id"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
    assert calls == [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]


@tool
def place_order(number: int) -> str:
    """Place an order."""
    return f"order {number} placed " + "con bastante texto de la operación " * 400


@tool
def news(about: str) -> str:
    """Read the news."""
    return "lorem ipsum dolor " * 20_000


news.metadata = {"read_only": True}


@tool
def save_note(body: str) -> str:
    """Save a note."""
    return "saved"


# Steps of the present turn


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_c_26_rf_34_a_turn_of_many_actions_ends_with_its_answer(
    open_agent: OpenAgent, layout: str
) -> None:
    steps = [asks("place_order", {"number": n}) for n in range(8)]
    model = ScriptedModel(replies=[*steps, "Hecho."])
    turn = await say(
        await open_agent(model=model, tools=[place_order], settings={"layout": layout}), "Haz 8 órdenes"
    )
    assert turn.reply.startswith("Hecho.")
    assert_within_the_limit(turn)
    assert asked(turn.request) == [{"number": n} for n in range(8)]
    assert_paired(turn.request["messages"])
    texts = [str(result.content) for result in results(turn.request)]
    assert all(text.startswith(f"order {n} placed") for n, text in enumerate(texts))
    assert all("referencia" in text for text in texts)
    assert count(texts[0]) < 200 < count(texts[-1])


@pytest.mark.parametrize("number", [2, 5, 8, 24])
@pytest.mark.parametrize("called", [news, place_order])
async def test_c_26_rf_34_parallel_results_share_the_step(
    open_agent: OpenAgent, number: int, called: BaseTool
) -> None:
    arguments = [{"about": str(n)} if called is news else {"number": n} for n in range(number)]
    model = ScriptedModel(replies=[asks(called.name, *arguments), "Comparado."])
    turn = await say(await open_agent(model=model, tools=[called]), "Compara")
    assert turn.reply.startswith("Comparado.")
    assert_within_the_limit(turn)
    shown = [str(result.content) for result in results(turn.request)]
    assert len(shown) == number and all("referencia" in text for text in shown)
    assert max(map(count, shown)) <= 1500
    assert sum(map(count, shown)) <= 4000


@pytest.mark.parametrize("tokens", [3000, 5500])
async def test_c_26_rf_34_results_take_the_room_that_is_left(open_agent: OpenAgent, tokens: int) -> None:
    model = ScriptedModel(replies=[asks("news", *[{"about": str(n)} for n in range(4)]), "Comparado."])
    message = "hola " * tokens
    turn = await say(await open_agent(model=model, tools=[news]), message)
    assert turn.reply.startswith("Comparado.")
    assert_within_the_limit(turn)
    assert message in str([m for m in turn.request["messages"] if isinstance(m, HumanMessage)][-1].content)


@pytest.mark.parametrize(
    "body", ['{"a": "b\\n\\"c\\"", "x": [1, 2]}\n' * 100, 'if x["á"] == \'b\':\n\tprint("ñ", "\\n")\n' * 90]
)
async def test_rf_34_calls_are_counted_as_they_are_sent(open_agent: OpenAgent, body: str) -> None:
    model = ScriptedModel(replies=[asks("save_note", {"body": body}), "Guardado."])
    agent = await open_agent(model=model, tools=[save_note])
    turn = await say(agent, "Guarda esto")
    assert_within_the_limit(turn)
    assert turn.requests[1]["input_tokens"] > count(body)


# A turn that fails after its actions ran


async def test_im_10_c_3_a_turn_that_ran_out_of_room_leaves_its_actions_to_the_next(
    open_agent: OpenAgent,
) -> None:
    body = "texto de una nota muy larga " * 500
    model = ScriptedModel(
        replies=[asks("place_order", {"number": 7}), *[asks("save_note", {"body": body})] * 3]
    )
    agent = await open_agent(model=model, tools=[place_order, save_note])
    with pytest.raises(BudgetError, match=r"tool_step:\d \d+.*smaller steps"):
        await say(agent, "Ordena y guarda")
    model.replies = ["Sigo."]
    state = (
        await agent.graph.aget_state({"configurable": {"thread_id": thread_of(TENANT, CONVERSATION)}})
    ).values
    assert_paired(state["messages"])
    assert [m.type for m in state["messages"]][:3] == ["human", "ai", "tool"]
    assert (await say(agent, "¿Sigues?")).reply.startswith("Sigo.")


async def test_im_10_a_failed_turn_s_actions_are_known_to_the_next(open_agent: OpenAgent) -> None:
    steps = [asks("place_order", {"number": n}) for n in range(6)]
    model = ScriptedModel(replies=[*steps, RuntimeError("away"), "Hice seis."])
    agent = await open_agent(model=model, tools=[place_order])
    with pytest.raises(ModelError):
        await say(agent, "Haz 6 órdenes")
    turn = await say(agent, "¿Qué hiciste?")
    assert_within_the_limit(turn)
    assert asked(turn.request) == [{"number": n} for n in range(6)]
    assert_paired(turn.request["messages"])
    references = [
        str(result.content).rsplit("referencia ", 1)[1].rstrip(")") for result in results(turn.request)
    ]
    assert references == [result.id for result in results(turn.request)]


# Critical content over the limit


async def test_c_3_rf_56_a_conversation_of_too_long_messages_says_how_to_go_on(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=["palabra larga de texto " * 380])
    agent = await open_agent(model=model)
    long = "hola " * 6500
    assert dialogue((await say(agent, long)).request) == [long]
    model.replies = ["Bien."]
    for text in ("hola", "gracias"):
        with pytest.raises(BudgetError, match=r"8000.*last_messages \d+.*start a new one or clear") as error:
            await say(agent, text)
        assert "empieza otra o borra esta" in error.value.sentence.es
    assert (await say(agent, "hola", conversation="another")).reply.startswith("Bien.")
    await agent.conversations.clear(CONVERSATION, user=CARLOS)
    assert (await say(agent, "hola")).reply.startswith("Bien.")


async def test_c_3_rf_34_a_message_that_is_too_long_is_to_be_shortened(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Bien."]))
    with pytest.raises(BudgetError, match=r"8000.*: message 9\d{3}.*Shorten the message") as error:
        await say(agent, "hola " * 9000)
    assert "Acorta el mensaje" in error.value.sentence.es


# Tools


def verbose_tools(number: int) -> list[BaseTool]:
    """Tools whose schemas take about 200 tokens each."""

    def run(text: str) -> str:
        return text

    described = "Una herramienta que hace algo. " * 25
    return [StructuredTool.from_function(run, name=f"tool_{n}", description=described) for n in range(number)]


async def test_rf_34_large_tools_are_named_as_the_cause(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Bien."]), tools=verbose_tools(25))
    with pytest.raises(BudgetError, match=r"8000.*: tools \d{4}.*Use fewer tools") as error:
        await say(agent, "hola " * 3500)
    assert "Usa menos herramientas" in error.value.sentence.es


async def test_rf_34_tools_that_leave_no_room_are_refused_when_the_agent_opens(house: House) -> None:
    with pytest.raises(SettingsError, match=r"trading.*8000.*fewer tools") as error:
        async with house.open(model=ScriptedModel(replies=["Bien."]), tools=verbose_tools(60)):
            pytest.fail("it must not open")
    assert "menos herramientas" in error.value.sentence.es


async def test_rf_34_so_is_a_role_that_leaves_no_room(house: House) -> None:
    plan = load_plan("trading").model_copy(update={"role": "Ayudas al usuario. " * 3000})
    with pytest.raises(SettingsError, match="8000"):
        async with house.open(model=ScriptedModel(replies=["Bien."]), plan=plan):
            pytest.fail("it must not open")


# What is not text


IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}


async def send_to_graph(agent: Agent, *messages: AnyMessage) -> Any:
    return await agent.graph.ainvoke(
        {"messages": list(messages)},
        {"configurable": {"thread_id": thread_of(TENANT, CONVERSATION)}},
        context=TurnContext(user=CARLOS, conversation=CONVERSATION, tenant=TENANT),
    )


@pytest.mark.parametrize(
    "messages",
    [
        [HumanMessage([{"type": "text", "text": "hola"}, IMAGE])],
        [HumanMessage([IMAGE])],
        [HumanMessage([IMAGE]), AIMessage("Bonita."), HumanMessage("¿Qué era?")],
    ],
)
async def test_rf_34_what_cannot_be_counted_is_refused(
    open_agent: OpenAgent, messages: list[AnyMessage]
) -> None:
    model = ScriptedModel(replies=["Bien."])
    agent = await open_agent(model=model)
    state = await send_to_graph(agent, *messages)
    assert state["error"]["kind"] == "InputError" and "Only text" in state["error"]["en"]
    assert "Solo se admite texto" in state["error"]["es"]
    assert model.calls == []
    assert not [message for message in state["messages"] if isinstance(message, HumanMessage)]
    assert (await say(agent, "hola")).reply.startswith("Bien.")


async def test_rf_34_text_in_parts_is_text(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=["Bien."])
    state = await send_to_graph(
        await open_agent(model=model), HumanMessage([{"type": "text", "text": "hola "}, "otra vez"])
    )
    assert state["error"] is None and str(state["messages"][-1].text).startswith("Bien.")
