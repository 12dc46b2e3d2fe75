"""The measurements on LoCoMo stay alive: run by their command on a made-up conversation in its format."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recuerdo.cli import app
from recuerdo.state.errors import InputError

SESSIONS, TURNS = 30, 14
HOBBIES = ("pottery", "rowing", "chess", "baking", "archery", "knitting", "sailing", "origami", "fencing")
PLACES = ("Lima", "Oslo", "Quito", "Dakar", "Hanoi", "Tunis", "Perth", "Malmö", "Turin", "Sofia")


def told(number: int) -> str:
    """What turn ``number`` says: no two say the same."""
    hobby, place = HOBBIES[number % len(HOBBIES)], PLACES[number % len(PLACES)]
    return f"On trip {number} I met a friend from {place} and we spent the whole afternoon on {hobby} again."


def conversation() -> dict[str, Any]:
    """Two speakers over 30 sessions: about 12,000 tokens, twice of what a request takes."""
    talk: dict[str, Any] = {"speaker_a": "Noa", "speaker_b": "Ivo"}
    for session in range(1, SESSIONS + 1):
        talk[f"session_{session}_date_time"] = f"1:56 pm on {session % 28 + 1} May, 2023"
        talk[f"session_{session}"] = [
            {
                "speaker": ("Noa", "Ivo")[place % 2],
                "dia_id": f"D{session}:{place + 1}",
                "text": told(session * TURNS + place),
            }
            for place in range(TURNS)
        ]
    talk["session_1"][0]["text"] = "My grandmother left me her violin, and I named it Amaranta."
    talk["session_2"][3]["text"] = "I keep bees on the roof, three hives of them."
    return talk


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of one conversation with questions about its beginning and its end."""
    last = f"D{SESSIONS}:{TURNS}"
    questions = [
        {"question": "What did Noa name the violin?", "evidence": ["D1:1"], "category": 4},
        {"question": "Where does Ivo keep bees?", "evidence": ["D2:4"], "category": 4},
        {"question": "Are the bees near the last trip?", "evidence": ["D2:4", last], "category": 1},
        {"question": "What did they do last?", "evidence": [last], "category": 2},
        {"question": "What is nowhere?", "evidence": [], "category": 5},
    ]
    path = tmp_path_factory.mktemp("locomo") / "talks.json"
    talk = {"sample_id": "talk-1", "conversation": conversation(), "qa": questions}
    path.write_text(json.dumps([talk]), encoding="utf-8")
    return path


def bench(name: str, data: Path) -> dict[str, Any]:
    """The figures of ``recuerdo bench NAME``."""
    result = CliRunner().invoke(app, ["bench", name, "--data", str(data), "--json"], catch_exceptions=False)
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


@pytest.fixture(scope="module")
def context(data: Path) -> dict[str, Any]:
    return bench("context", data)


def test_context_finds_old_evidence_that_the_last_messages_have_lost(context: dict[str, Any]) -> None:
    assert context["questions"] == 4
    assert context["recuerdo"]["recall_4000"]["all"] == 100
    last = context["peers"]["last_messages"]["alone"]
    assert last["any_by_category"] == {"multi-hop": 100, "single-hop": 0, "temporal": 100}
    assert last["all_by_category"] == {"multi-hop": 0, "single-hop": 0, "temporal": 100}


def test_context_gives_everybody_the_same_tokens(context: dict[str, Any]) -> None:
    systems = [context["recuerdo"], *context["peers"].values()]
    largest = [spent["tokens_max"] for system in systems for spent in system.values()]
    assert max(largest) <= context["target_tokens"] == 6000
    assert min(spent["tokens_max"] for spent in context["peers"]["last_messages"].values()) > 5500


def test_context_names_the_peers_that_are_not_installed(context: dict[str, Any]) -> None:
    left_out = {entry.partition(":")[0] for entry in context["left_out"]}
    assert {"last_messages", "trim_messages"} <= context["peers"].keys()
    assert {*context["peers"], *left_out} >= {"SummarizationMiddleware", "summarize_messages"}


def test_recall_gives_shares_and_times(data: Path) -> None:
    figures = bench("recall", data)
    assert figures["questions"] == 4
    assert figures["any_at"]["10"] >= 75 and figures["frac_at"]["50"] <= figures["any_at"]["50"]
    assert figures["ms_p50"] > 0 and figures["peers"].keys() >= {"bm25", "chroma"}


def test_context_without_data_is_refused() -> None:
    result = CliRunner().invoke(app, ["bench", "context"])
    assert isinstance(result.exception, InputError) and "--data" in str(result.exception)
