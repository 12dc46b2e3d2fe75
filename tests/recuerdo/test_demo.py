from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from recuerdo.demo.clock import DEMO_TENANT, clock_of
from recuerdo.demo.player import Answered, Event, HistoryBuilt, Opened, SceneBegan, play_trading
from recuerdo.turn import Turn

Scenes = dict[str, list[Answered]]


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)


def by_scene(events: list[Event]) -> Scenes:
    scenes: Scenes = {}
    for event in events:
        match event:
            case SceneBegan(scene):
                scenes[scene.requirement] = []
            case Answered():
                scenes[list(scenes)[-1]].append(event)
    return scenes


def prompt(turn: Turn) -> str:
    messages: list[AnyMessage] = turn.request["messages"]
    return "\n".join(str(message.text) for message in messages)


def check_rf_25(answers: list[Answered]) -> None:
    follow_up = answers[1]
    assert follow_up.turn.record.symbols == ["AAPL"]
    assert "48,000,000" in follow_up.reply


def check_rf_26(answers: list[Answered]) -> None:
    yesterday, today = (answer.turn for answer in answers)
    assert yesterday.conversation != today.conversation
    assert today.context["preferences"]["show_disclaimers"] is True
    assert today.reply.count("Esto no es asesoramiento financiero.") == 1


def check_rf_27(answers: list[Answered]) -> None:
    for said in ("TSLA", "240", "-100.00"):
        assert said in answers[0].reply
    assert "AAPL" not in prompt(answers[0].turn)


def check_rf_28(answers: list[Answered]) -> None:
    record = answers[0].turn.record
    assert record.number == 16
    assert record.estimate["before"] > 6000 >= record.estimate["input_tokens"]
    assert "history" in [step.block for step in record.steps]
    assert record.summary_covers >= 20
    assert "10%" in answers[0].reply


def check_rf_29(answers: list[Answered]) -> None:
    market: dict[str, Any] = answers[0].turn.context["market"]
    assert market["status"] == "closed"
    for said in ("cerrado", "paper trading", "lunes 8 de diciembre de 2025, 08:30"):
        assert said in answers[0].reply


def test_rf_25_to_rf_29_play_through_the_real_graph_twice(stored: None) -> None:
    first = list(play_trading())
    second = list(play_trading())
    for events in (first, second):
        assert isinstance(events[0], Opened) and events[0].offline
        assert [event.messages for event in events if isinstance(event, HistoryBuilt)] == [30]
        scenes = by_scene(events)
        assert list(scenes) == ["RF-25", "RF-26", "RF-27", "RF-28", "RF-29"]
        check_rf_25(scenes["RF-25"])
        check_rf_26(scenes["RF-26"])
        check_rf_27(scenes["RF-27"])
        check_rf_28(scenes["RF-28"])
        check_rf_29(scenes["RF-29"])
    seen = [{event.turn.conversation for event in e if isinstance(event, Answered)} for e in (first, second)]
    assert not seen[0] & seen[1]
    # The preference of the first run's RF-26 stays, so the second run has it from its first reply on.
    disclaimers = [by_scene(e)["RF-25"][0].reply.count("asesoramiento") for e in (first, second)]
    assert disclaimers == [0, 1]


def test_rf_28_goal_is_only_in_the_summary(stored: None) -> None:
    """The goal stands in message 3, which has long left the window: only the summary can bring it."""
    turn = by_scene(list(play_trading()))["RF-28"][0].turn
    holding = [str(m.text) for m in turn.request["messages"] if "10% anual" in str(m.text)]
    assert holding
    assert all("<summary>" in said for said in holding)


def test_whoever_looks_at_the_demo_later_does_so_on_its_clock() -> None:
    clock = clock_of(DEMO_TENANT)
    assert clock is not None
    assert clock().date().isoformat() == "2025-12-06"
    assert clock_of("default") is None
