"""Clock, market status, events and quotes as a turn's facts."""

from datetime import date, datetime, timedelta
from typing import Any

from recuerdo.nodes.build_context.document import context_document
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.instructions import instruction_blocks
from recuerdo.nodes.build_context.market import MOST_OTHER_QUOTES, MOST_QUOTES
from recuerdo.stores.plans import load_plan
from recuerdo.stores.sources.calendar import MarketStatus
from recuerdo.stores.sources.rows import EconomicEvent
from tests.nodes.build_context.enrichment import NOW, count, gathered, lines, market_blocks, opened, quote

MONDAY = datetime.fromisoformat("2025-12-08T14:30:00+00:00")


def closed(exchange: str, opening: datetime | None = MONDAY) -> MarketStatus:
    return MarketStatus(exchange, "closed", NOW, opening, None)


def event(name: str, day: str, impact: str = "high") -> EconomicEvent:
    return EconomicEvent.model_validate({"event": name, "date": day, "impact": impact})


def market(*statuses: MarketStatus, language: str = "es", **loaded: Any) -> list[str]:
    markets = {one.exchange: one for one in statuses}
    data = gathered(language=language, market=markets["XNYS"], markets=markets, **loaded)
    return lines(market_blocks(data, count), "market")


def advice(data: Gathered) -> list[str]:
    return lines(instruction_blocks(data, load_plan("trading"), count), "instructions")


def test_rf_17_rf_18_the_date_stands_once_with_the_offset_of_the_zone() -> None:
    assert market(opened("XNYS")) == [
        "Ahora: viernes 5 de diciembre de 2025, 10:30 (-06:00)",
        "Mercado XNYS: abierto, cierre hoy, 15:00",
    ]
    assert market(opened("XNYS"), profile=None)[0].endswith("16:30 (+00:00)")


def test_c_35_exchanges_of_one_state_share_a_line_and_others_have_their_own() -> None:
    always = MarketStatus("24/7", "open", NOW, None, None)
    found = market(opened("XNYS"), opened("XNAS"), closed("XTKS"), always, language="en")
    assert found[1:] == [
        "Market XNYS, XNAS: open, closing today, 15:00",
        "Market 24/7: open, never closes",
        "Market XTKS: closed, opening Monday December 8, 2025, 08:30",
    ]


def test_c_35_the_general_status_is_that_of_the_main_market() -> None:
    statuses = {"XNYS": closed("XNYS"), "24/7": MarketStatus("24/7", "open", NOW, None, None)}
    data = gathered(market=statuses["XNYS"], markets=statuses)
    assert context_document(data, "u", "c", 0, None, [])["market"]["status"] == "closed"


def test_rf_29_im_41_a_closed_market_without_a_known_opening_is_said_too() -> None:
    data = gathered(symbols=("AAPL",), markets={"XNAS": closed("XNAS", None)})
    data.intent = "trade"
    assert advice(data)[-1] == (
        "El mercado de AAPL está cerrado y no se sabe cuándo abre:"
        " dilo y sugiere practicar con paper trading o esperar a la apertura"
    )


def test_rf_29_im_41_the_opening_in_the_users_zone_with_paper_trading_or_waiting() -> None:
    data = gathered(symbols=("AAPL", "BTCUSD"), markets={"XNAS": closed("XNAS")})
    data.intent = "trade"
    assert advice(data)[-1] == (
        "El mercado de AAPL está cerrado: dilo y sugiere practicar con paper trading o esperar a la apertura"
        " (lunes 8 de diciembre de 2025, 08:30)"
    )


def test_rf_19_a_14_an_event_more_than_seven_days_away_is_medium() -> None:
    events = [event("In a week", "2025-12-12"), event("Later", "2025-12-13", "low")]
    blocks = market_blocks(gathered(events=events), count)
    tiers = {one["name"]: (one["tier"], one["section"]) for one in blocks}
    assert tiers["events"] == ("high", "profile") and tiers["distant_events"] == ("medium", "profile")
    assert lines(blocks, "events") == ["In a week: viernes 12 de diciembre de 2025, impacto alto"]
    assert lines(blocks, "distant_events") == ["Later: sábado 13 de diciembre de 2025, impacto bajo"]
    shown = context_document(gathered(events=events), "u", "c", 0, None, [])["market"]["upcoming_events"]
    assert shown == [{"event": "In a week", "date": "2025-12-12", "impact": "high"}]
    assert date.fromisoformat(shown[0]["date"]) - NOW.date() == timedelta(days=7)


def test_rf_58_a_quote_in_full_and_its_essentials() -> None:
    given = quote(
        "AAPL", "185.5", change_percent="1.2", volume="52340000", high="186.2", more={"beta": "1.2"}
    )
    blocks = market_blocks(gathered(quotes=[given], symbols=("AAPL",)), count)
    assert lines(blocks, "quotes:AAPL") == [
        "AAPL (Apple Inc.): precio 185.50 USD, variación +1.20 %, volumen 52,340,000, máximo 186.20, beta 1.2,"
        " dato de hoy, 10:30"
    ]
    assert lines(blocks, "quotes:AAPL", rung=1) == ["AAPL: 185.50 USD, +1.20 %, hoy, 10:30"]


def test_im_40_a_stale_quote_says_its_age_by_whether_its_market_is_open() -> None:
    old = quote("AAPL", "185.5", age=timedelta(minutes=50))

    def shown(status: MarketStatus) -> str:
        data = gathered(quotes=[old], symbols=("AAPL",), markets={"XNAS": status})
        return lines(market_blocks(data, count), "quotes:AAPL")[0]

    assert shown(opened("XNAS")).endswith("dato de hoy, 09:40, hace 50 minutos")
    assert shown(closed("XNAS")).endswith("dato de hoy, 09:40")


def test_im_40_a_symbol_without_a_quote_is_said_to_have_none() -> None:
    blocks = market_blocks(gathered(symbols=("AAPL",)), count)
    assert lines(blocks, "quotes:AAPL") == ["AAPL: sin cotización disponible"]


def test_rf_61_of_very_many_symbols_the_last_ones_stand_low() -> None:
    symbols = tuple(f"S{number:02}X" for number in range(100))
    data = gathered(symbols=symbols, quotes=[quote(symbol, "11") for symbol in symbols])
    blocks = market_blocks(data, count)
    assert sum(one["name"].startswith("quotes:") for one in blocks) == MOST_QUOTES
    others = lines(blocks, "other_quotes")
    assert len(others) == MOST_OTHER_QUOTES + 1
    assert others[-1] == f"Otros que no se detallan: {100 - MOST_QUOTES - MOST_OTHER_QUOTES}"
