"""The summary keeps what matters, within its tokens (RF-4, RF-5, RF-23, RF-28, C-2)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from recuerdo.state.summary import (
    Line,
    complete_summary,
    extend_summary,
    missing_essentials,
    shorten_summary,
)
from recuerdo.state.summary.reading import read_text

LANGUAGES = ["es", "en"]


def words(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]|\n", text))


def small_talk(messages: int) -> list[AnyMessage]:
    return [
        HumanMessage(f"¿Y qué opinas de la empresa {'abcdefghijklmnopqrstuvwxyz'[n % 26]} este año?")
        if n % 2 == 0
        else AIMessage("Depende de lo que busques. Conviene mirar sus cuentas con calma antes de decidir.")
        for n in range(messages)
    ]


said = st.lists(
    st.builds(
        lambda kind, text: kind(text),
        st.sampled_from([HumanMessage, AIMessage]),
        st.one_of(
            st.text("abcñ é.?!;\n 17", min_size=1, max_size=700),
            st.text(min_size=1, max_size=40),
            st.sampled_from(["mi objetivo es 10% anual", "gracias", "😀" * 300]),
        ).filter(lambda text: bool(text.strip())),
    ),
    min_size=1,
    max_size=8,
)


@given(said, st.sampled_from(LANGUAGES), st.integers(8, 400))
def test_never_above_its_tokens_and_never_empty(
    messages: list[AnyMessage], language: str, max_tokens: int
) -> None:
    summary = extend_summary("", messages, language, max_tokens, words)
    assert summary
    assert words(summary + "\n") <= max_tokens
    assert extend_summary("", messages, language, max_tokens, words) == summary


@given(said, said, st.sampled_from(LANGUAGES))
def test_with_room_enough_every_figure_of_old_and_new_survives(
    old: list[AnyMessage], new: list[AnyMessage], language: str
) -> None:
    first = extend_summary("", old, language, 100_000, words)
    summary = extend_summary(first, new, language, 100_000, words)
    digits = sorted(c for m in [*old, *new] for c in set(str(m.text)) if c.isdigit())
    assert set(digits) <= set(summary)
    assert set(first.splitlines()) <= set(summary.splitlines())


@given(said, st.integers(8, 200), st.integers(8, 200))
def test_a_shortened_summary_keeps_lines_of_it_in_their_order(
    messages: list[AnyMessage], max_tokens: int, shorter: int
) -> None:
    summary = extend_summary("", messages, "es", max_tokens, words)
    line = shorten_summary(summary, shorter, words)
    assert words(line + "\n") <= shorter
    kept = line.splitlines()
    assert len(kept) == 1 or kept == [part for part in summary.splitlines() if part in kept]


@pytest.mark.parametrize("language", LANGUAGES)
def test_rf_5_a_stop_loss_survives_24_messages(language: str) -> None:
    messages = [*small_talk(1), HumanMessage("mi stop-loss de AAPL es 170"), *small_talk(24)]
    summary = extend_summary("", messages, language, 400, words)
    assert "AAPL" in summary and "170" in summary


def test_rf_5_figures_win_over_small_talk_when_there_is_room_for_little() -> None:
    chat = [HumanMessage(f"me gusta bastante la empresa {letter}") for letter in "abcdefghijkl"]
    messages: list[AnyMessage] = [HumanMessage("el tope está en 170"), *chat]
    assert "170" in extend_summary("", messages, "es", 40, words)


def test_rf_28_a_goal_survives_30_messages_and_the_shortest_summary() -> None:
    messages = [*small_talk(2), HumanMessage("mi objetivo es 10% anual"), *small_talk(27)]
    summary = extend_summary("", messages, "es", 400, words)
    assert "10%" in summary
    assert "10%" in shorten_summary(summary, 40, words)


def test_rf_5_a_goal_survives_many_extensions() -> None:
    summary = extend_summary("", [HumanMessage("mi objetivo es 10% anual")], "es", 400, words)
    for _ in range(20):
        summary = extend_summary(summary, small_talk(26), "es", 400, words)
    assert "10%" in summary


def test_rf_5_a_figure_at_the_end_of_a_long_sentence_survives() -> None:
    rambling = "bueno pues como te iba contando ayer " * 20 + "mi stop-loss de AAPL es 170"
    messages = [HumanMessage(rambling), *small_talk(24)]
    summary = extend_summary("", messages, "es", 400, words)
    assert "AAPL" in summary and "170" in summary


def test_tool_results_are_not_part_of_what_was_said() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("¿Y AAPL?"),
        AIMessage("", tool_calls=[{"name": "get_price", "args": {}, "id": "c1"}]),
        ToolMessage("precio 185.50", tool_call_id="c1"),
        AIMessage("Sube un poco."),
    ]
    summary = extend_summary("", messages, "es", 400, words)
    assert summary == "- El usuario dijo: ¿Y AAPL?\n- El asistente respondió: Sube un poco."


def test_what_is_said_twice_stands_once() -> None:
    summary = extend_summary("", [HumanMessage("Quiero 10 AAPL.")], "es", 400, words)
    assert extend_summary(summary, [HumanMessage("Quiero 10 AAPL.")], "es", 400, words) == summary


def test_nothing_said_is_nothing() -> None:
    assert extend_summary("", [], "es", 400, words) == ""
    assert shorten_summary("", 400, words) == ""


def test_the_reply_language_writes_the_lines() -> None:
    assert (
        extend_summary("", [HumanMessage("I want 10 %")], "en", 400, words) == "- User's figure: I want 10 %"
    )


# What a sentence is

KINDS = {
    "goal": [
        "mi objetivo es 10% anual",
        "Cambia mi objetivo a 12%",
        "Objetivo: 10% anual",
        "Quiero ahorrar 20000 para una casa",
        "My goal is 8% a year",
        "I want to retire at 55",
    ],
    "instruction": [
        "responde siempre en español",
        "No compres nada sin preguntarme",
        "A partir de ahora, respuestas cortas",
        "si AAPL baja de 170 avísame",
        "Recuerda que mi stop-loss de TSLA es 240",
        "Always answer in Spanish",
        "Please don't use jargon",
        "from now on keep it short",
    ],
    "decision": [
        "he decidido vender TSLA",
        "voy a comprar AAPL el 15 de marzo",
        "ya no quiero el stop de AAPL",
        "I've decided to sell",
    ],
    "question": ["todavía no he decidido qué hacer con TSLA", "I haven't decided yet"],
    "name": ["me llamo Ana", "mi hija Lucía estudia medicina", "My name is Peter"],
    "figure": [
        "mi stop-loss de AAPL es 170",
        "precio objetivo de TSLA: 300",
        "tengo que acabar antes de marzo",
        "my stop for TSLA is 240",
    ],
    "user": [
        "Hola",
        "¿A cuánto está AAPL?",
        "¿Y si mi objetivo es 12%?",
        "si mi objetivo fuera 12% sería difícil",
        "Siempre me ha gustado TSLA",
        "No, gracias",
        "No worries!",
        "Keep it up!",
        "I have never been there",
        "We talked about my goals",
        "el objetivo de la empresa es crecer",
    ],
}


@pytest.mark.parametrize(("kind", "sentence"), [(kind, said) for kind in KINDS for said in KINDS[kind]])
def test_rf_5_a_sentence_of_the_user_is_known_by_its_words(kind: str, sentence: str) -> None:
    assert [line.kind for line in read_text(sentence, "user")] == [kind]


def test_what_the_assistant_says_is_never_the_users_goal() -> None:
    assert [line.kind for line in read_text("Mi objetivo es 10%. Siempre.", "assistant")] == ["assistant"] * 2


# What outranks what

GOAL = "mi objetivo es 10% anual"
RULE = "no me des nunca consejos de compra"
STOP = "mi stop-loss de AAPL es 170"


def figures(messages: int) -> list[AnyMessage]:
    """A conversation full of prices, on both sides."""
    return [
        HumanMessage(f"AAPL está en {180 + n} y TSLA en {300 + n}")
        if n % 2
        else AIMessage(f"AAPL: {180 + n}.5")
        for n in range(messages)
    ]


def grown(messages: list[AnyMessage], step: int = 10) -> str:
    summary = ""
    for start in range(0, len(messages), step):
        summary = extend_summary(summary, messages[start : start + step], "es", 400, words)
    return summary


def test_rf_5_rf_28_goal_instruction_and_stop_survive_200_messages_full_of_figures() -> None:
    said = [HumanMessage(text) for text in ("Hola", GOAL, RULE, STOP)]
    summary = grown([*said, *figures(200)])
    assert all(text in summary for text in (GOAL, RULE, STOP))
    assert "AAPL está en 379" in summary, "and the newest of the rest"


def test_rf_57_the_shortest_summaries_keep_goal_and_instruction_first() -> None:
    summary = grown([*(HumanMessage(text) for text in (STOP, RULE, GOAL)), *figures(40)])
    assert all(text in shorten_summary(summary, 80, words) for text in (GOAL, RULE, STOP))
    assert shorten_summary(summary, 12, words) == f"- Objetivo: {GOAL}"


def test_rf_23_among_equals_the_newest_is_kept() -> None:
    summary = extend_summary(
        "", [HumanMessage(f"el precio {n} de AAPL") for n in range(100, 200)], "es", 40, words
    )
    assert "199" in summary and "100" not in summary


def test_rf_23_a_figure_of_the_user_outranks_quotes_of_the_assistant() -> None:
    quotes: list[AnyMessage] = [AIMessage(f"AAPL cotiza a {n} dólares.") for n in range(200, 260)]
    summary = extend_summary("", [HumanMessage("el precio 170 me gusta"), *quotes], "es", 30, words)
    assert "170" in summary


RANKED = [
    "mi objetivo es {n} pisos",
    "responde siempre con {n} letras",
    "he decidido comprar {n} libros",
    "veo {n} en el mapa gris",
]
essentials = st.lists(
    st.tuples(st.integers(0, 3), st.integers(100, 999)), min_size=1, max_size=14, unique=True
)


@given(essentials, st.integers(1, 16))
def test_rf_5_when_essentials_alone_are_too_many_rank_then_recency_decides(
    made: list[tuple[int, int]], room: int
) -> None:
    messages = [HumanMessage(RANKED[rank].format(n=number)) for rank, number in made]
    newest = {}
    for place, (rank, number) in enumerate(made):
        # There is one goal of a kind at a time: the newest.
        newest[(rank, None if rank == 0 else number)] = (rank, -place, number)
    held = sorted(newest.values())
    kept = extend_summary("", messages, "es", 10 * room, lambda text: 10).splitlines()
    told = {(rank, n) for rank, _, n in held for line in kept if line.endswith(RANKED[rank].format(n=n))}
    assert len(kept) == min(room, len(held))
    assert told == {(rank, number) for rank, _, number in held[:room]}


# What supersedes what


def after(*texts: str) -> str:
    return extend_summary("", [HumanMessage(text) for text in texts], "es", 400, words)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (GOAL, "sube mi objetivo a 12% anual"),
        (STOP, "sube el stop de AAPL a 175"),
        (STOP, "Recuerda que mi stop-loss de AAPL es 175"),
        ("my stop for Apple is 170", "my stop-loss for Apple is 175"),
        ("responde en inglés", "responde siempre en español"),
        ("me llamo Ana", "Perdón, me llamo Anna"),
        (STOP, "quita el stop-loss de AAPL"),
        ("avísame si cae AAPL", "ya no me avises de AAPL"),
        ("no he decidido el stop de AAPL", STOP),
    ],
)
def test_rf_5_a_newer_value_takes_the_place_of_the_older(old: str, new: str) -> None:
    for summary in (after(old, new), extend_summary(after(old), [HumanMessage(new)], "es", 400, words)):
        assert new in summary
        assert old not in summary


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (STOP, "mi stop-loss de TSLA es 240"),
        ("mi stop de apple es 170", "mi stop de tesla es 240"),
        (GOAL, "¿y si mi objetivo es 12%?"),
        (GOAL, "si mi objetivo fuera 12% sería difícil"),
        (GOAL, "mi objetivo no es 12%"),
        (GOAL, "mi objetivo era 8%"),
        (GOAL, "mi objetivo es 20000 euros"),
        (GOAL, "AAPL está en 190"),
        ("mi objetivo es 10% anual con un riesgo de 5%", "mi objetivo es 12% anual"),
        ("mi objetivo es 10% y responde siempre en español", "mi objetivo es 12%"),
        ("avísame si AAPL baja de 170", "avísame si AAPL sube de 200"),
    ],
)
def test_rf_5_nothing_else_does(old: str, new: str) -> None:
    assert old in after(old, new) and new in after(old, new)


def test_rf_5_going_back_to_an_older_value_counts() -> None:
    assert after(GOAL, "mi objetivo es 12% anual", GOAL) == f"- Objetivo: {GOAL}"


def test_rf_5_lines_of_one_summary_never_supersede_each_other() -> None:
    """They stand by kind, not by time."""
    summary = after("mi stop es 170 y la comisión 2", "Recuerda que mi stop es 175")
    assert (
        extend_summary(summary, [HumanMessage("Hola")], "es", 400, words).splitlines()[:-1]
        == summary.splitlines()
    )


settings = st.lists(
    st.tuples(
        st.sampled_from(["stop-loss", "take profit", "precio objetivo"]),
        st.sampled_from(["AAPL", "TSLA", "MSFT"]),
        st.integers(100, 999),
    ),
    min_size=1,
    max_size=30,
)


@given(settings, st.integers(1, 7))
def test_rf_5_the_newest_value_of_everything_is_in_and_no_older_one(
    made: list[tuple[str, str, int]], step: int
) -> None:
    messages = [HumanMessage(f"mi {thing} de {symbol} es {number}") for thing, symbol, number in made]
    summary = ""
    for start in range(0, len(messages), step):
        chat = [AIMessage("Anotado, 7 veces.")]
        summary = extend_summary(summary, [*messages[start : start + step], *chat], "es", 400, words)
    held = {(thing, symbol): number for thing, symbol, number in made}
    told = [line for line in summary.splitlines() if "Dato" in line]
    assert sorted(told) == sorted(f"- Dato del usuario: mi {t} de {s} es {n}" for (t, s), n in held.items())
    assert not missing_essentials(messages, summary)


# The text is the whole truth


def test_a_summary_of_an_older_version_is_read_and_sorted_anew() -> None:
    old = f"- El usuario dijo: {STOP}\n- El usuario dijo: {GOAL}\n- El asistente respondió: Anotado."
    assert extend_summary(old, [], "es", 400, words) == (
        f"- Objetivo: {GOAL}\n- Dato del usuario: {STOP}\n- El asistente respondió: Anotado."
    )


def test_rf_20_another_language_of_the_user_changes_the_labels_only() -> None:
    spanish = after(GOAL, RULE, "he decidido esperar", "me llamo Ana", STOP, "Hola")
    english = extend_summary(spanish, [], "en", 400, words)
    assert english.splitlines()[0] == f"- Goal: {GOAL}"
    assert extend_summary(english, [], "es", 400, words) == spanish


def test_a_line_without_a_label_stays_as_it_is() -> None:
    assert extend_summary("- Hablaron de velas", [], "es", 400, words) == "- Hablaron de velas"


def test_only_a_question_without_an_answer_is_open() -> None:
    asked: list[AnyMessage] = [HumanMessage("¿Vendo?"), AIMessage("Espera."), HumanMessage("¿Y TSLA?")]
    assert "- El usuario dijo: ¿Vendo?" in extend_summary("", asked, "es", 400, words)
    assert "- Pendiente: ¿Y TSLA?" in extend_summary("", asked, "es", 400, words)


# What a summary must not lose


def lost(summary: str, *texts: str) -> list[str]:
    return [line.body for line in missing_essentials([HumanMessage(text) for text in texts], summary)]


@pytest.mark.parametrize(
    "summary",
    [
        "- Objetivo: 10% anual\n- Dato del usuario: stop-loss de AAPL en 170",
        "Quiere un objetivo de 10% anual, con el stop de AAPL a 170.",
        f"- El asistente respondió: {GOAL} y {STOP}",
    ],
)
def test_rf_5_what_is_told_in_other_words_is_not_missing(summary: str) -> None:
    assert lost(summary, GOAL, STOP) == []


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (GOAL, "- Objetivo: ganar dinero"),
        (GOAL, "- Dato del usuario: la comisión es 10%"),
        (STOP, "- Dato del usuario: stop-loss de AAPL"),
        (STOP, "- Dato del usuario: stop-loss de AAPL en 171"),
        (STOP, "- Dato del usuario: stop-loss de TSLA en 170\n- AAPL le gusta"),
        ("mi stop de AAPL es 170 y el de TSLA 240", "- Dato del usuario: AAPL en 170"),
        ("mi hija Lucía estudia medicina", "- Nombre: tiene una hija que estudia"),
        ("tengo que acabar antes de marzo", "- Pendiente: acabar"),
        (RULE, "- Instrucción vigente: responder en español"),
    ],
)
def test_rf_5_a_dropped_number_symbol_name_date_or_instruction_is_found(text: str, summary: str) -> None:
    assert lost(summary, text) == [text]


def test_rf_5_what_no_longer_holds_is_not_missed() -> None:
    assert lost("- Objetivo: 12% anual", GOAL, "sube mi objetivo a 12% anual") == []


def test_rf_5_small_talk_and_the_assistants_words_are_not_essential() -> None:
    messages: list[AnyMessage] = [HumanMessage("¿A cuánto está AAPL?"), AIMessage("AAPL está en 190.")]
    assert missing_essentials(messages, "") == []


def completed(draft: list[Line], *texts: str, previous: str = "", max_tokens: int = 400) -> str:
    messages = [HumanMessage(text) for text in texts]
    return complete_summary(draft, previous, messages, "es", max_tokens, words)


def test_rf_5_what_a_models_summary_lost_is_added() -> None:
    draft = [Line("goal", "10% anual"), Line("point", "Hablaron de velas de cuatro horas")]
    assert completed(draft, GOAL, STOP) == (
        f"- Objetivo: 10% anual\n- Dato del usuario: {STOP}\n- Hablaron de velas de cuatro horas"
    )


def test_rf_5_so_is_what_it_lost_of_the_summary_before() -> None:
    assert STOP in completed([Line("goal", "10% anual")], GOAL, previous=f"- Dato del usuario: {STOP}")


def test_a_figure_that_nobody_named_is_dropped() -> None:
    assert (
        completed([Line("goal", "10% anual"), Line("figure", "stop de AAPL en 999")], GOAL)
        == "- Objetivo: 10% anual"
    )


def test_rf_5_an_outdated_value_in_a_models_summary_gives_way() -> None:
    draft = [Line("goal", "el objetivo es 10%"), Line("figure", "el stop de AAPL es 175")]
    summary = completed(draft, GOAL, STOP, "sube mi objetivo a 12%", "sube el stop de AAPL a 175")
    assert "10%" not in summary and "170" not in summary
    assert "12%" in summary and "175" in summary


@given(
    said,
    st.integers(20, 400),
    st.lists(
        st.builds(
            Line, st.sampled_from(["goal", "figure", "point"]), st.text("ab 17", min_size=1, max_size=80)
        ),
        max_size=5,
    ),
)
def test_a_completed_summary_keeps_its_tokens_and_loses_no_essential(
    messages: list[AnyMessage], max_tokens: int, draft: list[Line]
) -> None:
    assert words(complete_summary(draft, "", messages, "es", max_tokens, words) + "\n") <= max(max_tokens, 1)
    assert not missing_essentials(messages, complete_summary(draft, "", messages, "es", 100_000, words))


# What it costs


def test_long_messages_are_read_in_linear_time() -> None:
    """Quadratic reading of these would take minutes."""
    for text in (
        "mi " * 50_000,
        "." * 100_000,
        "si " * 50_000 + "avisame",
        "objetivo de " * 10_000,
        "A" * 100_000,
    ):
        assert extend_summary("", [HumanMessage(text + " 170")], "es", 400, lambda line: 1)
