"""How much of what is sensitive is taken out of a message, on sentences labelled by hand (RF-33, C-16, A-10).

``recuerdo bench sensitive [--data FILE] [--json]``. A labelled span is taken out when every letter and digit of it
is; a removed span is right when it overlaps a labelled one. The weights were fitted on ``dev``, ``tuned`` and ``more``;
``held2`` was written blind and never read for tuning, and only its figures tell what to expect.
"""

import statistics
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from recuerdo.stores.sensitive import find_sensitive

DATA = Path(__file__).parent / "data"
SETS = ("dev", "tuned", "more", "held2")
LANGUAGES = ("es", "en")
_TIMED_ROUNDS = 3

Places = tuple[int, int]


@dataclass(frozen=True)
class Read:
    """One sentence of a set: as labelled and as found. Offsets count in the NFC form of its text."""

    label: dict[str, Any]

    @cached_property
    def text(self) -> str:
        """The sentence in NFC."""
        return unicodedata.normalize("NFC", self.label["text"])

    @cached_property
    def labelled(self) -> list[Places]:
        """Start and end of every labelled span, each the next occurrence of its words."""
        places: list[Places] = []
        for span in self.label["spans"]:
            words = unicodedata.normalize("NFC", span)
            start = self.text.index(words, places[-1][1] if places else 0)
            places.append((start, start + len(words)))
        return places

    @cached_property
    def removed(self) -> list[Places]:
        """Start and end of every span that is taken out."""
        return [(span.start, span.end) for span in find_sensitive(self.text)]

    @cached_property
    def taken_out(self) -> int:
        """How many labelled spans are taken out."""
        covered = {place for start, end in self.removed for place in range(start, end)}
        return sum(
            all(place in covered or not self.text[place].isalnum() for place in range(start, end))
            for start, end in self.labelled
        )

    @property
    def rightly_removed(self) -> int:
        """How many removed spans overlap a labelled one."""
        return sum(
            any(start < label_end and label_start < end for label_start, label_end in self.labelled)
            for start, end in self.removed
        )


def measure(data: Path | None) -> dict[str, Any]:
    """Figures of each set, or of ``data`` alone. Shares in per cent, ``us_p50`` in microseconds a sentence."""
    sets = {data.stem: data} if data else {name: DATA / f"sensitive_{name}.yaml" for name in SETS}
    return {name: _figures(load(path)) for name, path in sets.items()}


def load(path: Path) -> list[Read]:
    """The sentences of a labelled set."""
    return [Read(label) for label in yaml.safe_load(path.read_text(encoding="utf-8"))]


def _figures(found: Sequence[Read]) -> dict[str, Any]:
    kinds = sorted({one.label["kind"] for one in found})
    return {
        **scores(found),
        "by_language": _by(found, LANGUAGES, lambda one: one.label["language"]),
        "sentences_by_kind": {
            kind: _of(_all_right([one for one in found if one.label["kind"] == kind])) for kind in kinds
        },
        "us_p50": _us_p50(found),
    }


def _by(found: Sequence[Read], groups: Sequence[str], of: Callable[[Read], str]) -> dict[str, Any]:
    return {group: scores([one for one in found if of(one) == group]) for group in groups}


def scores(found: Sequence[Read]) -> dict[str, Any]:
    """Recall by sentence and by span, precision by removed span, harmless sentences left wholly untouched."""
    sensitive = [one for one in found if one.labelled]
    harmless = [one for one in found if not one.labelled]
    spans = sum(len(one.labelled) for one in sensitive)
    removed = sum(len(one.removed) for one in found)
    return {
        "sensitive": len(sensitive),
        "recall": _percent(sum(_all_right(sensitive)), len(sensitive)),
        "spans": spans,
        "span_recall": _percent(sum(one.taken_out for one in sensitive), spans),
        "removed": removed,
        "precision": _percent(sum(one.rightly_removed for one in found), removed),
        "harmless": len(harmless),
        "untouched": _percent(sum(_all_right(harmless)), len(harmless)),
    }


def _all_right(found: Sequence[Read]) -> list[bool]:
    """Of each sentence, whether all that is labelled is taken out; of a harmless one, whether nothing is."""
    return [one.taken_out == len(one.labelled) if one.labelled else not one.removed for one in found]


def _of(right: Sequence[bool]) -> str:
    return f"{sum(right)}/{len(right)}"


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def _us_p50(found: Sequence[Read]) -> float:
    """The median over the sentences, each the best of some rounds."""
    return round(statistics.median(_us(one.text) for one in found), 1)


def _us(text: str) -> float:
    rounds = []
    for _ in range(_TIMED_ROUNDS):
        started = time.perf_counter()
        find_sensitive(text)
        rounds.append((time.perf_counter() - started) * 1_000_000)
    return min(rounds)
