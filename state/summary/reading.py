"""What a sentence of a conversation is worth to its summary: its kind, its figures, and what it is about."""

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any, Literal, get_args

import yaml

from recuerdo.state.folding import comparable, plain

Kind = Literal["goal", "instruction", "decision", "name", "figure", "question", "point", "user", "assistant"]
"""What a line of a summary is, most important first. ``point`` is a remark that nobody is named for; ``user``
and ``assistant`` are what was said beyond the rest."""

KINDS: tuple[Kind, ...] = get_args(Kind)

Speaker = Literal["user", "assistant"]

LONGEST_LINE = 220
"""Characters of one summary line; a longer sentence makes several lines, so no figure of it is lost."""

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*")
_SYMBOL = re.compile(r"\b[A-Z]{2,6}(?:[.\-/][A-Z]{1,4})?\b")
_NO_SYMBOLS = frozenset({"USD", "EUR", "MXN", "GBP", "OK", "NO", "SI", "RSI", "ETF", "ETFS", "IA", "AI"})
_CAPITALISED = re.compile(r"(?<=[\w,;:] )[A-ZÁÉÍÓÚÑ][a-záéíóúüñ]{2,}")
_WORD = re.compile(r"[^\W\d_]{4,}")
_PERCENT = re.compile(r"%|\bpor ciento\b|\bpercent\b")
_STEM = 5

Thing = tuple[str, ...]
"""What a line gives a value for: the thing, what it belongs to, and the unit."""


def _any(patterns: str | list[str]) -> re.Pattern[str]:
    return re.compile("|".join([patterns] if isinstance(patterns, str) else patterns))


def _all(patterns: Mapping[str, str | list[str]]) -> dict[str, re.Pattern[str]]:
    return {name: _any(pattern) for name, pattern in patterns.items()}


_cues: dict[str, Any] = yaml.safe_load((files(__package__) / "cues.yaml").read_text(encoding="utf-8"))
_kinds: dict[Kind, re.Pattern[str]] = {kind: _any(_cues["kinds"][kind]) for kind in _cues["kinds"]}
_valued, _worded, _many = (_all(_cues[name]) for name in ("valued", "worded", "many"))
_named, _supposed, _past, _denied, _revoked, _months, _of = (
    _any(_cues[name]) for name in ("named", "supposed", "past", "denied", "revoked", "months", "of")
)
_not_a_subject = frozenset(_cues["not_a_subject"])


@dataclass(frozen=True)
class Line:
    """One line of a summary without its label."""

    kind: Kind
    body: str

    @cached_property
    def folded(self) -> str:
        """The body in lower case, without accents and dashes."""
        return comparable(plain(self.body))

    @cached_property
    def figures(self) -> frozenset[str]:
        """The numbers of the line, digits only: "25,000" and "25000" are the same."""
        return frozenset(re.sub(r"\D", "", figure) for figure in _FIGURE.findall(plain(self.body)))

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Tickers and the like."""
        return frozenset(_SYMBOL.findall(self.body)) - _NO_SYMBOLS

    @cached_property
    def names(self) -> frozenset[str]:
        """Folded words that have a capital where no sentence begins, and months."""
        capitalised = (comparable(plain(word)) for word in _CAPITALISED.findall(self.body))
        return frozenset([*capitalised, *_months.findall(self.folded)])

    @cached_property
    def stems(self) -> frozenset[str]:
        """Beginnings of its longer words."""
        return frozenset(word[:_STEM] for word in _WORD.findall(self.folded))

    @cached_property
    def thing(self) -> str | None:
        """The first thing that it speaks of and that can have a value or be revoked."""
        return next(
            (n for table in (_valued, _worded, _many) for n, p in table.items() if p.search(self.folded)),
            None,
        )

    @cached_property
    def sets(self) -> Thing | None:
        """What it gives a value for; None for anything but a plain statement of the user."""
        if self._is_open or _past.search(self.folded) or _denied.search(self.folded):
            return None
        if self.thing in _worded:
            return (self.thing,)
        if self.thing in _valued and self.figures:
            unit = "%" if _PERCENT.search(self.folded) else ""
            return (self.thing, self._subject, unit)
        return None

    @cached_property
    def revokes(self) -> Thing | None:
        """What it says no longer holds, whatever its value was."""
        if self._is_open or not _revoked.search(self.folded) or self.figures:
            return None
        return self._about

    @cached_property
    def _about(self) -> Thing | None:
        if self.thing is None:
            return None
        return (self.thing,) if self.thing in _worded else (self.thing, self._subject)

    @property
    def _is_open(self) -> bool:
        """Whether it states nothing: a question, a supposition, or not the user's words."""
        return (
            self.kind in ("assistant", "point", "question")
            or self.body.rstrip().endswith("?")
            or bool(_supposed.search(self.folded))
        )

    @cached_property
    def _subject(self) -> str:
        """What its thing belongs to: symbols, names, and what stands behind "of"."""
        rest = self.folded
        for pattern in _valued.values():
            rest = pattern.sub(" ", rest)
        found = {comparable(symbol.lower()) for symbol in self.symbols}
        found |= {word for word in self.names if word in rest}
        found |= {word for word in _of.findall(rest) if word not in _not_a_subject}
        return " ".join(sorted(found))

    @cached_property
    def _says_more(self) -> bool:
        """Whether it holds more than one kind of thing, so that it cannot go for one of them."""
        cued = sum(bool(pattern.search(self.folded)) for pattern in _kinds.values())
        return cued > 1 and self.kind != "question"

    def yields_to(self, newer: "Line") -> bool:
        """Whether ``newer`` takes its place: another value of the same thing, or the word that it is over."""
        if self._says_more or self.kind in ("assistant", "point"):
            return False
        if newer.revokes and newer.revokes == self._about:
            return True
        if newer.sets is None or len(self.figures) > len(newer.figures):
            return False
        settled = self.kind == "question" and newer.sets[:2] == self._about
        return newer.sets == self.sets or settled


@lru_cache(maxsize=1024)
def read_text(text: str, speaker: Speaker) -> tuple[Line, ...]:
    """The sentences of one message as lines. A message stays the same for its life in the window."""
    sentences = (" ".join(part.split()) for part in _SENTENCE_END.split(text))
    return tuple(
        Line(kind, body)
        for sentence in sentences
        for kind in (_kind(sentence) if speaker == "user" else "assistant",)
        for body in wrapped(sentence)
    )


def wrapped(sentence: str) -> list[str]:
    """A sentence in pieces of at most :data:`LONGEST_LINE` characters."""
    return textwrap.wrap(sentence, LONGEST_LINE, break_on_hyphens=False)


def _kind(sentence: str) -> Kind:
    line = Line("user", sentence)
    if sentence.endswith("?"):
        return "user"
    if line.revokes:
        return "decision"
    supposed = bool(_supposed.search(line.folded))
    # "If it falls below 170, warn me" is an instruction; any other supposition is mere talk.
    cued = (name for name, cue in _kinds.items() if cue.search(line.folded))
    kind = next((name for name in cued if not supposed or name == "instruction"), None)
    return kind or ("user" if supposed else _plain_kind(line))


def _plain_kind(line: Line) -> Kind:
    """The kind of a statement without a cue."""
    if _named.search(line.body):
        return "name"
    return "figure" if line.figures or _months.search(line.folded) else "user"
