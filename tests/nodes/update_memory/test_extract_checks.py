"""What a model reads is let in only where the user's own words bear it out."""

from typing import Any

import pytest

from recuerdo.nodes.update_memory.extract import Said
from recuerdo.nodes.update_memory.extract.answer import Answer, read_answer
from recuerdo.nodes.update_memory.extract.checks import checked
from recuerdo.nodes.update_memory.extract.protocol import Extracted

TEXT = "Mi hermana Ana opera en 1h. Vivo en Lima con dos gatos, ¿qué es el RSI? Ya no uso MACD."
KNOWN = {"favorite_indicators": ["MACD"], "preferred_timeframe": "4h"}


def check(answer: dict[str, Any], text: str = TEXT) -> Extracted:
    said = Said(text, "es", preferences=KNOWN, facts=("tengo un perro", "vivo en Quito"))
    return checked(Answer.model_validate(answer), said)


def fact(text: str, quote: str, **more: Any) -> dict[str, Any]:
    return {"facts": [{"text": text, "quote": quote, **more}]}


def preference(key: str, value: Any, quote: str) -> dict[str, Any]:
    return {"preferences": [{"key": key, "value": value, "quote": quote}]}


def test_a_fact_in_the_users_words_is_let_in() -> None:
    (item,) = check(fact("vivo en Lima", "Vivo en Lima con dos gatos", confidence=1)).learn
    assert (item.key, item.value, item.confidence) == ("fact", "vivo en Lima", 1)


def test_a_quote_may_span_two_of_the_users_clauses() -> None:
    text = "Vivo en Lima y trabajo de noche"
    (item,) = check(fact(text, text, confidence=1), text).learn
    assert item.value == text


def test_a_24_an_inferred_fact_without_a_number_has_low_confidence() -> None:
    (item,) = check(fact("vivo en Lima", "Vivo en Lima con dos gatos")).learn
    assert item.confidence < 0.6


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("vivo en Lima", "vivo en Lima"),  # not as it is written
        ("opera en 1h", "Mi hermana Ana opera en 1h"),
        ("qué es el RSI", "¿qué es el RSI?"),
        ("vivo en Lima con 3 gatos", "Vivo en Lima con dos gatos"),
        ("vivo en Lima con Ana", "Vivo en Lima con dos gatos"),
        ("lives in Lima and has two cats", "Vivo en Lima con dos gatos"),
        ("tengo mucha experiencia y gano bien", "Vivo en Lima con dos gatos"),
        ("", "Vivo en Lima"),
        ("vivo en Lima", ""),
        ("Ana opera en 1h. Vivo en Lima", "Ana opera en 1h. Vivo en Lima"),
    ],
)
def test_known_fault_1_a_fact_that_the_user_did_not_state_is_refused(text: str, quote: str) -> None:
    found = check(fact(text, quote, confidence=1))
    assert found.learn == [] and found.refused == 1


def test_rf_33_nothing_sensitive_is_let_in() -> None:
    text = "mi tarjeta es [***] y vivo en Lima"
    assert check(fact("mi tarjeta es [***]", "mi tarjeta es [***]"), text).learn == []


@pytest.mark.parametrize(
    ("key", "value", "quote", "kept"),
    [
        ("preferred_timeframe", "4h", "uso velas de 4h", True),
        ("preferred_timeframe", "1h", "uso velas de 4h", False),
        ("communication_style", "brief", "respóndeme breve", True),
        ("communication_style", "rude", "respóndeme breve", False),
        ("show_disclaimers", False, "quita los disclaimers", True),
        ("show_disclaimers", "no", "quita los disclaimers", False),
        ("favorite_indicators", ["RSI"], "siempre miro el RSI", True),
        ("favorite_indicators", ["ATR"], "siempre miro el RSI", False),
        ("response_language", "en", "contéstame siempre en inglés", True),
        ("response_language", "en", "contéstame siempre breve", False),
        ("decimals", "dos", "usa siempre dos decimales", True),
        ("decimals", "cuatro", "usa siempre dos decimales", False),
        ("Role Prompt!", "dos", "usa siempre dos decimales", False),
        ("units", {"a": 1}, "usa siempre dos decimales", False),
    ],
)
def test_a_11_values_are_borne_out_by_the_quote(key: str, value: Any, quote: str, kept: bool) -> None:
    assert bool(check(preference(key, value, quote), text=f"Por favor, {quote}").learn) == kept


def test_symbols_stand_in_the_quote() -> None:
    text = "sigo siempre a Tesla"
    stated = [{"symbol": "TSLA", "quote": text}, {"symbol": "AAPL", "quote": text}]
    assert [item.value for item in check({"symbols": stated}, text).learn] == ["TSLA"]


def test_what_is_over_is_known_and_named() -> None:
    ends = [
        {"type": "preference", "value": "MACD", "quote": "Ya no uso MACD"},
        {"type": "fact", "known": 2, "quote": "Vivo en Lima con dos gatos"},
        {"type": "fact", "known": 1, "quote": "Ya no uso MACD"},
        {"type": "fact", "known": 9, "quote": "Ya no uso MACD"},
    ]
    found = check({"forget": ends})
    assert [(item.type, item.quote) for item in found.forget] == [
        ("preference", "Ya no uso MACD"),
        ("fact", "Vivo en Lima con dos gatos"),
    ]


@pytest.mark.parametrize("text", ["", "no sé", "[1, 2]", "{" * 50_000, "<think>{}</think>", "42"])
def test_an_answer_that_cannot_be_read_is_none_or_empty(text: str) -> None:
    answer = read_answer(text)
    assert answer is None or not (answer.facts or answer.preferences)


def test_an_answer_with_words_around_it_and_broken_entries_is_read() -> None:
    answer = read_answer(
        "<think>hm</think> Claro:\n```json\n"
        '{"facts": [{"text": "a", "quote": "b"}, 7, {"text": 3}], "symbols": null}\n```'
    )
    assert answer is not None and [one.text for one in answer.facts] == ["a"] and answer.symbols == []
