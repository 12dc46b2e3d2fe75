"""Names in Chroma."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recuerdo.stores.chroma.names import collection_name, database_name

# Chroma 1.5.9's own rule for collections.
LEGAL = re.compile(r"(?=.{3,512}\Z)(?!.*\.\.)[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]")
HARD = ["", "a", "../x", "..", "a..b", "/etc/passwd", "a/b", "ñ", "user@host.mx"]
HARD += ["x" * 5_000, "\x00", "\ud800", "a\n", "x--a"]


@pytest.mark.parametrize("assistant", ["A1", "a", "hotel-recepcion_2", "v1.2", "9", "a."])
def test_et_27_a_legal_assistant_names_its_collection(assistant):
    assert collection_name(assistant) == f"{assistant}_memories"


@pytest.mark.parametrize("text", HARD)
def test_im_29_every_text_gives_a_legal_name(text):
    assert LEGAL.fullmatch(collection_name(text))
    assert LEGAL.fullmatch(database_name(text))
    assert "/" not in collection_name(text) + database_name(text)


@given(st.text(max_size=30) | st.sampled_from(HARD), st.text(max_size=30) | st.sampled_from(HARD))
def test_et_27_two_texts_never_share_a_name(one, other):
    assert (collection_name(one) == collection_name(other)) == (one == other)
    assert (database_name(one) == database_name(other)) == (one == other)


@pytest.mark.parametrize("text", HARD)
def test_et_27_a_name_made_for_another_cannot_be_taken(text):
    made = collection_name(text).removesuffix("_memories")
    assert made == text or collection_name(made) != collection_name(text)
    assert database_name(database_name(text)) != database_name(text)


def test_names_keep_the_case():
    assert collection_name("a1") != collection_name("A1")
    assert database_name("acme") != database_name("ACME")
