"""Plays a support conversation over two sessions: key events with a written model and everything else real (LA-18)."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import yaml
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage
from pydantic import AwareDatetime, BaseModel, ConfigDict

from recuerdo.demo.clock import DEMO_TENANT, running_from
from recuerdo.demo.written import WrittenReplies
from recuerdo.nodes.call_llm.local import newest_question
from recuerdo.opening import open_agent
from recuerdo.state.key_events import KeyEvent
from recuerdo.state.plan import Bilingual, Plan, read_plan
from recuerdo.state.tables import read_table
from recuerdo.turn import Turn

ACTOR = "demo"
"""Who looks at the events, for the audit."""

_PLACE = "{event}"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WrittenCall(_Part):
    """A call of a tool; ``{event}`` stands for the id of the event that was made before."""

    name: str
    args: dict[str, Any]


class WrittenRound(_Part):
    """What the user says, which tool the model calls for it, if any, and what it answers."""

    user: str
    assistant: str
    call: WrittenCall | None = None


class SupportSession(_Part):
    """One visit of the user's."""

    at: AwareDatetime
    title: Bilingual
    watch: Bilingual
    rounds: tuple[WrittenRound, ...]


class SupportScript(_Part):
    """The plan, the user and his visits."""

    plan: dict[str, Any]
    user: str
    sessions: tuple[SupportSession, ...]


@dataclass(frozen=True)
class SessionBegan:
    """The application was opened anew."""

    session: SupportSession
    user: str
    conversation: str


@dataclass(frozen=True)
class Said:
    """A turn is over. ``events`` are the lines of key events that stood in the prompt of its first request."""

    text: str
    turn: Turn
    events: Sequence[str]
    called: Sequence[str]


@dataclass(frozen=True)
class Kept:
    """The event as it is stored in the end, with its history."""

    event: KeyEvent


def play_events() -> Iterator[SessionBegan | Said | Kept]:
    """Play both sessions in new conversations; events of earlier runs stay as they were left, closed.

    Blocking. Raises what ``open_agent`` and ``send`` raise.
    """
    script = load_support()
    model = SupportModel(replies={}, rounds={one.user: one for s in script.sessions for one in s.rounds})
    for session in script.sessions:
        yield from _play(script, session, model)
    assert model.event_id is not None, "it was made in the first session"
    clock = running_from(script.sessions[-1].at)
    with open_agent(plan=_plan(script), tenant=DEMO_TENANT, model=model, clock=clock) as agent:
        event = agent.run_sync(agent.events.show(model.event_id, actor=ACTOR))
    assert event is not None, "it is of this tenant"
    yield Kept(event)


def load_support() -> SupportScript:
    """The script of the demo."""
    return SupportScript.model_validate(read_table(__package__, "events.yaml"))


def _plan(script: SupportScript) -> Plan:
    return read_plan(yaml.safe_dump(script.plan, allow_unicode=True), "events.yaml")


def _play(
    script: SupportScript, session: SupportSession, model: "SupportModel"
) -> Iterator[SessionBegan | Said]:
    conversation = str(uuid4())
    clock = running_from(session.at)
    with open_agent(plan=_plan(script), tenant=DEMO_TENANT, model=model, clock=clock) as agent:
        yield SessionBegan(session, script.user, conversation)
        for one in session.rounds:
            turn = agent.send_sync(one.user, user=script.user, conversation=conversation)
            yield Said(one.user, turn, _events_in(turn.requests[0]["messages"]), _called(turn))


def _events_in(messages: Sequence[AnyMessage]) -> list[str]:
    """The lines of the prompt's section of key events, without its label."""
    texts = "\n".join(str(message.text) for message in messages)
    _, opened, rest = texts.partition("<key_events>\n")
    return rest.partition("</key_events>")[0].splitlines()[1:] if opened else []


def _called(turn: Turn) -> list[str]:
    """The names of the tools that were called in the turn."""
    messages: list[AnyMessage] = turn.request["messages"]
    present = [m for m in messages[newest_question(messages) :] if isinstance(m, AIMessage)]
    return [call["name"] for message in present for call in message.tool_calls]


class SupportModel(WrittenReplies):
    """Calls the tool that is written for the user's message, then says what is written for it."""

    rounds: dict[str, WrittenRound]
    event_id: UUID | None = None

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """See LocalModel."""
        present = messages[newest_question(messages) :]
        # A layout may put the turn's context in front of the user's words.
        written = next(one for said, one in self.rounds.items() if str(present[0].text).endswith(said))
        results = [message for message in present if isinstance(message, ToolMessage)]
        if results:
            self._note(results[-1])
        return AIMessage(written.assistant) if results else self._called(written)

    def _called(self, written: WrittenRound) -> AIMessage:
        if written.call is None:
            return AIMessage(written.assistant)
        given = written.call.args.items()
        args = {name: str(self.event_id) if value == _PLACE else value for name, value in given}
        call = ToolCall(name=written.call.name, args=args, id=str(uuid4()), type="tool_call")
        return AIMessage("", tool_calls=[call])

    def _note(self, result: ToolMessage) -> None:
        if result.name == "create_key_event" and result.status == "success":
            self.event_id = UUID(json.loads(str(result.text))["event"]["id"])
