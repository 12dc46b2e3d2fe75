"""What was said just before and after a memory in its conversation: it often holds what the memory is about."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# How much the words of a neighbour count for a memory; its own count 1 (libraries.md, "Recall").
_SHARES = {-1: 0.5, 1: 0.2, -2: 0.25, 2: 0.15}

_ALONE = -1


@dataclass(frozen=True)
class Neighbours:
    """The memories of one user, in the order of their conversations.

    ``conversations``: the number of each memory's conversation from 0, -1 for one of no conversation.
    ``positions``: its place there. Neighbours are at most as many places apart as their order says.
    """

    conversations: NDArray[np.int64]
    positions: NDArray[np.int64]

    @classmethod
    def of(cls, places: Sequence[tuple[str | None, int | None]]) -> "Neighbours":
        """``places``: conversation and position of each memory, in order; None: it stands alone."""
        numbers: dict[str, int] = {}
        conversations = [
            _ALONE if name is None or position is None else numbers.setdefault(name, len(numbers))
            for name, position in places
        ]
        positions = [position or 0 for _, position in places]
        return cls(np.array(conversations, np.int64), np.array(positions, np.int64))

    def spread(self, values: Floats) -> Floats:
        """``values`` (..., memories) of each memory, plus the shares of its neighbours'."""
        total = values.copy()
        for offset, share in _SHARES.items():
            distance = abs(offset)
            if distance >= len(self.positions):
                continue
            near = self._near(distance)
            if offset < 0:
                total[..., distance:] += share * values[..., :-distance] * near
            else:
                total[..., :-distance] += share * values[..., distance:] * near
        return total

    def per_conversation(self, values: Floats) -> Floats:
        """Sums of ``values`` (..., memories) as (..., conversations)."""
        grouped = self.conversations != _ALONE
        numbers, count = self.conversations[grouped], int(self.conversations.max(initial=_ALONE)) + 1
        sums = [np.bincount(numbers, row[grouped], count) for row in np.atleast_2d(values)]
        return np.reshape(sums, (*values.shape[:-1], count))

    def of_memories(self, of_conversations: Floats) -> Floats:
        """A value per conversation as a value per memory: 0 for one that stands alone."""
        return np.append(of_conversations, 0.0)[self.conversations]

    def _near(self, distance: int) -> NDArray[np.bool_]:
        """For each memory but the last ``distance``: whether the one so many further on is its neighbour."""
        same = self.conversations[distance:] == self.conversations[:-distance]
        close = np.abs(self.positions[distance:] - self.positions[:-distance]) <= distance
        joined: NDArray[np.bool_] = same & close & (self.conversations[distance:] != _ALONE)
        return joined
