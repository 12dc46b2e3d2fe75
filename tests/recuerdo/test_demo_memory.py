"""``recuerdo demo memory``: learnt, recalled, corrected, expired, published, the tool, and the user's rights."""

from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

import pytest
from typer.testing import CliRunner

from recuerdo.cli import app
from recuerdo.demo import memory
from recuerdo.demo.clock import MEMORY_TENANT, running_from
from recuerdo.demo.memory import (
    AllForgotten,
    Audited,
    Explained,
    Exported,
    MemoryEvent,
    MemorySaid,
    MemorySceneBegan,
    Published,
    PublishRefused,
    Ranked,
    Stands,
    play_memory,
)
from recuerdo.demo.memory_script import load_memory_script
from recuerdo.opening import open_agent
from tests.databases import Databases

T = TypeVar("T")
Played = list[list[MemoryEvent]]
"""The events of each scene."""
ALLERGY, GUESS = "Soy alérgica a las nueces", "Creo que soy intolerante a la lactosa"
HOTELS, ADDRESS = "Creo que prefiero los hoteles pequeños", "Ya no vivo en Bilbao, ahora vivo en Vigo"
HOTELS_FOR_SURE = "prefiero los hoteles pequeños"
GOAL = "Mi objetivo es correr un maratón en abril"


@pytest.fixture(scope="module")
def played(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """What happened in each scene, after a run that was broken off on the same database."""
    with pytest.MonkeyPatch.context() as patch, databases.lent() as url:
        patch.setenv("DATABASE_URL", url)
        patch.setenv("RECUERDO_DATA", str(tmp_path_factory.mktemp("data")))
        for event in play_memory():
            if isinstance(event, Explained):
                break
        played = by_scene(list(play_memory()))
        assert_nothing_is_left()
        return played


def assert_nothing_is_left() -> None:
    script = load_memory_script()
    with open_agent(tenant=MEMORY_TENANT, clock=running_from(script.scenes[-1].visits[-1].at)) as agent:
        for user in (script.user, script.other):
            assert not any(agent.run_sync(agent.memory.export(user=user)).values())


def by_scene(events: Sequence[MemoryEvent]) -> Played:
    scenes: Played = []
    for event in events:
        if isinstance(event, MemorySceneBegan):
            scenes.append([])
        scenes[-1].append(event)
    return scenes


def those(events: Sequence[MemoryEvent], kind: type[T]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


def test_rf_7_rf_8_what_is_said_in_passing_is_learnt(played: Played) -> None:
    (stands,) = those(played[0], Stands)
    assert {key: one.value for key, one in stands.preferences.items()} == {"communication_style": "brief"}
    assert {one.text for one in stands.memories} == {ALLERGY, "Vivo en Bilbao", GOAL}
    assert {one.status for one in stands.memories} == {"confirmed"}
    assert not any(said.recalled for said in those(played[0], MemorySaid))


def test_rf_26_et_5_another_conversation_recalls_what_bears_on_it(played: Played) -> None:
    before = those(played[0], MemorySaid)[0].turn.conversation
    dessert, race = those(played[1], MemorySaid)
    for said, ranked, text in zip((dessert, race), those(played[1], Ranked), (ALLERGY, GOAL), strict=True):
        assert said.turn.conversation != before
        assert f"- {text}" in said.recalled and text in said.turn.reply
        assert ranked.hits[0].memory.text == text
        assert ranked.in_prompt == set(said.turn.record.memories) < {str(h.memory.id) for h in ranked.hits}
        assert [h.score for h in ranked.hits] == sorted((h.score for h in ranked.hits), reverse=True)
    assert f"- {GOAL}" not in dessert.recalled and f"- {ALLERGY}" not in race.recalled
    (why,) = [one.explanation for one in those(played[1], Explained)]
    assert why.message is not None and why.message.content.endswith(f"{ALLERGY}.")


def test_a_25_im_43_corrected_confirmed_and_forgotten(played: Played) -> None:
    (stands,) = those(played[2], Stands)
    assert {one.text for one in stands.memories} == {ALLERGY, ADDRESS}
    address, allergy = [one.explanation for one in those(played[2], Explained)]
    assert [old.text for old in address.history] == ["Vivo en Bilbao"]
    assert (list(allergy.history), [one.action for one in allergy.audit]) == ([], ["added", "confirmed"])
    records = [said.turn.record for said in those(played[2], MemorySaid)]
    assert [(len(one.learnt), len(one.confirmed), len(one.forgotten)) for one in records] == [
        (1, 0, 0),
        (0, 1, 0),
        (0, 0, 1),
    ]


def test_or_8_or_10_rf_32_guesses_expire_unless_they_are_said_again(played: Played) -> None:
    at_first, after_7_days, after_90_days = those(played[3], Stands)
    statuses = {one.text: one.status for one in at_first.memories}
    assert (statuses[GUESS], statuses[HOTELS]) == ("low", "low")
    assert {one.text for one in after_7_days.memories} == {ALLERGY, ADDRESS, HOTELS_FOR_SURE}
    assert {one.text for one in after_90_days.memories} == {ALLERGY}
    assert after_90_days.preferences == {}
    guess = those(played[3], Audited)[0]
    assert [(one.action, one.actor) for one in guess.entries] == [("added", "nora"), ("expired", "worker")]


def test_or_11_or_12_only_a_supervisor_publishes_and_it_is_audited(played: Played) -> None:
    (refused,), (published,) = those(played[3], PublishRefused), those(played[3], Published)
    assert (refused.actor, published.actor) == ("nora", "marta")
    kept = published.memory
    assert (kept.text, kept.status, kept.expires_at) == (ALLERGY, "published", None)
    last = those(played[3], Audited)[1].entries[-1]
    assert (last.action, last.actor, last.item_id) == ("published", "marta", str(kept.id))
    assert (last.previous_status, last.new_status, bool(last.content_hash)) == (
        "confirmed",
        "published",
        True,
    )


def test_et_3_et_16_et_18_et_20_et_22_the_tool_says_its_exact_texts(played: Played) -> None:
    nora = [call for said in those(played[4], MemorySaid) if said.user == "nora" for call in said.calls]
    added, found, updated, found_again, deleted, again = [dict(call.answer) for call in nora]
    memory_id = str(nora[2].arguments["memory_id"])
    may, june = ("La revisión del coche es en mayo", "La revisión del coche es en junio")
    assert added == {"result": f"Memory added for user_id nora: {may} (memory_id: {memory_id})"}
    assert found == {"result": f"- {may} (memory_id: {memory_id})"}
    assert updated == {"result": f"Memory updated for user_id nora: {june} (memory_id: {memory_id})"}
    assert found_again == {"result": f"- {june} (memory_id: {memory_id})"}
    assert deleted == {"result": f"Memory with memory_id {memory_id} deleted for user_id nora"}
    assert again == {"error": f"No memory found with memory_id {memory_id} for user_id nora"}


def test_or_7_et_6_et_29_another_user_sees_nothing_of_it(played: Played) -> None:
    (said,) = [one for one in those(played[4], MemorySaid) if one.user == "teo"]
    found, updated = [dict(call.answer) for call in said.calls]
    text, memory_id = (said.calls[0].arguments["query"], said.calls[1].arguments["memory_id"])
    assert found == {"result": f"No memories found for user_id teo with query: {text}"}
    assert updated == {"error": f"No memory found with memory_id {memory_id} for user_id teo"}
    assert (said.recalled, those(played[4], Stands)[0].memories) == ([], [])


def test_or_3_or_5_level_1_shows_while_it_runs_and_goes_with_the_turn(
    played: Played,
) -> None:
    for said in those(played[4], MemorySaid):
        assert said.during is not None and said.during.status == "running"
        asked = [{"tool": "MemoryTool", "arguments": dict(call.arguments)} for call in said.calls]
        assert said.during.calls[-len(asked) :] == asked
        assert said.during.intent and said.text in [one["text"] for one in said.during.thread]
    assert all(said.after is None for scene in played for said in those(scene, MemorySaid))


def test_im_43_c_17_nothing_of_hers_is_left_and_his_stays(played: Played) -> None:
    before, hers, his = those(played[5], Stands)
    assert [one.text for one in before.memories] == [ALLERGY]
    assert (hers.memories, hers.preferences, hers.symbols) == ([], {}, [])
    assert [one.text for one in his.memories] == ["Vivo en Lugo"]
    exported, empty = those(played[5], Exported)
    assert exported.rows["user_memory"] == 1 and exported.rows["conversations"] > 1
    assert set(empty.rows.values()) == {0}
    forgotten = those(played[5], AllForgotten)[0].gone
    assert (forgotten.remembered, forgotten.conversations) == (1, exported.rows["conversations"])
    asked = those(played[5], MemorySaid)[-1]
    assert asked.recalled == [] and "nueces" not in asked.turn.reply
    (audit,) = those(played[5], Audited)
    assert (audit.entries[-1].action, audit.entries[-1].actor) == ("forgotten", "nora")


SHOWN = ("expired · worker", "confirmed → published", "Memory added for user_id nora: ", f"- {ALLERGY}")


def shown(monkeypatch: pytest.MonkeyPatch, locale: str) -> str:
    monkeypatch.setenv("LC_ALL", locale)
    result = CliRunner().invoke(app, ["demo", "memory"])
    assert result.exit_code == 0
    return result.stdout


def test_the_command_plays_it_in_spanish_and_in_another_layout(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("RECUERDO_LAYOUT", "tail_user")
    text = shown(monkeypatch, "es_MX.UTF-8")
    for said in (*SHOWN, "hasta 2025-11-05 decía: «Vivo en Bilbao»", "Exportado de nora: nada"):
        assert said in text


def test_the_command_shows_what_was_played_in_english(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "play_memory", lambda: chain(*played))
    text = shown(monkeypatch, "en_US.UTF-8")
    for said in (*SHOWN, "until 2025-11-05 it said: “Vivo en Bilbao”", "Exported of nora: nothing"):
        assert said in text
    asked = [said.text for scene in played for said in those(scene, MemorySaid)]
    assert sum(f"> {one}" in text for one in asked) == len(asked)
