from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event
from zoneinfo import ZoneInfo

import pytest
from exchange_calendars import get_calendar_names

from recuerdo.state.errors import InputError
from recuerdo.stores.sources.calendar import MarketCalendar
from recuerdo.stores.sources.exchanges.library import build_sessions
from recuerdo.stores.sources.sessions import Sessions


@pytest.fixture(scope="module")
def calendar() -> MarketCalendar:
    return MarketCalendar()


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_rf_18_rf_38_c_20_friday_morning_is_open_until_21z(calendar: MarketCalendar) -> None:
    status = calendar.status("XNYS", at("2025-12-05T10:30:00-06:00"))
    assert status.status == "open"
    assert status.next_close == at("2025-12-05T21:00:00+00:00")
    assert status.next_close.isoformat() == "2025-12-05T16:00:00-05:00"
    assert status.next_open == at("2025-12-08T09:30:00-05:00")


def test_rf_29_a_42_im_41_saturday_is_closed_until_monday(calendar: MarketCalendar) -> None:
    status = calendar.status("XNYS", at("2025-12-06T11:00:00-06:00"))
    assert (status.status, status.next_close) == ("closed", None)
    assert status.next_open is not None
    assert status.next_open.isoformat() == "2025-12-08T09:30:00-05:00"


def test_c_35_on_saturday_stocks_are_closed_and_crypto_is_open(calendar: MarketCalendar) -> None:
    saturday = at("2025-12-06T11:00:00-06:00")
    assert calendar.status("XNAS", saturday).status == "closed"
    crypto = calendar.status("24/7", saturday)
    assert (crypto.status, crypto.next_open, crypto.next_close) == ("open", None, None)
    assert calendar.status("FOREX", saturday).status == "closed"


@pytest.mark.parametrize(
    ("exchange", "instant", "status", "change"),
    [
        # New York: Thanksgiving, the early close after it, Christmas Eve, New Year, Good Friday, Juneteenth
        ("XNYS", "2025-11-27T11:00-05:00", "closed", "2025-11-28T09:30-05:00"),
        ("XNYS", "2025-11-28T12:59-05:00", "open", "2025-11-28T13:00-05:00"),
        ("XNYS", "2025-11-28T13:00-05:00", "closed", "2025-12-01T09:30-05:00"),
        ("XNYS", "2025-12-24T12:00-05:00", "open", "2025-12-24T13:00-05:00"),
        ("XNYS", "2025-12-25T12:00-05:00", "closed", "2025-12-26T09:30-05:00"),
        ("XNYS", "2025-12-31T18:00-05:00", "closed", "2026-01-02T09:30-05:00"),
        ("XNYS", "2025-04-18T12:00-04:00", "closed", "2025-04-21T09:30-04:00"),
        ("XNYS", "2025-06-19T12:00-04:00", "closed", "2025-06-20T09:30-04:00"),
        # the session opens on the first instant and is over on the last
        ("XNYS", "2025-12-05T09:30-05:00", "open", "2025-12-05T16:00-05:00"),
        ("XNYS", "2025-12-05T09:29:59-05:00", "closed", "2025-12-05T09:30-05:00"),
        ("XNYS", "2025-12-05T16:00-05:00", "closed", "2025-12-08T09:30-05:00"),
        # daylight saving in New York: from 2025-03-09 and until 2025-11-02
        ("XNYS", "2025-03-08T12:00-05:00", "closed", "2025-03-10T13:30+00:00"),
        ("XNYS", "2025-11-01T12:00-04:00", "closed", "2025-11-03T14:30+00:00"),
        # Mexico keeps its clock and follows New York's: 07:30 to 14:00 in summer, 08:30 to 15:00 in winter
        ("XMEX", "2025-07-01T07:45-06:00", "open", "2025-07-01T14:00-06:00"),
        ("XMEX", "2025-07-01T14:30-06:00", "closed", "2025-07-02T07:30-06:00"),
        ("XMEX", "2025-12-05T10:30-06:00", "open", "2025-12-05T15:00-06:00"),
        ("XMEX", "2025-09-16T10:00-06:00", "closed", "2025-09-17T07:30-06:00"),
        ("XMEX", "2025-12-12T10:00-06:00", "closed", "2025-12-15T08:30-06:00"),
        ("XMEX", "2024-10-01T10:00-06:00", "closed", "2024-10-02T07:30-06:00"),
        # Madrid changes its clock three weeks after New York
        ("XMAD", "2025-12-05T10:30+01:00", "open", "2025-12-05T17:30+01:00"),
        ("XMAD", "2025-03-29T12:00+01:00", "closed", "2025-03-31T09:00+02:00"),
        ("XMAD", "2025-05-01T12:00+02:00", "closed", "2025-05-02T09:00+02:00"),
        # a midday break is closed
        ("XHKG", "2025-12-05T12:30+08:00", "closed", "2025-12-05T13:00+08:00"),
        # forex: Sunday 17:00 to Friday 17:00 in New York, on either side of daylight saving
        ("FOREX", "2025-12-05T16:59-05:00", "open", "2025-12-05T17:00-05:00"),
        ("FOREX", "2025-12-05T17:00-05:00", "closed", "2025-12-07T17:00-05:00"),
        ("FOREX", "2025-12-07T17:00-05:00", "open", "2025-12-12T17:00-05:00"),
        ("FOREX", "2025-12-07T16:59-05:00", "closed", "2025-12-07T17:00-05:00"),
        ("FOREX", "2025-03-08T12:00-05:00", "closed", "2025-03-09T21:00+00:00"),
        ("FOREX", "2025-12-03T03:00+00:00", "open", "2025-12-05T22:00+00:00"),
    ],
)
def test_rf_18_im_41_holidays_early_closes_and_daylight_saving(
    calendar: MarketCalendar, exchange: str, instant: str, status: str, change: str
) -> None:
    found = calendar.status(exchange, at(instant))
    assert found.status == status
    assert (found.next_close if status == "open" else found.next_open) == at(change)


def test_rf_29_hours_are_those_of_the_exchange_and_of_mexico_city(calendar: MarketCalendar) -> None:
    summer = calendar.status("XMEX", at("2025-07-05T12:00-06:00"))
    assert summer.next_open is not None
    assert summer.next_open.isoformat() == "2025-07-07T07:30:00-06:00"


@pytest.mark.parametrize(("alias", "exchange"), [("bmv", "XMEX"), ("NASDAQ", "XNYS"), (" xnys ", "XNYS")])
def test_common_names_of_an_exchange_are_understood(
    calendar: MarketCalendar, alias: str, exchange: str
) -> None:
    instant = at("2025-12-06T11:00:00-06:00")
    assert calendar.status(alias, instant).next_open == calendar.status(exchange, instant).next_open


@pytest.mark.parametrize("exchange", ["XXXX", "", "24/6", "__class__", "../x", "ñ" * 10_000])
def test_an_unknown_exchange_is_a_clear_error(calendar: MarketCalendar, exchange: str) -> None:
    with pytest.raises(InputError, match="XNYS, XNAS, XMEX") as caught:
        calendar.status(exchange, at("2025-12-05T10:30:00-06:00"))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("exchange", ["XNYS", "FOREX", "24/7"])
def test_a_naive_instant_is_refused(calendar: MarketCalendar, exchange: str) -> None:
    with pytest.raises(InputError, match="time zone"):
        calendar.status(exchange, datetime(2025, 12, 5, 10, 30))


@pytest.mark.parametrize(
    "instant", ["0001-01-01T00:00+00:00", "9999-12-31T23:59+00:00", "1950-01-01T00:00+00:00"]
)
@pytest.mark.parametrize("exchange", ["XNYS", "FOREX", "24/7"])
def test_a_date_beyond_the_calendar_is_refused(calendar: MarketCalendar, exchange: str, instant: str) -> None:
    with pytest.raises(InputError, match="does not reach"):
        calendar.status(exchange, at(instant))


def test_bounds_of_one_exchange_are_named(calendar: MarketCalendar) -> None:
    with pytest.raises(InputError, match="between 2021-01-01 and 2029-12-31"):
        calendar.status("XSAU", at("2020-06-01T12:00+03:00"))


def test_rf_18_every_exchange_of_the_library_can_be_asked(calendar: MarketCalendar) -> None:
    noon = at("2026-06-03T12:00+00:00")
    answers = {name: calendar.status(name, noon) for name in get_calendar_names(include_aliases=False)}
    assert len(answers) > 70
    never_closes = {name for name, answer in answers.items() if answer.next_open is None}
    assert never_closes == {"24/7"}


def test_no_holiday_of_tel_aviv_is_a_western_easter(calendar: MarketCalendar) -> None:
    """What the library says under pandas 3, without an error: every feast on 2025-04-20."""
    assert calendar.status("XTAE", at("2025-04-20T12:00+03:00")).status == "open"


@pytest.mark.parametrize(
    ("names", "instant"),
    [
        (("24/5", "FX", "FOREX"), "2025-12-24T18:00-05:00"),
        (("us_futures", "CME", "CMES"), "2025-12-03T16:30-06:00"),
        (("BIVA", "BMV", "XMEX"), "2025-07-01T07:45-06:00"),
    ],
)
def test_markets_that_are_one_have_one_status(
    calendar: MarketCalendar, names: tuple[str, ...], instant: str
) -> None:
    answers = [calendar.status(name, at(instant)) for name in names]
    assert len({(answer.status, answer.next_open, answer.next_close) for answer in answers}) == 1


def test_im_41_a_42_the_next_opening_in_the_user_s_zone(calendar: MarketCalendar) -> None:
    mexico = ZoneInfo("America/Mexico_City")
    status = calendar.status("XNYS", at("2025-12-06T11:00:00-06:00")).in_zone(mexico)
    assert status.next_open is not None
    assert status.next_open.isoformat() == "2025-12-08T08:30:00-06:00"
    assert status.next_close is None
    crypto = calendar.status("24/7", at("2025-12-06T17:00:00+00:00")).in_zone(mexico)
    assert crypto.at.isoformat() == "2025-12-06T11:00:00-06:00"


def test_who_asks_for_what_is_built_does_not_wait_for_a_build(
    calendar: MarketCalendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    noon = at("2025-12-05T12:00-05:00")
    calendar.status("XNYS", noon)
    building, go_on = Event(), Event()

    def slow(code: str, day: datetime) -> Sessions:
        building.set()
        assert go_on.wait(10)
        return build_sessions(code, day)

    monkeypatch.setattr("recuerdo.stores.sources.calendar.build_sessions", slow)
    with ThreadPoolExecutor(1) as pool:
        cold = pool.submit(calendar.status, "XWAR", noon)
        assert building.wait(10)
        assert calendar.status("XNYS", noon).status == "open"
        go_on.set()
        assert cold.result(10).status == "closed"


def test_a_year_turns_without_a_gap(calendar: MarketCalendar) -> None:
    instant = at("2025-12-29T00:00+00:00")
    while instant < at("2026-01-06T00:00+00:00"):
        status = calendar.status("XNYS", instant)
        assert status.next_open is not None
        assert timedelta() < status.next_open - instant < timedelta(days=5)
        instant += timedelta(hours=7)


def test_threads_share_one_calendar() -> None:
    calendar = MarketCalendar()
    instants = [at("2025-12-05T10:30:00-06:00") + timedelta(days=day) for day in range(60)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda instant: calendar.status("XNYS", instant), instants))
    assert together == [calendar.status("XNYS", instant) for instant in instants]
    assert [status.status for status in together[:4]] == ["open", "closed", "closed", "open"]
