"""Arguments of a model's that no store can keep: the model is told, and the turn goes on (IM-13)."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from recuerdo.nodes.run_tools.requested import UNREADABLE, read_arguments
from recuerdo.state.plan import EventType, KeyEventSettings
from recuerdo.stores.plans import load_plan
from tests.recuerdo.carlos import CARLOS
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

REFUND = "Reembolso"
DEEP = '{"a": ' * 5000 + "1" + "}" * 5000


@tool
def anything(value: Any = None) -> str:
    """Take anything."""
    return f"TOMADO {value}"


def asking(*calls: tuple[str, dict[str, Any] | str]) -> AIMessage:
    """Calls side by side; a text is arguments as they come over the wire."""
    read = [(n, name, args) for n, (name, args) in enumerate(calls) if isinstance(args, dict)]
    raw = [(n, name, args) for n, (name, args) in enumerate(calls) if isinstance(args, str)]
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": args, "id": f"c{n}", "type": "tool_call"} for n, name, args in read
        ],
        invalid_tool_calls=[
            {"name": name, "args": args, "id": f"c{n}", "error": None, "type": "invalid_tool_call"}
            for n, name, args in raw
        ],
    )


WRONG = [
    ("create_key_event", '{"event_type": "Reembolso", "summary": "x", "confidence": NaN}'),
    ("create_key_event", '{"event_type": "Reembolso", "summary": "x", "confidence": -Infinity}'),
    ("create_key_event", '{"event_type": "Reembolso", "summary": "x", "confidence": 1e999}'),
    ("query_key_event", '{"offset": 1000000000000000000000000000000}'),
    ("query_key_event", '{"event_type": "a\\u0000"}'),
    ("update_key_event", '{"event_id": "\\ud800", "status": "CLOSED"}'),
    ("get_quote", '{"symbol": 36893488147419103232}'),
    ("read_tool_result", '{"reference": "x", "offset": -9223372036854775809}'),
    ("read_tool_result", '{"reference": "\\u0000"}'),
    ("anything", '{"value": {"a": [1, NaN]}}'),
    ("anything", '{"value": {"\\u0000": 1}}'),
    ("anything", DEEP),
    ("anything", '{"value": "a\0b'),
]


@pytest.mark.parametrize(("name", "args"), WRONG)
async def test_im_13_the_model_is_told_and_the_turn_goes_on_also_in_parallel_calls(
    open_agent: OpenAgent, name: str, args: str
) -> None:
    events = KeyEventSettings(enabled=True, types=(EventType(name=REFUND),))
    plan = load_plan("trading").model_copy(update={"key_events": events, "agent_type": "loop"})
    model = ScriptedModel(
        replies=[asking(("anything", {"value": 7}), (name, args)), "No pude.", "Sí, te escucho."]
    )
    agent = await open_agent(model=model, plan=plan, tools=[anything])
    turn = await agent.send("Quiero mi dinero", user=CARLOS, conversation="S1")
    assert turn.reply.startswith("No pude.")
    good, wrong = [m for m in turn.request["messages"] if isinstance(m, ToolMessage)]
    assert good.text == "TOMADO 7"
    assert wrong.status == "error" and wrong.name == name and len(wrong.text) <= 500
    assert "not valid JSON" in wrong.text and "64 bits" in wrong.text
    again = await agent.send("¿Me oyes?", user=CARLOS, conversation="S1")
    assert again.reply.startswith("Sí"), "the thread goes on from what was kept"
    kept = await agent.conversations.get("S1", user=CARLOS)
    assert [m.content for m in kept if m.role == "user"] == ["Quiero mi dinero", "¿Me oyes?"]


def test_im_13_what_can_be_kept_is_read_as_it_is() -> None:
    assert read_arguments(
        '{"a": [1.5, true, null, "ñ", 9223372036854775807], "b": {"c": -9223372036854775808}}'
    ) == {
        "a": [1.5, True, None, "ñ", 2**63 - 1],
        "b": {"c": -(2**63)},
    }
    for text in ("", "[1]", "1", "{", '{"a": NaN}', '{"a": 9223372036854775808}', DEEP):
        assert set(read_arguments(text)) == {UNREADABLE}


async def test_im_13_or_33_nobody_is_asked_about_a_call_that_must_fail(open_agent: OpenAgent) -> None:
    given: list[float] = []

    @tool
    def refund(amount: float) -> str:
        """Give money back."""
        given.append(amount)
        return "done"

    plan = load_plan("trading").model_copy(update={"four_eyes": ("refund",)})
    good = {"amount": 5}
    replies = [asking(("refund", {"amount": "abc"})), asking(("refund", {}), ("refund", good)), "Listo."]
    agent = await open_agent(model=ScriptedModel(replies=replies), plan=plan, tools=[refund])
    turn = await agent.send("Quiero mi dinero", user=CARLOS, conversation="S1")
    assert turn.pending is not None and turn.pending.arguments == good, "the one that fits is asked about"
    await agent.governance.roles.appoint_first_owner("olga")
    assert len(await agent.governance.approvals.list(actor="olga")) == 1
    done = await agent.resume(turn.pending, "approve", actor="olga")
    assert done.reply.startswith("Listo.") and given == [5.0]
    told = [m for m in done.request["messages"] if isinstance(m, ToolMessage)]
    assert [m.status for m in told] == ["error", "error", "success"]
    assert "amount: " in told[0].text and "Field required" in told[1].text


async def test_im_13_a_reply_that_no_store_takes_is_mended(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Hola\0 y \ud800 adiós", "Sí."]))
    turn = await agent.send("Hola", user=CARLOS, conversation="S1")
    assert turn.reply.startswith("Hola\ufffd y \ufffd adiós")
    assert (await agent.send("¿Y?", user=CARLOS, conversation="S1")).reply.startswith("Sí.")
