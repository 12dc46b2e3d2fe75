import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recuerdo.state.folding import comparable, folded, plain, unaccented


@given(st.text(max_size=200))
def test_offsets_are_those_of_the_nfc_text(text: str) -> None:
    whole = plain(text)
    assert len(whole) == len(unicodedata.normalize("NFC", text))
    assert len(folded(whole)) == len(unaccented(whole)) == len(comparable(whole)) == len(whole)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Telefo\u0301nica", "telefonica"),
        ("AÑO", "ano"),
        ("１２\N{NO-BREAK SPACE}３", "12 3"),
        ("a\N{EN DASH}b\N{MINUS SIGN}c", "a-b-c"),
        ("١٢", "12"),
        ("l’eau\nX", "l'eau\nx"),
    ],
)
def test_text_is_made_comparable(text: str, expected: str) -> None:
    assert folded(plain(text)) == expected


def test_case_and_dashes() -> None:
    assert unaccented(plain("Más")) == "Mas"
    assert comparable(plain("Coca-Cola")) == "coca cola"
