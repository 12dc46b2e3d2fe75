"""Rounds, what of them is shown, and what leaves the window (LA-2 to LA-15, RF-3, RF-30, C-1, A-1, A-17)."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from recuerdo.state.plan import FullContext, Memory, ShortTerm
from recuerdo.state.rounds import (
    chat_count,
    is_chat_text,
    plain,
    split_rounds,
    visible_history,
    whole_trace,
    window_cut,
)
from tests.state.generated import (
    ToolStep,
    Turn,
    assert_calls_answered,
    memories,
    newest_finished,
    thread_of,
    threads,
)

TOOLS = Turn(steps=(ToolStep(),))


def panel(rounds: int = 30, cap: int | None = 20, full_context: int = 1, *, enabled: bool = True) -> Memory:
    return Memory(
        short_term=ShortTerm(enabled=enabled, rounds=rounds, max_messages=cap),
        full_context=FullContext(rounds=full_context),
    )


def flat(rounds: Sequence[Sequence[AnyMessage]]) -> list[AnyMessage]:
    return [message for messages in rounds for message in messages]


def ids(messages: Sequence[AnyMessage]) -> list[str | None]:
    return [message.id for message in messages]


def texts(messages: Sequence[AnyMessage]) -> list[str]:
    return [str(message.text) for message in messages]


def has_trace(messages: Sequence[AnyMessage]) -> bool:
    return any(isinstance(m, ToolMessage) or getattr(m, "tool_calls", None) for m in messages)


@given(threads)
def test_a_17_splitting_loses_nothing_and_each_round_starts_with_a_question(thread: list[AnyMessage]) -> None:
    rounds = split_rounds(thread)
    assert flat(rounds) == thread
    assert all(rounds)
    for place, messages in enumerate(rounds):
        kinds = [isinstance(message, HumanMessage) for message in messages]
        assert kinds[0] or place == 0
        assert kinds == sorted(kinds, reverse=True), "questions stand together at the start of a round"


def test_la_3_one_question_and_one_answer_are_one_round() -> None:
    thread = thread_of([Turn(), Turn()])
    assert [len(messages) for messages in split_rounds(thread)] == [2, 2]


def test_a_17_queued_questions_are_one_round_and_a_greeting_is_its_own() -> None:
    thread = thread_of([Turn(questions=3), Turn(answered=False), Turn()], proactive=True)
    assert [len(messages) for messages in split_rounds(thread)] == [1, 4, 3]


def test_a_41_tool_calls_and_results_do_not_count() -> None:
    thread = thread_of([Turn(steps=(ToolStep(calls=2, text=True), ToolStep()))])
    assert len(thread) == 7
    assert chat_count(thread) == 3
    assert not is_chat_text(AIMessage(""))


@given(threads)
def test_la_8_plain_rounds_keep_all_texts_and_no_trace(thread: list[AnyMessage]) -> None:
    shown = plain(thread)
    assert ids(shown) == ids([message for message in thread if is_chat_text(message)])
    assert texts(shown) == texts([message for message in thread if is_chat_text(message)])
    assert not has_trace(shown)


@given(threads, memories)
def test_rf_3_rf_30_the_newest_rounds_are_shown_under_the_cap_the_current_message_included(
    thread: list[AnyMessage], memory: Memory
) -> None:
    cap = memory.short_term.max_messages
    shown = flat(visible_history(thread, memory))
    said = plain(thread)
    assert cap is None or chat_count(shown) <= cap - 1
    assert ids(plain(shown)) == ids(said[len(said) - chat_count(shown) :]), (
        "the newest, none left out between"
    )


@given(threads, memories)
def test_rf_3_whole_rounds_as_many_as_fit(thread: list[AnyMessage], memory: Memory) -> None:
    cap = memory.short_term.max_messages
    visible = visible_history(thread, memory)
    candidates = newest_finished(split_rounds(thread), memory.short_term.rounds)
    rounds = [messages for messages in map(plain, candidates) if messages]
    if not rounds:
        assert visible == []
        return
    if cap is not None and len(rounds[-1]) >= cap:
        assert [ids(messages) for messages in visible] == [ids(rounds[-1])[-(cap - 1) :]]
        return
    assert [ids(plain(messages)) for messages in visible] == [ids(r) for r in rounds[-len(visible) :]]
    left_out = rounds[: -len(visible)]
    assert not left_out or (cap is not None and chat_count(flat(visible)) + len(left_out[-1]) >= cap)


@given(threads, memories)
def test_no_tool_result_stands_without_its_call_nor_the_reverse(
    thread: list[AnyMessage], memory: Memory
) -> None:
    assert_calls_answered(flat(visible_history(thread, memory)))


@given(threads, memories)
def test_la_14_la_15_a_round_carries_its_whole_trace_or_none(
    thread: list[AnyMessage], memory: Memory
) -> None:
    by_first = {messages[-1].id: messages for messages in split_rounds(thread)}
    traced = [messages for messages in visible_history(thread, memory) if has_trace(messages)]
    assert len(traced) <= memory.full_context.rounds
    for messages in traced:
        assert messages == by_first[messages[-1].id]
        assert whole_trace(messages)


@given(threads, memories)
def test_c_1_the_window_never_splits_a_round_and_leaves_a_place_for_the_next_message(
    thread: list[AnyMessage], memory: Memory
) -> None:
    cap = memory.short_term.max_messages
    rounds = split_rounds(thread)
    cut = window_cut(thread, memory)
    staying = thread[cut:]
    assert cut in {sum(map(len, rounds[:place])) for place in range(len(rounds) + 1)}
    assert newest_finished(split_rounds(staying), memory.short_term.rounds) == split_rounds(staying)
    assert cap is None or chat_count(staying) < cap or staying == rounds[-1]
    assert not thread or staying


@given(threads, memories)
def test_c_1_what_stays_in_the_window_will_be_shown(thread: list[AnyMessage], memory: Memory) -> None:
    staying = thread[window_cut(thread, memory) :]
    shown = flat(visible_history(staying, memory))
    cap = memory.short_term.max_messages
    assert ids(plain(shown)) == ids(plain(staying)[-(cap - 1) if cap else 0 :])


@pytest.mark.parametrize(
    ("rounds", "leaving", "left"), [(9, 0, 18), (10, 10, 10), (11, 12, 10), (30, 50, 10)]
)
def test_c_1_the_full_window_is_cut_in_one_step_to_five_rounds(rounds: int, leaving: int, left: int) -> None:
    thread = thread_of([Turn()] * rounds)
    assert window_cut(thread, panel()) == leaving
    assert len(thread) - leaving == left


def test_rf_30_a_1_19_messages_are_all_shown_and_of_40_the_newest_rounds() -> None:
    nineteen = thread_of([Turn()] * 9, proactive=True)
    assert flat(visible_history(nineteen, panel())) == nineteen
    forty = thread_of([Turn()] * 20)
    assert flat(visible_history(forty, panel())) == forty[-18:]


def test_c_1_without_a_cap_rounds_alone_decide() -> None:
    thread = thread_of([Turn()] * 40)
    assert flat(visible_history(thread, panel(rounds=30, cap=None))) == thread[-60:]
    assert window_cut(thread, panel(rounds=30, cap=None)) == 20


def test_la_2_two_rounds_of_five() -> None:
    thread = thread_of([Turn()] * 5)
    assert flat(visible_history(thread, panel(rounds=2))) == thread[-4:]


def test_la_3_a_question_that_waits_counts_as_no_round() -> None:
    thread = thread_of([Turn(), Turn(), TOOLS, Turn(answered=False)])
    visible = visible_history(thread, panel(rounds=2, full_context=1))
    assert flat(visible) == thread[2:]
    assert has_trace(visible[1])


def test_c_28_off_shows_nothing() -> None:
    assert visible_history(thread_of([TOOLS] * 3), panel(enabled=False)) == []


def test_la_8_la_9_only_the_newest_round_carries_its_trace() -> None:
    thread = thread_of([TOOLS] * 3)
    first, second, third = visible_history(thread, panel(full_context=1))
    assert not has_trace([*first, *second])
    assert "get_price" not in str([*first, *second]) and "RESULTADO" not in str([*first, *second])
    assert third == thread[8:]
    assert third[1].tool_calls[0]["args"] == {"symbol": "AAPL"}  # type: ignore[union-attr]


def test_la_12_zero_shows_texts_only() -> None:
    thread = thread_of([TOOLS] * 3)
    visible = flat(visible_history(thread, panel(full_context=0)))
    assert not has_trace(visible)
    assert texts(visible) == texts(plain(thread))


def test_la_13_full_context_and_rounds_do_not_touch_each_other() -> None:
    thread = thread_of([TOOLS] * 8)
    for rounds in (5, 30):
        visible = visible_history(thread, panel(rounds=rounds, cap=None, full_context=3))
        assert [has_trace(messages) for messages in visible][-4:] == [False, True, True, True]
        assert len(visible) == min(rounds, 8)


def test_la_14_all_replies_of_a_round_carry_their_traces() -> None:
    thread = thread_of([Turn(), Turn(steps=(ToolStep(text=True), ToolStep(calls=2, text=True)))])
    assert visible_history(thread, panel(full_context=1))[-1] == thread[2:]


def test_la_15_by_rounds_not_by_replies() -> None:
    two, three = Turn(steps=(ToolStep(), ToolStep())), Turn(steps=(ToolStep(), ToolStep(), ToolStep()))
    visible = visible_history(thread_of([two, three, TOOLS]), panel(full_context=2))
    assert [has_trace(messages) for messages in visible] == [False, True, True]
    assert chat_count(flat(visible)) == 6


def test_la_15_a_trace_that_a_crash_tore_is_shown_by_none_of_its_parts() -> None:
    torn = Turn(steps=(ToolStep(), ToolStep(calls=2, lost=1, text=True)))
    visible = visible_history(thread_of([Turn(), torn]), panel(full_context=5))
    assert not has_trace(flat(visible))
    assert texts(visible[-1]) == ["Pregunta t1m0", "Miro t1m3", "Respuesta t1m5"]


def test_rf_56_a_round_larger_than_the_cap_is_not_forgotten() -> None:
    thread = thread_of([Turn(), *[Turn(answered=False)] * 25])
    shown = flat(visible_history(thread, panel()))
    assert shown == thread[-19:]
    answered = [*thread, AIMessage("Por fin", id="answer")]
    assert window_cut(answered, panel()) == 2
    assert flat(visible_history(answered[2:], panel())) == answered[-19:]
