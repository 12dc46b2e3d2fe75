"""Which clauses of a message are the user's own, meant now and for good."""

import pytest

from recuerdo.nodes.update_memory.extract.clauses import own_clauses


@pytest.mark.parametrize(
    "text",
    [
        "¿uso velas de 4h?",
        "si usara velas de 1h cambiaría mucho",
        "Imagina que soy un jubilado de 65 años. Prefiero bonos.",
        "mi jefe prefiere el RSI",
        "Traduce esto: siempre uso velas de 4 horas",
        'Summarise this: "I moved to Austin and I always use the daily chart"',
        "sí, claro, a mí me encanta perder dinero",
        "no es que prefiera el corto plazo",
        "just this once put it on the weekly",
        "The guy on the podcast always uses the daily",
        "> vivo en Lima",
        "Escribe un correo diciendo que somos una empresa de 20 personas",
        "mi tarjeta es [***]",
    ],
)
def test_known_fault_1_what_is_not_meant_of_the_user_is_no_clause_of_his(text: str) -> None:
    assert own_clauses(text) == []


def test_a_quotation_inside_a_sentence_is_not_read() -> None:
    clauses = own_clauses("la frase «vivo en Lima con mi gato» es buena y yo vivo en Quito")
    assert clauses and all("gato" not in clause.folded for clause in clauses)


def test_only_the_question_of_a_message_is_left_out() -> None:
    texts = [clause.text for clause in own_clauses("viajo con mi perro Toby, ¿hay problema?")]
    assert texts == ["viajo con mi perro Toby"]


def test_a_question_that_asks_for_something_is_a_request() -> None:
    (clause,) = own_clauses("can you answer me in Spanish from now on?")
    assert clause.asked and clause.for_good


def test_quotes_are_exact_parts_of_the_message() -> None:
    text = "Ojo: prefiero que… bueno, VIVO EN Bogotá —la capital— y opero de noche, ¿sí?"
    assert all(text[clause.start : clause.end] == clause.text for clause in own_clauses(text))


def test_a_24_what_the_user_only_thinks_has_low_confidence() -> None:
    (clause,) = own_clauses("creo que prefiero la temporalidad diaria")
    assert clause.confidence < 0.6


def test_si_with_and_without_its_accent() -> None:
    assert own_clauses("sí vivo en Lima") and not own_clauses("si vivo en Lima pago más")


@pytest.mark.parametrize(
    "text", ["", "   ", "🙄", "¿?", "…", "#", "\n\n", "'" * 3000, "(" * 3000, "«" * 3000]
)
def test_texts_without_words_have_no_clauses_that_say_anything(text: str) -> None:
    assert all(not clause.folded.strip("'(«") for clause in own_clauses(text))
