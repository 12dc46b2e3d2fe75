"""Recall: the memories of a user that answer a question best, by meaning and by words (ET-4, RF-10, A-4)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recuerdo.state.errors import StoreError
from recuerdo.state.sentences import Sentence
from recuerdo.stores.chroma import VectorIndex
from recuerdo.stores.embeddings import Embedder
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import FLOAT, Memories, SearchRow, StoredMemory
from recuerdo.stores.recall.analysis import ANALYZER, Analysis, analyse, query_terms
from recuerdo.stores.recall.dates import named_dates, nearness
from recuerdo.stores.recall.lexical import lexical_scores
from recuerdo.stores.recall.neighbours import Neighbours

Floats = NDArray[np.float64]
Similarities = dict[UUID, float]
"""Cosine similarities by memory: of all that have a vector, or of the nearest alone."""

SCANNED_AT_MOST = 2_000
"""Up to so many memories of one user all are compared, which is exact; beyond, the index is asked."""

_ASKED_OF_INDEX = 500

# In standard deviations of the similarity, which counts 1: round numbers, of the size that words and meaning
# get alike when the question and the memory are in one language. A memory that asks holds no answer.
_MATCH, _COVERAGE, _CONVERSATION, _DATE, _ASKS = 8.0, 2.0, 2.0, 1.0, -1.0


@dataclass(frozen=True)
class Recalled:
    """A memory in force and its score: for the order within one answer only, in no fixed range."""

    memory: StoredMemory
    score: float


class Recall:
    """Searches the memories of one tenant. One object serves one caller at a time."""

    def __init__(self, database: Database, index: VectorIndex, embedder: Embedder, tenant: str) -> None:
        """Raises ScopeError without a tenant (C-11)."""
        self._memories = Memories(database, tenant)
        self._index = index
        self._embedder = embedder
        self._tenant = tenant
        self.missing: Sentence | None = None
        """What the last search had to do without, and why: the index, or the vector of the question."""

    async def search(
        self, assistant: str, user: str, query: str, now: datetime, limit: int
    ) -> list[Recalled]:
        """The user's ``limit`` best memories in force at ``now``, best first; fewer when there are fewer.

        However little they are alike: there is no lower limit (A-37). The rows are read under the caller's
        scope, so what is foreign, deleted or expired does not come back whatever the index says. With the
        index or the embedder away the search goes on without, see ``missing``. Raises ScopeError, and
        StoreError when the database is away.
        """
        self.missing = self._index.unavailable
        rows = await self._memories.search_rows(assistant, user, now, self._embedder.name, SCANNED_AT_MOST)
        if not rows or limit <= 0:
            return []
        rows.sort(key=_in_conversation)
        meaning = await self._similarities(assistant, user, query, now, rows)
        best = await asyncio.to_thread(_best, rows, meaning, query, limit)
        found = await self._memories.get(list(best), assistant, user, now)
        return [Recalled(memory, best[memory.id]) for memory in found]

    async def _similarities(
        self, assistant: str, user: str, query: str, now: datetime, rows: Sequence[SearchRow]
    ) -> Similarities:
        try:
            embedding = await self._embedder.embed_query(query)
        except StoreError as error:
            self.missing = error.sentence
            return {}
        if len(rows) <= SCANNED_AT_MOST:
            return await asyncio.to_thread(_scanned, rows, embedding)
        if not self._index.unavailable:
            try:
                hits = await self._index.query(self._tenant, assistant, user, embedding, _ASKED_OF_INDEX)
                return {UUID(hit.id): hit.similarity for hit in hits}
            except StoreError as error:
                self.missing = error.sentence
        nearest = await self._memories.nearest(
            assistant, user, embedding, self._embedder.name, now, _ASKED_OF_INDEX
        )
        return {near.id: near.similarity for near in nearest}


def rank(rows: Sequence[SearchRow], embedding: Sequence[float], query: str, limit: int) -> dict[UUID, float]:
    """Scores of the best ``limit`` rows by id, best first: every row is compared, no index is asked."""
    ordered = sorted(rows, key=_in_conversation)
    return _best(ordered, _scanned(ordered, embedding), query, limit)


def _in_conversation(row: SearchRow) -> tuple[str, int, datetime, UUID]:
    return row.conversation or "", row.position or 0, row.created_at, row.id


def _scanned(rows: Sequence[SearchRow], embedding: Sequence[float]) -> Similarities:
    """The similarity of every row that has a vector of the question's dimensions."""
    query = np.asarray(embedding, FLOAT)
    having = [row for row in rows if row.embedding is not None and len(row.embedding) == query.nbytes]
    vectors = np.frombuffer(b"".join(row.embedding for row in having if row.embedding), FLOAT)
    matrix = vectors.reshape(len(having), len(query))
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
    cosines = np.divide(matrix @ query, lengths, out=np.zeros(len(having), FLOAT), where=lengths > 0)
    return {row.id: cosine for row, cosine in zip(having, cosines.tolist(), strict=True)}


def _best(rows: Sequence[SearchRow], similarities: Similarities, query: str, limit: int) -> dict[UUID, float]:
    """Scores by id, the best ``limit``, best first."""
    scores = _scores(rows, similarities, query)
    order = np.argsort(-scores, kind="stable")[:limit]
    return {rows[place].id: float(scores[place]) for place in order}


def _scores(rows: Sequence[SearchRow], similarities: Similarities, query: str) -> Floats:
    analyses = [_analysis(row) for row in rows]
    neighbours = Neighbours.of([(row.conversation, row.position) for row in rows])
    words = lexical_scores([analysis.terms for analysis in analyses], query_terms(query), neighbours)
    scores = _MATCH * words.match + _COVERAGE * words.coverage + _CONVERSATION * words.conversation
    scores += _standardised(neighbours.spread(_standardised(_filled(rows, similarities))))
    if dates := named_dates(query):
        scores += _DATE * nearness(dates, [row.created_at for row in rows])
    return scores + _ASKS * np.array([analysis.asks for analysis in analyses])


def _analysis(row: SearchRow) -> Analysis:
    """As it is kept, or made anew for a row that another version of the analyzer wrote."""
    if row.terms is None or row.asks is None or row.analyzer != ANALYZER:
        return analyse(row.text or "", row.language)
    return Analysis(row.terms, row.asks)


def _filled(rows: Sequence[SearchRow], similarities: Similarities) -> Floats:
    """A similarity for every row; those without one are taken to be as far as the farthest known."""
    farthest = min(similarities.values(), default=0.0)
    return np.array([similarities.get(row.id, farthest) for row in rows])


def _standardised(values: Floats) -> Floats:
    """Mean 0, standard deviation 1; all 0 when they are all alike."""
    deviation = values.std()
    if deviation < np.finfo(np.float32).eps:
        return np.zeros(len(values))
    standardised: Floats = (values - values.mean()) / deviation
    return standardised
