"""The calendar against what the exchanges published for 2025 and 2026, one instant a line (RF-18, IM-41).

Each block names the publication that it was written from, some read as the press reported them. No holiday, early
close or change comes from the calendar library; the daily opening hours of Nicosia and Tel Aviv do.
"""

from datetime import datetime

import pytest

from recuerdo.stores.sources.calendar import MarketCalendar

# NYSE Group, 2024-11-08: holidays and early closings of 2025, 2026 and 2027. Nasdaq keeps the same days. The day
# of mourning for President Carter was announced by both on 2024-12-30. Sessions 09:30 to 16:00, early ones 13:00.
NEW_YORK = """
XNYS 2025-01-01T12:00-05:00 closed 2025-01-02T09:30-05:00
XNYS 2025-01-09T12:00-05:00 closed 2025-01-10T09:30-05:00
XNAS 2025-01-09T12:00-05:00 closed 2025-01-10T09:30-05:00
XNYS 2025-01-20T12:00-05:00 closed 2025-01-21T09:30-05:00
XNYS 2025-02-17T12:00-05:00 closed 2025-02-18T09:30-05:00
XNYS 2025-04-18T12:00-04:00 closed 2025-04-21T09:30-04:00
XNYS 2025-05-26T12:00-04:00 closed 2025-05-27T09:30-04:00
XNYS 2025-06-19T12:00-04:00 closed 2025-06-20T09:30-04:00
XNYS 2025-07-03T12:00-04:00 open   2025-07-03T13:00-04:00
XNYS 2025-07-04T12:00-04:00 closed 2025-07-07T09:30-04:00
XNYS 2025-09-01T12:00-04:00 closed 2025-09-02T09:30-04:00
XNAS 2025-11-27T12:00-05:00 closed 2025-11-28T09:30-05:00
XNYS 2025-11-28T12:59-05:00 open   2025-11-28T13:00-05:00
XNYS 2025-12-24T12:00-05:00 open   2025-12-24T13:00-05:00
XNYS 2025-12-25T12:00-05:00 closed 2025-12-26T09:30-05:00
XNYS 2026-01-19T12:00-05:00 closed 2026-01-20T09:30-05:00
XNYS 2026-04-03T12:00-04:00 closed 2026-04-06T09:30-04:00
XNYS 2026-07-02T15:59-04:00 open   2026-07-02T16:00-04:00
XNYS 2026-07-03T12:00-04:00 closed 2026-07-06T09:30-04:00
XNAS 2026-11-27T13:30-05:00 closed 2026-11-30T09:30-05:00
XNYS 2026-12-24T12:00-05:00 open   2026-12-24T13:00-05:00
"""

# BMV, 2025-10-29: 08:30 to 15:00 from 2025-11-03, when New York leaves summer time; before it 07:30 to 14:00.
# CNBV, Diario Oficial: days of 2025 and 2026 on which stock exchanges close, and 2024-10-01 in the list of 2024.
MEXICO = """
XMEX 2024-10-01T10:00-06:00 closed 2024-10-02T07:30-06:00
XMEX 2025-02-03T10:00-06:00 closed 2025-02-04T08:30-06:00
XMEX 2025-03-10T08:00-06:00 open   2025-03-10T14:00-06:00
XMEX 2025-03-17T10:00-06:00 closed 2025-03-18T07:30-06:00
XMEX 2025-04-17T10:00-06:00 closed 2025-04-21T07:30-06:00
XMEX 2025-05-01T10:00-06:00 closed 2025-05-02T07:30-06:00
XMEX 2025-09-16T10:00-06:00 closed 2025-09-17T07:30-06:00
XMEX 2025-10-31T14:30-06:00 closed 2025-11-03T08:30-06:00
XMEX 2025-11-03T14:30-06:00 open   2025-11-03T15:00-06:00
XMEX 2025-11-17T10:00-06:00 closed 2025-11-18T08:30-06:00
XMEX 2025-12-12T10:00-06:00 closed 2025-12-15T08:30-06:00
XMEX 2025-12-25T10:00-06:00 closed 2025-12-26T08:30-06:00
XMEX 2026-02-02T10:00-06:00 closed 2026-02-03T08:30-06:00
XMEX 2026-03-16T10:00-06:00 closed 2026-03-17T07:30-06:00
XMEX 2026-04-02T10:00-06:00 closed 2026-04-06T07:30-06:00
XMEX 2026-11-02T10:00-06:00 closed 2026-11-03T08:30-06:00
XMEX 2026-11-16T10:00-06:00 closed 2026-11-17T08:30-06:00
"""

# London Stock Exchange, business days: half days 2025-12-24 and 2025-12-31 until 12:30; it keeps the bank
# holidays of England (2026-12-28 for Boxing Day).
LONDON = """
XLON 2025-05-05T10:00+01:00 closed 2025-05-06T08:00+01:00
XLON 2025-08-25T10:00+01:00 closed 2025-08-26T08:00+01:00
XLON 2025-12-24T12:00+00:00 open   2025-12-24T12:30+00:00
XLON 2025-12-26T10:00+00:00 closed 2025-12-29T08:00+00:00
XLON 2025-12-31T12:30+00:00 closed 2026-01-02T08:00+00:00
XLON 2026-12-28T10:00+00:00 closed 2026-12-29T08:00+00:00
"""

# Deutsche Börse, trading calendar: no trading on these days; trading from 9 to 17:30, also on Whit Monday and
# on 3 October, which are not in the list.
FRANKFURT = """
XETR 2025-06-09T12:00+02:00 open   2025-06-09T17:30+02:00
XETR 2025-10-03T12:00+02:00 open   2025-10-03T17:30+02:00
XETR 2025-12-24T12:00+01:00 closed 2025-12-29T09:00+01:00
XETR 2025-12-31T12:00+01:00 closed 2026-01-02T09:00+01:00
XETR 2026-04-06T12:00+02:00 closed 2026-04-07T09:00+02:00
XETR 2026-05-01T12:00+02:00 closed 2026-05-04T09:00+02:00
"""

# BME, calendar of 2026 (press release of 2025) and of 2025: half sessions until 14:00 on 24 and 31 December.
MADRID = """
XMAD 2025-04-21T12:00+02:00 closed 2025-04-22T09:00+02:00
XMAD 2025-12-24T13:00+01:00 open   2025-12-24T14:00+01:00
XMAD 2025-12-26T12:00+01:00 closed 2025-12-29T09:00+01:00
XMAD 2025-12-31T14:00+01:00 closed 2026-01-02T09:00+01:00
XMAD 2026-04-03T12:00+02:00 closed 2026-04-07T09:00+02:00
XMAD 2026-12-31T13:00+01:00 open   2026-12-31T14:00+01:00
"""

# Tokyo Stock Exchange: 9:00 to 11:30 and 12:30 to 15:30 since 2024-11-05; holidays of 2026 as JPX lists them.
TOKYO = """
XTKS 2025-12-05T11:45+09:00 closed 2025-12-05T12:30+09:00
XTKS 2025-12-05T15:15+09:00 open   2025-12-05T15:30+09:00
XTKS 2025-12-31T10:00+09:00 closed 2026-01-05T09:00+09:00
XTKS 2026-05-04T10:00+09:00 closed 2026-05-07T09:00+09:00
XTKS 2026-09-21T10:00+09:00 closed 2026-09-24T09:00+09:00
XTKS 2026-11-23T10:00+09:00 closed 2026-11-24T09:00+09:00
"""

# HKEX: 9:30 to 12:00 and 13:00 to 16:00; morning only on the eves of Christmas, New Year and Lunar New Year;
# holidays of 2025.
HONG_KONG = """
XHKG 2025-01-28T11:00+08:00 open   2025-01-28T12:00+08:00
XHKG 2025-01-28T13:00+08:00 closed 2025-02-03T09:30+08:00
XHKG 2025-05-05T10:00+08:00 closed 2025-05-06T09:30+08:00
XHKG 2025-10-07T10:00+08:00 closed 2025-10-08T09:30+08:00
XHKG 2025-12-05T12:30+08:00 closed 2025-12-05T13:00+08:00
XHKG 2025-12-24T12:30+08:00 closed 2025-12-29T09:30+08:00
"""

# Shanghai Stock Exchange, notices of 2024-12-23 and 2025-12-22; sessions 9:30 to 11:30 and 13:00 to 15:00.
SHANGHAI = """
XSHG 2025-01-28T10:00+08:00 closed 2025-02-05T09:30+08:00
XSHG 2025-10-01T10:00+08:00 closed 2025-10-09T09:30+08:00
XSHG 2026-01-02T10:00+08:00 closed 2026-01-05T09:30+08:00
XSHG 2026-02-16T10:00+08:00 closed 2026-02-24T09:30+08:00
XSHG 2026-09-25T10:00+08:00 closed 2026-09-28T09:30+08:00
XSHE 2026-10-08T12:00+08:00 closed 2026-10-08T13:00+08:00
"""

# B3: calendars of 2025 (2024-12-04) and 2026 (2025-12-30); Ash Wednesday from 13:00; close at 17:00 from
# 2025-03-10 and at 18:00 from 2025-11-03, with New York's clock (notices of March and October 2025).
SAO_PAULO = """
BVMF 2025-03-03T12:00-03:00 closed 2025-03-05T13:00-03:00
BVMF 2025-03-07T17:30-03:00 open   2025-03-07T18:00-03:00
BVMF 2025-03-10T12:00-03:00 open   2025-03-10T17:00-03:00
BVMF 2025-07-09T12:00-03:00 open   2025-07-09T17:00-03:00
BVMF 2025-11-03T17:30-03:00 open   2025-11-03T18:00-03:00
BVMF 2025-11-20T12:00-03:00 closed 2025-11-21T10:00-03:00
BVMF 2025-12-24T12:00-03:00 closed 2025-12-26T10:00-03:00
BVMF 2026-02-18T12:00-03:00 closed 2026-02-18T13:00-03:00
BVMF 2026-06-04T12:00-03:00 closed 2026-06-05T10:00-03:00
"""

# TMX Group, holiday schedule of 2025-12-03; not closed on Thanksgiving of the United States.
TORONTO = """
XTSE 2025-11-27T12:00-05:00 open   2025-11-27T16:00-05:00
XTSE 2025-12-24T12:00-05:00 open   2025-12-24T13:00-05:00
XTSE 2025-12-26T12:00-05:00 closed 2025-12-29T09:30-05:00
XTSE 2026-01-01T12:00-05:00 closed 2026-01-02T09:30-05:00
"""

# ASX, trading calendars of 2025 and 2026: trading ceases at 14:10 on the last business days before Christmas and
# of the year; Anzac Day of 2026 is a Saturday, the Monday after it is traded.
SYDNEY = """
XASX 2025-04-25T12:00+10:00 closed 2025-04-28T10:00+10:00
XASX 2025-12-24T14:00+11:00 open   2025-12-24T14:10+11:00
XASX 2025-12-31T14:30+11:00 closed 2026-01-02T10:00+11:00
XASX 2026-01-26T12:00+11:00 closed 2026-01-27T10:00+11:00
XASX 2026-04-27T12:00+10:00 open   2026-04-27T16:00+10:00
XASX 2026-06-08T12:00+10:00 closed 2026-06-09T10:00+10:00
"""

# NSE and BSE: list of holidays of 2026; circulars on 2026-01-15 (elections), 2026-02-01 and 2025-02-01 (budget, a
# Sunday and a Saturday), 2025-09-22 (an hour of trading on 2025-10-21). Sessions 9:15 to 15:30.
MUMBAI = """
XBOM 2025-02-01T12:00+05:30 open   2025-02-01T15:30+05:30
XNSE 2025-10-21T12:00+05:30 closed 2025-10-21T13:45+05:30
XNSE 2025-10-21T14:00+05:30 open   2025-10-21T14:45+05:30
XNSE 2026-01-15T12:00+05:30 closed 2026-01-16T09:15+05:30
XNSE 2026-02-01T12:00+05:30 open   2026-02-01T15:30+05:30
XNSE 2026-03-03T12:00+05:30 closed 2026-03-04T09:15+05:30
XNSE 2026-11-10T12:00+05:30 closed 2026-11-11T09:15+05:30
"""

# ATHEX, holidays of 2026. CSE, 2025-04-08: closed for the Orthodox Easter until Tuesday, and on 1 May. Belgrade and
# Bucharest do not trade on the public holidays of their countries, the Orthodox Good Friday and Easter Monday
# among them (in 2026 on 10 and 13 April), in Romania also 6 and 7 January (law 52/2023).
ORTHODOX = """
ASEX 2026-04-03T12:00+03:00 closed 2026-04-07T10:00+03:00
ASEX 2026-04-10T12:00+03:00 closed 2026-04-14T10:00+03:00
ASEX 2026-06-01T12:00+03:00 closed 2026-06-02T10:00+03:00
ASEX 2026-10-28T12:00+02:00 closed 2026-10-29T10:00+02:00
XCYS 2025-04-18T12:00+03:00 closed 2025-04-23T10:30+03:00
XCYS 2025-05-01T12:00+03:00 closed 2025-05-02T10:30+03:00
XBEL 2026-04-10T12:00+02:00 closed 2026-04-14T09:30+02:00
XBSE 2026-04-10T12:00+03:00 closed 2026-04-14T10:00+03:00
XBSE 2026-01-06T12:00+02:00 closed 2026-01-08T10:00+02:00
"""

# TASE, December 2025: Monday to Friday from 2026-01-05, no trading on Sunday 2026-01-04. Its vacation schedule
# closes it on the eve and the day of Yom Kippur (2025-10-01 and 02), on Memorial and Independence Day (2025-04-30
# and 05-01).
TEL_AVIV = """
XTAE 2025-04-30T12:00+03:00 closed 2025-05-04T09:59+03:00
XTAE 2025-10-01T12:00+03:00 closed 2025-10-05T09:59+03:00
XTAE 2025-12-26T12:00+02:00 closed 2025-12-28T09:59+02:00
XTAE 2026-01-02T12:00+02:00 closed 2026-01-05T09:59+02:00
XTAE 2026-01-04T12:00+02:00 closed 2026-01-05T09:59+02:00
XTAE 2026-09-21T12:00+03:00 closed 2026-09-22T09:59+03:00
"""

# KRX: 9:00 to 15:30; announced for the day of the college entrance exam each November: 10:00 to 16:30. Public
# holidays are closed: local elections of 2026-06-03 (election law), Constitution Day again (act of 2026-01-29).
SEOUL = """
XKRX 2024-11-14T09:30+09:00 closed 2024-11-14T10:00+09:00
XKRX 2025-06-03T12:00+09:00 closed 2025-06-04T09:00+09:00
XKRX 2025-11-12T15:45+09:00 closed 2025-11-13T10:00+09:00
XKRX 2025-11-13T09:30+09:00 closed 2025-11-13T10:00+09:00
XKRX 2025-11-13T15:45+09:00 open   2025-11-13T16:30+09:00
XKRX 2025-11-14T09:30+09:00 open   2025-11-14T15:30+09:00
XKRX 2025-12-31T12:00+09:00 closed 2026-01-02T10:00+09:00
XKRX 2026-06-03T12:00+09:00 closed 2026-06-04T09:00+09:00
XKRX 2026-07-17T12:00+09:00 closed 2026-07-20T09:00+09:00
XKRX 2026-11-19T16:00+09:00 open   2026-11-19T16:30+09:00
"""

# SGX rulebook, practice notes on trading hours (8.2.1): 9:00 to 12:00 and 13:00 to 17:00, on half days until 12:00;
# these are the eves of Christmas, New Year and Lunar New Year. Holidays of 2025 and 2026: Ministry of Manpower.
SINGAPORE = """
XSES 2025-01-28T11:00+08:00 open   2025-01-28T12:00+08:00
XSES 2025-12-05T11:00+08:00 open   2025-12-05T12:00+08:00
XSES 2025-12-05T12:30+08:00 closed 2025-12-05T13:00+08:00
XSES 2025-12-24T11:00+08:00 open   2025-12-24T12:00+08:00
XSES 2025-12-24T14:00+08:00 closed 2025-12-26T09:00+08:00
XSES 2025-12-31T14:00+08:00 closed 2026-01-02T09:00+08:00
XSES 2026-02-16T14:00+08:00 closed 2026-02-19T09:00+08:00
XSES 2026-08-10T11:00+08:00 closed 2026-08-11T09:00+08:00
"""

# JSE: 9:00 to 17:00; the press reported noon closes on the last sessions before Christmas and of the year
# (2017-12-22 and 29, Business Day) and the early close of 2025-12-24.
JOHANNESBURG = """
XJSE 2017-12-22T12:30+02:00 closed 2017-12-27T09:00+02:00
XJSE 2017-12-29T11:00+02:00 open   2017-12-29T12:00+02:00
XJSE 2025-12-23T16:00+02:00 open   2025-12-23T17:00+02:00
XJSE 2025-12-24T11:00+02:00 open   2025-12-24T12:00+02:00
XJSE 2025-12-31T12:30+02:00 closed 2026-01-02T09:00+02:00
"""

# BYMA, as the press reported it: opening at 10:30 from 2025-07-28; trading (without settlement) on the bridge day
# 2025-11-21, none on 2025-11-24 nor on 31 December of 2024 and 2025, on 2024-12-24 until 15:00. The days to which
# holidays are moved: law 27.399 and decree 614/2025.
BUENOS_AIRES = """
XBUE 2024-12-24T14:00-03:00 open   2024-12-24T15:00-03:00
XBUE 2024-12-31T12:00-03:00 closed 2025-01-02T11:00-03:00
XBUE 2025-06-16T12:00-03:00 closed 2025-06-17T11:00-03:00
XBUE 2025-08-18T12:00-03:00 open   2025-08-18T17:00-03:00
XBUE 2025-10-10T12:00-03:00 closed 2025-10-13T10:30-03:00
XBUE 2025-11-17T10:45-03:00 open   2025-11-17T17:00-03:00
XBUE 2025-11-21T12:00-03:00 open   2025-11-21T17:00-03:00
XBUE 2025-11-24T12:00-03:00 closed 2025-11-25T10:30-03:00
XBUE 2025-12-31T12:00-03:00 closed 2026-01-02T10:30-03:00
XBUE 2026-11-23T12:00-03:00 closed 2026-11-24T10:30-03:00
"""

# CME Group, Globex: Sunday to Friday from 17:00 to 16:00 in Chicago, one hour of maintenance each day.
CHICAGO = """
CMES 2025-12-03T15:30-06:00 open   2025-12-03T16:00-06:00
CMES 2025-12-03T16:30-06:00 closed 2025-12-03T17:00-06:00
CMES 2025-12-05T16:30-06:00 closed 2025-12-07T17:00-06:00
CME  2025-12-07T17:00-06:00 open   2025-12-08T16:00-06:00
"""

# No exchange publishes these: the currency market's week (17:00 in New York), in which dealers stop on Christmas
# Day and New Year's Day.
FOREX = """
FOREX 2025-12-05T16:59-05:00 open   2025-12-05T17:00-05:00
FOREX 2025-12-06T12:00-05:00 closed 2025-12-07T17:00-05:00
FOREX 2025-12-24T16:30-05:00 open   2025-12-24T17:00-05:00
FOREX 2025-12-25T12:00-05:00 closed 2025-12-25T17:00-05:00
FOREX 2025-12-25T17:00-05:00 open   2025-12-26T17:00-05:00
FOREX 2026-01-01T12:00-05:00 closed 2026-01-01T17:00-05:00
FOREX 2026-03-08T16:59-04:00 closed 2026-03-08T21:00+00:00
FOREX 2026-11-01T16:59-05:00 closed 2026-11-01T22:00+00:00
"""

PUBLISHED = [
    tuple(line.split())
    for block in (
        *(NEW_YORK, MEXICO, LONDON, FRANKFURT, MADRID, TOKYO, HONG_KONG, SHANGHAI, SAO_PAULO),
        *(TORONTO, SYDNEY, MUMBAI, ORTHODOX, TEL_AVIV, CHICAGO, FOREX),
        *(SEOUL, SINGAPORE, JOHANNESBURG, BUENOS_AIRES),
    )
    for line in block.strip().splitlines()
]


@pytest.fixture(scope="module")
def calendar() -> MarketCalendar:
    return MarketCalendar()


@pytest.mark.parametrize(("exchange", "instant", "status", "change"), PUBLISHED)
def test_rf_18_im_41_as_the_exchange_published(
    calendar: MarketCalendar, exchange: str, instant: str, status: str, change: str
) -> None:
    found = calendar.status(exchange, datetime.fromisoformat(instant))
    assert found.status == status
    assert (found.next_close if status == "open" else found.next_open) == datetime.fromisoformat(change)


@pytest.mark.parametrize("instant", ["2025-12-06T11:00-06:00", "2025-12-25T12:00+00:00", "2026-01-01T00:00Z"])
def test_c_35_crypto_never_closes(calendar: MarketCalendar, instant: str) -> None:
    found = calendar.status("24/7", datetime.fromisoformat(instant))
    assert (found.status, found.next_open, found.next_close) == ("open", None, None)
