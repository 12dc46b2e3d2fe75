"""Progress of courses enters only where the message is about learning or about what an active course teaches."""

import pytest

from recuerdo.nodes.build_context.document import context_document
from recuerdo.nodes.build_context.education import education_blocks, relevant_courses
from tests.nodes.build_context.enrichment import count, course, gathered, lines

RSI = course("Curso RSI", "RSI", "60", "Divergencias")
DONE = course("Opciones", "opciones financieras", "100")
TECHNICAL = course("Gráficos", "Análisis técnico", "12.5", days=3)


def found(text: str, language: str = "es") -> list[str]:
    data = gathered(text, language, education=[DONE, TECHNICAL, RSI])
    return [one.course for one in relevant_courses(data)]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("¿qué lección sigue en mi curso?", "es"),
        ("¿Cuánto me queda del CURSO?", "es"),
        ("quiero aprender a invertir", "es"),
        ("¿qué estoy aprendiendo?", "es"),
        ("what is my next lesson?", "en"),
        ("How is my course going?", "en"),
        ("what have I learned so far", "en"),
        ("¿qué módulo sigue?", "es"),
        ("mi progreso", "es"),
        ("enséñame algo", "es"),
        ("what should I study next?", "en"),
        ("teach me something", "en"),
    ],
)
def test_rf_15_a_5_who_speaks_of_learning_gets_all_courses_the_active_ones_first(
    text: str, language: str
) -> None:
    assert found(text, language) == ["Curso RSI", "Gráficos", "Opciones"]


@pytest.mark.parametrize(
    ("text", "language", "courses"),
    [
        ("¿cómo se lee el RSI?", "es", ["Curso RSI"]),
        ("what does the RSI say?", "en", ["Curso RSI"]),
        ("¿sirve el análisis técnico?", "es", ["Gráficos"]),
        ("is technical analysis any good?", "en", ["Gráficos"]),
    ],
)
def test_a_5_the_topic_of_an_active_course_counts_in_both_languages(
    text: str, language: str, courses: list[str]
) -> None:
    assert found(text, language) == courses


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("precio de AAPL", "es"),
        ("Hola", "es"),
        ("¿Qué son las opciones financieras?", "es"),
        ("el ejercicio en curso va bien", "es"),
        ("¿es moneda de curso legal?", "es"),
        ("of course, buy AAPL", "en"),
        ("the stock fell in the course of the day", "en"),
        ("it will be paid in due course", "en"),
        ("en el curso de la semana AAPL subió", "es"),
        ("¿cómo va el curso del dólar?", "es"),
        ("la enfermedad sigue su curso", "es"),
        ("enséñame el gráfico de AAPL", "es"),
        ("is there a case study of Tesla?", "en"),
    ],
)
def test_rf_15_a_5_otherwise_there_is_none(text: str, language: str) -> None:
    assert found(text, language) == []
    assert education_blocks(gathered(text, language, education=[RSI, DONE]), count) == []


def test_rf_15_rf_60_the_line_says_how_far_and_what_is_next_and_is_medium() -> None:
    data = gathered("¿qué lección sigue en mi curso?", education=[RSI, DONE])
    (block,) = education_blocks(data, count)
    assert (block["tier"], block["section"]) == ("medium", "turn")
    assert lines([block], "education") == [
        "Curso Curso RSI, tema RSI: 60 %, siguiente lección: Divergencias",
        "Curso Opciones, tema opciones financieras: 100 %",
    ]
    assert [rung["name"] for rung in block["rungs"]] == ["full", "one line", "removed"]


def test_rf_15_progress_stands_in_the_document_only_where_it_is_relevant() -> None:
    shown = context_document(gathered("mi curso", education=[RSI]), "u", "c", 0, None, [])
    assert shown["education"] == [
        {
            "course": "Curso RSI",
            "topic": "RSI",
            "percent": 60.0,
            "next_lesson": "Divergencias",
            "updated_at": "2025-12-05T10:30:00-06:00",
        }
    ]
    other = context_document(gathered("precio de AAPL", education=[RSI]), "u", "c", 0, None, [])
    assert "education" not in other
