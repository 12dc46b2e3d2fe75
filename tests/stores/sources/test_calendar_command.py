"""``recuerdo market`` with a time zone, and what it keeps for the next time (RF-18, IM-41)."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recuerdo.cli import app
from recuerdo.state.errors import InputError

SATURDAY = "2025-12-06T11:00:00-06:00"


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECUERDO_DATA", str(tmp_path))


def test_im_41_the_next_opening_in_a_zone_of_choice(tmp_path: Path) -> None:
    asked = ["market", "XNYS", "--at", SATURDAY, "--zone", "America/Mexico_City", "--json"]
    first, again = (CliRunner().invoke(app, asked) for _ in range(2))
    assert first.exit_code == again.exit_code == 0
    assert first.stdout == again.stdout
    assert json.loads(first.stdout) == {
        "exchange": "XNYS",
        "open": False,
        "at": SATURDAY,
        "next_open": "2025-12-08T08:30:00-06:00",
        "next_close": None,
    }
    assert len(list((tmp_path / "calendars").iterdir())) == 1


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../etc/passwd", "x" * 1000])
def test_an_unknown_zone_is_a_clear_error(zone: str) -> None:
    result = CliRunner().invoke(app, ["market", "24/7", "--at", SATURDAY, "--zone", zone])
    assert isinstance(result.exception, InputError)
    assert "America/Mexico_City" in str(result.exception)
    assert len(str(result.exception)) < 200
