"""What an extractor is given of a turn, and what it may say of it (RF-7 to RF-11)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from recuerdo.state.usage import CallUsage

ItemType = Literal["preference", "symbol", "fact"]


@dataclass(frozen=True)
class Said:
    """A user's message, free of sensitive data, with what is needed to understand it.

    ``before`` are the user's own earlier messages, oldest first; ``preferences`` values in force by key;
    ``facts`` texts of what is remembered already, nearest to the message. All but ``text`` is context: an item
    is learnt from ``text`` alone. What the assistant said, a tool returned or a document holds is not given.
    """

    text: str
    language: str
    before: Sequence[str] = ()
    preferences: Mapping[str, Any] = field(default_factory=dict)
    facts: Sequence[str] = ()


@dataclass(frozen=True)
class Item:
    """Something to learn or to forget, with the user's own words that say so: a substring of the message (NFC).

    A ``preference`` has its key and value; of a list (``favorite_indicators``, ``followed_symbols``) the value
    is what joins or leaves it. A ``symbol`` is canonical, in ``value``. A ``fact`` is a text in the user's own
    words, its key "note" where he asked for it to be remembered, else "fact"; one to forget describes what is
    meant. ``confidence`` 0 to 1 (A-24). ``restated``: the user says that he has said it before.
    """

    type: ItemType
    key: str
    value: Any
    quote: str
    confidence: float = 1.0
    restated: bool = False


@dataclass(frozen=True)
class Extracted:
    """What one message teaches. ``unread`` is the number of the user's own statements nothing was made of.

    ``usage`` is what a model took for it; ``refused`` how many of a model's items did not stand the checks.
    """

    learn: Sequence[Item] = ()
    forget: Sequence[Item] = ()
    unread: int = 0
    usage: Sequence[CallUsage] = ()
    refused: int = 0


class Extractor(Protocol):
    """Reads a user's message. Never raises for what a message says."""

    async def extract(self, said: Said) -> Extracted:
        """What ``said.text`` teaches of its user."""
        ...
