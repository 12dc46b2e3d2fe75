"""What users read stands in Spanish and English, with the same places in both."""

import pickle
from pathlib import Path
from string import Formatter

import pytest
import yaml

import recuerdo.state as state_room
from recuerdo.state.errors import BudgetError, RecuerdoError, SettingsError
from recuerdo.state.sentences import Sentence, load_sentences

ROOT = Path(str(state_room.__file__)).resolve().parents[1]
FILES = sorted(
    path
    for room in ("recuerdo", "graph", "nodes", "stores", "state")
    for path in (ROOT / room).rglob("*sentences.yaml")
    if not (room == "recuerdo" and path.relative_to(ROOT).parts[1] in {"graph", "nodes", "stores", "state"})
)


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_sentence_is_in_both_languages_with_the_same_places(path: Path) -> None:
    table = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert table
    for key, texts in table.items():
        assert set(texts) == {"es", "en"}, key
        assert texts["es"].strip() and texts["en"].strip(), key
        assert places(texts["es"]) == places(texts["en"]), key


def test_the_files_of_all_rooms_are_looked_at() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES} >= {"graph", "nodes", "stores", "state"}


def test_places_are_filled_in_both_languages() -> None:
    said = load_sentences("recuerdo.state.summary")("summary_user", text="{hola}")
    assert said == Sentence("El usuario dijo: {hola}", "The user said: {hola}")


def test_a_sentence_inside_a_sentence_is_said_in_each_language() -> None:
    whole = Sentence("Error: {reason}.", "Error: {reason}!")
    assert whole.with_values(reason=Sentence("falta", "missing")) == Sentence(
        "Error: falta.", "Error: missing!"
    )


@pytest.mark.parametrize(
    ("language", "text"),
    [("es", "sí"), ("es-MX", "sí"), ("en", "yes"), ("pt", "yes"), (None, "yes"), ("", "yes")],
)
def test_english_for_anything_but_spanish(language: str | None, text: str) -> None:
    assert Sentence("sí", "yes").in_language(language) == text


def test_an_unknown_key_is_our_own_fault() -> None:
    sentences = load_sentences("recuerdo.state")
    assert "plan_invalid" in sentences and "nothing_like_it" not in sentences
    with pytest.raises(KeyError):
        sentences("nothing_like_it")


def test_an_error_says_english_and_keeps_both_over_a_process_boundary() -> None:
    error = BudgetError(Sentence("demasiado", "too much"))
    assert str(error) == "too much"
    back = pickle.loads(pickle.dumps(error))
    assert isinstance(back, BudgetError) and back.sentence == error.sentence
    assert issubclass(SettingsError, RecuerdoError)
