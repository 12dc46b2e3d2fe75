"""Alerts with their distance to the price and whether it has reached them; which are of the topic."""

import pytest

from recuerdo.nodes.build_context.alerts import alert_blocks
from recuerdo.nodes.build_context.document import context_document
from tests.nodes.build_context.enrichment import alert, count, gathered, lines, quote

TSLA = alert("TSLA", "<=", "240")


def told(price: str, condition: str = "<=", language: str = "es") -> str:
    data = gathered(
        language=language,
        alerts=[alert("TSLA", condition, "240")],
        quotes=[quote("TSLA", price)],
        symbols=("TSLA",),
    )
    (line,) = lines(alert_blocks(data, count), "alerts")
    return line


def test_rf_14_the_distance_to_the_price_as_an_amount_and_in_per_cent() -> None:
    assert told("245.00") == (
        "Alerta activa: TSLA <= 240 (precio actual 245.00; distancia -5.00, -2.04 %; aún no se cumple)"
    )
    assert told("245.00", language="en") == (
        "Active alert: TSLA <= 240 (current price 245.00; distance -5.00, -2.04%; not fulfilled yet)"
    )


@pytest.mark.parametrize(
    ("price", "condition", "reached"),
    [
        ("240", "<=", True),
        ("240", "<", False),
        ("239.99", "<", True),
        ("240", ">=", True),
        ("240", ">", False),
        ("240.01", ">", True),
        ("245", "<=", False),
        ("235", ">=", False),
    ],
)
def test_rf_14_whether_the_price_has_reached_it_now(price: str, condition: str, reached: bool) -> None:
    assert ("aún no se cumple" not in told(price, condition)) is reached
    assert ("; se cumple ahora)" in told(price, condition)) is reached


def test_rf_14_a_price_of_nothing_has_no_percentage_and_a_missing_one_is_said() -> None:
    assert "distancia 240.00; se cumple ahora" in told("0")
    data = gathered(alerts=[TSLA], symbols=("TSLA",))
    assert lines(alert_blocks(data, count), "alerts") == ["Alerta activa: TSLA <= 240 (sin precio actual)"]


def test_rf_14_rf_60_those_of_the_topic_are_high_and_the_others_medium() -> None:
    data = gathered(
        alerts=[TSLA, alert("AAPL", ">=", "200")], quotes=[quote("AAPL", "185.5")], symbols=("AAPL",)
    )
    blocks = alert_blocks(data, count)
    assert [(one["name"], one["tier"]) for one in blocks] == [("alerts", "high"), ("other_alerts", "medium")]
    assert lines(blocks, "other_alerts") == ["Alerta activa: TSLA <= 240"]


@pytest.mark.parametrize(
    "text", ["¿Qué alertas tengo?", "do I have any alerts?", "¿Cuánto falta para mi alerta?"]
)
def test_rf_14_who_asks_for_alerts_gets_all_of_them(text: str) -> None:
    data = gathered(text, alerts=[TSLA, alert("AAPL", ">=", "200")], quotes=[quote("TSLA", "245")])
    assert len(lines(alert_blocks(data, count), "alerts")) == 2


def test_rf_14_a_turn_about_nothing_has_no_alert() -> None:
    assert alert_blocks(gathered("Hola", alerts=[TSLA]), count) == []


def test_a_12_alerts_stand_inside_the_portfolio_and_under_a_read_alias() -> None:
    other = alert("NVDA", ">=", "200")
    data = gathered(alerts=[TSLA, other], symbols=("TSLA",), resolved_by="portfolio")
    shown = context_document(data, "u", "c", 0, None, [])
    assert shown["portfolio"]["alerts"] == [
        {"symbol": "TSLA", "condition": "<=", "price": 240.0},
        {"symbol": "NVDA", "condition": ">=", "price": 200.0},
    ]
    assert shown["alerts"] == shown["portfolio"]["alerts"][:1]
    assert "alerts" not in context_document(gathered("Hola", alerts=[TSLA]), "u", "c", 0, None, [])
