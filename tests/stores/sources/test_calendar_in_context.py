"""The market's state as a user's context shows it: his main market, his time zone, his language and locale."""

from datetime import datetime
from typing import Any

import pytest

from recuerdo.nodes.build_context.document import context_document
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.stores.sources.calendar import MarketCalendar
from recuerdo.stores.sources.rows import Profile
from recuerdo.stores.tokens import TokenCounter
from tests.nodes.build_context.enrichment import market_blocks

FRIDAY = datetime.fromisoformat("2025-12-05T10:30:00-06:00")
SATURDAY = datetime.fromisoformat("2025-12-06T11:00:00-06:00")


@pytest.fixture(scope="module")
def calendar() -> MarketCalendar:
    return MarketCalendar()


def profile(timezone: str, main_market: str, language: str) -> Profile:
    return Profile(
        user="u",
        name="U",
        subscription="premium",
        risk_profile="moderate",
        experience="advanced",
        language=language,
        timezone=timezone,
        main_market=main_market,
    )


def gathered(calendar: MarketCalendar, now: datetime, user: Profile, *exchanges: str) -> Gathered:
    markets = {code: calendar.status(code, now) for code in (user.main_market, *exchanges)}
    return Gathered(
        now,
        user.language,
        "market",
        1.0,
        profile=user,
        market=markets[user.main_market],
        markets=markets,
    )


def market(data: Gathered) -> dict[str, Any]:
    shown: dict[str, Any] = context_document(data, "u", "c", 0, None, [])["market"]
    return shown


def text(data: Gathered) -> str:
    [block] = [block for block in market_blocks(data, TokenCounter().count) if block["name"] == "market"]
    return str(block["rungs"][0]["text"])


CARLOS = profile("America/Mexico_City", "XNYS", "es")


def test_rf_17_rf_18_rf_38_c_20_on_friday_morning(calendar: MarketCalendar) -> None:
    shown = market(gathered(calendar, FRIDAY, CARLOS))
    assert shown["current_time"] == "2025-12-05T10:30:00-06:00"
    assert (shown["status"], shown["next_close"]) == ("open", "2025-12-05T15:00:00-06:00")


def test_rf_29_a_42_im_41_on_saturday(calendar: MarketCalendar) -> None:
    shown = market(gathered(calendar, SATURDAY, CARLOS))
    assert (shown["status"], shown["next_close"]) == ("closed", None)
    assert shown["next_open"] == "2025-12-08T08:30:00-06:00"
    assert "lunes 8 de diciembre de 2025, 08:30" in text(gathered(calendar, SATURDAY, CARLOS))


def test_c_35_the_general_status_is_that_of_the_main_market(calendar: MarketCalendar) -> None:
    for main_market, status in (("XNYS", "closed"), ("24/7", "open"), ("FOREX", "closed")):
        user = profile("America/Mexico_City", main_market, "es")
        data = gathered(calendar, SATURDAY, user, "XNYS", "24/7")
        assert market(data)["status"] == status
        assert "24/7: abierto" in text(data)


@pytest.mark.parametrize(
    ("user", "opening"),
    [
        (CARLOS, "lunes 8 de diciembre de 2025, 08:30"),
        (profile("Europe/Madrid", "XNYS", "es"), "lunes 8 de diciembre de 2025, 15:30"),
        (profile("America/New_York", "XNYS", "en"), "Monday December 8, 2025, 09:30"),
        (profile("Asia/Tokyo", "XNYS", "en"), "Monday December 8, 2025, 23:30"),
        (profile("Asia/Tokyo", "XTKS", "en"), "Monday December 8, 2025, 09:00"),
    ],
)
def test_a_7_im_41_the_opening_in_each_user_s_language_zone_and_date_format(
    calendar: MarketCalendar, user: Profile, opening: str
) -> None:
    assert opening in text(gathered(calendar, SATURDAY, user))
