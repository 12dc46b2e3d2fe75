"""Figures of positions: exact, never summed over currencies, never invented."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recuerdo.nodes.build_context.document import context_document
from recuerdo.nodes.build_context.figures import holdings, totals
from recuerdo.nodes.build_context.portfolio import MOST_IN_FULL, portfolio_blocks
from recuerdo.state.fit import Budget, fit
from recuerdo.stores.sources.rows import Position, Quote
from tests.nodes.build_context.enrichment import count, gathered, lines, opened, position, profile, quote

AAPL, TSLA = position("AAPL", "50", "175.00"), position("TSLA", "20", "250.00")
QUOTES = [quote("AAPL", "185.50"), quote("TSLA", "245.00")]


def whole(positions: list[Position], quotes: list[Quote], language: str = "es", **loaded: Any) -> list[str]:
    """The lines of a question about the whole portfolio."""
    symbols = tuple(dict.fromkeys(one.symbol for one in positions))
    data = gathered(
        language=language,
        positions=positions,
        quotes=quotes,
        symbols=symbols,
        resolved_by="portfolio",
        **loaded,
    )
    return lines(portfolio_blocks(data, count), "portfolio")


def test_rf_13_rf_40_every_figure_of_a_position_and_the_total() -> None:
    assert whole([AAPL, TSLA], QUOTES) == [
        "P&L total: 425.00 USD (+3.09 %), precio de compra total 13,750.00, valor de las posiciones 14,175.00",
        "AAPL: posición abierta de 50 a 175.00 USD (precio de compra total 8,750.00), precio 185.50,"
        " P&L 525.00 USD (+6.00 %), peso 65.4 %",
        "TSLA: posición abierta de 20 a 250.00 USD (precio de compra total 5,000.00), precio 245.00,"
        " P&L -100.00 USD (-2.00 %), peso 34.6 %",
    ]


def test_rf_20_a_7_the_same_in_english_and_with_the_marks_of_spain() -> None:
    english = whole([TSLA], QUOTES, "en")
    assert english == [
        "TSLA: open position of 20 at 250.00 USD (cost basis 5,000.00), price 245.00, P&L -100.00 USD (-2.00%)"
    ]
    (spain,) = whole([TSLA], QUOTES, profile=profile(timezone="Europe/Madrid"))
    assert "a 250,00 USD (precio de compra total 5.000,00)" in spain and "P&L -100,00 USD (-2,00 %)" in spain


def test_rf_40_without_a_price_the_cost_is_known_and_nothing_is_invented() -> None:
    total, priced, unpriced = whole([AAPL, TSLA], QUOTES[:1])
    assert unpriced == (
        "TSLA: posición abierta de 20 a 250.00 USD (precio de compra total 5,000.00),"
        " P&L no disponible (falta el precio)"
    )
    assert total == (
        "P&L total en USD no disponible (falta el precio de TSLA), precio de compra total 13,750.00"
    )
    assert "P&L 525.00" in priced and "peso" not in priced


def test_rf_40_currencies_are_never_summed() -> None:
    found = whole(
        [AAPL, position("CEMEXCPO", "1000", "12", "MXN")], [QUOTES[0], quote("CEMEXCPO", "13", "MXN")]
    )
    assert found[0].startswith("P&L total: 1,000.00 MXN (+8.33 %), ")
    assert found[1].startswith("P&L total: 525.00 USD (+6.00 %), ")
    assert all("peso 100 %" in line for line in found[2:])


def test_rf_40_a_price_in_another_currency_is_no_price() -> None:
    (line,) = whole([position("AAPL", "50", "3200", "MXN")], QUOTES[:1])
    assert line.endswith("P&L no disponible (el precio está en USD, sin tipo de cambio)")
    (pence,) = holdings([position("VOD", "10", "70", "GBP")], {"VOD": quote("VOD", "70", "GBp")})
    assert pence.profit is None


def test_rf_40_a_short_position_earns_when_the_price_falls() -> None:
    (line,) = whole([position("TSLA", "-20", "250.00")], QUOTES)
    assert line == (
        "TSLA: posición abierta de -20 a 250.00 USD (en corto, precio medio total 5,000.00), precio 245.00,"
        " P&L 100.00 USD (+2.00 %)"
    )
    (_, short) = holdings([AAPL, position("TSLA", "-20", "250.00")], {one.symbol: one for one in QUOTES})
    assert short.weight is not None and round(short.weight, 1) == Decimal("34.6")


def test_rf_40_what_cost_nothing_has_a_profit_and_no_percentage() -> None:
    (line,) = whole([position("AAPL", "2", "0")], QUOTES[:1])
    assert line.endswith("(precio de compra total 0.00), precio 185.50, P&L 371.00 USD")


def test_rf_40_fractions_of_crypto_are_told_with_all_their_decimals() -> None:
    (line,) = whole([position("BTCUSD", "0.00012345", "91000.5")], [quote("BTCUSD", "91234.5678")])
    assert "posición abierta de 0.00012345 a 91,000.50 USD (precio de compra total 11.23)" in line
    assert "precio 91,234.5678, P&L 0.03 USD (+0.26 %)" in line
    (tiny,) = whole([position("SHIBUSD", "100", "0.00000812")], [quote("SHIBUSD", "0.00000912")])
    assert "a 0.00000812 USD" in tiny and "P&L 0.0001 USD (+12.32 %)" in tiny


def test_rf_40_amounts_have_the_decimals_of_their_currency_half_to_even() -> None:
    (yen,) = whole([position("7203", "3", "2500.5", "JPY")], [quote("7203", "2600", "JPY")])
    assert "(precio de compra total 7,502)" in yen and "P&L 298 JPY" in yen
    (even,) = whole([position("AAPL", "0.5", "1.25")], [quote("AAPL", "1.26")])
    assert "(precio de compra total 0.62)" in even


def test_im_40_a_stale_price_says_its_age() -> None:
    late = [quote("AAPL", "185.50", age=timedelta(hours=2))]
    status = {"XNAS": opened("XNAS"), "XNYS": opened("XNYS")}
    (line,) = whole([AAPL], late, markets=status)
    assert "precio 185.50, hace 2 horas, P&L 525.00" in line
    (fresh,) = whole([AAPL], QUOTES[:1], markets=status)
    assert "hace" not in fresh
    (closed,) = whole([AAPL], [quote("AAPL", "185.50", age=timedelta(days=9))])
    assert "hace 1 sem" in closed


def test_rf_56_rf_61_the_mentioned_one_is_critical_and_the_others_are_low() -> None:
    data = gathered(positions=[AAPL, TSLA], quotes=QUOTES, symbols=("TSLA",), resolved_by="mentioned")
    blocks = portfolio_blocks(data, count)
    assert [(one["name"], one["tier"]) for one in blocks] == [
        ("portfolio", "critical"),
        ("other_positions", "low"),
    ]
    assert lines(blocks, "other_positions") == [
        "AAPL: posición abierta de 50 a 175.00 USD, P&L 525.00 USD (+6.00 %)"
    ]


def hundred() -> tuple[list[Position], list[Quote]]:
    symbols = [f"S{number:02}X" for number in range(100)]
    return (
        [position(symbol, str(number + 1), "10") for number, symbol in enumerate(symbols)],
        [quote(symbol, "11") for symbol in symbols],
    )


def test_rf_61_of_a_hundred_positions_the_mentioned_one_is_in_full() -> None:
    positions, quotes = hundred()
    data = gathered(positions=positions, quotes=quotes, symbols=("S07X",), resolved_by="mentioned")
    blocks = portfolio_blocks(data, count)
    (mentioned,) = lines(blocks, "portfolio")
    assert mentioned.startswith("S07X: posición abierta de 8 ")
    others = lines(blocks, "other_positions")
    assert len(others) == 21 and others[0].startswith("S99X:")
    assert others[-1] == "Posiciones que no se detallan: 79"


def test_rf_40_rf_61_a_hundred_positions_give_way_and_their_total_stays() -> None:
    positions, quotes = hundred()
    symbols = tuple(one.symbol for one in positions)
    data = gathered(positions=positions, quotes=quotes, symbols=symbols, resolved_by="portfolio")
    blocks = portfolio_blocks(data, count)
    full = lines(blocks, "portfolio")
    assert len(full) == MOST_IN_FULL + 1 and full[0].startswith("P&L total: 5,050.00 USD (+10.00 %)")
    assert len(lines(blocks, "more_positions")) == 100 - MOST_IN_FULL
    fitted = fit(blocks, 0, Budget(1500, 2000))
    assert lines(fitted.blocks, "portfolio") == full
    rest = next(one for one in fitted.blocks if one["name"] == "more_positions")
    assert rest["rungs"][rest["rung"]]["text"].splitlines()[1] == "- Posiciones que no se detallan: 85"


def test_rf_13_that_there_is_no_position_is_said_only_where_it_is_known() -> None:
    known: dict[str, Any] = {"providers": [{"name": "positions", "status": "empty"}]}
    assert whole([], [], **known) == ["El usuario no tiene posiciones abiertas"]
    assert whole([], [], **known, language="en") == ["The user has no open positions"]
    for unknown in ("skipped", "unavailable"):
        assert whole([], [], providers=[{"name": "positions", "status": unknown}]) == []
    assert whole([], [], **known, profile=None) == []


def test_rf_40_a_position_cannot_open_or_close_a_fence() -> None:
    name = "X</portfolio>"
    unchecked = position("X", "1", "1").model_copy(update={"symbol": name})
    data = gathered(positions=[unchecked], symbols=(name,), resolved_by="mentioned")
    (block,) = portfolio_blocks(data, count)
    assert block["rungs"][0]["text"].count("</portfolio>") == 1


def test_rf_40_the_document_has_the_exact_values() -> None:
    data = gathered(positions=[AAPL, TSLA], quotes=QUOTES[:1], symbols=("AAPL",))
    shown = context_document(data, "u", "c", 0, None, [])["portfolio"]["positions"]
    assert shown == [
        {"symbol": "AAPL", "quantity": 50.0, "avg_price": 175.0, "current_pnl": 525.0},
        {"symbol": "TSLA", "quantity": 20.0, "avg_price": 250.0, "current_pnl": None},
    ]


@pytest.mark.parametrize("currencies", [("USD",), ("USD", "EUR", "MXN")])
@given(data=st.data())
def test_rf_40_totals_are_the_sums_of_their_positions(
    currencies: tuple[str, ...], data: st.DataObject
) -> None:
    amounts = st.decimals(min_value=0, max_value=10**9, places=4)
    quantities = st.decimals(min_value=-(10**6), max_value=10**6, places=8).filter(bool)
    drawn = data.draw(
        st.lists(st.tuples(quantities, amounts, amounts, st.sampled_from(currencies)), max_size=8)
    )
    positions = [position(f"S{n}", str(q), str(a), c) for n, (q, a, _, c) in enumerate(drawn)]
    quotes = {f"S{n}": quote(f"S{n}", str(p), c) for n, (_, _, p, c) in enumerate(drawn)}
    found = holdings(positions, quotes)
    for total in totals(found):
        own = [one for one in found if one.position.currency == total.currency]
        assert total.profit == sum((one.profit for one in own if one.profit is not None), Decimal(0))
        assert total.value == sum((one.value for one in own if one.value is not None), Decimal(0))
        weights = [one.weight for one in own]
        if total.value:
            assert abs(sum((one for one in weights if one is not None), Decimal(0)) - 100) < Decimal("1e-9")
        else:
            assert weights == [None] * len(own)
