"""The memory panel's settings: groups, ranges, texts, notices, drafts (LA-1 to LA-17, LA-24, LA-29, IM-8, IM-9)."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from recuerdo.panel import Panel
from recuerdo.state.errors import InputError, SettingsError
from recuerdo.state.plan import EventType, KeyEventSettings, Plan
from recuerdo.stores.plans import load_plan
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

ROUNDS, ENABLED, FULL = "memory.short_term.rounds", "memory.short_term.enabled", "memory.full_context.rounds"


@pytest.fixture
def panel() -> Panel:
    return Panel(load_plan("trading"))


def value(panel: Panel, path: str) -> Any:
    return next(s.value for group in panel.groups for s in group.settings if s.path == path)


def notices(panel: Panel, name: str) -> list[str]:
    return [notice.es for group in panel.groups if group.name == name for notice in group.notices]


def shown(panel: Panel, path: str) -> tuple[str, str]:
    (text,) = [s.shown for group in panel.groups for s in group.settings if s.path == path]
    assert text is not None
    return text.es, text.en


def test_la_1_exactly_three_groups_each_with_its_present_values(panel: Panel) -> None:
    assert [group.name for group in panel.groups] == ["short_term", "full_context", "key_events"]
    assert [group.title.es for group in panel.groups] == [
        "Memoria a corto plazo",
        "Contexto completo",
        "Eventos clave",
    ]
    data = json.loads(json.dumps(panel.as_data()))
    values = {s["path"]: s["value"] for group in data["groups"] for s in group["settings"]}
    assert values[ENABLED] is True and values[ROUNDS] == 30 and values[FULL] == 1
    assert values["key_events.enabled"] is False and values["key_events.types"] == []
    assert values["key_events.extraction.idle_minutes"] == 5
    assert values["key_events.extraction.message_threshold"] is None


def test_la_2_la_4_the_switch_has_the_exact_name_and_the_defaults(panel: Panel) -> None:
    switch, rounds = panel.groups[0].settings
    assert switch.label.es == "Habilitar las últimas N rondas del historial de chat"
    assert (switch.value, rounds.value, rounds.range) == (True, 30, (1, 200))


def test_la_10_full_context_is_shown_in_rounds(panel: Panel) -> None:
    assert shown(panel, FULL) == ("última 1 ronda", "last 1 round")
    assert shown(panel.changed({FULL: 2}), FULL) == ("últimas 2 rondas", "last 2 rounds")
    assert shown(panel.changed({FULL: 0}), FULL) == ("desactivado", "off")
    assert panel.groups[1].settings[0].range == (0, 5)


@pytest.mark.parametrize("rounds", range(6))
def test_la_11_0_to_5_is_saved(panel: Panel, rounds: int) -> None:
    assert panel.changed({FULL: rounds}).plan.memory.full_context.rounds == rounds


@pytest.mark.parametrize("wrong", [-1, 6, 1.5, "x", True, None, "1", [1], 10**30])
def test_la_11_im_9_anything_else_names_the_range_and_the_old_value_stays(panel: Panel, wrong: Any) -> None:
    panel = panel.changed({FULL: 2})
    with pytest.raises(SettingsError) as caught:
        panel.changed({FULL: wrong})
    sentence = caught.value.sentence
    assert sentence.es == (
        "«Contexto completo» no se ha guardado: debe ser un número entero del rango 0-5. Sigue en 2."
    )
    assert "range 0-5" in sentence.en
    assert value(panel, FULL) == panel.plan.memory.full_context.rounds == 2


@pytest.mark.parametrize("rounds", [1, 200])
def test_im_8_1_and_200_are_accepted(panel: Panel, rounds: int) -> None:
    assert value(panel.changed({ROUNDS: rounds}), ROUNDS) == rounds


@pytest.mark.parametrize("wrong", [0, 201, 1.5, "x", True, None, -1])
def test_im_8_others_are_refused_with_the_range(panel: Panel, wrong: Any) -> None:
    with pytest.raises(SettingsError, match="range 1-200") as caught:
        panel.changed({ROUNDS: wrong})
    assert caught.value.sentence.es.endswith("Sigue en 30.")


@pytest.mark.parametrize(
    ("path", "wrong", "limits"), [(ROUNDS, 201, "1-200"), (ROUNDS, 0, "1-200"), (FULL, 6, "0-5")]
)
def test_im_9_im_8_an_imported_plan_is_checked_alike(
    tmp_path: Path, path: str, wrong: int, limits: str
) -> None:
    raw = load_plan("trading").model_dump(mode="json")
    _, group, name = path.split(".")
    raw["memory"][group][name] = wrong
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(raw), encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_plan(str(file))
    assert path in str(caught.value) and limits in str(caught.value)


@pytest.mark.parametrize("wrong", ["x", 1, None])
def test_la_2_the_switch_is_on_or_off(panel: Panel, wrong: Any) -> None:
    with pytest.raises(SettingsError, match="true or false"):
        panel.changed({ENABLED: wrong})


def test_la_13_c_28_the_two_settings_do_not_affect_each_other(panel: Panel) -> None:
    fewer = panel.changed({ROUNDS: 5})
    assert value(fewer, FULL) == 1
    traced = fewer.changed({FULL: 3})
    assert value(traced, ROUNDS) == 5
    off = traced.changed({ENABLED: False})
    assert (value(off, FULL), value(off, ROUNDS)) == (3, 5)
    assert any("Sin efecto" in notice for notice in notices(off, "full_context"))


def test_la_17_more_than_two_rounds_bring_a_notice_with_the_recommendation(panel: Panel) -> None:
    for few in (0, 1, 2):
        assert notices(panel.changed({FULL: few}), "full_context") == []
    (notice,) = notices(panel.changed({FULL: 4}), "full_context")
    assert "tokens" in notice and "1 o 2 rondas" in notice


def test_la_29_a_switch_without_a_type_brings_a_hint(panel: Panel) -> None:
    on = panel.changed({"key_events.enabled": True})
    (hint,) = notices(on, "key_events")
    assert "al menos uno" in hint
    with_type = on.changed({"key_events.types": [{"name": "Reembolso", "description": "Pide su dinero."}]})
    assert notices(with_type, "key_events") == []
    assert with_type.plan.key_events.types == (EventType(name="Reembolso", description="Pide su dinero."),)


@pytest.mark.parametrize("agent_type", ["loop", "agent", "flow"])
def test_la_24_one_configuration_for_the_three_agent_types(agent_type: str) -> None:
    settings = KeyEventSettings(enabled=True, types=(EventType(name="Queja"),))
    changes: dict[str, Any] = {"key_events": settings, "agent_type": agent_type}
    panel = Panel(load_plan("trading").model_copy(update=changes))
    edited = panel.changed({"key_events.types": [{"name": "Reembolso"}]})
    assert value(panel, "key_events.types") == [{"name": "Queja", "description": ""}]
    assert value(edited, "key_events.types") == [{"name": "Reembolso", "description": ""}]
    assert edited.plan.agent_type == agent_type and edited.plan.key_events.enabled


def test_several_changes_are_all_or_nothing_and_an_unknown_one_is_named(panel: Panel) -> None:
    with pytest.raises(SettingsError):
        panel.changed({ROUNDS: 7, FULL: 9})
    assert value(panel, ROUNDS) == 30
    with pytest.raises(InputError, match="limits"):
        panel.changed({"limits.max_input": 9})


async def test_la_11_a_changed_setting_is_a_draft_that_acts_on_activation(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Hola."]))
    draft = agent.panel.changed({ENABLED: False}).plan
    assert isinstance(draft, Plan)
    await agent.send("Me llamo Ana", user="u", conversation="c")
    before = await agent.send("¿Y bien?", user="u", conversation="c")
    assert "Me llamo Ana" in str(before.request["messages"]), "the open agent goes on as it was"
    other = await open_agent(model=ScriptedModel(replies=["Hola."]), plan=draft)
    after = await other.send("¿Y bien?", user="u", conversation="c")
    assert after.record.draft
    assert "Me llamo Ana" not in str(after.request["messages"])
    assert value(other.panel, ENABLED) is False


async def test_la_7_in_preview_the_panel_says_that_empty_memory_is_normal(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Hola."]), mode="preview")
    (notice,) = agent.panel.notices
    assert "vacía" in notice.es and "empty" in notice.en
