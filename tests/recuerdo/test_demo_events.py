"""``recuerdo demo events``: an event is opened, goes on in another session, and is closed (LA-18 to LA-20, LA-22)."""

import pytest
from typer.testing import CliRunner

from recuerdo.cli import app
from recuerdo.demo.events import Kept, Said, SessionBegan, play_events


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)


def test_la_18_la_20_la_22_two_sessions_one_event_and_it_can_be_played_again(stored: None) -> None:
    ids = []
    for _ in range(2):
        happened = list(play_events())
        first, second = [one.conversation for one in happened if isinstance(one, SessionBegan)]
        assert first != second
        opened, thanks, back, closed, last = [one for one in happened if isinstance(one, Said)]
        (kept,) = [one.event for one in happened if isinstance(one, Kept)]
        ids.append(kept.id)
        assert (opened.called, back.called, closed.called) == (
            ["create_key_event"],
            ["update_key_event"],
            ["update_key_event"],
        )
        assert opened.events == [] and last.events == []
        for said in (thanks, back, closed):
            (line,) = said.events
            assert str(kept.id) in line
        assert back.turn.record.events == [str(kept.id)] and closed.turn.record.events == []
        assert "4471" in back.events[0] and "4471" not in back.text
        assert kept.status == "CLOSED" and kept.history is not None
        assert [one.session for one in kept.history] == [first, second, second]
        assert "4471" in back.turn.reply
    assert ids[0] != ids[1]


def test_the_command_shows_the_prompts_events(stored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "es_MX.UTF-8")
    result = CliRunner().invoke(app, ["demo", "events"])
    assert result.exit_code == 0
    for said in (
        "Ningún evento clave en el prompt.",
        "Eventos clave en el prompt:",
        "CLOSED",
        "create_key_event",
    ):
        assert said in result.stdout


@pytest.mark.parametrize("layout", ["tail_user", "single"])
def test_it_plays_in_every_layout(stored: None, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    monkeypatch.setenv("RECUERDO_LAYOUT", layout)
    assert [one.event.status for one in play_events() if isinstance(one, Kept)] == ["CLOSED"]
