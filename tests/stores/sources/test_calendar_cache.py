"""Trading intervals on disk: the same answers, and a damaged file only costs time."""

from datetime import datetime
from pathlib import Path

import pytest

from recuerdo.stores.sources import calendar
from recuerdo.stores.sources.calendar import MarketCalendar
from recuerdo.stores.sources.calendar_cache import CalendarCache

FRIDAY = datetime.fromisoformat("2025-12-05T10:30:00-06:00")


def refuse(code: str, at: datetime) -> None:
    raise AssertionError("built again")


@pytest.mark.parametrize("exchange", ["XNYS", "XMEX", "XHKG", "XTAE"])
def test_rf_18_a_cached_calendar_says_what_a_built_one_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: str
) -> None:
    built = MarketCalendar(CalendarCache(tmp_path)).status(exchange, FRIDAY)
    monkeypatch.setattr(calendar, "build_sessions", refuse)

    assert MarketCalendar(CalendarCache(tmp_path)).status(exchange, FRIDAY) == built


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"zone": "Nowhere/X", "opens": [], "closes": []}'])
def test_a_damaged_file_is_built_again(tmp_path: Path, damage: str) -> None:
    built = MarketCalendar(CalendarCache(tmp_path)).status("XNYS", FRIDAY)
    [file] = tmp_path.glob("XNYS-2025-*.json")
    file.write_text(damage, encoding="utf-8")

    assert MarketCalendar(CalendarCache(tmp_path)).status("XNYS", FRIDAY) == built


def test_a_folder_that_cannot_be_written_costs_only_the_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")

    assert MarketCalendar(CalendarCache(blocked / "calendars")).status("XNYS", FRIDAY).status == "open"


def test_an_exchange_name_is_never_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "calendars"
    with pytest.raises(Exception, match=r"\.\./X"):
        MarketCalendar(CalendarCache(folder)).status("../x", FRIDAY)

    assert not folder.exists()
