"""Kinds of data that a message asks for by name, in whatever phrase."""

import pytest

from recuerdo.nodes.build_context.asked import asked_kinds


@pytest.mark.parametrize(
    "text",
    [
        "señales de AAPL",
        "Señal para AAPL",
        "quiero señales",
        "dame una señal",
        "¿Qué predice el modelo?",
        "¿Cuál es el pronóstico?",
        "signals",
        "AAPL signals",
        "Is there a signal for AAPL?",
        "What does the model predict",
        "any forecast for TSLA?",
    ],
)
def test_rf_16_a_6_signals_are_heard_by_the_word_whatever_the_phrase(text: str) -> None:
    assert asked_kinds(text) == {"signals"}


@pytest.mark.parametrize(
    "text",
    [
        "no dio señales de vida",
        "señal de alarma",
        "hay señales de recesión",
        "me quedé sin señal",
        "es buena señal que suba",
        "the traffic signal was red",
        "no signal on my phone",
        "precio de AAPL",
    ],
)
def test_rf_16_other_signals_ask_for_none(text: str) -> None:
    assert asked_kinds(text) == frozenset()
