"""What an extractor of key events is given of a conversation, and what it may say of it (LA-26, IM-7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from recuerdo.state.key_events import KeyEvent
from recuerdo.state.plan import KeyEventSettings
from recuerdo.state.usage import CallUsage
from recuerdo.stores.postgres.key_events.extraction import ExtractorName, FoundEvent, Spoken

READ = 4_000
"""Characters of a message that are read: what is longer is a document, and its beginning says what it is."""


@dataclass(frozen=True)
class Heard:
    """Turns that were not read yet, oldest first, free of sensitive data (C-16).

    ``known`` are the owner's open events, first of A-18 first; ``settings`` has the exact dictionary of types.
    """

    spoken: Sequence[Spoken]
    language: str
    known: Sequence[KeyEvent]
    settings: KeyEventSettings


@dataclass(frozen=True)
class Extracted:
    """What was found. ``refused`` is how many of a model's items did not stand the checks."""

    found: Sequence[FoundEvent]
    by: ExtractorName
    refused: int = 0
    usage: Sequence[CallUsage] = ()


class EventExtractor(Protocol):
    """Reads a conversation that has ended. Raises ModelError when its model does not answer."""

    async def extract(self, heard: Heard) -> Extracted:
        """The events that the turns gave."""
        ...
