"""How well a change of topic is found, on conversations labelled by hand (issue of the context engine, point 4).

``recuerdo bench topics [--data FILE] [--json]``. Every turn is read as the agent reads it, with the bundled
embedder; the topics go on from what was read, not from the labels, so an error costs the turns after it too. The
``dev`` half was used for tuning; the ``held_out`` half was not.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recuerdo.nodes.build_context.intent import read_intent
from recuerdo.nodes.build_context.topic import Reading, understand
from recuerdo.nodes.update_memory.topics import recent_topics
from recuerdo.state.turn import Topic
from recuerdo.stores.embeddings import BundledEmbedder, Embedder
from recuerdo.stores.sensitive import redact

SET = Path(__file__).parents[1] / "tests" / "nodes" / "build_context" / "topic_set.yaml"
HALVES = ("dev", "held_out")
RECENT = 10


@dataclass(frozen=True)
class Played:
    """One turn of the set: as labelled and as read."""

    conversation: str
    turn: dict[str, Any]
    reading: Reading
    similarity: float | None
    ms: float


def measure(data: Path | None) -> dict[str, Any]:
    """Precision and recall in per cent for each half, and the cost of reading a topic in milliseconds."""
    labelled = load(data or SET)
    return {half: asyncio.run(_figures(labelled, half)) for half in HALVES}


def load(path: Path = SET) -> dict[str, dict[str, Any]]:
    """The conversations of a labelled set by name."""
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


async def play(labelled: dict[str, dict[str, Any]], half: str, embedder: Embedder) -> list[Played]:
    """Read every turn of a half, each conversation from its beginning."""
    played: list[Played] = []
    for name, conversation in labelled.items():
        if conversation["half"] == half:
            played += await _conversation(name, conversation, embedder)
    return played


async def _conversation(name: str, conversation: dict[str, Any], embedder: Embedder) -> list[Played]:
    topics: list[Topic] = []
    before: list[str] = []
    played = []
    for turn in conversation["turns"]:
        text = turn["user"]
        started = time.perf_counter()
        reading, similarity = await understand(
            text,
            redact(text).text,
            conversation["language"],
            read_intent(text),
            topics=topics,
            held=conversation["held"],
            before=before,
            embedder=embedder,
        )
        ms = (time.perf_counter() - started) * 1000
        played.append(Played(name, turn, reading, similarity, ms))
        topics = recent_topics(topics, reading.topic, RECENT)
        before.append(text)
    return played


def scores(played: Sequence[Played]) -> dict[str, Any]:
    """The figures of some turns: changes and returns as precision and recall, symbols as the share that is right."""
    changed = list(_pairs(played, "changed"))
    right = [set(one.reading.symbols) == set(one.turn.get("symbols", ())) for one in played]
    return {
        "turns": len(played),
        "changes": sum(label for label, _ in changed),
        **_precision_recall("change", changed),
        **_precision_recall("return", list(_pairs(played, "returned_to"))),
        "symbols_right": _percent(sum(right), len(right)),
        "similarity_asked": sum(one.similarity is not None for one in played),
    }


def _pairs(played: Sequence[Played], what: str) -> Iterator[tuple[bool, bool]]:
    """Label and reading of each turn."""
    return ((bool(one.turn.get(what)), getattr(one.reading, what)) for one in played)


def _precision_recall(name: str, pairs: list[tuple[bool, bool]]) -> dict[str, float]:
    hits = sum(label and read for label, read in pairs)
    return {
        f"{name}_precision": _percent(hits, sum(read for _, read in pairs)),
        f"{name}_recall": _percent(hits, sum(label for label, _ in pairs)),
    }


async def _figures(labelled: dict[str, dict[str, Any]], half: str) -> dict[str, Any]:
    embedder = BundledEmbedder()
    await embedder.embed_query("")  # its loading is no cost of a turn
    played = await play(labelled, half, embedder)
    by_language = {
        language: scores([one for one in played if labelled[one.conversation]["language"] == language])
        for language in ("es", "en")
    }
    asked = [one.ms for one in played if one.similarity is not None]
    unasked = [one.ms for one in played if one.similarity is None]
    return {
        **scores(played),
        "by_language": by_language,
        "ms_p50_without_embedder": round(statistics.median(unasked), 2),
        "ms_p50_with_embedder": round(statistics.median(asked), 2) if asked else None,
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
