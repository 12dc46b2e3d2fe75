"""The extractive summary keeps what matters, within its tokens (RF-4, RF-5, RF-28, C-2)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from recuerdo.state.summary import extend_summary, shorten_summary

LANGUAGES = ["es", "en"]


def words(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]|\n", text))


def small_talk(messages: int) -> list[AnyMessage]:
    return [
        HumanMessage(f"¿Y qué opinas de la empresa {'abcdefghijklmnopqrstuvwxyz'[n % 26]} este año?")
        if n % 2 == 0
        else AIMessage("Depende de lo que busques. Conviene mirar sus cuentas con calma antes de decidir.")
        for n in range(messages)
    ]


said = st.lists(
    st.builds(
        lambda kind, text: kind(text),
        st.sampled_from([HumanMessage, AIMessage]),
        st.one_of(
            st.text("abcñ é.?!;\n 17", min_size=1, max_size=700),
            st.text(min_size=1, max_size=40),
            st.sampled_from(["mi objetivo es 10% anual", "gracias", "😀" * 300]),
        ).filter(lambda text: bool(text.strip())),
    ),
    min_size=1,
    max_size=8,
)


@given(said, st.sampled_from(LANGUAGES), st.integers(8, 400))
def test_never_above_its_tokens_and_never_empty(
    messages: list[AnyMessage], language: str, max_tokens: int
) -> None:
    summary = extend_summary("", messages, language, max_tokens, words)
    assert summary
    assert words(summary + "\n") <= max_tokens
    assert extend_summary("", messages, language, max_tokens, words) == summary


@given(said, said, st.sampled_from(LANGUAGES))
def test_with_room_enough_every_figure_of_old_and_new_survives(
    old: list[AnyMessage], new: list[AnyMessage], language: str
) -> None:
    first = extend_summary("", old, language, 100_000, words)
    summary = extend_summary(first, new, language, 100_000, words)
    digits = sorted(c for m in [*old, *new] for c in set(str(m.text)) if c.isdigit())
    assert set(digits) <= set(summary)
    assert set(first.splitlines()) <= set(summary.splitlines())


@given(said, st.integers(8, 200), st.integers(8, 200))
def test_a_shortened_summary_keeps_lines_of_it_in_their_order(
    messages: list[AnyMessage], max_tokens: int, shorter: int
) -> None:
    summary = extend_summary("", messages, "es", max_tokens, words)
    line = shorten_summary(summary, shorter, words)
    assert words(line + "\n") <= shorter
    kept = line.splitlines()
    assert len(kept) == 1 or kept == [part for part in summary.splitlines() if part in kept]


@pytest.mark.parametrize("language", LANGUAGES)
def test_rf_5_a_stop_loss_survives_24_messages(language: str) -> None:
    messages = [*small_talk(1), HumanMessage("mi stop-loss de AAPL es 170"), *small_talk(24)]
    summary = extend_summary("", messages, language, 400, words)
    assert "AAPL" in summary and "170" in summary


def test_rf_5_figures_win_over_small_talk_when_there_is_room_for_little() -> None:
    chat = [HumanMessage(f"me gusta bastante la empresa {letter}") for letter in "abcdefghijkl"]
    messages: list[AnyMessage] = [HumanMessage("el tope está en 170"), *chat]
    assert "170" in extend_summary("", messages, "es", 40, words)


def test_rf_28_a_goal_survives_30_messages_and_the_shortest_summary() -> None:
    messages = [*small_talk(2), HumanMessage("mi objetivo es 10% anual"), *small_talk(27)]
    summary = extend_summary("", messages, "es", 400, words)
    assert "10%" in summary
    assert "10%" in shorten_summary(summary, 40, words)


def test_rf_5_a_goal_survives_many_extensions() -> None:
    summary = extend_summary("", [HumanMessage("mi objetivo es 10% anual")], "es", 400, words)
    for _ in range(20):
        summary = extend_summary(summary, small_talk(26), "es", 400, words)
    assert "10%" in summary


def test_rf_5_a_figure_at_the_end_of_a_long_sentence_survives() -> None:
    rambling = "bueno pues como te iba contando ayer " * 20 + "mi stop-loss de AAPL es 170"
    messages = [HumanMessage(rambling), *small_talk(24)]
    summary = extend_summary("", messages, "es", 400, words)
    assert "AAPL" in summary and "170" in summary


def test_tool_results_are_not_part_of_what_was_said() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("¿Y AAPL?"),
        AIMessage("", tool_calls=[{"name": "get_price", "args": {}, "id": "c1"}]),
        ToolMessage("precio 185.50", tool_call_id="c1"),
        AIMessage("Sube un poco."),
    ]
    summary = extend_summary("", messages, "es", 400, words)
    assert summary == "- El usuario dijo: ¿Y AAPL?\n- El asistente respondió: Sube un poco."


def test_what_is_said_twice_stands_once() -> None:
    summary = extend_summary("", [HumanMessage("Quiero 10 AAPL.")], "es", 400, words)
    assert extend_summary(summary, [HumanMessage("Quiero 10 AAPL.")], "es", 400, words) == summary


def test_nothing_said_is_nothing() -> None:
    assert extend_summary("", [], "es", 400, words) == ""
    assert shorten_summary("", 400, words) == ""


def test_the_reply_language_writes_the_lines() -> None:
    assert (
        extend_summary("", [HumanMessage("I want 10 %")], "en", 400, words) == "- The user said: I want 10 %"
    )
