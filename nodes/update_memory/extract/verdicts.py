"""Collects what the clauses of one message say; what is said last of one thing counts."""

from typing import Literal

from recuerdo.nodes.update_memory.extract.preferences import FOLLOWED, INDICATORS
from recuerdo.nodes.update_memory.extract.protocol import Extracted, Item

LISTS = (INDICATORS, FOLLOWED)
"""Preferences that are lists: values join and leave them one by one."""


class Verdicts:
    """What to learn and to forget, each thing once."""

    def __init__(self) -> None:
        self._learn: dict[tuple[str, ...], Item] = {}
        self._forget: dict[tuple[str, ...], Item] = {}
        self.unread = 0

    def add(self, verdict: Literal["learn", "forget"], item: Item) -> None:
        """Learn or forget ``item``."""
        self.learn(item) if verdict == "learn" else self.forget(item)

    def learn(self, item: Item) -> None:
        """A later value of one key replaces an earlier one; those of a list join it."""
        before = self._learn.get(_what(item))
        if before and item.key in LISTS:
            item = Item(item.type, item.key, list(dict.fromkeys([*before.value, *item.value])), item.quote)
        self._learn[_what(item)] = item

    def forget(self, item: Item) -> None:
        """Forget one value."""
        self._forget[(*_what(item), str(item.value))] = item

    def extracted(self) -> Extracted:
        """All of it, in the order in which it was said."""
        return Extracted(list(self._learn.values()), list(self._forget.values()), self.unread)


def _what(item: Item) -> tuple[str, ...]:
    return (item.type, str(item.value) if item.type == "fact" else item.key)
