"""Which items answer a query best, by meaning and by words, as the recall of memories does it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recuerdo.stores.memory_store.items import Candidate, ItemKey
from recuerdo.stores.memory_store.language import likely_language
from recuerdo.stores.postgres.memories import FLOAT
from recuerdo.stores.recall.analysis import ANALYZER, analyse, query_terms
from recuerdo.stores.recall.lexical import lexical_scores
from recuerdo.stores.recall.neighbours import Neighbours

Floats = NDArray[np.float64]

# Added to the cosine: words in common decide between what means much the same.
_MATCH, _COVERAGE = 0.5, 0.2


@dataclass(frozen=True)
class Ranked:
    """An item and its score, -1 to 1: the cosine of its vector, and more for words in common."""

    at: ItemKey
    score: float


def analysed(text: str) -> bytes:
    """The terms of an item's text, as search compares them."""
    return analyse(text, likely_language(text)).terms


def has_vector(candidate: Candidate, embedder: str, dimensions: int) -> bool:
    """Whether the candidate's vector can be compared with one of ``embedder``."""
    size = dimensions * FLOAT.itemsize
    return (
        candidate.embedder == embedder
        and candidate.embedding is not None
        and len(candidate.embedding) == size
    )


def vector_bytes(embedding: Sequence[float]) -> bytes:
    """A vector as it is kept."""
    return np.asarray(embedding, FLOAT).tobytes()


class Ranking:
    """The candidates of one search, or of many over the same ones."""

    def __init__(self, candidates: Sequence[Candidate], embedder: str, dimensions: int) -> None:
        """Vectors of ``embedder`` with so many ``dimensions`` are compared; 0: by words alone."""
        self._candidates = candidates
        self._terms = [_terms(candidate) for candidate in candidates]
        # Each item stands alone.
        self._neighbours = Neighbours.of([(None, None)] * len(candidates))
        self._having = [
            place for place, each in enumerate(candidates) if has_vector(each, embedder, dimensions)
        ]
        vectors = b"".join(candidates[place].embedding or b"" for place in self._having)
        self._vectors = np.frombuffer(vectors, FLOAT).reshape(len(self._having), dimensions)

    def best(self, query: str, embedding: Sequence[float] | None, limit: int, offset: int) -> list[Ranked]:
        """Best first; ``embedding`` None: by words alone."""
        if not self._candidates:
            return []
        words = lexical_scores(self._terms, query_terms(query), self._neighbours)
        cosines = np.zeros(len(self._candidates))
        if embedding is not None:
            cosines[self._having] = self._vectors @ np.asarray(embedding, FLOAT)
        scores = cosines + _MATCH * words.match + _COVERAGE * words.coverage
        order = np.argsort(-scores, kind="stable")[offset : offset + limit]
        return [Ranked(self._candidates[place].at, min(float(scores[place]), 1.0)) for place in order]


def _terms(candidate: Candidate) -> bytes:
    """As they are kept, or made anew for an item that another version of the analyzer wrote."""
    return candidate.terms if candidate.analyzer == ANALYZER else analysed(candidate.text)
