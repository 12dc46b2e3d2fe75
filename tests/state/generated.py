"""Generated conversations and the Hypothesis profile of the property tests: always the same examples."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from recuerdo.state.plan import FullContext, Memory, ShortTerm

settings.register_profile("recuerdo", max_examples=100, deadline=None, derandomize=True, database=None)
settings.load_profile("recuerdo")


@dataclass(frozen=True)
class ToolStep:
    """A reply that calls tools side by side; ``lost`` results never came."""

    calls: int = 1
    text: bool = False
    lost: int = 0


@dataclass(frozen=True)
class Turn:
    """Questions sent together, the tool steps, and whether a final answer came."""

    questions: int = 1
    steps: tuple[ToolStep, ...] = ()
    answered: bool = True


tool_steps = st.builds(ToolStep, calls=st.integers(1, 3), text=st.booleans())
lost_steps = st.builds(ToolStep, calls=st.integers(1, 3), text=st.booleans(), lost=st.integers(1, 3))
quiet_turns = st.builds(Turn, steps=st.lists(tool_steps, max_size=3).map(tuple))
queued_turns = st.builds(Turn, questions=st.integers(2, 4), steps=st.lists(tool_steps, max_size=1).map(tuple))
crashed_turns = st.builds(Turn, steps=st.tuples(lost_steps), answered=st.booleans())
failed_turns = st.just(Turn(answered=False))
turns = st.one_of(st.just(Turn()), quiet_turns, quiet_turns, queued_turns, crashed_turns, failed_turns)
sound_turns = st.one_of(st.just(Turn()), quiet_turns, quiet_turns, failed_turns)

memories = st.builds(
    Memory,
    short_term=st.builds(
        ShortTerm,
        rounds=st.one_of(st.integers(1, 6), st.just(30)),
        max_messages=st.one_of(st.none(), st.integers(4, 9), st.just(20)),
    ),
    full_context=st.builds(FullContext, rounds=st.integers(0, 5)),
)


def messages_of(turn: Turn, number: int) -> list[AnyMessage]:
    """The messages of one turn, each with an id and a text of its own."""
    made: list[AnyMessage] = []

    def next_id() -> str:
        return f"t{number}m{len(made)}"

    for _ in range(turn.questions):
        made.append(HumanMessage(f"Pregunta {next_id()}", id=next_id()))
    for step in turn.steps:
        asked = next_id()
        calls = [_call(f"{asked}c{place}") for place in range(step.calls)]
        made.append(AIMessage(f"Miro {asked}" if step.text else "", id=asked, tool_calls=calls))
        for call in calls[: max(step.calls - step.lost, 0)]:
            result = f"RESULTADO {next_id()}"
            made.append(ToolMessage(result, id=next_id(), tool_call_id=call["id"], name="get_price"))
    if turn.answered:
        made.append(AIMessage(f"Respuesta {next_id()}", id=next_id()))
    return made


def _call(call_id: str) -> dict[str, object]:
    return {"name": "get_price", "args": {"symbol": "AAPL"}, "id": call_id}


def thread_of(made: Sequence[Turn], *, proactive: bool = False) -> list[AnyMessage]:
    """A whole conversation; a proactive one starts with words of the assistant's."""
    thread: list[AnyMessage] = [AIMessage("Buenos días", id="hello")] if proactive else []
    for number, turn in enumerate(made):
        thread += messages_of(turn, number)
    return thread


threads = st.builds(
    lambda made, proactive: thread_of(made, proactive=proactive), st.lists(turns, max_size=15), st.booleans()
)


def assert_calls_answered(messages: Sequence[AnyMessage]) -> None:
    """What providers demand: each call is followed by its results at once, and no result stands alone."""
    waiting: set[str | None] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in waiting, f"{message.id} has no call before it"
            waiting.discard(message.tool_call_id)
            continue
        assert not waiting, f"{waiting} never answered"
        if isinstance(message, AIMessage):
            waiting = {call["id"] for call in message.tool_calls}
    assert not waiting, f"{waiting} never answered"


def newest_finished(rounds: Sequence[list[AnyMessage]], count: int) -> list[list[AnyMessage]]:
    """From the newest ``count`` rounds that end with an answer on: those that broke off count as none (LA-3)."""
    left = count
    for place in range(len(rounds) - 1, -1, -1):
        newest = rounds[place][-1]
        left -= isinstance(newest, AIMessage) and not newest.tool_calls
        if not left:
            return list(rounds[place:])
    return list(rounds)
