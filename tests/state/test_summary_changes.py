"""What a summary holds once something changed, and what belongs to what (RF-5, C-2)."""

import re

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from recuerdo.state.summary import Known, complete_summary, extend_summary, missing_essentials
from recuerdo.state.summary.lines import parse

STOP = "mi stop-loss de AAPL es 170"
APPLE = Known(tickers={"apple": "aapl"})


def words(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]|\n", text))


def after(*texts: str, known: Known | None = None, max_tokens: int = 400) -> str:
    messages = [HumanMessage(text) for text in texts]
    return extend_summary("", messages, "es", max_tokens, words, known or Known())


def one_by_one(*texts: str, known: Known | None = None) -> str:
    summary = ""
    for text in texts:
        summary = extend_summary(summary, [HumanMessage(text)], "es", 400, words, known or Known())
    return summary


# Talk supersedes no instruction


@pytest.mark.parametrize(
    ("rule", "talk"),
    [
        ("Responde siempre en español", "Mi hermano vive en Londres y habla en inglés"),
        ("Responde siempre en español", "Ayer leí una noticia en inglés"),
        ("Dame respuestas cortas", "Hoy fue un día largo"),
        ("Give me short answers", "It was a long day"),
        ("Dame respuestas cortas", "Nunca operes en corto"),
        ("Responde en español y con frases cortas", "Ahora contesta en inglés"),
    ],
)
def test_rf_5_talk_of_a_language_or_a_length_supersedes_no_instruction(rule: str, talk: str) -> None:
    assert rule in after(rule, talk) and rule in one_by_one(rule, talk)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Responde siempre en español", "Ahora contesta en inglés"),
        ("Responde siempre en español", "Mejor en inglés"),
        ("Give me short answers", "From now on I want long explanations"),
        ("Please keep answers under 100 words", "Give me long answers"),
    ],
)
def test_rf_5_an_instruction_supersedes_another_of_its_kind(old: str, new: str) -> None:
    assert after(old, new) == one_by_one(old, new) == f"- Instrucción vigente: {new}"


# Decisions


@pytest.mark.parametrize(
    ("decided", "revoked"),
    [
        ("I've decided to sell half of my MSFT", "Ya no vendas mis MSFT, me las quedo"),
        ("He decidido vender la mitad de MSFT", "Al final no vendo MSFT"),
        ("voy a comprar TSLA", "olvida lo de comprar TSLA"),
        ("I'll buy TSLA tomorrow", "I changed my mind about buying TSLA"),
    ],
)
def test_rf_5_a_decision_is_revoked_by_its_verb_and_symbol(decided: str, revoked: str) -> None:
    assert after(decided, revoked) == one_by_one(decided, revoked) == f"- Decisión: {revoked}"


@pytest.mark.parametrize(
    "other", ["Ya no vendas mis TSLA", "Ya no compres MSFT", "¿Ya no vendo mis MSFT?", "Ya no vendas nada"]
)
def test_rf_5_no_other_decision_is(other: str) -> None:
    assert "sell half" in after("I've decided to sell half of my MSFT", other)


def test_rf_5_a_decision_that_is_taken_again_ends_its_revocation() -> None:
    again = "He decidido vender MSFT"
    assert after("voy a vender MSFT", "Al final no vendo MSFT", again) == f"- Decisión: {again}"


# What a figure belongs to


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("¿Qué tal AMZN? Ayer cerró en 197.27", "- Dato del usuario: AMZN: ayer cerró en 197.27"),
        ("Compré AAPL. Mi stop es 170.", "- Dato del usuario: AAPL: mi stop es 170."),
        (
            "My wife Ana is a doctor; her limit is €5,000",
            "- Nombre: My wife Ana is a doctor; her limit is €5,000",
        ),
        ("My wife is called Ana. Her limit is €5,000", "- Dato del usuario: Ana: her limit is €5,000"),
    ],
)
def test_rf_5_a_figure_keeps_the_only_symbol_or_name_of_its_message(text: str, line: str) -> None:
    assert line in after(text).splitlines()


@pytest.mark.parametrize(
    "text",
    [
        "AAPL o TSLA. Ayer cerró en 197",
        "Lo dice mi amiga Ana. El precio era 197",
        "Compré AAPL. Mi objetivo es 10% anual",
        "Compré AAPL. Tengo 40 años",
        "Compré AAPL; responde con 3 frases",
    ],
)
def test_rf_5_it_gets_none_where_that_is_not_sure(text: str) -> None:
    last = re.split(r"[.;] ", text)[-1]
    assert last in [line.body for line in parse(after(text))]


def test_c_2_a_summary_without_the_symbol_of_a_figure_is_found() -> None:
    messages = [HumanMessage("¿Qué tal AMZN? Ayer cerró en 197.27")]
    assert missing_essentials(messages, "- Dato del usuario: cerró en 197.27")
    assert not missing_essentials(messages, "- Dato del usuario: AMZN cerró en 197.27")


# What prices do not push out


@pytest.mark.parametrize(
    "fact",
    [
        "La boda es el 15 de marzo",
        "Pago 1200 de alquiler",
        "I have 5,000 in cash",
        "Entrego el informe el 15/03/2027",
        "dividendo el viernes",
    ],
)
def test_rf_5_dates_and_the_users_own_figures_outrank_prices_however_new(fact: str) -> None:
    prices = [f"AAPL está en {n}" for n in range(200, 240)]
    assert fact in after(fact, *prices, max_tokens=40)


def test_rf_5_all_but_the_newest_prices_rank_with_the_talk() -> None:
    prices = [f"AAPL está en {n}" for n in range(200, 240)]
    open_point = "todavía no he decidido nada sobre la casa"
    summary = after(open_point, *prices, max_tokens=50)
    assert open_point in summary
    assert all(str(n) in summary for n in (237, 238, 239))


# A new value in other words


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("Mi presupuesto es 25,000", "no son 25,000 sino 30,000", "Mi presupuesto es 30,000"),
        ("Mi presupuesto es 25,000", "Perdón, quise decir 30,000, no 25,000", "Mi presupuesto es 30,000"),
        ("my limit is 25000", "it's not 25,000, it's 30,000", "my limit is 30,000"),
        (STOP, "Súbelo a 175", "mi stop-loss de AAPL es 175"),
        ("my goal is 8% a year", "Raise it to 10%", "my goal is 10% a year"),
        ("No quiero perder más del 5 %", "no quiero perder más del 8 %", "no quiero perder más del 8 %"),
        ("Mi riesgo máximo es 5 %", "no quiero perder más del 8 %", "no quiero perder más del 8 %"),
    ],
)
def test_rf_5_a_value_given_in_other_words_takes_the_place_of_the_older(
    old: str, new: str, told: str
) -> None:
    for summary in (after(old, new), one_by_one(old, new)):
        assert [line.body for line in parse(summary)] == [told]


def test_rf_5_a_companys_name_is_its_symbol_where_the_caller_knows_it() -> None:
    new = "pon el stop de Apple en 165"
    assert STOP not in after(STOP, new, known=APPLE) and STOP not in one_by_one(STOP, new, known=APPLE)
    assert STOP in after(STOP, new)
    assert STOP in after(STOP, "pon el stop de Tesla en 165", known=APPLE)


def test_c_2_the_check_and_a_models_summary_know_it_too() -> None:
    messages = [HumanMessage(STOP), HumanMessage("pon el stop de Apple en 165")]
    draft = parse(f"- Dato del usuario: {STOP}")
    assert "170" not in complete_summary(draft, "", messages, "es", 400, words, APPLE)
    missing = missing_essentials(messages, "- Dato del usuario: el stop de Apple, 165", known=APPLE)
    assert missing == []


@pytest.mark.parametrize(
    ("said", "unsure"),
    [
        ([STOP, "¿y TSLA?"], "Súbelo a 175"),
        ([STOP], "Súbelo a 12 %"),
        ([STOP], "¿Súbelo a 175?"),
        ([STOP, "mi presupuesto de viaje es 170"], "no son 170 sino 175"),
        ([STOP], "TSLA no está en 170 sino en 175"),
    ],
)
def test_rf_5_nothing_is_changed_where_it_is_not_sure_what_is_meant(said: list[str], unsure: str) -> None:
    for summary in (after(*said, unsure), one_by_one(*said, unsure)):
        assert all(text in summary for text in [*said, unsure])


# What is left out


def test_c_2_a_fixed_sentence_of_the_assistant_is_not_summarised() -> None:
    notice = "Esto no es asesoramiento financiero."
    said: list[AnyMessage] = [HumanMessage("Hola"), AIMessage(f"AAPL sube.\n\n{notice}")]
    known = Known(left_out=(notice,))
    summary = extend_summary("", said, "es", 400, words, known)
    assert summary.splitlines()[-1] == "- El asistente respondió: AAPL sube."
    assert notice not in summary


# What it costs


@pytest.mark.parametrize(
    "text", ["y dame " * 15_000, "no 1 " * 20_000, "1" * 100_000, "AB; 1 " * 20_000, "antes de ver " * 8_000]
)
def test_long_messages_are_read_in_linear_time(text: str) -> None:
    """Quadratic reading of these would take minutes."""
    assert extend_summary("", [HumanMessage(text + " 170")], "es", 400, lambda line: 1)


def test_c_2_a_newer_timeframe_takes_the_place_of_the_older() -> None:
    said = ["Prefiero velas de 4h", "I prefer 15m candles", "Prefiero velas de 1h"]
    summary = ""
    for text in said:
        summary = extend_summary(summary, [HumanMessage(text)], "es", 400, len)
    assert "1h" in summary and "4h" not in summary and "15m" not in summary
