"""Files of platform data: what spreadsheets and programs write, and every slip by its line."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from recuerdo.state.errors import InputError
from recuerdo.stores.sources.files import MOST_MEGABYTES, MOST_PROBLEMS, DataError, Reading, read_folder
from recuerdo.stores.sources.rows import (
    Alert,
    CourseProgress,
    EconomicEvent,
    Position,
    Profile,
    Quote,
    Row,
    Signal,
)

AS_OF = "2025-12-05T10:29:30-06:00"
HEADER = "symbol,price,currency,as_of"
GOOD = f"{HEADER}\nAAPL,185.50,USD,{AS_OF}\n"

Read = Callable[..., dict[type[Row], list[Any]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The rows of files that are given by name, with a dot where an underscore stands."""

    def read_files(reading: Reading | None = None, **files: str | bytes) -> dict[type[Row], list[Any]]:
        for name, content in files.items():
            raw = content.encode() if isinstance(content, str) else content
            (tmp_path / name.replace("_", ".")).write_bytes(raw)
        found: dict[type[Row], list[Any]] = {}
        for model, rows in read_folder(tmp_path, reading or Reading()):
            found.setdefault(model, []).extend(rows)
        return found

    return read_files


def problems(read: Read, **files: str | bytes) -> list[str]:
    with pytest.raises(DataError) as raised:
        read(**files)
    assert "Nothing was loaded" in str(raised.value)
    return [problem.en for problem in raised.value.problems]


def test_rf_63_every_kind_from_csv_and_from_json(read: Read) -> None:
    found = read(
        profiles_csv="user,name,subscription,risk_profile,experience,language,timezone,entitlements\n"
        "user-123,Carlos,premium,moderate,intermediate,es,America/Mexico_City,ml_signals|beta\n",
        quotes_csv=GOOD,
        positions_json=json.dumps(
            [{"user": "u", "symbol": "TSLA", "quantity": "20", "avg_price": 250, "currency": "USD"}]
        ),
        alerts_csv="user,id,symbol,condition,price,active\nu,a1,TSLA,<=,240,false\n",
        signals_json='[{"symbol": "AAPL", "prediction": "bullish", "confidence": 0.72,'
        f' "updated_at": "{AS_OF}"}}]',
        education_csv=f"user,course,topic,percent,next_lesson,updated_at\nu,Curso RSI,RSI,60,,{AS_OF}\n",
        events_csv="event,date,impact\nFed Minutes,2025-12-06,high\n",
    )
    assert list(found) == [Profile, Quote, Position, Alert, Signal, CourseProgress, EconomicEvent]
    assert found[Profile][0].entitlements == ("ml_signals", "beta")
    assert found[Alert][0].active is False
    assert (found[CourseProgress][0].percent, found[CourseProgress][0].next_lesson) == (60, None)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace(",", ";").encode(),
        GOOD.replace("symbol,price", " Symbol , PRICE ").encode(),
        GOOD.rstrip("\n").encode(),
        (GOOD + "\n,,,\n\n").encode(),
    ],
    ids=["byte order mark", "Windows", "semicolons", "capitals", "no last line end", "empty lines"],
)
def test_what_spreadsheets_write_is_read(read: Read, content: bytes) -> None:
    (quote,) = read(quotes_csv=content)[Quote]
    assert (quote.symbol, str(quote.price), quote.as_of) == (
        "AAPL",
        "185.50",
        datetime.fromisoformat(AS_OF),
    )


def test_decimals_are_exact_also_from_json_numbers(read: Read) -> None:
    text = f'[{{"symbol":"AAPL","price":185.10,"currency":"USD","as_of":"{AS_OF}","more":{{"pe":28.10}}}}]'
    (quote,) = read(quotes_json="\ufeff" + text)[Quote]
    assert str(quote.price) == "185.10"
    assert quote.more == {"pe": "28.10"}


def test_c_21_every_instant_has_an_offset_or_the_zone_that_was_said(read: Read) -> None:
    naive = f"{HEADER}\nAAPL,1,USD,2025-12-05T10:29:30\nTSLA,1,USD,2025-12-05T16:29:30Z\n"
    assert problems(read, quotes_csv=naive) == [
        "quotes.csv:2: as_of: it has no offset, such as -06:00 or Z; or say in which zone instants without"
        " one are"
    ]
    found = read(Reading(zone=ZoneInfo("America/Mexico_City")), quotes_csv=naive)[Quote]
    assert {quote.as_of.astimezone(UTC) for quote in found} == {datetime(2025, 12, 5, 16, 29, 30, tzinfo=UTC)}
    assert all(quote.as_of.utcoffset() is not None for quote in found)


def test_symbols_are_spelled_in_one_way(read: Read) -> None:
    spell = Reading(spell=lambda symbol: "BTCUSD" if symbol.startswith("BTC") else symbol)
    twice = f"{HEADER}\nBTC,1,USD,{AS_OF}\nBTC-USD,2,USD,{AS_OF}\n"
    with pytest.raises(DataError, match=r"quotes.csv:3: the same row as in line 2 \(BTCUSD\)"):
        read(spell, quotes_csv=twice)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("price", "185,50", "number, with a decimal point"),
        ("price", "-1", "must be 0 or more"),
        ("price", "NaN", "finite"),
        ("price", "1e400", "too large"),
        ("price", "1e-20000", "too small"),
        ("price", "1_000", "must be a number"),
        ("symbol", "", "it is missing"),
        ("symbol", "A\0B", "control characters"),
        ("symbol", "A" * 201, "at most 200"),
        ("as_of", "1764952170", "ISO 8601"),
        ("as_of", "05/12/2025 10:29", "ISO 8601"),
        ("as_of", "9999-12-31T23:59:59-06:00", "1900 to 2199"),
        ("as_of", "2025-02-30T10:00:00Z", "ISO 8601"),
    ],
)
def test_a_wrong_cell_is_named_by_file_line_and_field(
    read: Read, field: str, value: str, reason: str
) -> None:
    cells = {"symbol": "AAPL", "price": "1", "currency": "USD", "as_of": AS_OF, field: f'"{value}"'}
    content = f"{HEADER}\nTSLA,1,USD,{AS_OF}\n{','.join(cells.values())}\n"
    (problem,) = problems(read, quotes_csv=content)
    assert problem.startswith(f"quotes.csv:3: {field}: ") and reason in problem


def test_a_text_over_several_lines_does_not_shift_the_numbers(read: Read) -> None:
    content = 'event,date,impact,country\nFed,2025-12-06,high,"a\nb"\nJobs,soon,high,\n'
    (problem,) = problems(read, events_csv=content)
    assert problem.startswith("events.csv:4: date: ")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("symbol,price,currency,as_of,colour\n", "quotes.csv:1: colour: unknown column"),
        ("symbol,price,price,currency,as_of\n", "quotes.csv:1: price: the column is there twice"),
        ("symbol,price,currency\n", "quotes.csv:1: as_of: the column is missing"),
        ("", "quotes.csv:1: it is empty"),
        ("\n \n", "quotes.csv:1: it is empty"),
        (GOOD + f"TSLA,1,USD,{AS_OF},more\n", "quotes.csv:3: it has more cells"),
        (GOOD + GOOD.splitlines()[1], "quotes.csv:3: the same row as in line 2 (AAPL)"),
        (GOOD + 'TSLA,"1', "quotes.csv:3: it is not valid CSV"),
        (GOOD.encode("utf-16"), "quotes.csv:1: it is not UTF-8"),
        (GOOD.replace("USD", "é").encode("latin-1"), "quotes.csv:1: it is not UTF-8"),
    ],
)
def test_a_wrong_table(read: Read, content: str | bytes, expected: str) -> None:
    (problem,) = problems(read, quotes_csv=content)
    assert problem.startswith(expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "events.json:1: it is empty"),
        ("{}", "events.json:1: it must be a JSON list"),
        ("[1]", "events.json:1: it must be a JSON list"),
        ("[\n\n{]", "events.json:3: it is not valid JSON"),
        ("[{}\n{}]", "events.json:2: it is not valid JSON"),
        ("[] x", "events.json:1: it is not valid JSON"),
        ('[\n{"event": "x", "event": "y"}]', "events.json:2: it is not valid JSON"),
        ('[\n{"event": NaN}]', "events.json:2: it is not valid JSON"),
        (f'[\n{{"event": {"9" * 5000}}}]', "events.json:2: it is not valid JSON"),
        ("[" + "[" * 100_000, "events.json:1: it is not valid JSON"),
        (
            '[{"event": "a", "date": "2025-12-06", "impact": "high"},\n'
            '{"event": "b", "date": "2025-12-06", "impact": "huge"}]',
            "events.json:2: impact: it must be one of: 'low', 'medium', 'high'",
        ),
        ('[{"event": 7, "date": "2025-12-06", "impact": "low"}]', "events.json:1: event: it must be a text"),
        ('[{"event": "a", "date": 20251206, "impact": "low"}]', "events.json:1: date: it must be a date"),
        (
            '[{"event": "a", "date": "2025-12-06", "impact": "low", "b": 1}]',
            "events.json:1: b: there is no such field",
        ),
    ],
)
def test_wrong_json(read: Read, content: str, expected: str) -> None:
    found = problems(read, events_json=content)
    assert found[-1].startswith(expected)


def test_an_empty_list_and_a_table_without_rows_are_nothing(read: Read) -> None:
    assert read(events_json=" [ ] \n", quotes_csv=f"{HEADER}\n") == {}


def test_several_problems_at_once_and_not_too_many(read: Read) -> None:
    lines = "".join(f"S{n},x,USD,{AS_OF}\n" for n in range(100))
    found = problems(read, quotes_csv=f"{HEADER}\n{lines}", events_json="[1]")
    assert len(found) == MOST_PROBLEMS + 1
    assert found[0].startswith("quotes.csv:2: price: ") and "more" in found[-1]


def test_nothing_is_given_once_something_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "quotes.csv").write_text(f"{HEADER}\nAAPL,x,USD,{AS_OF}\n")
    (tmp_path / "events.csv").write_text("event,date,impact\nFed,2025-12-06,high\n")
    rows = read_folder(tmp_path, Reading())
    with pytest.raises(DataError):
        next(rows)


def test_files_whose_names_are_slips(read: Read) -> None:
    found = problems(read, alertas_csv="a,b\n", quotes_csv=GOOD, quotes_json="[]", notes_txt="anything")
    assert found[0].startswith("alertas.csv:1: no file of that name is loaded")
    assert found[1] == "quotes.json:1: there is another file of the same; keep one only"
    assert len(found) == 2


def test_a_folder_that_is_not_there_or_has_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no folder"):
        next(read_folder(tmp_path / "none", Reading()))
    with pytest.raises(InputError, match="nothing to load"):
        next(read_folder(tmp_path, Reading()))
    (tmp_path / "quotes.csv").mkdir()
    with pytest.raises(DataError, match=r"quotes.csv:1: it is no regular file"):
        next(read_folder(tmp_path, Reading()))


@pytest.mark.parametrize("name", ["quotes.csv", "quotes.json"])
def test_rf_63_what_would_be_read_for_ever_is_not_opened(tmp_path: Path, name: str) -> None:
    make: dict[str, Callable[[Path], None]] = {
        "pipe": os.mkfifo,
        "device": lambda path: path.symlink_to("/dev/zero"),
        "no target": lambda path: path.symlink_to("nowhere"),
    }
    for kind, made in make.items():
        folder = tmp_path / kind
        folder.mkdir()
        made(folder / name)
        with pytest.raises(DataError, match=f"{name}:1: it (is no regular file|cannot be read)"):
            next(read_folder(folder, Reading()))


@pytest.mark.parametrize("name", ["quotes.csv", "quotes.json"])
def test_rf_63_a_file_that_is_too_large_is_not_read(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(MOST_MEGABYTES * 1_000_000 + 1)
    with pytest.raises(DataError, match=f"{name}:1: it is too large: at most {MOST_MEGABYTES} MB"):
        next(read_folder(tmp_path, Reading()))


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text(GOOD)
    (tmp_path / "quotes.csv").symlink_to("here.txt")
    assert next(read_folder(tmp_path, Reading()))[0] is Quote


@pytest.mark.parametrize(
    "broken",
    [
        '[{"user": "u"},]',
        '[{"user": "u",}]',
        '[{"user": "u"}',
        '[{"user": "u"}, {"user" 1}]',
        '[{"user": "u"}] []',
    ],
)
def test_broken_json_is_said_and_not_what_its_rows_seem_to_lack(read: Read, broken: str) -> None:
    assert problems(read, positions_json=broken) == ["positions.json:1: it is not valid JSON"]


def test_rf_18_a_market_without_a_calendar_and_a_clock_that_is_behind(read: Read) -> None:
    header = "user,name,subscription,risk_profile,experience,language,timezone,main_market\n"
    row = "u,Carlos,premium,moderate,intermediate,{},America/Mexico_City,{}\n"
    reading = Reading(now=datetime(2025, 12, 5, tzinfo=UTC), has_calendar={"XMEX"}.__contains__)
    with pytest.raises(DataError) as raised:
        read(
            reading,
            profiles_csv=header
            + row.format("klingon", "XMEX")
            + row.format("es", "ZZZZ").replace("u", "v", 1),
            quotes_csv=GOOD,
        )
    assert [problem.en for problem in raised.value.problems] == [
        "profiles.csv:2: language: it must be a language code, such as es or en-US",
        "profiles.csv:3: main_market: unknown market; write it as XNYS or XMEX",
        "quotes.csv:2: as_of: it is in the future; it must be an instant that has been",
    ]


def test_money_keeps_every_digit_up_to_a_bound(read: Read) -> None:
    content = f"{HEADER}\nAAPL,0.000000000000000000000001,USD,{AS_OF}\n"
    (quote,) = read(quotes_csv=content)[Quote]
    assert quote.price == Decimal("1e-24")
