"""Random conversations against a plain description of what the panel promises (LA-2 to LA-15, A-17, C-28)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from recuerdo.state.plan import FullContext, Memory, ShortTerm
from recuerdo.state.rounds import split_rounds, visible_history
from tests.state.generated import assert_calls_answered

BIG = "R" * 200_000
"""A tool result of 200 kB."""


@dataclass
class Step:
    """A reply with calls side by side. Of each call: its result came, came as an error, or was lost in a crash."""

    results: tuple[str, ...]
    text: str = ""


@dataclass
class Told:
    """A round as a person would tell it. ``after`` are proactive messages of the agent's once it had answered."""

    questions: int = 1
    steps: list[Step] = field(default_factory=list)
    answered: bool = True
    after: int = 0

    @property
    def torn(self) -> bool:
        return any("lost" in step.results for step in self.steps)

    @property
    def silent(self) -> bool:
        """Nothing was said after the questions: the next ones belong to the same round."""
        return not self.steps and not self.answered and not self.after


results = st.sampled_from(["ok", "ok", "error", "lost", "big"])
steps = st.builds(Step, st.lists(results, min_size=1, max_size=3).map(tuple), st.sampled_from(["", "Miro."]))
told = st.builds(
    Told,
    questions=st.integers(1, 3),
    steps=st.lists(steps, max_size=3),
    answered=st.sampled_from([True, True, False]),
    after=st.sampled_from([0, 0, 1]),
)
conversations = st.lists(told, max_size=12)
panels = st.builds(
    Memory,
    short_term=st.builds(
        ShortTerm,
        enabled=st.sampled_from([True, True, True, False]),
        rounds=st.sampled_from([1, 2, 5, 30, 200]),
        max_messages=st.none(),
    ),
    full_context=st.builds(FullContext, rounds=st.integers(0, 5)),
)


def messages_of(number: int, one: Told) -> list[AnyMessage]:
    """The round's messages. The ids of calls begin anew in each step, as those of some models do."""
    said: list[AnyMessage] = [HumanMessage(f"P{number}.{place}") for place in range(one.questions)]
    for step in one.steps:
        calls = [
            {"name": "get_price", "args": {"symbol": f"S{number}"}, "id": f"call_{place}"}
            for place in range(len(step.results))
        ]
        said.append(AIMessage(step.text, tool_calls=calls))
        for place, result in enumerate(step.results):
            if result != "lost":
                content = BIG if result == "big" else f"RESULTADO{number}"
                status = "error" if result == "error" else "success"
                said.append(ToolMessage(content, tool_call_id=f"call_{place}", status=status))
    said += [AIMessage(f"R{number}")] if one.answered else []
    return [*said, *(AIMessage(f"Aviso{number}") for _ in range(one.after))]


def thread_of(made: Sequence[Told]) -> list[AnyMessage]:
    return [message for number, one in enumerate(made) for message in messages_of(number, one)]


def rounds_of(made: Sequence[Told]) -> list[list[int]]:
    """Which of the told ones make up each round: questions that wait are joined by the next ones (A-17)."""
    rounds: list[list[int]] = []
    for number, _ in enumerate(made):
        if rounds and all(made[before].silent for before in rounds[-1]):
            rounds[-1].append(number)
        else:
            rounds.append([number])
    return rounds


def texts(messages: Sequence[AnyMessage]) -> list[str]:
    return [str(m.text) for m in messages if not isinstance(m, ToolMessage) and str(m.text)]


def traced(messages: Sequence[AnyMessage]) -> bool:
    return any(isinstance(m, ToolMessage) or getattr(m, "tool_calls", None) for m in messages)


@given(conversations, panels)
def test_la_2_la_8_la_9_la_15_a_17_c_28_the_panel_keeps_its_word(made: list[Told], panel: Memory) -> None:
    thread, rounds = thread_of(made), rounds_of(made)
    shown = visible_history(thread, panel)
    assert_calls_answered([message for messages in shown for message in messages])
    if not panel.short_term.enabled:
        assert shown == []
        return
    # What broke off without an answer counts as no round (LA-3).
    finished = [place for place, one in enumerate(rounds) if made[one[-1]].answered or made[one[-1]].after]
    kept = (
        rounds[finished[-panel.short_term.rounds] :] if len(finished) >= panel.short_term.rounds else rounds
    )
    waiting = int(bool(rounds) and all(made[number].silent for number in rounds[-1]))
    assert [texts(messages) for messages in shown] == [
        texts([m for number in one for m in messages_of(number, made[number])]) for one in kept
    ]
    spoken = len(kept) - waiting
    for place, (one, messages) in enumerate(zip(kept, shown, strict=True)):
        whole = [m for number in one for m in messages_of(number, made[number])]
        carries = spoken - panel.full_context.rounds <= place < spoken
        torn = any(made[number].torn for number in one)
        assert traced(messages) == (carries and not torn and traced(whole))
        if traced(messages):
            assert [m.model_dump() for m in messages] == [m.model_dump() for m in whole]


@given(conversations)
def test_la_3_a_17_rounds_are_counted_as_a_person_counts_them(made: list[Told]) -> None:
    assert len(split_rounds(thread_of(made))) == len(rounds_of(made))


def panel_of(rounds: int = 30, full: int = 1, *, enabled: bool = True) -> Memory:
    return Memory(
        short_term=ShortTerm(enabled=enabled, rounds=rounds, max_messages=None),
        full_context=FullContext(rounds=full),
    )


ONE_CALL = [Step(("ok",))]

CASES: dict[str, tuple[list[Told], Memory, list[bool]]] = {
    "la_14: three replies in a round, two with tools": (
        [Told(), Told(steps=[Step(("ok",), "Miro."), Step(("ok", "ok"), "Sigo.")])],
        panel_of(),
        [False, True],
    ),
    "la_15: two parallel calls of which one fails": (
        [Told(steps=ONE_CALL), Told(steps=[Step(("ok", "error"))])],
        panel_of(),
        [False, True],
    ),
    "la_15: a call without result after a crash": (
        [Told(steps=ONE_CALL), Told(steps=[Step(("ok", "lost"))], answered=False)],
        panel_of(full=2),
        [True, False],
    ),
    "la_15: a crash in the second of two steps whose calls have one id": (
        [Told(steps=[Step(("ok",)), Step(("lost",))], answered=False), Told()],
        panel_of(full=2),
        [False, False],
    ),
    "a_17: three messages before the first answer": (
        [Told(questions=3, steps=ONE_CALL), Told()],
        panel_of(full=2),
        [True, False],
    ),
    "a_17: a proactive message of the agent's ends no round": (
        [Told(steps=ONE_CALL, after=1), Told()],
        panel_of(full=2),
        [True, False],
    ),
    "la_2: one round": ([Told(steps=ONE_CALL), Told(steps=ONE_CALL)], panel_of(rounds=1), [True]),
    "c_28: full context larger than the rounds": (
        [Told(steps=ONE_CALL)] * 4,
        panel_of(rounds=2, full=5),
        [True, True],
    ),
    "la_5, c_28: off with full context 5": ([Told(steps=ONE_CALL)] * 3, panel_of(full=5, enabled=False), []),
    "c_13: five traces, and not the sixth": (
        [Told(steps=ONE_CALL)] * 7,
        panel_of(full=5),
        [False, False, True, True, True, True, True],
    ),
    "la_9: a result of 200 kB": ([Told(steps=[Step(("big",))])], panel_of(), [True]),
}


@pytest.mark.parametrize("case", CASES)
def test_la_14_la_15_c_13_c_28_a_17_cases_of_the_issue(case: str) -> None:
    made, panel, expected = CASES[case]
    shown = visible_history(thread_of(made), panel)
    assert [traced(messages) for messages in shown] == expected
    assert_calls_answered([message for messages in shown for message in messages])


def test_la_9_a_result_of_200_kb_is_whole() -> None:
    (shown,) = visible_history(thread_of([Told(steps=[Step(("big",))])]), panel_of())
    assert [str(m.text) for m in shown if isinstance(m, ToolMessage)] == [BIG]
