"""Turn by turn, every message is in the window or in the summary, never in neither (RF-3, RF-30, RF-31, C-1, C-2)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import add_messages

from recuerdo.nodes.build_context import history
from recuerdo.nodes.build_context.history import Past, history_blocks, present_blocks, split_present
from recuerdo.nodes.call import Call
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.nodes.update_memory import summarise
from recuerdo.nodes.update_memory.window import Window, move_window
from recuerdo.state.blocks import CountTokens, current
from recuerdo.state.fit import Budget, Fitted, fit
from recuerdo.state.plan import FullContext, Limits, Memory, Plan, ShortTerm, Summary
from recuerdo.state.rounds import chat_count, plain, split_rounds
from recuerdo.state.turn import TurnInfo, TurnState, Work
from recuerdo.stores.plans import load_plan
from recuerdo.stores.tokens import TokenCounter
from tests.state.generated import ToolStep, Turn, memories, messages_of, sound_turns

TRADING = load_plan("trading")
ROOMY = 1_000_000

counter = TokenCounter()


@dataclass
class Thread:
    """A conversation as the graph would keep it, without the graph: build, fit, answer, move the window."""

    plan: Plan
    count: CountTokens = counter.count
    state: TurnState = field(default_factory=lambda: TurnState(messages=[], summary=None, messages_count=0))
    said: list[AnyMessage] = field(default_factory=list)
    turns: int = 0

    def take(self, turn: Turn, budget: int = ROOMY) -> Fitted:
        """One turn. One that fails leaves only its question in the thread."""
        return self.add(messages_of(turn, self.turns), answered=turn.answered, budget=budget)

    def add(self, messages: list[AnyMessage], *, answered: bool = True, budget: int = ROOMY) -> Fitted:
        self.turns += 1
        fitted = self.fitted(messages[0], budget)
        kept = messages if answered else messages[:1]
        self.said += plain(kept)
        self.state["messages"] = [*self.state["messages"], *kept]
        if not answered:
            self.state["messages_count"] += chat_count(kept)
            return fitted
        moved = asyncio.run(move_window(self.state, self.work(str(messages[0].id), fitted), self.call))
        self.apply(moved)
        return fitted

    def fitted(self, question: AnyMessage, budget: int) -> Fitted:
        summary = self.state["summary"]
        past = Past(
            self.state["messages"], summary["text"] if summary and summary["left_window"] else "", "es"
        )
        blocks = [
            *history_blocks(past, self.plan, self.count),
            *present_blocks([question], "es", self.count),
        ]
        return fit(blocks, 0, Budget(budget, ROOMY))

    def work(self, message_id: str, fitted: Fitted) -> Work:
        turn = cast(TurnInfo, {"id": "t", "message_id": message_id, "language": "es"})
        return Work(turn=turn, blocks=fitted.blocks)

    @property
    def call(self) -> Call:
        services = SimpleNamespace(
            plan=self.plan, counter=SimpleNamespace(count=self.count), model=OfflineResponder()
        )
        return cast(Call, SimpleNamespace(services=services))

    def apply(self, moved: Window) -> None:
        removals = [RemoveMessage(id=str(message.id)) for message in moved.leaving]
        self.state["messages"] = cast("list[AnyMessage]", add_messages(self.state["messages"], removals))  # type: ignore[arg-type]
        self.state["summary"] = moved.summary
        self.state["messages_count"] = moved.messages_count

    @property
    def window(self) -> list[AnyMessage]:
        return plain(self.state["messages"])


def plan_with(memory: Memory, **limits: int) -> Plan:
    return TRADING.model_copy(update={"memory": memory, "limits": Limits(**limits)})


def ids(messages: Sequence[AnyMessage]) -> list[str]:
    return [str(message.id) for message in messages]


def note_ids(previous: str, messages: Sequence[AnyMessage], *_: Any) -> str:
    """Stands in for the summariser: a summary that lists whose words it was given, each time it was."""
    return " ".join([*previous.split(), *ids(plain(messages))])


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "extend_summary", note_ids)
    monkeypatch.setattr(summarise, "extend_summary", note_ids)
    monkeypatch.setattr(history, "shorten_summary", lambda summary, limit, count: summary)


def costly_messages(text: str) -> int:
    return 50 if text.startswith(("Pregunta", "Respuesta")) else 1


conversations = st.lists(st.tuples(sound_turns, st.sampled_from([ROOMY, ROOMY, 1, 200, 400])), max_size=25)
panels = st.builds(
    lambda memory, after: memory.model_copy(update={"summary": Summary(after_messages=after)}),
    memories,
    st.sampled_from([1, 6, 15]),
)


@pytest.mark.usefixtures("noted")
@given(conversations, panels)
def test_rf_3_c_1_every_message_is_in_the_window_or_covered_and_the_counts_say_so(
    turns: list[tuple[Turn, int]], memory: Memory
) -> None:
    thread = Thread(plan_with(memory), costly_messages)
    for turn, budget in turns:
        thread.take(turn, budget)
        summary = thread.state["summary"]
        listed = summary["text"].split() if summary else []
        covers, left = (summary["covers"], summary["left_window"]) if summary else (0, 0)
        assert thread.state["messages_count"] == len(thread.said)
        assert ids(thread.said[left:]) == ids(thread.window)
        assert listed == ids(thread.said[:covers])
        assert left <= covers <= len(thread.said)
        assert bool(summary) or len(thread.said) <= memory.summary.after_messages or not turn.answered


@pytest.mark.usefixtures("noted")
@given(conversations, panels)
def test_c_1_every_request_shows_each_message_verbatim_or_in_the_summary(
    turns: list[tuple[Turn, int]], memory: Memory
) -> None:
    thread = Thread(plan_with(memory), costly_messages)
    for turn, budget in turns:
        before = ids(thread.said)
        fitted = thread.take(turn, budget)
        rungs = [current(block) for block in fitted.blocks if block["section"] == "history"]
        verbatim = [name for rung in rungs for name in ids(rung["messages"])]
        summary = "\n".join(rung["text"] for rung in rungs).split()
        if all(rung["name"] != "removed" for rung in rungs):
            assert set(before) <= {*verbatim, *summary}
        cap = memory.short_term.max_messages
        shown = {m.id for rung in rungs for m in plain(rung["messages"])}
        assert cap is None or len(shown) < cap


@given(conversations, panels)
def test_c_1_the_window_holds_whole_rounds_under_the_cap(
    turns: list[tuple[Turn, int]], memory: Memory
) -> None:
    thread = Thread(plan_with(memory))
    cap = memory.short_term.max_messages
    for turn, budget in turns:
        thread.take(turn, budget)
        rounds = split_rounds(thread.state["messages"])
        assert not rounds or isinstance(rounds[0][0], HumanMessage)
        if turn.answered:
            assert cap is None or len(thread.window) < cap or len(rounds) == 1
            assert len(rounds) <= memory.short_term.rounds


def test_rf_31_c_2_no_summary_with_15_messages_one_with_16() -> None:
    thread = Thread(TRADING)
    thread.state["messages"] = [AIMessage("Buenos días", id="hello")]
    thread.state["messages_count"] = 1
    for _ in range(7):
        thread.take(Turn())
    assert thread.state["messages_count"] == 15
    assert thread.state["summary"] is None
    thread.take(Turn())
    summary = thread.state["summary"]
    assert summary is not None and summary["text"]
    assert summary["left_window"] == 0 and summary["covers"] == 7
    assert len(thread.window) == 17


def test_c_1_the_window_grows_to_the_cap_and_is_cut_in_one_step() -> None:
    thread = Thread(TRADING)
    sizes = []
    for _ in range(20):
        thread.take(Turn())
        sizes.append(len(thread.window))
    assert sizes == [2, 4, 6, 8, 10, 12, 14, 16, 18, 10, 12, 14, 16, 18, 10, 12, 14, 16, 18, 10]


def test_c_1_30_rounds_then_a_message_at_most_20_verbatim_and_the_summary_covers_the_rest() -> None:
    thread = Thread(TRADING)
    for _ in range(30):
        thread.take(Turn())
    summary = thread.state["summary"]
    assert summary is not None
    assert len(thread.window) + 1 <= 20
    assert summary["covers"] == 60 - len(thread.window)


def test_c_2_tokens_force_a_summary_before_16_messages() -> None:
    thread = Thread(TRADING)
    long = "el mercado sube y baja sin que nadie sepa bien por qué " * 60
    thread.add([HumanMessage(long, id="long"), AIMessage("Así es.", id="yes")])
    for _ in range(3):
        thread.take(Turn())
    fitted = thread.add([HumanMessage("¿Y?", id="and"), AIMessage("Nada.", id="no")], budget=1)
    assert fitted.steps
    summary = thread.state["summary"]
    assert summary is not None and thread.state["messages_count"] == 10
    assert summary["left_window"] == summary["covers"] > 0
    assert ids(thread.said[summary["left_window"] :]) == ids(thread.window)


def test_c_2_a_round_whose_text_is_still_verbatim_stays_in_the_window() -> None:
    thread = Thread(plan_with(Memory(full_context=FullContext(rounds=0))))
    long = "el mercado sube y baja sin que nadie sepa bien por qué " * 60
    thread.add([HumanMessage(long, id="long"), AIMessage("Así es.", id="yes")])
    thread.take(Turn())
    thread.take(Turn(steps=(ToolStep(),)))
    thread.take(Turn(), budget=1)
    assert ids(thread.window) == ["t1m0", "t1m1", "t2m0", "t2m3", "t3m0", "t3m1"]


def test_rf_3_after_many_failed_turns_nothing_is_forgotten() -> None:
    thread = Thread(TRADING)
    thread.add([HumanMessage("mi stop-loss de AAPL es 170", id="stop"), AIMessage("Anotado.", id="ok")])
    for _ in range(25):
        thread.take(Turn(answered=False))
    fitted = thread.take(Turn())
    shown = "\n".join(current(block)["text"] for block in fitted.blocks)
    assert "AAPL" in shown and "170" in shown
    verbatim = [m for b in fitted.blocks for m in current(b)["messages"]]
    assert len(verbatim) == 20
    after = thread.take(Turn())
    assert chat_count([m for b in after.blocks for m in current(b)["messages"]]) <= 20
    assert "170" in "\n".join(current(block)["text"] for block in after.blocks)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_c_1_fewer_rounds_leave_the_rest_to_the_summary(rounds: int) -> None:
    thread = Thread(plan_with(Memory(short_term=ShortTerm(rounds=rounds))))
    for _ in range(8):
        thread.take(Turn())
    summary = thread.state["summary"]
    assert summary is not None
    assert (len(thread.window), summary["left_window"]) == (2 * rounds, 16 - 2 * rounds)


def test_rf_5_rf_28_figures_survive_a_long_conversation() -> None:
    thread = Thread(TRADING)
    thread.add([HumanMessage("mi stop-loss de AAPL es 170", id="stop"), AIMessage("Anotado.", id="ok")])
    thread.add([HumanMessage("mi objetivo es 10% anual", id="goal"), AIMessage("Muy bien.", id="fine")])
    for number in range(40):
        question = HumanMessage(f"¿Y qué tal va la empresa {chr(97 + number % 26)}?", id=f"q{number}")
        thread.add([question, AIMessage("Depende de lo que busques, míralo con calma.", id=f"a{number}")])
    summary = thread.state["summary"]
    assert summary is not None
    assert all(part in summary["text"] for part in ("AAPL", "170", "10%"))


def test_rf_33_a_stored_summary_holds_nothing_sensitive() -> None:
    thread = Thread(TRADING)
    secret = "mi tarjeta es 4111 1111 1111 1111 y tengo 25000 USD en la cuenta 0123456789"
    thread.add(
        [HumanMessage(secret, id="card"), AIMessage("Tu tarjeta 4111 1111 1111 1111, de acuerdo.", id="a")]
    )
    for _ in range(12):
        thread.take(Turn())
    summary = thread.state["summary"]
    assert summary is not None and "[***]" in summary["text"]
    assert not any(part in summary["text"] for part in ("4111", "25000", "0123456789"))


STATEMENTS = ["mi stop-loss de AAPL es {}", "precio objetivo de TSLA: {}", "mi objetivo es {}% anual"]
SECRETS = ["mi tarjeta es 4111 1111 1111 1111", "tengo 25000 USD en la cuenta 0123456789", "¿qué tal?"]
statements = st.lists(
    st.tuples(st.sampled_from(STATEMENTS), st.integers(100, 999), st.sampled_from(SECRETS), sound_turns),
    min_size=1,
    max_size=20,
)


@given(statements)
def test_rf_5_rf_33_what_left_the_window_is_told_by_the_summary_and_nothing_sensitive_is(
    made: list[tuple[str, int, str, Turn]],
) -> None:
    thread = Thread(TRADING)
    held: dict[str, tuple[int, str]] = {}
    for number, (statement, value, secret, chat) in enumerate(made):
        text = statement.format(value)
        reply = AIMessage(f"De acuerdo. {secret}.", id=f"a{number}")
        thread.add([HumanMessage(f"{text}. {secret}.", id=f"q{number}"), reply])
        thread.take(chat)
        held[statement] = (number, text)
        summary = thread.state["summary"]
        in_window = ids(thread.window)
        for place, told in held.values():
            assert f"q{place}" in in_window or (summary and told in summary["text"])
        assert not summary or not any(part in summary["text"] for part in ("4111", "25000", "0123456789"))


def test_fault_20_the_question_of_a_round_with_tool_calls_is_not_lost() -> None:
    thread = Thread(TRADING)
    thread.take(Turn(steps=(ToolStep(), ToolStep(calls=3))))
    for _ in range(10):
        thread.take(Turn())
    summary = thread.state["summary"]
    assert summary is not None and "t0m0" not in ids(thread.window)
    assert "Pregunta t0m0" in summary["text"] and "RESULTADO" not in summary["text"]


def test_a_summary_that_covers_all_that_leaves_is_not_written_again() -> None:
    thread = Thread(plan_with(Memory(summary=Summary(after_messages=1))))
    for _ in range(8):
        thread.take(Turn())
    before = thread.state["summary"]
    assert before is not None
    thread.state["summary"] = {
        **before,
        "text": "- El usuario dijo: mi objetivo es 10%",
        "covers": before["left_window"] + 16,
    }
    thread.take(Turn())
    summary = thread.state["summary"]
    assert summary is not None and summary["text"] == "- El usuario dijo: mi objetivo es 10%"
    assert summary["left_window"] == 18 - len(thread.window)


def test_la_5_off_keeps_the_window_and_covers_what_leaves() -> None:
    thread = Thread(plan_with(Memory(short_term=ShortTerm(enabled=False))))
    for _ in range(12):
        thread.take(Turn())
    summary = thread.state["summary"]
    assert summary is not None
    assert summary["left_window"] + len(thread.window) == 24


def test_split_present_and_the_window_agree_on_what_is_new() -> None:
    thread = Thread(TRADING)
    thread.take(Turn())
    _, present = split_present(thread.state["messages"], "t0m0")
    assert chat_count(present) == thread.state["messages_count"] == 2
