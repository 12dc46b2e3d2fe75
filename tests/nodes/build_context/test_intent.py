"""The intent with its confidence: clear words high, a default low (OR-5, A-33)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recuerdo.nodes.build_context.intent import CLEAR, LIKELY, UNKNOWN, read_intent


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("¿Debería comprar AAPL ahora?", "trade"),
        ("Should I sell it?", "trade"),
        ("¿Qué es el RSI?", "explanation"),
        ("How do I read the RSI?", "explanation"),
        ("prefiero respuestas cortas", "preference"),
        ("Hola", "greeting"),
        ("¿Recuerdas lo que te dije?", "recall"),
        ("Analiza AAPL", "analysis"),
        ("What do you think of NVDA?", "analysis"),
    ],
)
def test_or_5_clear_words_give_a_high_confidence(text: str, name: str) -> None:
    intent = read_intent(text)
    assert (intent.name, intent.confidence) == (name, CLEAR)


@pytest.mark.parametrize(("text", "name"), [("el precio", "analysis"), ("siempre velas de 4h", "preference")])
def test_or_5_words_that_mostly_mean_it_give_a_middling_one(text: str, name: str) -> None:
    intent = read_intent(text)
    assert (intent.name, intent.confidence) == (name, LIKELY)


@pytest.mark.parametrize("text", ["mmm", "", "😀", "azul", "42"])
def test_a_33_what_is_not_understood_has_a_low_confidence(text: str) -> None:
    intent = read_intent(text)
    assert (intent.name, intent.confidence) == ("analysis", UNKNOWN)


def test_a_33_a_message_with_two_intents_is_less_certain() -> None:
    mixed = read_intent("¿Qué es un stop y debería comprar ahora?")
    assert mixed.name == "trade"
    assert UNKNOWN < mixed.confidence < CLEAR


@given(st.text(max_size=200))
def test_or_5_a_confidence_is_a_share(text: str) -> None:
    assert 0 < read_intent(text).confidence <= 1


@pytest.mark.parametrize(
    "text",
    [
        "¿entro en AAPL hoy?",
        "¿compro AAPL?",
        "¿Y vendo TSLA mañana?",
        "buy AAPL now?",
        "is now the right time to buy AAPL?",
        "¿comprarías AAPL?",
        "compra 10 acciones de AAPL",
    ],
)
def test_rf_29_whether_to_trade_is_asked_in_many_ways(text: str) -> None:
    assert read_intent(text).name == "trade"


@pytest.mark.parametrize("text", ["Compré AAPL", "el que compra caro pierde", "precio de compra de AAPL"])
def test_rf_29_who_tells_of_a_trade_asks_for_none(text: str) -> None:
    assert read_intent(text).name != "trade"
