"""How like a message is to the last ones: the last sign of a change of topic (A-2), asked for only in doubt."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock
from typing import Final

from recuerdo.state.errors import StoreError
from recuerdo.stores.embeddings import Embedder

logger = logging.getLogger(__name__)

UNLIKE_BELOW = 0.25
"""Cosine to the nearest of the last messages below which the topic counts as changed (A-2)."""

LAST_MESSAGES = 3
"""How many messages of the user before this one it is compared with (A-2)."""

PATIENCE_SECONDS = 3.0
"""How long a turn waits for vectors: a loading model takes 1.2 s, one that is away must not hold the reply."""

_KEPT: Final = 512


class _Vectors:
    """The vectors of the last texts, by the embedder's name and a digest of the text; bounded, thread-safe."""

    def __init__(self) -> None:
        self._vectors: OrderedDict[bytes, list[float]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes) -> list[float] | None:
        with self._lock:
            if key in self._vectors:
                self._vectors.move_to_end(key)
            return self._vectors.get(key)

    def put(self, key: bytes, vector: list[float]) -> None:
        with self._lock:
            self._vectors[key] = vector
            if len(self._vectors) > _KEPT:
                self._vectors.popitem(last=False)


_vectors = _Vectors()


async def similarity(text: str, before: Sequence[str], embedder: Embedder) -> float | None:
    """The highest cosine of ``text`` with one of ``before``, -1 to 1.

    None when there is nothing before, or no vectors are to be had in time.
    """
    if not before:
        return None
    try:
        own, *others = await asyncio.wait_for(_embed([text, *before], embedder), PATIENCE_SECONDS)
    except (StoreError, TimeoutError) as error:
        logger.warning("topic read without similarity: %s", type(error).__name__)
        return None
    return max(sum(a * b for a, b in zip(own, other, strict=True)) for other in others)


async def _embed(texts: Sequence[str], embedder: Embedder) -> list[list[float]]:
    keys = [_key(text, embedder) for text in texts]
    found = {key: vector for key in keys if (vector := _vectors.get(key))}
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
    if missing:
        made = await embedder.embed(list(missing.values()))
        found.update(zip(missing, made, strict=True))
        for key in missing:
            _vectors.put(key, found[key])
    return [found[key] for key in keys]


def _key(text: str, embedder: Embedder) -> bytes:
    # A lone surrogate may stand in a text.
    content = f"{embedder.name}\x1f{text}".encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=16).digest()
