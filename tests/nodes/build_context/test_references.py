"""What a message without a symbol refers to: what was spoken of before, or some of what is held."""

from decimal import Decimal

import pytest

from benchmarks.symbols import DATA, load, read, scores
from recuerdo.nodes.build_context.instructions import instruction_blocks
from recuerdo.nodes.build_context.intent import read_intent
from recuerdo.nodes.build_context.symbols import Standings, asks_for_rank, question_about, resolve_symbols
from recuerdo.nodes.build_context.symbols.holdings import standings_of
from recuerdo.nodes.build_context.topic import as_state, understand
from recuerdo.nodes.build_context.topic.subjects import symbol_topic
from recuerdo.stores.embeddings import BundledEmbedder
from recuerdo.stores.plans import load_plan
from recuerdo.stores.sources.rows import Position, Quote
from tests.nodes.build_context.enrichment import count, gathered, lines

HELD = ("AAPL", "BTCUSD", "KO", "SPY")
BY_VALUE = ("KO", "AAPL", "SPY", "BTCUSD")


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("mi mayor posición", ("KO",)),
        ("what's my largest position's sector", ("KO",)),
        ("my biggest holding, when does it report", ("KO",)),
        ("mi posición más chica, ¿la cierro?", ("BTCUSD",)),
        ("what's the smallest thing I own", ("BTCUSD",)),
        ("mis dos mayores posiciones", ("KO", "AAPL")),
        ("my top three positions", ("KO", "AAPL", "SPY")),
        ("mi segunda mayor posición", ("AAPL",)),
        ("en qué acción tengo más dinero", ("KO",)),
        ("la acción que más pesa en mi portafolio", ("KO",)),
    ],
)
def test_rf_25_a_position_by_its_size(text: str, symbols: tuple[str, ...]) -> None:
    resolution = resolve_symbols(text, [["TSLA"]], HELD, standings=Standings(BY_VALUE))
    assert (resolution.symbols, resolution.how) == (symbols, "holding")
    assert asks_for_rank(text)
    unpriced = resolve_symbols(text, [["TSLA"]], HELD)
    assert (unpriced.symbols, unpriced.how) == (HELD, "portfolio")


@pytest.mark.parametrize(
    ("text", "symbols", "how"),
    [
        ("mis posiciones", HELD, "portfolio"),
        ("mis criptos", ("BTCUSD",), "holding"),
        ("how are my etfs", ("SPY",), "holding"),
        ("y mis otras posiciones?", ("AAPL", "BTCUSD", "SPY"), "holding"),
        ("my biggest winner", HELD, "portfolio"),
    ],
)
def test_rf_25_all_or_some_of_what_is_held(text: str, symbols: tuple[str, ...], how: str) -> None:
    resolution = resolve_symbols(text, [["KO"]], HELD, standings=Standings(BY_VALUE))
    assert (resolution.symbols, resolution.how) == (symbols, how)


def test_a_kind_that_is_not_held_is_asked_of_the_whole_portfolio() -> None:
    assert resolve_symbols("mis criptos", [], ("AAPL", "KO")).symbols == ("AAPL", "KO")


@pytest.mark.parametrize(
    ("text", "recent", "symbols"),
    [
        ("¿y el otro?", [["AAPL"], ["AAPL", "MSFT"]], ("MSFT",)),
        ("and the other one?", [["MA"], ["MA", "V"]], ("V",)),
        ("mejor el anterior", [["INTC"], ["AMD"]], ("AMD",)),
        ("compara los dos", [["PEP"], ["KO"]], ("PEP", "KO")),
        ("put them side by side", [["SOLUSD"], ["ETHUSD"]], ("SOLUSD", "ETHUSD")),
        ("los tres", [["AAPL", "MSFT", "GOOGL"]], ("AAPL", "MSFT", "GOOGL")),
        ("cuál de las dos paga más", [["KO", "PEP"]], ("KO", "PEP")),
        ("el primero me gusta más", [["ITX", "IBE"]], ("ITX",)),
        ("la segunda qué tal la ves?", [["ALSEA", "BIMBOA"]], ("BIMBOA",)),
        ("volvamos a la primera", [["PEP"], ["KO"]], ("KO",)),
        ("the latter", [["SPY", "QQQ"]], ("QQQ",)),
        ("háblame del tercero", [["AAPL", "MSFT", "GOOGL"]], ("GOOGL",)),
        ("ese cuánto paga de dividendo", [["VOO"], ["KO"]], ("VOO",)),
        ("ponle una alerta 5% abajo del precio actual", [["BTCUSD"]], ("BTCUSD",)),
        ("is it overbought", [["PLTR"]], ("PLTR",)),
        ("who's the ceo", [["UBER"]], ("UBER",)),
        ("bull case vs bear case please", [["PLTR"]], ("PLTR",)),
        ("¿lo mantengo o me salgo?", [["REP"]], ("REP",)),
        ("cuánto he ganado con ella", [["AAPL"]], ("AAPL",)),
    ],
)
def test_rf_25_what_was_spoken_of(text: str, recent: list[list[str]], symbols: tuple[str, ...]) -> None:
    resolution = resolve_symbols(text, recent, HELD, standings=Standings(BY_VALUE))
    assert (resolution.symbols, resolution.how) == (symbols, "follow_up")
    assert resolve_symbols(text, [], ()).symbols == ()


@pytest.mark.parametrize(
    "text",
    [
        "gracias, con eso me queda claro, hasta mañana",
        "ok thanks, talk later",
        "what does the fed do to the market",
        "cómo declaro impuestos por ganancias de capital",
        "how do I change my password",
        "is it possible to short an index",
        "a good broker for beginners?",
        "explícame qué es el apalancamiento",
        "el otro día perdí mi celular",
        "la primera vez que invertí",
        "jaja buenísimo",
    ],
)
def test_rf_25_what_is_about_something_else_refers_to_nothing(text: str) -> None:
    assert resolve_symbols(text, [["AAPL"], ["TSLA"]], ()).symbols == ()


def test_im_42_a_yes_takes_what_was_asked_about() -> None:
    confirmed = resolve_symbols("sí, esa", [["KO"]], (), before=["qué opinas de cemx"])
    assert (confirmed.symbols, confirmed.how) == (("CEMEXCPO",), "mentioned")
    assert resolve_symbols("sí, esa", [["KO"]], (), before=["qué opinas de KO"]).how != "mentioned"
    assert resolve_symbols("no", [["KO"]], (), before=["qué opinas de cemx"]).symbols == ()


def position(symbol: str, quantity: str, currency: str = "USD") -> Position:
    return Position(
        user="u", symbol=symbol, quantity=Decimal(quantity), avg_price=Decimal(1), currency=currency
    )


def quote(symbol: str, price: str, currency: str = "USD") -> Quote:
    at = "2026-11-30T15:00:00Z"
    return Quote.model_validate({"symbol": symbol, "price": price, "currency": currency, "as_of": at})


def test_rf_25_market_values_are_compared_only_where_they_can_be() -> None:
    quotes = {"AAPL": quote("AAPL", "200"), "KO": quote("KO", "60"), "WALMEX": quote("WALMEX", "55", "MXN")}
    held = [position("KO", "10"), position("AAPL", "2"), position("KO", "1")]
    assert standings_of(held, quotes).value == ("KO", "AAPL")
    assert standings_of([*held, position("MSFT", "1")], quotes).value == ()
    assert standings_of([*held, position("WALMEX", "1", "MXN")], quotes).value == ()
    assert standings_of([], quotes).value == ()


async def test_rf_46_a_slip_is_asked_about_and_its_symbol_is_in_no_turn() -> None:
    reading, likeness = await understand(
        "precio de microsft",
        "precio de microsft",
        "es",
        read_intent("precio de microsft"),
        topics=[symbol_topic(["KO"], trade=False, language="es")],
        held=HELD,
        before=["precio de KO"],
        embedder=BundledEmbedder(),
    )
    assert (reading.symbols, reading.maybe) == ((), ("MSFT",))
    data = gathered("precio de microsft", topic=as_state(reading, likeness))
    told = lines(instruction_blocks(data, load_plan("trading"), count), "instructions")
    assert question_about(["MSFT"], "es") in told
    assert "Microsoft (MSFT)" in question_about(["MSFT"], "es")


async def test_the_labelled_development_half_is_read_as_it_is_labelled() -> None:
    labels = load(DATA / "symbols_dev.yaml")
    figures = scores(await read(labels, BundledEmbedder()))
    assert figures["symbols"]["precision"] >= 95
    assert figures["symbols"]["recall"] >= 95
    assert figures["maybe"]["precision"] >= 90


STANDINGS = Standings(
    value=("AAPL", "TSLA", "KO"), profit=("AAPL", "KO", "TSLA"), percent=("KO", "AAPL", "TSLA")
)


@pytest.mark.parametrize(
    ("messages", "symbols"),
    [
        (["mi mayor posición", "¿y la menor?"], ("KO",)),
        (["mi mayor posición", "¿y la segunda?"], ("TSLA",)),
        (["mi mayor posición", "¿y la segunda?", "¿y la siguiente?"], ("KO",)),
        (["mi mayor posición", "¿cuánto llevo ganado en ella?"], ("AAPL",)),
        (["mi mayor posición", "¿cuánto llevo ganado en ella?", "¿y la menor?"], ("KO",)),
        (["mi mayor posición", "¿y en total?"], ("TSLA", "AAPL", "KO")),
        (["my best performer"], ("KO",)),
        (["my best performer", "and the worst?"], ("TSLA",)),
        (["my worst position"], ("TSLA",)),
        (["mi peor posición"], ("TSLA",)),
        (["la que más pierde"], ("TSLA",)),
        (["¿cuál es la que más gana?"], ("AAPL",)),
        (["la que menos pierde"], ("AAPL",)),
        (["my biggest loser", "and the second one?"], ("KO",)),
        (["which one is losing the most?", "overall?"], ("TSLA", "AAPL", "KO")),
        (["compara AAPL y TSLA", "¿y la segunda?"], ("TSLA",)),
    ],
)
def test_rf_25_a_rank_goes_on_from_the_question_before(messages: list[str], symbols: tuple[str, ...]) -> None:
    held, recent, found = ("TSLA", "AAPL", "KO"), [], ()
    for place, text in enumerate(messages):
        found = resolve_symbols(text, recent, held, standings=STANDINGS, before=messages[:place]).symbols
        recent.insert(0, list(found))
    assert found == symbols


def test_rf_25_without_figures_a_rank_is_of_all_that_is_held_and_none_is_invented() -> None:
    for text in ("my best performer", "la que más pierde", "mi peor posición"):
        found = resolve_symbols(text, [["KO"]], HELD)
        assert (found.symbols, found.how) == (HELD, "portfolio")


@pytest.mark.parametrize(
    "text", ["¿Cuál es la acción que más sube hoy?", "la que más ha subido del mercado", "¿y la segunda?"]
)
def test_rf_25_what_is_of_the_market_is_no_rank_of_the_positions(text: str) -> None:
    assert not asks_for_rank(text)


def test_rf_25_gains_in_per_cent_are_compared_over_currencies_and_amounts_are_not() -> None:
    held = [position("AAPL", "10"), position("WALMEX", "10", "MXN")]
    quotes = {
        one.symbol: one for one in (quote("AAPL", "110"), quote("WALMEX", "60", "MXN"), quote("KO", "20"))
    }
    assert standings_of(held, quotes) == Standings(percent=("AAPL", "WALMEX"))
    found = standings_of([position("AAPL", "1"), position("KO", "10")], quotes)
    assert found == Standings(value=("KO", "AAPL"), profit=("KO", "AAPL"), percent=("AAPL", "KO"))
