"""A plan is checked as a whole; what is wrong is named, in both languages (LA-4, LA-10, LA-11, RF-34)."""

import copy
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan, read_plan

SMALLEST: dict[str, Any] = {
    "name": "demo",
    "language": "es",
    "role": "Ayudas.",
    "instructions": ["Sé breve."],
    "disclaimer": {"es": "Aviso.", "en": "Notice."},
}


def with_value(path: str, value: object) -> str:
    """The smallest plan as YAML, with one field set; a group that is not there yet is made."""
    plan = copy.deepcopy(SMALLEST)
    *groups, name = path.split(".")
    place = plan
    for group in groups:
        place = place.setdefault(group, {})
    place[name] = value
    return yaml.safe_dump(plan, allow_unicode=True)


def refused(text: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        read_plan(text, "mi-plan.yaml")
    error = caught.value
    assert "mi-plan.yaml" in error.sentence.es and "mi-plan.yaml" in error.sentence.en
    assert "{" not in error.sentence.es.replace("{0,63}", "")
    return error


def test_la_4_la_10_rf_34_the_smallest_plan_has_the_defaults() -> None:
    plan = read_plan(yaml.safe_dump(SMALLEST), "demo")
    assert (plan.memory.short_term.enabled, plan.memory.short_term.rounds) == (True, 30)
    assert plan.memory.short_term.max_messages == 20
    assert plan.memory.full_context.rounds == 1
    assert plan.memory.summary.after_messages == 15
    assert (plan.limits.compress_above, plan.limits.max_input, plan.limits.max_output) == (6000, 8000, 2000)


def test_a_plan_cannot_be_changed() -> None:
    plan = read_plan(yaml.safe_dump(SMALLEST), "demo")
    with pytest.raises(ValidationError):
        plan.memory.full_context.rounds = 3


def test_lists_are_kept_in_order_and_a_text_is_trimmed() -> None:
    plan = read_plan(with_value("tools", ["b", " a "]), "demo")
    assert plan.tools == ("b", "a")
    assert read_plan(with_value("entitlements", {"x": ["pro", "premium"]}), "demo").entitlements == {
        "x": ("pro", "premium")
    }


@pytest.mark.parametrize("rounds", range(6))
def test_la_11_full_context_takes_0_to_5(rounds: int) -> None:
    plan = read_plan(with_value("memory.full_context.rounds", rounds), "demo")
    assert plan.memory.full_context.rounds == rounds


@pytest.mark.parametrize("rounds", [-1, 6, 1.5, "x", None, True])
def test_la_11_anything_else_names_the_range(rounds: object) -> None:
    sentence = refused(with_value("memory.full_context.rounds", rounds)).sentence
    assert sentence.es.endswith("memory.full_context.rounds: debe ser un número entero del rango 0-5.")
    assert sentence.en.endswith("memory.full_context.rounds: it must be a whole number in the range 0-5.")


def test_c_1_the_cap_may_be_lifted() -> None:
    plan = read_plan(with_value("memory.short_term.max_messages", None), "demo")
    assert plan.memory.short_term.max_messages is None


@pytest.mark.parametrize(
    ("field", "value", "es", "en"),
    [
        ("memory.short_term.rounds", 0, "1-200", "1-200"),
        ("memory.short_term.max_messages", 3, "de 4 o más", "of 4 or more"),
        ("memory.short_term.max_messages", "x", "de 4 o más", "of 4 or more"),
        ("limits.max_output", 0, "de 1 o más", "of 1 or more"),
        ("limits.max_output", 0.5, "de 1 o más", "of 1 or more"),
        ("memory.short_term.enabled", "yes please", "true o false", "true or false"),
        ("language", "fr", "'es', 'en'", "'es', 'en'"),
        ("name", "A B", "patrón", "pattern"),
        ("role", "  ", "vacío", "empty"),
        ("role", 3, "un texto", "a text"),
        ("instructions", [], "al menos 1", "at least 1"),
        ("tools", "get_quote", "una lista", "a list"),
        ("memory", 3, "claves y valores", "keys and values"),
        ("entitlements", ["a"], "claves y valores", "keys and values"),
        ("memory.summry", 3, "no existe", "no such field"),
        ("surprise", 3, "no existe", "no such field"),
    ],
)
def test_a_wrong_value_names_field_and_reason_in_both_languages(
    field: str, value: object, es: str, en: str
) -> None:
    sentence = refused(with_value(field, value)).sentence
    assert f"{field}: " in sentence.es and es in sentence.es
    assert f"{field}: " in sentence.en and en in sentence.en


def test_a_place_in_a_list_is_named() -> None:
    assert "instructions.1: " in str(refused(with_value("instructions", ["Sé breve.", ""])))


def test_a_missing_field_is_named() -> None:
    sentence = refused(with_value("disclaimer", {"es": "Aviso."})).sentence
    assert sentence.es.endswith("disclaimer.en: falta.")
    assert sentence.en.endswith("disclaimer.en: it is missing.")


def test_rf_48_the_target_must_not_be_above_the_limit() -> None:
    sentence = refused(with_value("limits", {"compress_above": 8001})).sentence
    assert "compress_above no puede ser mayor que max_input" in sentence.es
    assert "compress_above must not be larger than max_input" in sentence.en
    assert read_plan(with_value("limits", {"compress_above": 8000}), "demo").limits.compress_above == 8000


def test_a_key_that_is_no_text_is_refused() -> None:
    assert "7: " in str(refused(f"{yaml.safe_dump(SMALLEST)}\n7: x\n"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: [", "1:8"),
        ("name: a\n\trole: b", "2:1"),
        ("name: !!python/object:os.system x", "1:7"),
        ("name: \x00", "?"),
        ("name: 2020-13-45", "?"),
        ("name: " + "9" * 5000, "?"),
        ("[" * 3000, "?"),
    ],
)
def test_text_that_is_not_yaml_is_one_sentence(text: str, place: str) -> None:
    assert f"({'line:column'} {place})" in str(refused(text))


@pytest.mark.parametrize("text", ["", "# nada", "- a\n- b", "hola", "42"])
def test_yaml_that_is_no_mapping_is_refused(text: str) -> None:
    sentence = refused(text).sentence
    assert "claves y valores" in sentence.es and "keys and values" in sentence.en


def test_a_bilingual_text_answers_in_either_language() -> None:
    plan = Plan.model_validate({**SMALLEST, "instructions": ("Sé breve.",)})
    assert plan.disclaimer.in_language("es-MX") == "Aviso."
    assert plan.disclaimer.in_language("en") == "Notice."
    assert plan.disclaimer.in_language(None) == "Notice."


def test_a_key_that_stands_twice_is_refused_with_its_place() -> None:
    twice = yaml.safe_dump(SMALLEST) + "name: dos\n"
    sentence = refused(twice).sentence
    assert f"{len(twice.splitlines())}:1" in sentence.es
    assert "dos veces la clave «name»" in sentence.es and "the key “name” twice" in sentence.en


@pytest.mark.parametrize(
    "part", ["tools: &me [*me]", "entitlements: &me {a: *me}", "memory: &me {summary: *me}"]
)
def test_yaml_that_holds_itself_is_refused_with_its_field(part: str) -> None:
    text = yaml.safe_dump(SMALLEST) + part
    assert part.split(":")[0] in refused(text).sentence.es


def test_a_long_key_that_stands_twice_is_told_in_one_short_line() -> None:
    text = f'? "a\\n{"b" * 5000}"\n: 1\n' * 2
    told = refused(text).sentence.en
    assert "\n" not in told and len(told) < 200 and "a bbb" in told


def test_or_20_what_a_yaml_reader_gives_and_lists_make_the_same_plan() -> None:
    raw: dict[str, Any] = {**SMALLEST, "tools": ["a", "b"], "entitlements": {"x": ["pro"]}}
    plan = Plan(**raw)
    assert plan == read_plan(yaml.safe_dump(raw), "demo")
    assert (plan.tools, plan.entitlements) == (("a", "b"), {"x": ("pro",)}), "kept so that nobody changes it"
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    for wrong in ("refund", {"refund": 1}, 5, [5]):
        with pytest.raises(ValidationError):
            Plan(**{**raw, "four_eyes": wrong})
