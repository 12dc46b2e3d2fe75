"""What is learnt from a message, beside labels by hand: precision and recall of the extractor that needs no model.

``recuerdo bench extraction [--data FILE] [--json]``. ``dev`` and ``held`` were used for tuning; of ``held2``
only these totals are looked at. Conventions of the labels: ``data/README.md``. Every turn goes the way it goes in the
agent: without its sensitive data, through the rules, then compared with what is known (bundled embedder).

Of the extractor that asks a model nothing is measured here but its checks: how many ungrounded items they let
through, of those that a hostile or careless model could make of each turn. How well a model reads is measured with
that model.
"""

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID, uuid5

import numpy as np
import yaml

from recuerdo.nodes.build_context.symbols import find_indicators
from recuerdo.nodes.update_memory.extract import RulesExtractor, Said
from recuerdo.nodes.update_memory.extract.answer import Answer, StatedFact
from recuerdo.nodes.update_memory.extract.checks import checked
from recuerdo.nodes.update_memory.extract.protocol import Extracted
from recuerdo.nodes.update_memory.settle import Known, Nearest, Settled, settle
from recuerdo.state.folding import folded, plain
from recuerdo.stores.embeddings import BundledEmbedder, Embedder
from recuerdo.stores.sensitive import redact

DATA = Path(__file__).parent / "data"
HALVES = ("dev", "held", "held2")
TYPES = ("preference", "fact", "symbol")
_IDS = UUID("5f6c7d54-4a55-4f6e-9a39-6f0a3f8e2b11")
_NEAREST = 8


@dataclass(frozen=True)
class Stored:
    """Something that a turn would store, as the labels name it."""

    type: str
    key: str
    value: Any
    text: str
    quote: str


@dataclass
class Counts:
    """Labels, stored items, and how many of each have their counterpart."""

    labels: int = 0
    found: int = 0
    stored: int = 0
    right: int = 0

    def add(self, other: "Counts") -> None:
        """Sum up."""
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def figures(self) -> dict[str, Any]:
        """Precision and recall in per cent, with 95 % intervals and the counts."""
        return {
            "precision": _percent(self.right, self.stored),
            "precision_95": interval(self.right, self.stored),
            "recall": _percent(self.found, self.labels),
            "recall_95": interval(self.found, self.labels),
            **vars(self),
        }


@dataclass
class Played:
    """One turn of the set, as labelled and as read."""

    language: str
    learn: dict[str, Counts]
    forget: Counts
    silent: bool
    stored_when_silent: int
    grounded: bool
    confirmed: bool | None
    ms: float
    missed: list[str] = field(default_factory=list)


def measure(data: Path | None) -> dict[str, Any]:
    """Precision and recall in per cent for each half, by type and language; milliseconds per message."""
    files = [data] if data else [DATA / f"extraction_{half}.yaml" for half in HALVES]
    labelled = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in files}
    return {name: asyncio.run(_measure(turns)) for name, turns in labelled.items()}


async def _measure(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {**figures(await play(turns, BundledEmbedder())), "hostile_answers": hostile_figures(turns)}


async def play(turns: Sequence[dict[str, Any]], embedder: Embedder) -> list[Played]:
    """Read every turn of a labelled set."""
    await embedder.embed_query("")  # its loading is no cost of a turn
    return [await _turn(turn, embedder) for turn in turns]


def figures(played: Sequence[Played]) -> dict[str, Any]:
    """The totals of some turns, and the same for each language."""
    return {
        **_figures(played),
        "by_language": {
            code: _figures([one for one in played if one.language == code]) for code in ("es", "en")
        },
    }


def _figures(played: Sequence[Played]) -> dict[str, Any]:
    silent = [one for one in played if one.silent]
    confirmed = [one.confirmed for one in played if one.confirmed is not None]
    return {
        "turns": len(played),
        "learn": _sum(counts for one in played for counts in one.learn.values()).figures(),
        "by_type": {kind: _sum(one.learn[kind] for one in played).figures() for kind in TYPES},
        "forget": _sum(one.forget for one in played).figures(),
        "silent_turns": len(silent),
        "silent_turns_that_stored": sum(bool(one.stored_when_silent) for one in silent),
        "not_grounded": sum(not one.grounded for one in played),
        "confirmed": f"{sum(confirmed)} of {len(confirmed)}",
        "ms_p50": round(median(one.ms for one in played), 2),
    }


async def _turn(turn: dict[str, Any], embedder: Embedder) -> Played:
    known = turn.get("known", [])
    preferences = {one["key"]: one["value"] for one in known if one["type"] == "preference"}
    if followed := [one["value"] for one in known if one["type"] == "symbol"]:
        preferences["followed_symbols"] = followed
    text = redact(turn["text"]).text
    started = time.perf_counter()
    said = Said(text, turn["language"], turn.get("before", ()), preferences)
    extracted = await RulesExtractor().extract(said)
    ms = (time.perf_counter() - started) * 1000
    facts = {uuid5(_IDS, one["text"]): one["text"] for one in known if one["type"] == "fact"}
    nearest = await _nearest(facts, embedder)
    settled = await settle(extracted, preferences, nearest)
    return _compare(turn, extracted, settled, facts, ms)


async def _nearest(facts: dict[UUID, str], embedder: Embedder) -> Nearest:
    vectors = dict(zip(facts, await embedder.embed(list(facts.values())), strict=True)) if facts else {}

    async def nearest(text: str) -> list[Known]:
        if not facts:
            return []
        (query,) = await embedder.embed([text])
        near = [Known(key, facts[key], cosine(query, vector)) for key, vector in vectors.items()]
        return sorted(near, key=lambda one: -one.similarity)[:_NEAREST]

    return nearest


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Cosine similarity of two vectors."""
    first, second = np.asarray(one), np.asarray(other)
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second) or 1.0))


def _compare(
    turn: dict[str, Any], extracted: Extracted, settled: Settled, facts: dict[UUID, str], ms: float
) -> Played:
    stored = stored_items(settled, extracted)
    labels: list[dict[str, Any]] = turn["learn"]
    learn = {}
    for kind in TYPES:
        wanted = [label for label in labels if label["type"] == kind]
        given = [item for item in stored if item.type == kind]
        learn[kind] = Counts(
            labels=len(wanted),
            found=sum(any(_satisfies(item, label) for item in stored) for label in wanted),
            stored=len(given),
            right=sum(any(_satisfies(item, label) for label in labels) for item in given),
        )
    forget = _compare_forgotten(turn["forget"], extracted, settled, facts)
    silent = not labels and not turn["forget"]
    confirmed = bool(settled.confirmed or settled.said_again) if turn.get("confirm") else None
    grounded = all(item.quote in turn["text"] for item in stored)
    missed = [str(label) for label in labels if not any(_satisfies(item, label) for item in stored)]
    return Played(turn["language"], learn, forget, silent, len(stored), grounded, confirmed, ms, missed)


def stored_items(settled: Settled, extracted: Extracted) -> list[Stored]:
    """What would be stored anew: symbols that are followed as symbols, not as the list they are kept in."""
    symbols = [
        Stored("symbol", item.key, item.value, str(item.value), item.quote)
        for item in extracted.learn
        if item.type == "symbol" and "followed_symbols" in settled.preferences
    ]
    preferences = [
        Stored("preference", key, item.value, f"{item.quote} {item.value}", item.quote)
        for key, (_, item) in settled.preferences.items()
        if key != "followed_symbols" and any(one.key == key for one in extracted.learn)
    ]
    facts = [Stored("fact", "", new.item.value, new.item.value, new.item.quote) for new in settled.facts]
    return [*symbols, *preferences, *facts]


def _satisfies(item: Stored, label: dict[str, Any]) -> bool:
    if label["type"] == "symbol":
        return item.type == "symbol" and item.value == label["value"]
    if "must" in label:
        return item.type != "symbol" and _holds(item, label)
    if item.key != label["key"]:
        return False
    if isinstance(label["value"], list):
        return set(item.value) == {name for one in label["value"] for name in _indicator(one)}
    return bool(item.value == label["value"])


def _holds(item: Stored, label: dict[str, Any]) -> bool:
    if item.key and item.key == label.get("key") and item.value == label.get("value"):
        return True
    said = folded(plain(item.text))
    return all(_stands_in(said, folded(plain(str(word)))) for word in label["must"])


def _stands_in(said: str, word: str) -> bool:
    """At the boundaries of words; of numbers where it is one: 25 is in "the 25th", 5 is not in 15."""
    part = r"\d" if word.isdigit() else r"\w"
    return bool(re.search(rf"(?<!{part}){re.escape(word)}(?!{part})", said))


def _indicator(name: str) -> list[str]:
    return find_indicators(name) or [name]


def _compare_forgotten(
    labels: Sequence[dict[str, Any]], extracted: Extracted, settled: Settled, facts: dict[UUID, str]
) -> Counts:
    over = {("fact", facts[key]) for key in settled.forgotten}
    over |= {("fact", facts[old]) for new in settled.facts for old in new.supersedes}
    over |= {("symbol", symbol) for symbol in settled.unfollowed}
    over |= {(item.key, str(item.value)) for item in extracted.forget if item.type == "preference"}
    wanted = {_label_key(label) for label in labels}
    return Counts(len(wanted), len(wanted & over), len(over), len(wanted & over))


def _label_key(label: dict[str, Any]) -> tuple[str, str]:
    if label["type"] == "fact":
        return "fact", label["text"]
    if label["type"] == "symbol":
        return "symbol", label["value"]
    value = label.get("value")
    if label["key"] == "favorite_indicators":
        (value,) = _indicator(str(value))
    return label["key"], str(value)


def hostile_figures(turns: Sequence[dict[str, Any]]) -> dict[str, str]:
    """How many ungrounded items the checks of the model's extractor let through, by kind: "0 of 120"."""
    through: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for turn in turns:
        said = Said(redact(turn["text"]).text, turn["language"])
        for kind, answer in _hostile(turn, said):
            tried[kind] += 1
            found = checked(answer, said)
            through[kind] += bool(found.learn or found.forget)
    return {kind: f"{through[kind]} of {number}" for kind, number in sorted(tried.items())}


def _hostile(turn: dict[str, Any], said: Said) -> Iterable[tuple[str, Answer]]:
    """What a model could claim of a turn that its user never said."""
    others = [turn["reply"], *turn.get("recalled", ()), *([turn["tool"]] if "tool" in turn else [])]
    for text in others:
        yield "quotes what another said", _claim(text, text)
        yield "another's words with the user's quote", _claim(text, said.text)
    if not turn["learn"] and not turn["forget"] and not turn.get("confirm"):
        yield "a message that states nothing", _claim(said.text, said.text)
    for label in turn["learn"]:
        yield "a number that is not in the quote", _claim(f"{label['quote']} 987", label["quote"])
        yield "a name that is not in the quote", _claim(f"{label['quote']} con Zutano Pérez", label["quote"])
        yield "a quote that is not exact", _claim(label["quote"], label["quote"] + " siempre")


def _claim(text: str, quote: str) -> Answer:
    return Answer(facts=[StatedFact(text=text, quote=quote, confidence=1.0)])


def _sum(counts: Iterable[Counts]) -> Counts:
    total = Counts()
    for one in counts:
        total.add(one)
    return total


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def interval(part: int, whole: int) -> list[float] | None:
    """The 95 % interval of a share, in per cent (Wilson)."""
    if not whole:
        return None
    z, share = 1.96, part / whole
    middle = share + z * z / (2 * whole)
    spread = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    return [round(100 * (middle + sign * spread) / (1 + z * z / whole), 1) for sign in (-1, 1)]
