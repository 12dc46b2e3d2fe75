from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wordfreq import zipf_frequency

from recuerdo.nodes.build_context.symbols import (
    find_indicators,
    find_symbols,
    instrument,
    question_about,
    resolve_symbols,
)
from recuerdo.nodes.build_context.symbols.table import load_table
from recuerdo.stores.sources.calendar import MarketCalendar


def certain(text: str) -> list[str]:
    return [one.symbol for one in find_symbols(text) if one.certain]


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("¿Cómo va mi posición de Tesla?", ["TSLA"]),
        ("¿Debería comprar AAPL ahora?", ["AAPL"]),
        ("Ahora hablemos de TSLA: ¿qué opinas?", ["TSLA"]),
        ("volviendo a Apple", ["AAPL"]),
        ("volviendo a apple", ["AAPL"]),
        ("Sobre nvidia...", ["NVDA"]),
        ("telefonica y IBERDROLA", ["TEF", "IBE"]),
        ("Telefo\u0301nica", ["TEF"]),
        ("COCA-COLA, coca cola y Cocacola", ["KO", "KO", "KO"]),
        ("Coca-Cola FEMSA", ["KOFUBL"]),
        ("¿Qué tal Santander?", ["SAN"]),
        ("Banorte o Cemex", ["GFNORTEO", "CEMEXCPO"]),
        ("América Móvil o AMXB", ["AMXB", "AMXB"]),
        ("Netflix's P/E y McDonald’s", ["NFLX", "MCD"]),
        ("Amazon anunció resultados", ["AMZN"]),
        ("las ventas de Apple", ["AAPL"]),
        ("apple", ["AAPL"]),
    ],
)
def test_rf_46_im_42_names_are_understood_as_symbols(text: str, symbols: list[str]) -> None:
    assert certain(text) == symbols


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("$TSLA y $F", ["TSLA", "F"]),
        ("ＴＳＬＡ", ["TSLA"]),
        ("BRK.B, BRK-B y brk.b", ["BRK.B", "BRK.B", "BRK.B"]),
        ("AAPL/TSLA", ["AAPL", "TSLA"]),
        ("walmex.mx", ["WALMEX"]),
        ("btc y eth", ["BTCUSD", "ETHUSD"]),
        ("eth vs sol, ¿cuál prefieres?", ["ETHUSD", "SOLUSD"]),
        ("BTC-USD, BTC/USD, BTCUSD y btc / usd", ["BTCUSD", "BTCUSD", "BTCUSD", "BTCUSD"]),
        ("precio de SOLUSDT", ["SOLUSDT"]),
        ("EUR/USD, eurusd y GBP-JPY", ["EURUSD", "EURUSD", "GBPJPY"]),
        ("TSLA Y AAPL SUBEN MUCHO HOY", ["TSLA", "AAPL"]),
    ],
)
def test_rf_12_tickers_classes_and_pairs(text: str, symbols: list[str]) -> None:
    assert certain(text) == symbols


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("compra 10 F", ["F"]),
        ("¿Qué opinas de T?", ["T"]),
        ("Ford (F) o GM", ["F", "F", "GM"]),
        ("AAPL, F y T", ["AAPL", "F", "T"]),
        ("SE y MELI", ["SE", "MELI"]),
        ("acciones de ALL", ["ALL"]),
        ("ON stock", ["ON"]),
        ("NYSE: IT", ["IT"]),
        ("Is COST a buy?", ["COST"]),
        ("¿cuánto vale SOL?", ["SOLUSD"]),
        ("acciones de meta", ["META"]),
        ("¿Qué opinas de Meta y de Alphabet?", ["META", "GOOGL"]),
        ("¿Qué opinas de Meta?", ["META"]),
        ("How is Visa doing?", ["V"]),
        ("¿Puedes comparar KO, PEP y MCD?", ["KO", "PEP", "MCD"]),
    ],
)
def test_words_that_are_also_symbols_count_beside_words_of_the_market(text: str, symbols: list[str]) -> None:
    assert certain(text) == symbols


@pytest.mark.parametrize(
    "text",
    [
        "my grandma's apple pie is great",
        "Apple pie recipe please",
        "mi meta de ahorro es 10% anual",
        "Meta de ahorro: 5000",
        "QUIERO SABER SI NO SE VA A CAER TODO",
        "NO SE QUE HACER DE VERDAD",
        "I want IT NOW",
        "trabajo en el área de IT",
        "tengo 500 USD",
        "El CEO habló del ETF y del RSI, MACD y EMA",
        "hace mucho sol en casa",
        "EL SOL SALE",
        "vitamina C",
        "opción A o B",
        "vivo en Santander",
        "mi tarjeta visa",
        "me llamo Ada",
        "hold on, I need to go",
        "MA 200",
        "gm everyone",
        "Best buy for today?",
        "el VIX y el DXY",
        "",
        "😀",
        "שלום",
    ],
)
def test_plain_words_are_no_symbols(text: str) -> None:
    assert certain(text) == []


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("Ford's dividend looks juicy", ["F"]),
        ("meta cayó 11% tras reportar", ["META"]),
        ("i think apple will beat earnings", ["AAPL"]),
        ("visa or mastercard for 10 years", ["V", "MA"]),
        ("would u swap intel for amd here", ["INTC", "AMD"]),
        ("¿y SOL?", ["SOLUSD"]),
        ("Ticker is ON, the chip one", ["ON"]),
        ("is dis a buy after earnings", ["DIS"]),
        ("compro spy o voo", ["SPY", "VOO"]),
        ("mis teslas y mis nvidias", ["TSLA", "NVDA"]),
        ("BIMBO A o LALA B", ["BIMBOA", "LALAB"]),
        ("Berkshire class B o BRK.A", ["BRK.B", "BRK.A"]),
        ("johnson and johnson, mcdonalds", ["JNJ", "MCD"]),
        ("qué onda con ypf y galicia", ["YPF", "GGAL"]),
    ],
)
def test_rf_46_short_forms_small_letters_and_lists(text: str, symbols: list[str]) -> None:
    assert certain(text) == symbols


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("ADR de cemex en nueva york", ["CX"]),
        ("Cemex", ["CEMEXCPO"]),
        ("BMV: AMX", ["AMXB"]),
        ("AMX.MX o AMX", ["AMXB", "AMX"]),
        ("the ADR of Telefonica on NYSE", ["TEF"]),
    ],
)
def test_c_35_the_listing_at_home_is_meant_unless_the_text_says_otherwise(
    text: str, symbols: list[str]
) -> None:
    assert certain(text) == symbols


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("cómo ves el euro dólar", ["EURUSD"]),
        ("peso dólar, ¿a dónde va?", ["USDMXN"]),
        ("dollar against the yen", ["USDJPY"]),
        ("libra / euro", ["EURGBP"]),
        ("peso colombiano vs dólar", ["USDCOP"]),
        ("cambio dólares por euros", []),
        ("el euro sube", []),
    ],
)
def test_rf_12_pairs_by_the_names_of_currencies(text: str, symbols: list[str]) -> None:
    assert certain(text) == symbols


@pytest.mark.parametrize(
    "text",
    [
        "pagué con paypal y no me llega",
        "google it for me",
        "fui a walmart a comprar leche",
        "vi una serie en netflix anoche",
        "i bought a new apple watch",
        "qué es un block trade",
        "vivo en Liverpool",
        "el P/E y el P/B",
    ],
)
def test_names_that_are_used_and_not_spoken_of_are_no_symbols(text: str) -> None:
    assert certain(text) == []


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("how is microsot doing", ("MSFT",)),
        ("cuánto subió telsa", ("TSLA",)),
        ("me dijeron que Aple va a presentar algo", ("AAPL",)),
        ("price of bitcon", ("BTCUSD",)),
        ("que opinas de cemx", ("CEMEXCPO",)),
        ("precio de TSAL", ("TSLA",)),
        ("APPL earnings when", ("AAPL",)),
        ("cotizacion nflxx", ("NFLX",)),
        ("¿$APPL?", ("AAPL",)),
    ],
)
def test_rf_46_one_letter_away_is_a_question_never_assumed(text: str, symbols: tuple[str, ...]) -> None:
    resolution = resolve_symbols(text, [["KO"]], ["TSLA", "AAPL"])
    assert (resolution.symbols, resolution.unknown, resolution.unsure) == ((), (), symbols)
    assert not [one for one in find_symbols(text) if one.certain and one.known]


@pytest.mark.parametrize(
    "text",
    [
        "una testa de toro",
        "pintura comex",
        "the applet is slow on goggles",
        "ONE MORE DAY OF THIS",
        "juan@gogle.com",
        "qué va a pasar con las tasas el próximo año",
        "to be or not to be",
        "APLE",
    ],
)
def test_words_are_no_slips(text: str) -> None:
    assert all(one.certain for one in find_symbols(text, near=True))


def test_what_is_certain_stands_beside_what_is_asked_about() -> None:
    resolution = resolve_symbols("compara MSFT con APPL", [], [])
    assert (resolution.symbols, resolution.unsure) == (("MSFT",), ("AAPL",))
    assert "Apple Inc. (AAPL)" in question_about(resolution.unsure, "es")
    assert "AAPL" in question_about(("AAPL", "MSFT"), "en")


def test_what_may_be_a_word_is_a_question() -> None:
    (mention,) = find_symbols("ARM is interesting")
    assert (mention.symbol, mention.certain, mention.known) == ("ARM", False, True)


@pytest.mark.parametrize("text", ["¿qué tal $ZZZZ?", "acciones de ZZZZ"])
def test_unknown_symbols_are_kept_as_unknown(text: str) -> None:
    (mention,) = find_symbols(text)
    assert (mention.symbol, mention.certain, mention.known) == ("ZZZZ", True, False)
    resolution = resolve_symbols(text, [["AAPL"]], ["TSLA"])
    assert (resolution.symbols, resolution.how, resolution.unknown) == ((), "mentioned", ("ZZZZ",))


def test_offsets_are_those_of_the_text() -> None:
    text = "Compara Apple con $TSLA"
    assert [text[one.start : one.end] for one in find_symbols(text)] == ["Apple", "$TSLA"]


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    found = find_symbols(text)
    assert all(one.end <= other.start for one, other in pairwise(found))
    find_indicators(text)
    resolve_symbols(text, [["AAPL"]], ["TSLA"])


@pytest.mark.parametrize("piece", ["AAPL ", "apple ", "A/B-C.", "1 ", "F ", "mi ", "\n", "eur/usd "])
def test_hostile_repeats_end(piece: str) -> None:
    """A rule that is quadratic in such repeats would take minutes here instead of a fraction of a second."""
    resolution = resolve_symbols(piece * (50_000 // len(piece)), [["MSFT"]], ["TSLA"])
    assert resolution.symbols in ((), ("AAPL",), ("EURUSD",))


RECENT = [[], ["AAPL"], ["TSLA"]]


@pytest.mark.parametrize(
    "text",
    [
        "¿Y qué opinas del volumen?",
        "what about its P/E?",
        "and the volume?",
        "¿lo vendo?",
        "¿Conviene comprarla ahora?",
        "should I sell it?",
        "¿Cuál es el precio?",
        "¿Cuál es su tendencia?",
        "Muéstrame el RSI",
        "is it a good buy?",
        "¿Debería vender?",
    ],
)
def test_rf_25_a_follow_up_speaks_of_the_newest_symbols(text: str) -> None:
    resolution = resolve_symbols(text, RECENT, ["TSLA"])
    assert (resolution.symbols, resolution.how) == (("AAPL",), "follow_up")
    assert resolve_symbols(text, [], ["TSLA"]).how == "none"


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("¿y el otro?", ("TSLA",)),
        ("and the other one?", ("TSLA",)),
        ("compara los dos", ("AAPL", "TSLA")),
        ("compáralos", ("AAPL", "TSLA")),
        ("compare both", ("AAPL", "TSLA")),
    ],
)
def test_rf_25_the_other_and_both(text: str, symbols: tuple[str, ...]) -> None:
    resolution = resolve_symbols(text, RECENT, ["NVDA"])
    assert (resolution.symbols, resolution.how) == (symbols, "follow_up")


@pytest.mark.parametrize(
    "text",
    [
        "¿Cómo va mi inversión?",
        "muéstrame mi cartera",
        "¿cuánto he ganado?",
        "mis posiciones",
        "how am I doing?",
        "show my portfolio",
    ],
)
def test_rf_27_a_question_about_the_portfolio_is_about_all_that_is_held(text: str) -> None:
    resolution = resolve_symbols(text, RECENT, ["TSLA", "NVDA"])
    assert (resolution.symbols, resolution.how) == (("TSLA", "NVDA"), "portfolio")


@pytest.mark.parametrize(
    "text",
    [
        "hola",
        "gracias",
        "thanks!",
        "ok",
        "Buenos días",
        "¿qué es RSI?",
        "what is RSI?",
        "explícame qué es un ETF",
        "¿está abierto el mercado?",
        "¿Qué hora es?",
        "¿y tú cómo estás?",
        "siempre mostrar disclaimer",
        "mi objetivo es 10% anual",
        "prefiero temporalidad 4h",
        "necesito una habitación para dos",
    ],
)
def test_rf_12_greetings_and_general_questions_speak_of_no_symbol(text: str) -> None:
    resolution = resolve_symbols(text, RECENT, ["TSLA"])
    assert (resolution.symbols, resolution.how) == ((), "none")


def test_im_42_mentioned_symbols_win() -> None:
    assert resolve_symbols("volviendo a Apple", [["TSLA"], ["AAPL"]], ["TSLA"]).symbols == ("AAPL",)
    resolution = resolve_symbols("¿Cómo va mi posición de Tesla?", [["AAPL"]], ["AAPL", "TSLA"])
    assert (resolution.symbols, resolution.how) == (("TSLA",), "mentioned")


@pytest.mark.parametrize(
    ("text", "indicators"),
    [
        ("mis favoritos son RSI y macd", ["RSI", "MACD"]),
        ("la ema 200 y las bandas de Bollinger", ["EMA", "Bollinger"]),
        ("EMA200 y SMA50", ["EMA", "SMA"]),
        ("media móvil exponencial", ["EMA"]),
        ("the Relative Strength Index, RSI", ["RSI"]),
        ("Ema escucha rock", []),
        ("hola", []),
    ],
)
def test_indicators_have_one_name(text: str, indicators: list[str]) -> None:
    assert find_indicators(text) == indicators


@pytest.mark.parametrize(
    ("code", "symbol", "exchange", "kind", "currency"),
    [
        ("AAPL", "AAPL", "XNAS", "stock", "USD"),
        ("brk-b", "BRK.B", "XNYS", "stock", "USD"),
        ("SPY", "SPY", "XNYS", "etf", "USD"),
        ("WALMEX", "WALMEX", "XMEX", "stock", "MXN"),
        ("SAN", "SAN", "XMAD", "stock", "EUR"),
        ("btc", "BTCUSD", "24/7", "crypto", "USD"),
        ("ETH/EUR", "ETHEUR", "24/7", "crypto", "EUR"),
        ("usd-mxn", "USDMXN", "FOREX", "fx", "MXN"),
    ],
)
def test_c_35_an_instrument_knows_its_exchange(
    code: str, symbol: str, exchange: str, kind: str, currency: str
) -> None:
    found = instrument(code)
    assert found is not None
    assert (found.symbol, found.exchange, found.kind, found.currency) == (symbol, exchange, kind, currency)


@pytest.mark.parametrize("code", ["ZZZZ", "", "USD", "USDUSD", "/"])
def test_an_unknown_instrument_is_none(code: str) -> None:
    assert instrument(code) is None


def test_the_table_is_consistent() -> None:
    instruments = load_table().instruments
    assert len(instruments) > 700
    names = [name.lower() for one in instruments for name in (*one.aliases, *one.word_aliases)]
    assert len(names) == len(set(names))
    assert len({one.symbol for one in instruments}) == len(instruments)
    calendar = MarketCalendar()
    at = datetime(2026, 11, 30, 15, tzinfo=UTC)
    assert all(calendar.status(code, at) for code in {one.exchange for one in instruments})
    symbols = {one.symbol for one in instruments}
    assert {one.adr for one in instruments if one.adr} <= symbols


def test_symbols_that_count_in_any_case_are_no_words() -> None:
    codes = [
        one.symbol.lower()
        for one in load_table().instruments
        if one.ticker == "any_case" and one.kind == "stock"
    ]
    frequent = [
        code for code in codes if len(code) <= 5 and max(zipf_frequency(code, x) for x in ("es", "en")) > 3.5
    ]
    assert frequent == ["amd", "ibm"]  # frequent as names of the companies themselves


@pytest.mark.parametrize(
    "text",
    [
        "¿qué es un gap?",
        "eres un bimbo",
        "3m de pesos",
        "gasté 3m en eso",
        "Me compré un Ford",
        "una Coca Cola bien fría",
        "I drank a Coke with them",
        "CRM software para mi negocio",
        "we need a CRM",
        "https://x.com/AAPL",
        "mira www.example.com/TSLA?x=NVDA",
        "write to juan@tesla.com",
        "Zoom meeting a las 5",
        "UPS! me equivoqué",
        "Block me please",
        "Shell script",
        "Alfa romeo",
        "ADA Lovelace",
        "cancel ALL my orders",
    ],
)
def test_rf_12_products_units_links_and_words_are_neither_symbols_nor_questions(text: str) -> None:
    resolution = resolve_symbols(text, [], [])
    assert (resolution.symbols, resolution.unsure, resolution.unknown) == ((), (), ())


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("hay un gap alcista en TSLA", ["TSLA"]),
        ("SELL ALL my TSLA", ["TSLA"]),
        ("¿Cuál es la meta de Meta este año?", ["META"]),
        ("V o MA?", ["V", "MA"]),
        ("¿Cómo cerró SE hoy?", ["SE"]),
        ("how did F close", ["F"]),
        ("SAN.MC", ["SAN"]),
        ("acciones de Gap", ["GAP"]),
        ("¿y Ford?", ["F"]),
        ("qué opinas de 3M", ["MMM"]),
        ("compro un Bitcoin", ["BTCUSD"]),
        ("as a Tesla investor, what is next?", ["TSLA"]),
        ("buy AAPL@185.50", ["AAPL"]),
    ],
)
def test_rf_12_what_is_of_the_market_is_understood(text: str, symbols: list[str]) -> None:
    resolution = resolve_symbols(text, [], [])
    assert (list(resolution.symbols), resolution.unsure) == (symbols, ())


@pytest.mark.parametrize(
    ("text", "home", "symbols", "unsure"),
    [
        ("¿a cuánto está el dólar?", "MXN", ("USDMXN",), ()),
        ("el dólar hoy", "EUR", ("EURUSD",), ()),
        ("tipo de cambio", "COP", ("USDCOP",), ()),
        ("¿cómo va el euro?", "MXN", ("EURMXN",), ()),
        ("how is the dollar doing?", "EUR", ("EURUSD",), ()),
        ("el dólar hoy", "USD", (), ("EURUSD", "USDMXN")),
        ("¿a cuánto está el dólar?", "", (), ("EURUSD", "USDMXN")),
        ("¿cuánto es en dólares?", "MXN", (), ()),
        ("tengo 500 dólares", "MXN", (), ()),
        ("¿cómo afecta el dólar a AAPL?", "MXN", ("AAPL",), ()),
    ],
)
def test_rf_12_a_7_the_price_of_one_currency_is_that_against_the_users_own(
    text: str, home: str, symbols: tuple[str, ...], unsure: tuple[str, ...]
) -> None:
    resolution = resolve_symbols(text, [], [], home=home)
    assert (resolution.symbols, resolution.unsure) == (symbols, unsure)
