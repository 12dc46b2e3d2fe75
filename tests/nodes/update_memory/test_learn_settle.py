"""What is learnt beside what is known: said again, said anew, over, or something else."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from recuerdo.nodes.update_memory.extract import RulesExtractor, Said
from recuerdo.nodes.update_memory.settle import Known, Settled, relation, settle
from recuerdo.stores.embeddings import BundledEmbedder

EMBEDDER = BundledEmbedder()


async def play(text: str, *facts: str, language: str = "es", **preferences: Any) -> Settled:
    vectors = await EMBEDDER.embed(list(facts)) if facts else []

    async def nearest(asked: str) -> Sequence[Known]:
        (query,) = await EMBEDDER.embed([asked])
        dots = [sum(a * b for a, b in zip(query, vector, strict=True)) for vector in vectors]
        return [Known(UUID(int=place), fact, dots[place]) for place, fact in enumerate(facts)]

    extracted = await RulesExtractor().extract(Said(text, language, preferences=preferences))
    return await settle(extracted, preferences, nearest)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("vivo en Lima", "Vivo en Lima."),
        ("soy alérgico a las plumas", "Soy muy alérgico a las plumas"),
        ("My daughter has a severe peanut allergy", "my daughter has a severe allergy to peanuts"),
        ("no como mariscos", "no como camarón ni mariscos"),
        ("vivo en Lima", "vivo en el centro de Lima"),
        ("Tengo alergia a las plumas", "Soy alérgico a las plumas"),
        (
            "you know I'm on the road all week in the truck, right?",
            "Drives a truck and only has a phone on weekdays",
        ),
        ("mi meta es comprar una casa en 2028", "quiero comprar una casa en 2028"),
        ("soy enfermera y trabajo en el turno de noche", "soy enfermera del turno de noche en Lima"),
        ("Creo que soy alérgico a las plumas", "Creo que soy alérgico a las plumas"),
    ],
)
async def test_a_25_known_fault_2_the_same_in_other_words_confirms(text: str, known: str) -> None:
    settled = await play(text, known)
    assert list(settled.confirmed) == [UUID(int=0)] and not settled.facts and not settled.forgotten


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("me mudé de Madrid a Lima", "vivo en Madrid"),
        ("Ya no vivo en Madrid, ahora en Lima", "Vive en Madrid"),
        ("I work at HSBC", "I work at Barclays"),
        ("nunca arriesgo más del 2% por operación", "nunca arriesgo más del 1% por operación"),
        ("no como carne", "como carne"),
        ("no como camarón ni mariscos", "no como mariscos"),  # it says more
        ("La de compras ya no es Lupita, ahora es Joaquín", "La responsable de compras es Lupita"),
        # What was only supposed is said without a hedge now.
        ("Soy alérgico a las plumas", "Creo que soy alérgico a las plumas"),
        ("I'm allergic to feathers", "I think I'm allergic to feathers"),
    ],
)
async def test_rf_11_known_fault_3_a_new_value_takes_the_old_ones_place(text: str, known: str) -> None:
    (new,) = (await play(text, known)).facts
    assert list(new.supersedes) == [UUID(int=0)]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("soy alérgico al polvo", "soy alérgico a las plumas"),
        ("I never trade on Mondays", "I never trade on Fridays"),
        ("my daughter is allergic to nuts", "my son is allergic to nuts"),
        ("no opero los lunes", "no opero los viernes"),
        ("as I told you, I never trade on Mondays", "I never trade on Fridays"),
        ("ya sabes que soy alérgico al polvo", "soy alérgico a las plumas"),
        ("tengo dos gatos", "tengo dos perros"),
    ],
)
async def test_facts_that_are_alike_and_say_something_else_stay_beside_each_other(
    text: str, known: str
) -> None:
    settled = await play(text, known, "vivo en Lima")
    (new,) = settled.facts
    assert not new.supersedes and not settled.confirmed and not settled.forgotten


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("olvida lo del stop del 5%", "uso un stop del 5% en mis operaciones"),
        ("scratch what I told you about feather pillows", "I am allergic to feathers"),
        ("ya no trabajo en el hospital", "trabajo en el hospital de noche"),
        ("I'm not a day trader", "I am a day trader"),
        ("bin the note about my trailing stop", "I use a trailing stop of 8%"),
    ],
)
async def test_known_fault_9_what_is_over_is_forgotten_alone(text: str, known: str) -> None:
    settled = await play(text, known, "mi perro se llama Toby")
    assert list(settled.forgotten) == [UUID(int=0)] and not settled.facts


async def test_nothing_is_forgotten_for_words_that_mean_nothing_known() -> None:
    assert not (await play("borra la factura 22", "vivo en Lima")).forgotten


async def test_rf_54_a_list_gains_and_loses_and_goes_when_it_is_empty() -> None:
    settled = await play("siempre muéstrame el MACD", favorite_indicators=["RSI"])
    assert settled.preferences["favorite_indicators"][0] == ["RSI", "MACD"]
    settled = await play("ya no uso RSI", favorite_indicators=["RSI"])
    assert list(settled.dropped) == ["favorite_indicators"]
    settled = await play("ya no uso ATR", favorite_indicators=["RSI"])
    assert not settled.preferences and not settled.dropped


async def test_a_25_a_preference_said_again_is_no_new_one() -> None:
    settled = await play("yep, still the 1h for me", language="en", preferred_timeframe="1h")
    assert list(settled.said_again) == ["preferred_timeframe"] and not settled.preferences


async def test_symbols_that_are_followed_are_a_list_of_their_own() -> None:
    settled = await play("I follow KO and PEP", language="en")
    assert settled.preferences["followed_symbols"][0] == ["KO", "PEP"]
    settled = await play("no me mandes más nada de Netflix", followed_symbols=["NFLX", "KO"])
    assert settled.preferences["followed_symbols"][0] == ["KO"] and list(settled.unfollowed) == ["NFLX"]


def test_numbers_and_denials_are_never_the_same() -> None:
    assert relation("cierro el mes el día 5", "cierro el mes el día 10", 0.99) == "replaces"
    assert relation("I don't eat meat", "I eat meat", 0.99) == "replaces"
