"""``recuerdo memory``: the user's rights, and memory out of the house and back (IM-43, OR-6)."""

import sqlite3
from pathlib import Path

import pytest

from tests.recuerdo.command import Command
from tests.recuerdo.test_cli import run, stored

__all__ = ["run", "stored"]


@pytest.mark.usefixtures("stored")
def test_im_43_remember_recall_correct_and_why(run: Command) -> None:
    kept = run("memory", "remember", "Soy alérgica a las plumas", "--user", "garcia", "--json").document
    found = run("memory", "recall", "alergias", "--user", "garcia", "--json").document
    assert [(hit["id"], hit["text"]) for hit in found] == [(kept["id"], "Soy alérgica a las plumas")]
    assert run("memory", "recall", "alergias", "--user", "lopez", "--json").document == []
    corrected = run("memory", "correct", "1", "Soy alérgica al polen", "--user", "garcia")
    assert (corrected.code, "polen" in corrected.out) == (0, True)
    why = run("memory", "why", kept["id"], "--user", "garcia", "--json").document
    assert why["text"] == "Soy alérgica al polen"
    assert [text.partition(": ")[2] for text in why["history"]] == ["Soy alérgica a las plumas"]
    assert run("memory", "why", "1", "--user", "garcia").code == 0
    unknown = run("memory", "why", "9", "--user", "garcia")
    assert (unknown.code, unknown.out, unknown.err.count("\n")) == (1, "", 1)


@pytest.mark.usefixtures("stored")
def test_im_30_a_text_that_is_too_long_is_refused(run: Command) -> None:
    refused = run("memory", "remember", "x" * 4_001, "--user", "garcia")
    assert refused.code == 1
    assert "4000" in refused.err.replace(",", "")


@pytest.mark.usefixtures("stored")
def test_im_43_forget_all_asks_first_and_leaves_nothing(run: Command) -> None:
    run("memory", "remember", "Soy alérgica a las plumas", "--user", "garcia")
    run("memory", "remember", "Prefiero pisos altos", "--user", "lopez")
    asked = run("memory", "forget-all", "--user", "garcia")
    assert (asked.code, "--yes" in asked.err) == (1, True)
    assert len(run("memory", "recall", "plumas", "--user", "garcia", "--json").document) == 1
    gone = run("memory", "forget-all", "--user", "garcia", "--yes", "--json").document
    assert gone["remembered"] == 1
    exported = run("memory", "export", "--user", "garcia").document
    assert not any(exported.values())
    assert len(run("memory", "recall", "pisos", "--user", "lopez", "--json").document) == 1


@pytest.mark.usefixtures("stored")
def test_or_6_export_db_and_import_db(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    kept = run("memory", "remember", "Prefiero pisos altos", "--user", "garcia", "--json").document
    assert run("memory", "export-db", str(file), "--json").document["rows"]["user_memory"] == 1
    again = run("memory", "export-db", str(file))
    assert (again.code, str(file) in again.err) == (1, True)
    with sqlite3.connect(file) as connection:
        assert connection.execute("select id from user_memory").fetchall() == [(kept["id"],)]
    run("memory", "forget-all", "--user", "garcia", "--yes")
    imported = run("memory", "import-db", str(file), "--actor", "operator", "--json").document
    assert imported["rows"]["user_memory"] == 1
    found = run("memory", "recall", "pisos", "--user", "garcia", "--json").document
    assert [hit["id"] for hit in found] == [kept["id"]]
    assert run("memory", "import-db", str(tmp_path / "no.db"), "--actor", "operator").code == 1


@pytest.mark.usefixtures("stored")
def test_c_10_reindex_writes_the_vectors_anew(run: Command) -> None:
    run("memory", "remember", "Prefiero pisos altos", "--user", "garcia")
    assert run("memory", "reindex", "--json").document == {"indexed": 1}


@pytest.mark.usefixtures("stored")
def test_im_43_a_preference_is_corrected_as_the_kind_that_it_is(run: Command) -> None:
    run("chat", "--user", "ana", "--message", "Prefiero velas de 4h. Siempre mostrar disclaimer.")
    run("memory", "correct", "show_disclaimers", "no", "--user", "ana")
    run("memory", "correct", "preferred_timeframe", "1d", "--user", "ana")
    listed = run("memory", "list", "--user", "ana", "--json").document["preferences"]
    values = {preference["key"]: preference["value"] for preference in listed}
    assert (values["show_disclaimers"], values["preferred_timeframe"]) == (False, "1d")
