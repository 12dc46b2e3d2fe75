"""How well the words of a question are found in a user's memories: BM25 over a memory and its neighbours.

The scores are shares of what the question could get, so they say how much to trust the words: they are near
0 everywhere when a user's memories hold none of them, for instance because they are in another language.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recuerdo.stores.recall.analysis import TERM
from recuerdo.stores.recall.neighbours import Neighbours

Floats = NDArray[np.float64]

# BM25's saturation and its weight of length, for memories and for whole conversations.
_K1, _B, _B_TALK = 0.9, 0.2, 0.4


@dataclass(frozen=True)
class LexicalScores:
    """One value per memory, each from 0 to 1.

    ``match``: BM25 of the memory with its neighbours; ``coverage``: the share of the question's words that
    it has, rare ones counting more, a neighbour's in part; ``conversation``: BM25 of the whole conversation.
    """

    match: Floats
    coverage: Floats
    conversation: Floats


def lexical_scores(
    terms: Sequence[bytes], question: Sequence[NDArray[np.uint32]], neighbours: Neighbours
) -> LexicalScores:
    """Compare the memories' ``terms`` with those of the ``question`` (each with its alternatives)."""
    count = len(terms)
    lengths = np.array([len(each) // TERM.itemsize for each in terms], float)
    if not question or not lengths.any():
        nothing = np.zeros(count)
        return LexicalScores(nothing, nothing, nothing)
    frequencies = _frequencies(terms, lengths.astype(int), question)
    near, near_lengths = neighbours.spread(frequencies), neighbours.spread(lengths)
    presence = neighbours.spread((frequencies > 0).astype(float))
    talks, talk_lengths = neighbours.per_conversation(frequencies), neighbours.per_conversation(lengths)
    return LexicalScores(
        match=_share(_saturated(near, near_lengths, _B), _rarity(near)),
        coverage=_share(np.minimum(presence, 1), _rarity(near)),
        conversation=neighbours.of_memories(_share(_saturated(talks, talk_lengths, _B_TALK), _rarity(talks))),
    )


def _share(found: Floats, rarity: Floats) -> Floats:
    """Of the weight of all terms, the share that is found."""
    share: Floats = rarity @ found / rarity.sum()
    return share


def _frequencies(
    terms: Sequence[bytes], lengths: NDArray[np.int64], question: Sequence[NDArray[np.uint32]]
) -> Floats:
    """How often each memory has each term of the question: (question's terms, memories)."""
    every = np.frombuffer(b"".join(terms), TERM)
    memory_of = np.repeat(np.arange(len(terms)), lengths)
    return np.array(
        [
            np.bincount(memory_of[np.isin(every, alternatives)], minlength=len(terms))
            for alternatives in question
        ],
        float,
    )


def _rarity(frequencies: Floats) -> Floats:
    """BM25's weight of each term: the fewer have it, the more it says."""
    count = frequencies.shape[1]
    having = (frequencies > 0).sum(axis=1)
    rarity: Floats = np.log(1 + (count - having + 0.5) / (having + 0.5))
    return rarity


def _saturated(frequencies: Floats, lengths: Floats, b: float) -> Floats:
    """Frequencies from 0 towards 1, those of long texts counting less."""
    average = lengths.mean() if lengths.any() else 1.0
    normal = frequencies / (1 - b + b * lengths / average)
    saturated: Floats = normal / (_K1 + normal)
    return saturated
