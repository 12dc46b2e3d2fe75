"""Key events as a plan sets them: the exact dictionary, the words, the conditions (LA-24, LA-31, IM-2 to IM-7)."""

import unicodedata
from typing import Any

import pytest
import yaml

from recuerdo.state.errors import InputError, SettingsError
from recuerdo.state.key_events import (
    has_tools,
    hint,
    named_priority,
    named_status,
    named_type,
    tool_conditions,
)
from recuerdo.state.plan import EventType, KeyEventSettings, Plan, read_plan
from recuerdo.stores.plans import load_plan

NBSP = "\N{NO-BREAK SPACE}"


def settings(*names: str, **given: Any) -> KeyEventSettings:
    return KeyEventSettings(enabled=True, types=tuple(EventType(name=name) for name in names), **given)


def written(key_events: Any, **changes: Any) -> Plan:
    data = load_plan("trading").model_dump(mode="json")
    return read_plan(
        yaml.safe_dump({**data, "key_events": key_events, **changes}, allow_unicode=True), "p.yaml"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        "reembolso",
        "REEMBOLSO",
        "Reembolso ",
        " Reembolso",
        "Reembolso\n",
        "Reémbolso",
        "Queja",
        "",
        f"Reembolso{NBSP}",
        "Reembolso\N{ZERO WIDTH SPACE}",
        "\N{FULLWIDTH LATIN CAPITAL LETTER R}eembolso",
    ],
)
def test_la_30_la_31_a_21_only_the_exact_name_is_a_type(wrong: str) -> None:
    dictionary = settings("Reembolso", "Anomalía de la cuenta")
    assert named_type("Reembolso", dictionary) == "Reembolso"
    with pytest.raises(InputError) as caught:
        named_type(wrong, dictionary)
    said = f"Invalid event_type '{wrong}'. Allowed types: 'Reembolso', 'Anomalía de la cuenta'."
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "twins",
    [
        ("Reembolso", "reembolso"),
        ("Anomalía", "Anomalia"),
        ("Alta de cuenta", f"Alta{NBSP}de{NBSP}cuenta"),
        ("Alta de cuenta", "Alta  de cuenta"),
        ("Reembolso", "Reembolso "),
    ],
)
def test_la_31_names_that_differ_in_case_accent_or_space_are_types_apart(twins: tuple[str, str]) -> None:
    plan = written({"enabled": True, "types": [{"name": name, "description": ""} for name in twins]})
    assert [kind.name for kind in plan.key_events.types] == list(twins)
    for name in twins:
        assert named_type(name, plan.key_events) == name
        with pytest.raises(InputError):
            named_type(name, settings(*(other for other in twins if other != name)))


def test_la_31_the_same_letters_in_another_encoding_are_the_same_name() -> None:
    decomposed = unicodedata.normalize("NFD", "Anomalía")
    for configured in ("Anomalía", decomposed):
        for said in ("Anomalía", decomposed):
            assert named_type(said, settings(configured)) == "Anomalía"
    with pytest.raises(SettingsError, match="twice"):
        written({"types": [{"name": "Anomalía"}, {"name": decomposed}]})


def test_a_21_a_long_wrong_name_does_not_hide_the_allowed_ones() -> None:
    with pytest.raises(InputError, match="Allowed types: 'Reembolso'") as caught:
        named_type("x" * 5000, settings("Reembolso"))
    assert len(str(caught.value)) < 200


def test_im_2_the_four_statuses_and_no_other() -> None:
    for status in ("PENDING", "IN_PROGRESS", "RESOLVED", "CLOSED"):
        assert named_status(status) == status
    for wrong in ("DONE", "pending", "CLOSED ", ""):
        with pytest.raises(
            InputError, match="Allowed values: 'PENDING', 'IN_PROGRESS', 'RESOLVED', 'CLOSED'"
        ):
            named_status(wrong)


def test_im_3_four_severity_words_are_stored_as_constants() -> None:
    words = {"low": "LOW", "normal": "MEDIUM", "high": "HIGH", "urgent": "CRITICAL"}
    assert {word: named_priority(word) for word in words} == words
    for wrong in ("alta", "MEDIUM", "Low", ""):
        with pytest.raises(InputError, match="severity"):
            named_priority(wrong)


def test_im_6_im_7_a_20_c_34_settings_with_the_defaults_of_the_rows() -> None:
    default = load_plan("trading").key_events
    assert (default.enabled, default.types, default.injected_max) == (False, (), 5)
    assert (default.shared_across_assistants, default.closed_days, default.inject_resolved) == (
        False,
        90,
        True,
    )
    assert (default.extraction.idle_minutes, default.extraction.message_threshold) == (5, None)
    assert (default.extraction.model, default.extraction.rules) == (None, ())
    extraction = {"idle_minutes": 7, "message_threshold": 10, "model": "small", "rules": ["Solo pedidos"]}
    plan = written({"injected_max": 3, "extraction": extraction})
    assert plan.key_events.extraction.model_dump(mode="json") == extraction


@pytest.mark.parametrize(
    ("key_events", "complaint"),
    [
        ({"injected_max": 51}, "key_events.injected_max: .*0-50"),
        ({"closed_days": 0}, "key_events.closed_days: .*1-3650"),
        ({"extraction": {"idle_minutes": 0}}, "idle_minutes: .*1-1440"),
        ({"extraction": {"message_threshold": 0}}, "message_threshold: .*1-1000"),
        ({"types": [{"name": "A"}, {"name": "A"}]}, "twice"),
        ({"types": [{"name": " "}]}, "visible text on one line"),
        ({"types": [{"name": "a\nb"}]}, "visible text on one line"),
        ({"types": [{"name": "x" * 101}]}, "at most 100 characters"),
        ({"types": [{"name": ""}]}, "must not be empty"),
        ({"types": [{"description": "sin nombre"}]}, "it is missing"),
        ({"type": []}, "no such field"),
        ({"enabled": "yes"}, "true or false"),
    ],
)
def test_la_24_wrong_settings_are_refused_with_what_is_right(key_events: Any, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        written(key_events)


def test_la_24_the_three_agent_types_have_one_configuration() -> None:
    key_events = {"enabled": True, "types": [{"name": "Reembolso", "description": "Devolver dinero"}]}
    plans = [written(key_events, agent_type=kind) for kind in ("loop", "agent", "flow")]
    assert plans[0].key_events == plans[1].key_events == plans[2].key_events
    edited = plans[0].key_events.model_copy(update={"enabled": False})
    assert {plan.model_copy(update={"key_events": edited}).key_events.enabled for plan in plans} == {False}


def test_im_11_each_condition_is_told_as_met_or_not() -> None:
    plan = written({"enabled": True})
    assert {condition.name: condition.met for condition in tool_conditions(plan)} == {
        "enabled": True,
        "types": False,
        "agent_type": True,
    }
    assert not has_tools(plan)
    assert all(condition.sentence.es and condition.sentence.en for condition in tool_conditions(plan))


def test_la_29_the_switch_without_a_type_gives_a_hint_and_no_other_case_does() -> None:
    missing = hint(settings())
    assert missing and "at least one" in missing.en and "al menos uno" in missing.es
    assert hint(settings("Reembolso")) is None
    assert hint(KeyEventSettings()) is None
