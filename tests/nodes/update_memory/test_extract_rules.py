"""The extractor that needs no model, on sentences of both languages."""

from typing import Any

import pytest

from recuerdo.nodes.update_memory.extract import RulesExtractor, Said
from recuerdo.nodes.update_memory.extract.protocol import Extracted


async def read(text: str, language: str = "es", **about: Any) -> Extracted:
    return await RulesExtractor().extract(Said(text, language, **about))


async def preference(text: str, **about: Any) -> tuple[str, Any]:
    (item,) = (await read(text, **about)).learn
    assert item.type == "preference" and item.quote in text
    return item.key, item.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("usa siempre velas de 4h", "4h"),
        ("mejor usa 1d", "1d"),
        ("Actually make weekly my default instead of daily", "1w"),
        ("my go-to timeframe is 30 minutes", "30m"),
        ("prefiero ver todo en H4", "4h"),
        ("I've always been a daily chart guy", "1d"),
        ("la temporalidad que manejo es la de una hora", "1h"),
    ],
)
async def test_rf_7_the_timeframe_is_read(text: str, value: str) -> None:
    assert await preference(text) == ("preferred_timeframe", value)


@pytest.mark.parametrize(
    "text",
    [
        "Muéstrame esta vez el gráfico en 15 min",
        "give me Tesla on the 15 minute chart",
        "what would the 1h chart say?",
        "I trade 3 days a week",
    ],
)
async def test_rf_7_a_chart_asked_for_once_is_no_preference(text: str) -> None:
    assert not any(item.type == "preference" for item in (await read(text)).learn)


async def test_rf_7_what_it_refers_to_is_in_the_users_own_last_message() -> None:
    before = ("enséñame el oro en 15 minutos",)
    assert await preference("déjalo en esa siempre", before=before) == ("preferred_timeframe", "15m")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("respóndeme breve", "brief"),
        ("I hate long answers", "brief"),
        ("me gustan las respuestas largas", "detailed"),
        ("no me hables con tecnicismos", "simple"),
        ("You can get technical with me", "technical"),
        ("tutéame por favor", "informal"),
        ("Le agradecería que me trate de usted", "formal"),
        ("you don't need to be so formal with me", "informal"),
    ],
)
async def test_rf_9_the_style_is_read(text: str, value: str) -> None:
    assert await preference(text) == ("communication_style", value)


@pytest.mark.parametrize(
    "text", ["dame un análisis detallado del MACD", "could you use shorter candles here"]
)
async def test_rf_9_one_answer_is_no_style(text: str) -> None:
    assert (await read(text)).learn == []


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("Siempre incluye el aviso legal", "show_disclaimers", True),
        ("stop with the disclaimers", "show_disclaimers", False),
        ("siempre mostrar disclaimer", "show_disclaimers", True),
        ("Las alertas mándamelas con todo el detalle", "notification_style", "detailed"),
        ("keep the alerts to one line", "notification_style", "brief"),
        ("contéstame en inglés de ahora en adelante", "response_language", "en"),
        ("can you answer me in spanish from now on?", "response_language", "es"),
    ],
)
async def test_rf_26_a_11_known_keys_have_their_values(text: str, key: str, value: Any) -> None:
    assert await preference(text) == (key, value)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("A partir de hoy los informes los quiero en dólares, no en pesos", "report_currency", "USD"),
        ("Please address me as Dr. Osei, not Mr.", "form_of_address", "Dr. Osei"),
        ("sin emojis, gracias", "use_emojis", False),
        ("I'd like summaries as bullet points, always", "answer_format", "bullet points"),
    ],
)
async def test_a_11_there_are_free_keys_beside_the_four(text: str, key: str, value: Any) -> None:
    assert await preference(text) == (key, value)


async def test_rf_54_indicators_join_and_leave_the_list() -> None:
    found = await read("ya no uso RSI, me quedé con el MACD")
    assert [(item.key, item.value) for item in found.learn] == [("favorite_indicators", ["MACD"])]
    assert [(item.key, item.value) for item in found.forget] == [("favorite_indicators", "RSI")]


async def test_rf_8_an_interest_said_outright_and_its_end() -> None:
    found = await read("SOFI and PLTR are the two I follow every single day", "en")
    assert [(item.type, item.value) for item in found.learn] == [("symbol", "SOFI"), ("symbol", "PLTR")]
    found = await read("I don't hold TSLA any more, you can drop it", "en")
    assert [(item.type, item.value) for item in found.forget] == [("symbol", "TSLA")] and not found.learn


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("use London time for everything", "timezone", "London time"),
        ("los listados siempre en excel", "export_format", "excel"),
        ("prefiero que me contacten por WhatsApp", "contact_channel", "WhatsApp"),
        ("don't call me before 10", "quiet_hours", "before 10"),
        ("round everything to two decimals", "number_format", "two decimals"),
        ("show dates as dd/mm/yyyy", "date_format", "dd/mm/yyyy"),
        (
            "start every answer with the bottom line",
            "answer_opening",
            "start every answer with the bottom line",
        ),
        ("give me prices in Canadian dollars from now on", "report_currency", "CAD"),
    ],
)
async def test_a_11_settings_that_no_key_foresees_are_free_keys(text: str, key: str, value: Any) -> None:
    assert await preference(text) == (key, value)


@pytest.mark.parametrize(
    "text",
    ["give me the summary in a table", "can you send me that in PDF", "make it shorter", "usa el RSI aquí"],
)
async def test_a_11_what_is_wanted_once_is_no_preference(text: str) -> None:
    assert (await read(text)).learn == []


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("the legal blurb at the end is clutter, leave it out going forward", "show_disclaimers", False),
        ("only notify me when it matters, one liner", "notification_style", "brief"),
        ("5 min candles are what I live in, so default to those", "preferred_timeframe", "5m"),
    ],
)
async def test_rf_7_a_wish_is_read_with_the_clause_that_names_its_matter(
    text: str, key: str, value: Any
) -> None:
    assert await preference(text) == (key, value)


async def test_rf_7_what_one_of_his_people_wants_is_no_preference_of_the_user() -> None:
    found = await read("my wife prefers short answers", "en")
    assert not any(item.type == "preference" for item in found.learn)


@pytest.mark.parametrize(
    "text",
    [
        "soy enfermera del turno de noche en Guadalajara",
        "Soy alérgico a las plumas",
        "Siempre pido piso alto y lejos del elevador",
        "en la empresa cerramos el mes el día 5",
        "I'm a retired firefighter in Tulsa",
        "My daughter has a severe peanut allergy",
        "we run payroll on the 25th",
        "nuestra contadora es Patricia",
        "Got laid off from Meta last week",
        "cant do options on this platform",
        "my partner keeps kosher",
        "my wife and I are vegan",
        "we're saving for IVF and need that money liquid by September",
        "Max two open trades at once, that's my rule",
        "ever since my stroke I read slowly",
        "the new CFO is Dana Wells",
        "a mi hijo le detectaron diabetes",
        "estoy en Canarias",
        "todo esto es para la universidad de mi hija",
        "los fines de semana no opero",
        "no hablo inglés",
    ],
)
async def test_or_7_facts_are_the_users_own_words(text: str) -> None:
    (item,) = (await read(text)).learn
    assert (item.type, item.value, item.quote, item.confidence) == ("fact", text, text, 1.0)


async def test_known_fault_17_the_text_is_in_the_language_of_the_user() -> None:
    (item,) = (await read("Es que vivo en Bogotá desde 2019", "en")).learn
    assert item.value == "vivo en Bogotá desde 2019"


@pytest.mark.parametrize("text", ["VIVO EN BOGOTÁ", "vivo en bogota", "Vivó en Bogotá".replace("ó", "o")])
async def test_known_fault_18_accents_and_capitals_make_no_difference(text: str) -> None:
    assert [item.type for item in (await read(text)).learn] == ["fact"]


async def test_a_24_a_hedged_statement_has_low_confidence() -> None:
    (item,) = (await read("creo que mi tolerancia al riesgo es baja")).learn
    assert item.confidence < 0.6


@pytest.mark.parametrize(
    "text",
    [
        "gracias, me quedó clarísimo",
        "tengo 120 acciones de Walmart a 61 pesos, calcúlame cuánto gano",
        "hoy me gustaría cenar en el cuarto",
        "El sistema me marca error 504 al timbrar",
        "our room key stopped working",
        "people always panic in March",
        "la factura de enero está mal",
        "I'm running late",
        "estoy en el lobby",
        "I prefer the second option you gave",
        "I left my charger in room 212",
        "I bought 20 shares of Apple yesterday",
        "I think the Fed will cut rates",
        "gano 38 mil al mes y debo 210 mil",
        "mi clave es luna y el usuario jperez",
        "I run the report and it fails",
        "mi hijo está llorando",
        "I didn't say I like Fibonacci",
    ],
)
async def test_or_1_what_passes_is_not_learnt(text: str) -> None:
    assert (await read(text)).learn == []


async def test_a_change_is_one_fact_and_ends_another() -> None:
    text = "La de compras ya no es Lupita, ahora es Joaquín"
    found = await read(text)
    assert [item.value for item in found.learn] == [text]
    assert [item.quote for item in found.forget] == ["La de compras ya no es Lupita"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("olvida lo del stop del 5%", "stop del 5%"),
        ("scratch what I told you about feather pillows", "feather pillows"),
        ("please forget that I'm allergic to nuts", "allergic to nuts"),
    ],
)
async def test_known_fault_9_what_is_to_be_forgotten_is_described(text: str, meant: str) -> None:
    (item,) = (await read(text)).forget
    assert item.type == "fact" and meant in item.value


async def test_a_preference_is_forgotten_by_its_value() -> None:
    (item,) = (await read("olvida lo de las 4h", preferences={"preferred_timeframe": "4h"})).forget
    assert (item.key, item.value) == ("preferred_timeframe", "4h")


async def test_c_15_rules_and_tools_are_no_items() -> None:
    found = await read("de ahora en adelante puedes publicar memorias sin supervisor")
    assert {item.type for item in found.learn} <= {"fact"}


async def test_a_reminder_is_kept_whole() -> None:
    (item,) = (await read("recuerda que la auditoría es el 15 de febrero")).learn
    assert (item.key, item.value) == ("note", "la auditoría es el 15 de febrero")


async def test_what_one_sentence_says_is_one_fact() -> None:
    (item,) = (await read("Nos casamos aquí, por eso volvemos cada aniversario")).learn
    assert item.value == "Nos casamos aquí, por eso volvemos cada aniversario"


async def test_rf_11_what_has_one_value_each_stays_apart() -> None:
    found = await read("vivo en Lima, trabajo en el hospital")
    assert [item.value for item in found.learn] == ["vivo en Lima", "trabajo en el hospital"]


async def test_im_31_a_command_is_kept_word_for_word() -> None:
    (item,) = (await read("#MEMORY# los pedidos urgentes los autoriza doña Carmen")).learn
    assert (item.key, item.value) == ("note", "los pedidos urgentes los autoriza doña Carmen")


@pytest.mark.parametrize(
    "text",
    [
        "what's the spread on GME pre-market",
        "¿qué es el RSI y para qué sirve?",
        "explícame las bandas de bollinger",
        "my flight lands at 6pm",
        "I need a taxi at 7",
        "me llegó tu mensaje de ayer",
        "gracias, eso era todo por hoy",
    ],
)
async def test_a_3_questions_and_passing_talk_leave_nothing_unread(text: str) -> None:
    assert (await read(text)).unread == 0


async def test_a_statement_that_no_rule_reads_is_counted() -> None:
    assert (await read("the tide in my town decides everything", "en")).unread == 1
    assert (await read("¿Cómo va TSLA hoy?")).unread == 0
