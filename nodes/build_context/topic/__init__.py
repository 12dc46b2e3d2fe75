"""What a turn is about, and whether that is what the turns before were about (RF-6, IM-42, A-2)."""

import asyncio
from collections.abc import Sequence

from recuerdo.nodes.build_context.intent import Intent
from recuerdo.nodes.build_context.symbols import Standings, resolve_symbols
from recuerdo.nodes.build_context.symbols.resolve import NOT_KNOWN
from recuerdo.nodes.build_context.topic.likeness import LAST_MESSAGES, UNLIKE_BELOW, similarity
from recuerdo.nodes.build_context.topic.reading import Doubt, Reading, Said, read_topic
from recuerdo.state.turn import Topic, TopicReading
from recuerdo.stores.embeddings import Embedder

__all__ = ["LAST_MESSAGES", "UNLIKE_BELOW", "Reading", "as_state", "understand"]


async def understand(
    text: str,
    redacted: str,
    language: str,
    intent: Intent,
    *,
    topics: Sequence[Topic],
    held: Sequence[str],
    before: Sequence[str],
    embedder: Embedder,
    standings: Standings = NOT_KNOWN,
    home: str = "",
) -> tuple[Reading, float | None]:
    """The topic of a message and the symbols that it is about; the similarity where it was asked for.

    Args:
        text: the message as the user wrote it; ``redacted``: the same without sensitive data.
        topics: the recent ones, oldest first; the last one is what was spoken of until now.
        held: symbols of the user's open positions.
        before: the user's earlier messages, oldest first; of likeness the last three count.
        embedder: asked only where symbols and words do not decide. When it fails the topic stays.
        standings: ``held`` by value and gain, where they are known.
        home: the code of the user's own currency; empty when it is not known.
    """
    recent = [topic["symbols"] for topic in reversed(topics) if topic["symbols"]]

    def look() -> Reading | Doubt:
        resolution = resolve_symbols(text, recent, held, standings=standings, before=before, home=home)
        return read_topic(Said(text, redacted, language, intent, resolution, held), topics)

    # Off the loop: the first look loads tables, and a long message takes a while.
    found = await asyncio.to_thread(look)
    if isinstance(found, Reading):
        return found, None
    likeness = await similarity(text, before[-LAST_MESSAGES:], embedder)
    unlike = likeness is not None and likeness < UNLIKE_BELOW
    return (found.if_unlike if unlike else found.if_like), likeness


def as_state(reading: Reading, likeness: float | None) -> TopicReading:
    """The reading as it travels in the working keys of the turn."""
    return TopicReading(
        topic=reading.topic,
        changed=reading.changed,
        returned_to=reading.returned_to,
        reason=reading.reason,
        similarity=None if likeness is None else round(likeness, 3),
        maybe=list(reading.maybe),
    )
