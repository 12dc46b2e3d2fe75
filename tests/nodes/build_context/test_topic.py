"""The topic of a message: symbols first, then what it names and how it says it, similarity last (A-2)."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.topics import load, play, recent_topics, scores
from recuerdo.nodes.build_context.intent import read_intent
from recuerdo.nodes.build_context.symbols import resolve_symbols
from recuerdo.nodes.build_context.topic import likeness, understand
from recuerdo.nodes.build_context.topic.likeness import similarity
from recuerdo.nodes.build_context.topic.reading import Doubt, Reading, Said, read_topic
from recuerdo.nodes.build_context.topic.subjects import (
    concept_topic,
    named_topics,
    portfolio_topic,
    symbol_topic,
    words_topic,
)
from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import Sentence
from recuerdo.state.turn import Topic
from recuerdo.stores.embeddings import BundledEmbedder

HELD = ("AAPL", "TSLA")


def symbols(*names: str, language: str = "es") -> Topic:
    return symbol_topic(names, trade=False, language=language)


def concept(text: str, language: str = "es") -> Topic:
    topic = concept_topic(text, language)
    assert topic is not None
    return topic


def read(text: str, *topics: Topic, language: str = "es") -> Reading | Doubt:
    recent = [topic["symbols"] for topic in reversed(topics) if topic["symbols"]]
    resolution = resolve_symbols(text, recent, HELD)
    return read_topic(Said(text, text, language, read_intent(text), resolution, HELD), topics)


def certain(text: str, *topics: Topic, language: str = "es") -> Reading:
    reading = read(text, *topics, language=language)
    assert isinstance(reading, Reading)
    return reading


class Embedder:
    """Vectors that a test chose; counts the texts it was asked for."""

    dimensions = 2

    def __init__(self, vectors: dict[str, list[float]], name: str) -> None:
        self.name = name
        self.asked: list[str] = []
        self._vectors = vectors

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [self._vectors[text] for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        return (await self.embed([text]))[0]


class Away(Embedder):
    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise StoreError(Sentence(es="no", en="no"))


class Hanging(Embedder):
    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        await asyncio.Event().wait()
        raise AssertionError


# Changes, and why


@pytest.mark.parametrize(
    "text", ["Ahora hablemos de TSLA: ¿qué opinas?", "¿Y Tesla?", "switching to TSLA", "What about Tesla?"]
)
def test_rf_6_a_2_symbols_without_overlap_are_a_change(text: str) -> None:
    reading = certain(text, symbols("AAPL"))
    assert (reading.symbols, reading.changed, reading.reason) == (("TSLA",), True, "symbols")
    assert reading.topic and "TSLA" in reading.topic["label"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Cambiando de tema, ¿tienes alguna receta de pasta?", "Receta de pasta"),
        ("Hablemos de fútbol", "Fútbol"),
        ("Por cierto, ¿quién ganó el partido?", "Ganó el partido"),
        ("By the way, who won the match?", "Match"),
        ("¿Quién ganó el partido, por cierto?", "Ganó el partido"),
        ("Let's talk about football", "Football"),
        ("Something else: is there a gym?", "Gym"),
    ],
)
def test_rf_6_a_2_an_explicit_marker_with_a_subject_is_a_change(text: str, label: str) -> None:
    reading = certain(text, symbols("AAPL"))
    assert (reading.symbols, reading.changed, reading.reason) == ((), True, "marker")
    assert reading.topic and reading.topic["label"].endswith(label)


@pytest.mark.parametrize(
    "text",
    [
        "ahora dime si está cara",
        "por cierto, ¿cuál es su volumen?",
        "by the way, what's its market cap?",
        "Hablemos más de Apple",
        "¿Debería comprar AAPL ahora?",
        "Now explain that in simple words",
    ],
)
def test_a_2_a_marker_before_the_present_subject_changes_nothing(text: str) -> None:
    reading = certain(text, symbols("AAPL"))
    assert (reading.symbols, reading.changed, reading.reason) == (("AAPL",), False, None)


@pytest.mark.parametrize(
    "text", ["¿Cómo se interpreta el RSI?", "How do I read the RSI?", "Explícame el RSI"]
)
def test_rf_44_a_question_about_an_indicator_is_a_topic_of_its_own(text: str) -> None:
    reading = certain(text, symbols("AAPL"))
    assert (reading.symbols, reading.changed, reading.reason) == ((), True, "subject")
    assert reading.topic and reading.topic["label"] == "Interpretación de RSI"


@pytest.mark.parametrize("text", ["¿paga dividendos?", "¿y el RSI?", "what about its volatility?"])
def test_rf_25_a_side_of_the_security_that_is_spoken_of_is_no_topic(text: str) -> None:
    reading = certain(text, symbols("AAPL"))
    assert (reading.symbols, reading.changed) == (("AAPL",), False)


def test_rf_6_the_first_subject_is_no_change() -> None:
    assert not certain("Analiza AAPL").changed
    assert not certain("¿Qué es el RSI?").changed


def test_a_2_symbols_that_overlap_are_no_change() -> None:
    reading = certain("Compara AAPL con MSFT", symbols("AAPL"))
    assert (reading.symbols, reading.changed) == (("AAPL", "MSFT"), False)
    assert reading.topic == symbols("AAPL", "MSFT")


@pytest.mark.parametrize("text", ["¿Y comparada con Netflix?", "is it better than Netflix?"])
def test_rf_25_a_comparison_keeps_the_symbol_that_was_spoken_of(text: str) -> None:
    reading = certain(text, symbols("DIS"))
    assert (reading.symbols, reading.changed) == (("DIS", "NFLX"), False)


def test_rf_27_the_portfolio_is_a_topic_and_a_holding_is_part_of_it() -> None:
    reading = certain("¿Cómo va mi cartera?", symbols("AAPL"))
    assert (reading.symbols, reading.how, reading.changed) == (HELD, "portfolio", True)
    assert not certain("¿Y Tesla por qué baja?", portfolio_topic(HELD, "es")).changed


# Follow-ups


@pytest.mark.parametrize(
    "text",
    [
        "¿y el volumen?",
        "¿lo vendo?",
        "and what about it?",
        "explícame más",
        "tell me more",
        "no entendí",
        "¿por qué?",
        "dame un ejemplo",
        "¿cómo le ha ido en el año?",
        "why did it fall?",
        "¿qué hago?",
        "vuelve a explicármelo",
    ],
)
def test_rf_25_follow_ups_without_a_noun_stay(text: str) -> None:
    reading = certain(text, symbols("TSLA"), symbols("AAPL"))
    assert (reading.symbols, reading.how, reading.changed) == (("AAPL",), "follow_up", False)


@pytest.mark.parametrize("text", ["¿y cuál es el mejor periodo?", "explícame más", "no lo entiendo"])
def test_rf_25_a_follow_up_of_a_concept_is_not_about_the_symbol_before_it(text: str) -> None:
    reading = certain(text, symbols("AAPL"), concept("RSI"))
    assert (reading.topic, reading.symbols, reading.changed) == (concept("RSI"), (), False)


def test_rf_25_what_is_bought_is_the_asset_spoken_of_else_the_symbol_before() -> None:
    assert certain("¿lo compro?", symbols("AAPL"), concept("oro")).topic == concept("oro")
    reading = certain("¿lo compro?", symbols("AAPL"), concept("RSI"))
    assert (reading.symbols, reading.returned_to) == (("AAPL",), True)


@pytest.mark.parametrize(
    "text",
    [
        "hola",
        "gracias",
        "ok thanks",
        "jajaja",
        "¿cómo estás?",
        "prefiero respuestas cortas",
        "¿qué hora es?",
        "😀",
    ],
)
def test_rf_6_small_talk_preferences_and_asides_change_nothing(text: str) -> None:
    reading = certain(text, symbols("AAPL"))
    assert (reading.topic, reading.symbols, reading.changed) == (symbols("AAPL"), (), False)
    assert certain(text).topic is None


def test_or_5_what_is_always_so_is_no_preference_when_it_is_asked() -> None:
    assert certain("¿El oro siempre sube?", symbols("AAPL")).topic == concept("oro")
    assert certain("siempre usa velas diarias", symbols("AAPL")).topic == symbols("AAPL")


# Returns


@pytest.mark.parametrize(
    "text", ["volviendo a Apple", "¿Y Apple?", "back to AAPL", "retomemos Apple", "the other one"]
)
def test_im_42_returning_to_symbols(text: str) -> None:
    reading = certain(text, symbols("AAPL"), symbols("TSLA"))
    assert (reading.symbols, reading.changed, reading.returned_to) == (("AAPL",), True, True)
    assert reading.topic == symbols("AAPL")


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("volviendo al oro", concept("gold", "en")),
        ("back to gold", concept("oro")),
        ("back to gold", symbols("GLD")),
        ("lo de antes del RSI, ¿sirve para cripto?", concept("RSI")),
        ("sigamos con mi cartera", portfolio_topic(HELD, "es")),
        ("let's go back to the booking", words_topic("I want to change my booking", 0)),
        ("¿y el RSI?", concept("RSI")),
    ],
)
def test_im_42_returning_by_the_name_of_the_subject(text: str, old: Topic) -> None:
    reading = certain(text, old, concept("impuestos"))
    assert (reading.changed, reading.returned_to) == (True, True)
    assert reading.topic is not None
    assert (reading.topic["key"], list(reading.symbols)) == (old["key"], old["symbols"])


@pytest.mark.parametrize(
    "text", ["volvamos a lo de antes", "back to the previous topic", "lo de antes del RSI"]
)
def test_im_42_returning_to_what_was_before(text: str) -> None:
    reading = certain(text, symbols("AAPL"), concept("RSI"))
    assert (reading.symbols, reading.returned_to) == (("AAPL",), True)


# Labels


def test_a_13_topics_of_the_same_meaning_have_one_key() -> None:
    assert symbols("AAPL", "MSFT")["key"] == symbols("MSFT", "AAPL", language="en")["key"]
    assert concept("el RSI")["key"] == concept("Relative Strength Index", "en")["key"]
    assert concept("dividendos")["key"] == concept("dividends", "en")["key"]
    assert concept("dividendos")["label"] == "Dividendos"
    assert concept("dividendos", "en")["label"] == "Dividends"


def test_rf_44_labels_in_both_languages() -> None:
    assert symbols("AAPL", language="en")["label"] == "AAPL analysis"
    assert concept("RSI", "en")["label"] == "RSI interpretation"
    assert symbol_topic(["TSLA"], trade=True, language="es")["label"] == "Operar con TSLA"


def test_rf_44_a_label_of_own_words_is_short_and_free_of_sensitive_data() -> None:
    reading = certain("Hablemos de " + "pasta " * 300)
    assert reading.topic and len(reading.topic["label"]) <= 48
    said = Said(
        "Hablemos de mi tarjeta 4111 1111 1111 1111 robada",
        "Hablemos de mi tarjeta [***] robada",
        "es",
        read_intent("Hablemos"),
        resolve_symbols("", [], []),
        (),
    )
    private = read_topic(said, [])
    assert isinstance(private, Reading)
    assert private.topic and private.topic["label"] == "Tarjeta [***] robada"


def test_a_13_ten_topics_at_most_oldest_first_without_duplicates() -> None:
    names = ["AAPL", "MSFT", "TSLA", "NVDA", "AMZN", "META", "NFLX", "AMD", "INTC", "KO", "PEP"]
    topics: list[Topic] = []
    for name in names:
        topics = recent_topics(topics, symbols(name), 10)
    assert topics == [symbols(name) for name in names[1:]]
    again = recent_topics(topics, symbols("TSLA", language="en"), 10)
    assert [topic["key"] for topic in again][-1] == "symbols:TSLA"
    assert len(again) == 10
    assert recent_topics(again, None, 10) == again


def test_im_42_a_topic_is_named_by_label_company_or_concept() -> None:
    topics = [symbols("AAPL"), concept("oro"), concept("RSI")]
    assert [topic["key"] for topic, _ in named_topics("apple y gold", topics)] == [
        "concept:gold",
        "symbols:AAPL",
    ]


def test_im_42_the_form_of_a_label_names_no_topic() -> None:
    assert named_topics("análisis, interpretación y operar", [symbols("AAPL"), concept("RSI")]) == []


# Similarity


async def understood(
    text: str, before: list[str], embedder: Any, *topics: Topic
) -> tuple[Reading, float | None]:
    return await understand(
        text, text, "es", read_intent(text), topics=topics, held=HELD, before=before, embedder=embedder
    )


QUESTION = "¿Alguna receta de pasta italiana?"


@pytest.mark.parametrize(("cosine", "changed"), [(0.24, True), (0.26, False)])
async def test_a_2_low_similarity_to_the_last_three_messages_is_a_change(
    cosine: float, changed: bool
) -> None:
    before = ["uno", "dos", "tres", "cuatro"]
    vectors = {"uno": [1.0, 0.0], "dos": [0.0, 1.0], "tres": [cosine, 0.0], "cuatro": [0.1, 0.0]}
    embedder = Embedder({**vectors, QUESTION: [1.0, 0.0]}, f"chosen {cosine}")
    reading, found = await understood(QUESTION, before, embedder, symbols("AAPL"))
    assert found == pytest.approx(cosine)
    assert (reading.changed, reading.reason) == ((True, "similarity") if changed else (False, None))
    assert reading.symbols == (() if changed else ("AAPL",))


@pytest.mark.parametrize(
    "text", ["¿Y Tesla?", "¿y el volumen?", "hola", "Cambiando de tema, ¿qué es un bono?"]
)
async def test_a_2_the_embedder_is_not_asked_where_symbols_and_words_decide(text: str) -> None:
    embedder = Embedder({}, "never asked")
    _, cosine = await understood(text, ["antes"], embedder, symbols("AAPL"))
    assert (cosine, embedder.asked) == (None, [])


async def test_vectors_of_the_last_messages_are_kept() -> None:
    embedder = Embedder({"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [1.0, 0.0]}, "kept")
    assert await similarity("b", ["a"], embedder) == 0.0
    assert await similarity("c", ["a", "b"], embedder) == 1.0
    assert embedder.asked == ["b", "a", "c"]
    other = Embedder({"a": [1.0, 0.0], "b": [1.0, 0.0]}, "another model")
    assert await similarity("b", ["a"], other) == 1.0


async def test_kept_vectors_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "_KEPT", 2)
    monkeypatch.setattr(likeness, "_vectors", likeness._Vectors())
    embedder = Embedder({name: [1.0, 0.0] for name in "abc"}, "bounded")
    await similarity("a", ["b", "c"], embedder)
    await similarity("a", ["c"], embedder)
    assert embedder.asked == ["a", "b", "c", "a"]


async def test_im_32_an_embedder_that_fails_leaves_the_topic_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        reading, cosine = await understood(QUESTION, ["antes"], Away({}, "away"), symbols("AAPL"))
    assert (reading.topic, reading.changed, cosine) == (symbols("AAPL"), False, None)
    assert QUESTION not in caplog.text


async def test_im_32_an_embedder_that_hangs_does_not_hold_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "PATIENCE_SECONDS", 0.01)
    reading, cosine = await understood(QUESTION, ["antes"], Hanging({}, "hangs"), symbols("AAPL"))
    assert (reading.changed, cosine) == (False, None)


# Any text


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    read(text)
    read(text, symbols("AAPL"), concept("RSI"))


@pytest.mark.parametrize(
    "piece", ["jaja", "no ", "y ", "ok!", "que es ", "what we were ", "how do ", "vuelve a "]
)
def test_hostile_repeats_end(piece: str) -> None:
    """A pattern that tries every split of such repeats would not end in a lifetime."""
    text = piece * (20_000 // len(piece)) + "¿"
    assert read(text, symbols("AAPL"))


# The labelled set


def test_the_labelled_set_is_large_enough_and_its_halves_do_not_overlap() -> None:
    labelled = load()
    turns = {
        half: [turn["user"] for one in labelled.values() if one["half"] == half for turn in one["turns"]]
        for half in ("dev", "held_out")
    }
    assert sum(map(len, turns.values())) >= 150
    assert len(turns["dev"]) == len(turns["held_out"])
    assert {one["half"] for one in labelled.values()} == set(turns)
    assert {text.casefold() for text in turns["dev"]} & {
        text.casefold() for text in turns["held_out"]
    } == set()


async def test_rf_6_changes_are_found_on_the_half_that_was_tuned_on() -> None:
    figures = scores(await play(load(), "dev", BundledEmbedder()))
    assert figures["change_precision"] >= 95
    assert figures["change_recall"] >= 90
    assert figures["symbols_right"] >= 95
