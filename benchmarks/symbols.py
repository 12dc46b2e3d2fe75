"""How well the symbols of a message are found, on messages labelled by hand (issue of enrichment, point 4).

``recuerdo bench symbols [--data FILE] [--json]``. Every message is read as the agent reads it: the earlier
messages of its user first, each with the topics that were read before it, then the message itself. Micro precision
and recall in per cent, over pairs of a message and a symbol; what is only to be asked about (``maybe``) apart.
The ``dev`` half was used for tuning; the ``held`` half was not, and of it only totals are given.
"""

import asyncio
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from recuerdo.nodes.build_context.intent import read_intent
from recuerdo.nodes.build_context.symbols import Standings, resolve_symbols
from recuerdo.nodes.build_context.symbols.table import load_table
from recuerdo.nodes.build_context.topic import Reading, understand
from recuerdo.nodes.update_memory.topics import recent_topics
from recuerdo.state.turn import Topic
from recuerdo.stores.embeddings import BundledEmbedder, Embedder
from recuerdo.stores.sensitive import redact

DATA = Path(__file__).parent / "data"
HALVES = ("dev", "held")
_RECENT = 10
_TIMED_ROUNDS = 5


@dataclass(frozen=True)
class Read:
    """One message of a set: as labelled and as read."""

    label: dict[str, Any]
    reading: Reading

    @property
    def case(self) -> str:
        """What makes the message hard, by its label alone."""
        if self.label.get("maybe"):
            return "typo"
        if not self.label["symbols"]:
            return "none"
        if self.label.get("held"):
            return "held"
        return "after_others" if self.label.get("before") else "named"


def measure(data: Path | None) -> dict[str, Any]:
    """Figures of both halves, or of ``data`` alone; the size of the table and what reading costs.

    Shares in per cent, ``us_p50`` in microseconds a message, ``memory_mb`` of the table and all rules.
    """
    sets = {data.stem: data} if data else {half: DATA / f"symbols_{half}.yaml" for half in HALVES}
    memory = _memory_mb()
    figures = {name: asyncio.run(_figures(load(path))) for name, path in sets.items()}
    return {**figures, "instruments": len(load_table().instruments), "memory_mb": memory}


def load(path: Path) -> list[dict[str, Any]]:
    """The messages of a labelled set."""
    loaded: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


async def read(labels: Sequence[dict[str, Any]], embedder: Embedder) -> list[Read]:
    """Read every message after the ones before it."""
    return [Read(label, await _message(label, embedder)) for label in labels]


async def _message(label: dict[str, Any], embedder: Embedder) -> Reading:
    topics: list[Topic] = []
    before: list[str] = []
    for text in label.get("before", ()):
        reading = await _turn(text, label, topics, before, embedder)
        topics = recent_topics(topics, reading.topic, _RECENT)
        before.append(text)
    return await _turn(label["text"], label, topics, before, embedder)


async def _turn(
    text: str, label: dict[str, Any], topics: list[Topic], before: list[str], embedder: Embedder
) -> Reading:
    reading, _ = await understand(
        text,
        redact(text).text,
        label["language"],
        read_intent(text),
        topics=topics,
        held=list(label.get("held", ())),
        before=before,
        embedder=embedder,
        standings=Standings(value=_by_value(label)),
    )
    return reading


def _by_value(label: dict[str, Any]) -> tuple[str, ...]:
    values: dict[str, float] = label.get("held", {})
    return tuple(sorted(values, key=lambda symbol: -values[symbol]))


async def _figures(labels: Sequence[dict[str, Any]]) -> dict[str, Any]:
    embedder = BundledEmbedder()
    await embedder.embed_query("")  # its loading is no cost of a turn
    found = await read(labels, embedder)
    cases = sorted({one.case for one in found})
    return {
        **scores(found),
        "by_language": _by(found, ("es", "en"), lambda one: one.label["language"]),
        "by_case": _by(found, cases, lambda one: one.case),
        "us_p50": _us_p50(labels),
    }


def _by(found: Sequence[Read], groups: Sequence[str], of: Callable[[Read], str]) -> dict[str, Any]:
    return {group: scores([one for one in found if of(one) == group]) for group in groups}


def scores(found: Sequence[Read]) -> dict[str, Any]:
    """Precision and recall of the symbols, and of those to be asked about; messages that are wholly right."""
    return {
        "messages": len(found),
        "all_right": sum(_is_right(one) for one in found),
        "symbols": _micro([(set(one.label["symbols"]), set(one.reading.symbols)) for one in found]),
        "maybe": _micro([(set(one.label.get("maybe", ())), set(one.reading.maybe)) for one in found]),
    }


def _is_right(one: Read) -> bool:
    symbols = set(one.label["symbols"]) == set(one.reading.symbols)
    return symbols and set(one.label.get("maybe", ())) == set(one.reading.maybe)


def _micro(pairs: Sequence[tuple[set[str], set[str]]]) -> dict[str, Any]:
    hits = sum(len(label & found) for label, found in pairs)
    labelled, read_ = sum(len(label) for label, _ in pairs), sum(len(found) for _, found in pairs)
    return {
        "labelled": labelled,
        "read": read_,
        "right": hits,
        "precision": _percent(hits, read_),
        "recall": _percent(hits, labelled),
    }


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def _us_p50(labels: Sequence[dict[str, Any]]) -> float:
    """The median over the messages, each the best of some rounds."""
    return round(statistics.median(_us(label) for label in labels), 1)


def _us(label: dict[str, Any]) -> float:
    held = _by_value(label)
    rounds = []
    for _ in range(_TIMED_ROUNDS):
        started = time.perf_counter()
        resolve_symbols(label["text"], [["AAPL"]], held, standings=Standings(value=held))
        rounds.append((time.perf_counter() - started) * 1_000_000)
    return min(rounds)


def _memory_mb() -> float:
    """What the tables and rules take in Python's memory; 0 when they were loaded before."""
    tracemalloc.start()
    resolve_symbols("¿Qué tal Aplpe?", [["AAPL"]], ())
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return round(taken / 1e6, 1)
