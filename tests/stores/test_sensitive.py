import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recuerdo.stores.sensitive import MASK, find_sensitive, redact
from recuerdo.stores.sensitive.checked_row import CheckedRow
from recuerdo.stores.sensitive.cues import load_entries
from recuerdo.stores.sensitive.rules import load_rules
from recuerdo.stores.sensitive.vocabulary import KINDS

RF_33 = "mi tarjeta es 4111 1111 1111 1111 y tengo 25000 USD en la cuenta 0123456789"
SEED = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"


def test_rf_33_its_own_sentence_loses_card_amount_and_account() -> None:
    result = redact(RF_33)
    assert result.text == f"mi tarjeta es {MASK} y tengo {MASK} en la cuenta {MASK}"
    assert result.kinds == ("account", "balance", "card")


@pytest.mark.parametrize(
    ("text", "kind", "secrets"),
    [
        ("4111-1111-1111-1111 vence 12/27", "card", ["4111-1111"]),
        ("my Amex is 378282246310005", "card", ["378282246310005"]),
        ("tarjeta terminada en 4242", "card", ["4242"]),
        ("mi tarjeta 1234 5678 9012 3456", "card", ["1234 5678"]),
        ("mi cuenta bancaria es la 12345678", "account", ["12345678"]),
        ("account number: 000123456789", "account", ["000123456789"]),
        ("my wallet 0x52908400098527886E0F7030069857D2E4169EE7", "account", ["0x5290"]),
        ("032180000118359719", "clabe", ["032180000118359719"]),
        ("ES91 2100 0418 4502 0005 1332 es mi cuenta", "iban", ["2100", "1332"]),
        ("pagos a DE89370400440532013000 por favor", "iban", ["DE893704"]),
        ("mi RFC es GODE561231GR8", "tax_id", ["GODE561231GR8"]),
        ("SSN: 536-90-4399", "tax_id", ["536-90-4399"]),
        ("mi cuit es 20-05536168-2", "tax_id", ["20-05536168-2"]),
        ("RUT 12.345.678-5", "tax_id", ["12.345.678-5"]),
        ("CPF 390.533.447-05", "tax_id", ["390.533.447-05"]),
        ("12345678Z", "identity", ["12345678Z"]),
        ("mi CURP: BADD110313HCMLNS09", "identity", ["BADD110313HCMLNS09"]),
        ("pasaporte G12345678", "identity", ["G12345678"]),
        ("my passport number is 123456789", "identity", ["123456789"]),
        ("mi contraseña es mariposa", "credential", ["mariposa"]),
        ("password: hunter2", "credential", ["hunter2"]),
        ("el PIN de mi tarjeta es 4821", "credential", ["4821"]),
        ("mi NIP es 4821.", "credential", ["4821"]),
        ("postgres://ana:s3cret@db/prod", "credential", ["s3cret"]),
        ("usa sk-proj-abcdefghijklmnopqrstuvwx1234", "key", ["sk-proj"]),
        ("AKIAIOSFODNN7EXAMPLE", "key", ["AKIA"]),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "key", ["ghp_"]),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhb", "key", ["eyJ", "dBjf"]),
        (PEM, "key", ["MIIEow"]),
        (SEED, "seed_phrase", ["abandon", "about"]),
        (f"1. {SEED.replace(' ', ', ')}", "seed_phrase", ["abandon"]),
        (
            "mi frase semilla: legal winner thank year wave sausage worth useful legal winner thank zoo",
            "seed_phrase",
            ["sausage", "zoo"],
        ),
        ("gano 3,000 al mes", "amount_held", ["3,000"]),
        ("debo 5000", "amount_held", ["5000"]),
        ("I owe $3k on my card", "amount_held", ["3k"]),
        ("I make 85k a year", "amount_held", ["85k"]),
        ("cobro 1800 euros al mes", "amount_held", ["1800"]),
        ("my balance is $12,400", "balance", ["12,400"]),
        ("mi saldo es de 45,300.50 pesos", "balance", ["45,300.50"]),
        ("mi sueldo es 35 mil pesos", "amount_held", ["35"]),
        ("tengo ahorrados 12000 euros", "balance", ["12000"]),
        ("en mi cuenta hay 15000", "balance", ["15000"]),
        ("tengo dos mil dólares en el banco", "balance", ["dos mil"]),
        ("invertí 10000 USD en Tesla", "balance", ["10000"]),
        ("mi cartera está en 12000 €", "balance", ["12000"]),
        ("mi hipoteca es de 180.000 euros", "amount_held", ["180.000"]),
    ],
)
def test_rf_33_a_10_kinds_of_sensitive_data(text: str, kind: str, secrets: list[str]) -> None:
    result = redact(text)
    assert kind in result.kinds
    assert not [secret for secret in secrets if secret in result.text]


@pytest.mark.parametrize(
    ("text", "kept", "lost"),
    [
        ("tengo 20 acciones de TSLA a 250", ["TSLA"], ["20", "250"]),
        ("Compré 20 TSLA a 250.00", ["TSLA"], ["20", "250"]),
        ("I bought 50 shares of AAPL at $175", ["AAPL"], ["50", "175"]),
        ("mi posición en TSLA: 20 a 250", ["TSLA"], ["20", "250"]),
        ("tienes 50 acciones de AAPL a 175.00", ["AAPL"], ["50", "175"]),
        ("tengo 0.5 BTC", ["BTC"], ["0.5"]),
        ("mi precio promedio en TSLA es 250", ["TSLA"], ["250"]),
        (
            "TSLA: posición abierta de 20 a 250.00 USD, precio actual 245.00, P&L -100.00 USD (-2.00 %)",
            ["TSLA", "precio actual 245.00"],
            ["20 a", "250.00", "100.00", "2.00 %"],
        ),
        (
            "TSLA: open position of 20 at 250.00 USD, current price 245.00, P&L -100.00 USD (-2.00 %)",
            ["TSLA", "current price 245.00"],
            ["of 20", "250.00", "100.00"],
        ),
        ("P&L total: 425.00 USD", ["P&L total"], ["425"]),
    ],
)
def test_c_16_symbols_stay_and_quantities_prices_and_profits_of_holdings_go(
    text: str, kept: list[str], lost: list[str]
) -> None:
    result = redact(text)
    assert "holding" in result.kinds
    assert [part for part in kept if part not in result.text] == []
    assert [part for part in lost if part in result.text] == []


@pytest.mark.parametrize(
    "text",
    [
        "mi stop-loss de AAPL es 170",
        "mi objetivo es 10% anual",
        "mi objetivo de TSLA es 300",
        "¿Debería comprar AAPL a 180?",
        "¿cuánto cuestan 10 acciones de TSLA?",
        "quiero comprar 10 acciones de AAPL",
        "¿qué pasa si invierto 1000 USD en AAPL?",
        "stop loss 170 y take profit 190",
        "AAPL (Apple Inc.): precio 185.50 USD, variación +1.20 %, volumen 45,000,000, dato de 10:30",
        "Alerta activa: TSLA <= 240 (precio actual 245.00, distancia 2.04 %)",
        "la habitación cuesta 1200 por noche",
        "la tarifa es 150 USD por noche",
        "tengo 30 años",
        "tengo una alerta en 240",
        "tengo una reserva para 2 noches del 2025-12-05 al 2025-12-08",
        "prefiero temporalidad de 4h",
        "el RSI está en 70 y la media móvil de 200 en 180",
        "la clave del éxito es la paciencia",
        "the password is wrong",
        "mi contraseña es muy larga",
        "Apple tuvo ingresos de 94,000 millones",
        "la acción ganó 5 dólares hoy",
        "AAPL ganó 3% y cerró en 185.50",
        "vence el 12/12/2025",
        "el número de pedido es 20251205",
        "S&P 500 a 6000 puntos, Bitcoin a 95,000 USD",
        "tengo dos hijos y un perro",
        "¿debo comprar o vender?",
        "mi riesgo máximo es 2% por operación",
        "Fed Minutes 2025-12-06, impacto alto",
        "señal ML de AAPL: alcista, confianza 0.72, actualizada el 2025-12-05T10:25:00",
    ],
)
def test_rf_33_prices_targets_dates_and_rates_are_not_sensitive(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "mi tarjeta es ４１１１ １１１１ １１１１ １１１１",
        "4111\N{NO-BREAK SPACE}1111\N{NO-BREAK SPACE}1111\N{NO-BREAK SPACE}1111",
        "4111\N{ZERO WIDTH SPACE}1111\N{ZERO WIDTH SPACE}1111\N{ZERO WIDTH SPACE}1111",
        "4111\N{EN DASH}1111\N{EN DASH}1111\N{EN DASH}1111",
        "".join(chr(0x0660 + int(digit)) for digit in "4111111111111111"),
    ],
)
def test_rf_33_odd_digits_spaces_and_dashes_hide_nothing(text: str) -> None:
    assert "card" in redact(text).kinds
    assert not re.search(r"\d", redact(text).text)


def test_rf_33_decomposed_accents_and_lone_surrogates_are_read() -> None:
    text = unicodedata.normalize("NFD", "mi contraseña es mariposa")
    assert redact(text).text == f"mi contraseña es {MASK}"
    assert redact("\ud800 debo 5000 \0").text == f"\ud800 debo {MASK} \0"


def test_a_text_without_sensitive_data_comes_back_as_it_was() -> None:
    text = unicodedata.normalize("NFD", "¿Cómo va mi inversión?")
    assert redact(text) == type(redact(text))(text, ())


def test_spans_are_those_of_the_text_in_order() -> None:
    spans = find_sensitive(RF_33)
    assert [RF_33[span.start : span.end] for span in spans] == [
        "4111 1111 1111 1111",
        "25000 USD",
        "0123456789",
    ]
    assert [span.kind for span in spans] == ["card", "balance", "account"]


@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from(["tengo", "20", "USD", "mi", "cuenta", "es", "$", "4111", "de", "TSLA", "a"])
    ).map(" ".join)
)
def test_any_text_is_read_and_what_is_outside_the_spans_stays(text: str) -> None:
    whole = unicodedata.normalize("NFC", text)
    spans = find_sensitive(text)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    for span in reversed(spans):
        whole = whole[: span.start] + MASK + whole[span.end :]
    assert redact(text).text == (whole if spans else text)


@given(
    st.lists(
        st.sampled_from(
            [
                "tengo",
                "20",
                "USD",
                "mi",
                "cuenta",
                "es",
                "$5",
                "4111",
                "12345678",
                "si",
                "contraseña",
                "x9!",
                "TSLA",
                "a",
                "y",
                ".",
            ]
        ),
        max_size=25,
    ).map(" ".join)
)
def test_rf_33_what_was_redacted_stays_as_it_is(text: str) -> None:
    once = redact(text).text
    assert redact(once).text == once


@pytest.mark.parametrize(
    "text", [f"password: {MASK}", f"mi contraseña es {MASK} x", f"tengo {MASK} USD", MASK]
)
def test_rf_33_a_mask_is_no_secret(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize("account", ["032180000118359719", "002010077777777771"])
def test_clabe_check_digit(account: str) -> None:
    assert CheckedRow(account).is_clabe(0)
    assert not CheckedRow(account[:-1] + str((int(account[-1]) + 1) % 10)).is_clabe(0)


def test_every_rule_names_a_value_and_every_kind_has_a_way_to_be_found() -> None:
    assert all("value" in rule.pattern.groupindex for rule in load_rules())
    by_form = {rule.kind for rule in load_rules()}
    by_cue = {kind for entry in load_entries() for kind in (*entry.before.values(), *entry.after.values())}
    assert set(KINDS) - by_form - by_cue == {"clabe", "iban", "seed_phrase"}


def test_rf_33_no_pattern_of_the_tables_repeats_without_bound() -> None:
    """With bounded repeats a search from one place ends in bounded steps, so a text of 200 kB in linear ones."""
    patterns = [rule.pattern for rule in load_rules()] + [entry.pattern for entry in load_entries()]
    unbounded = re.compile(r"(?<!\\)(?:\*|\+|\{\d*,\})")
    shapes = [re.sub(r"\[(?:\\.|[^\]])*\]", "x", pattern.pattern) for pattern in patterns]
    assert [shape for shape in shapes if unbounded.search(shape)] == []


HOSTILE = [
    *[
        "1 ",
        "tengo ",
        "debo 5000 ",
        "eyJa-",
        "-----BEGIN PRIVATE KEY-----",
        "ES12 ABCD ",
        "password is ",
        "abandon ",
    ],
    *[
        "dos mil ",
        "$",
        " ",
        "mi sueldo de ",
        "password a",
        "contraseña es b ",
        "uno ",
        "1234 5678 ",
        "my ",
        "si ",
        "\n",
        "mi saldo ",
        "1.",
        "12-",
        "://a:",
        "mi clave a x",
        "a b c ",
        "frase de voz a ",
        "x@1",
        "diez ",
        "my pin, ",
        "posición de ",
        "a",
    ],
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_rf_33_hostile_repeats_end(piece: str) -> None:
    """A pattern that is quadratic in such repeats would take minutes here instead of a fraction of a second."""
    text = piece * (50_000 // len(piece))
    spans = find_sensitive(text)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
