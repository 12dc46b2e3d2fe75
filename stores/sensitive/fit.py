"""Fits the weights of `scorer.py` on labelled sentences: ``python -m recuerdo.stores.sensitive.fit FILE...``.

A YAML file holds rows of ``text`` and ``spans``; a text file one sentence a line, what is sensitive in double
brackets. A candidate that overlaps a labelled span is sensitive. Logistic regression, the whole set at each step, no
chance in it: the same files give the same weights.
"""

import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from recuerdo.stores.sensitive.reading import read

_LABEL = re.compile(r"\[\[(.*?)\]\]")
_COMMENT = "# "
_LEAST_SEEN = 2
_STEPS, _RATE, _MEAN_DECAY, _SQUARE_DECAY = 250, 0.1, 0.9, 0.99
# What tables say of a candidate is trusted sooner than a word near it, that sooner than one far away.
_PENALTIES = ((re.compile("kind=|^rule="), 0.1), (re.compile("^@"), 2.0), (re.compile("^[<>]"), 1.0))
_PENALTY = 0.3
_LEAST_WEIGHT = 0.02


@dataclass(frozen=True)
class Labelled:
    """A sentence in NFC and the places in it that are sensitive."""

    text: str
    places: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Example:
    """The features of a candidate, each once, and whether it is sensitive."""

    features: Sequence[str]
    is_sensitive: bool


def load(path: Path) -> list[Labelled]:
    """The labelled sentences of a file."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".txt":
        return [bracketed(line) for line in content.splitlines() if line and not line.startswith(_COMMENT)]
    return [_row(row) for row in yaml.safe_load(content)]


def bracketed(line: str) -> Labelled:
    """A line in which what is sensitive stands in double brackets."""
    text, places, position = "", [], 0
    line = unicodedata.normalize("NFC", line)
    for match in _LABEL.finditer(line):
        text += line[position : match.start()]
        places.append((len(text), len(text) + len(match[1])))
        text += match[1]
        position = match.end()
    return Labelled(text + line[position:], places)


def _row(row: dict[str, Any]) -> Labelled:
    text, places = unicodedata.normalize("NFC", row["text"]), list[tuple[int, int]]()
    for span in row["spans"]:
        words = unicodedata.normalize("NFC", span)
        start = text.index(words, places[-1][1] if places else 0)
        places.append((start, start + len(words)))
    return Labelled(text, places)


def examples(sentence: Labelled) -> Iterator[Example]:
    """What the model has to decide on in a sentence, and the right answers."""
    for candidate in read(sentence.text).candidates():
        overlaps = any(candidate.start < end and start < candidate.end for start, end in sentence.places)
        yield Example(sorted(set(candidate.features)), overlaps)


def fit(rows: Sequence[Example]) -> dict[str, int]:
    """The weight in thousandths of each feature seen more than once; those near nothing are left out."""
    seen = Counter(name for row in rows for name in row.features)
    names = sorted(name for name, count in seen.items() if count >= _LEAST_SEEN)
    weights = _minimum(rows, names)
    return {
        name: round(float(weight) * 1000)
        for name, weight in zip(names, weights, strict=True)
        if abs(weight) >= _LEAST_WEIGHT
    }


def _minimum(rows: Sequence[Example], names: Sequence[str]) -> NDArray[np.float64]:
    """The weights of least penalised log loss, by Adam with a falling rate."""
    index = {name: place for place, name in enumerate(names)}
    held = [[index[name] for name in row.features if name in index] for row in rows]
    lengths = np.array([len(places) for places in held])
    flat = np.array([place for places in held for place in places])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    answers = np.array([row.is_sensitive for row in rows], dtype=np.float64)
    penalties = np.array([_penalty(name) for name in names])
    weights, mean, square = (np.zeros(len(names)) for _ in range(3))
    for step in range(1, _STEPS + 1):
        errors = 1 / (1 + np.exp(-np.add.reduceat(weights[flat], starts))) - answers
        slope = np.bincount(flat, np.repeat(errors, lengths), len(names)) + penalties * weights
        mean = _MEAN_DECAY * mean + (1 - _MEAN_DECAY) * slope
        square = _SQUARE_DECAY * square + (1 - _SQUARE_DECAY) * slope**2
        spread = np.sqrt(square / (1 - _SQUARE_DECAY**step)) + 1e-8
        weights -= _RATE * (1 - step / (_STEPS + 1)) * mean / (1 - _MEAN_DECAY**step) / spread
    return weights


def _penalty(name: str) -> float:
    return next((penalty for pattern, penalty in _PENALTIES if pattern.search(name)), _PENALTY)


def main(paths: Sequence[Path]) -> None:
    """Fit on the files and write the weights beside this module."""
    rows = [row for path in paths for sentence in load(path) for row in examples(sentence)]
    lines = ",\n".join(f"{json.dumps(name)}: {weight}" for name, weight in fit(rows).items())
    (Path(__file__).parent / "weights.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]])
