"""What a sentence of a conversation is worth to its summary: its kind, its figures, and what it is about."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Literal, get_args

from recuerdo.state.folding import comparable, plain
from recuerdo.state.tables import read_table

Kind = Literal["goal", "instruction", "decision", "name", "figure", "question", "point", "user", "assistant"]
"""What a line of a summary is, most important first. ``point`` is a remark that nobody is named for; ``user``
and ``assistant`` are what was said beyond the rest."""

KINDS: tuple[Kind, ...] = get_args(Kind)

Speaker = Literal["user", "assistant"]

LONGEST_LINE = 220
"""Characters of one summary line; a longer sentence makes several lines, so no figure of it is lost."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE_END = re.compile(r"(?<=;)\s+")
FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*")
_SYMBOL = re.compile(r"\b[A-Z]{2,6}(?:[.\-/][A-Z]{1,4})?\b")
_NO_SYMBOLS = frozenset({"USD", "EUR", "MXN", "GBP", "OK", "NO", "SI", "RSI", "ETF", "ETFS", "IA", "AI"})
_CAPITALISED = re.compile(r"(?<=[\w,;:] )[A-ZÁÉÍÓÚÑ][a-záéíóúüñ]{2,}")
_WORD = re.compile(r"[^\W\d_]{4,}")
_PERCENT = re.compile(r"%|\bpor ciento\b|\bpercent\b")
_STEM = 5

Thing = tuple[str, ...]
"""What a line gives a value for: the thing, what it belongs to, and the unit."""


@cache
def cues() -> dict[str, Any]:
    """The words that say what a sentence is."""
    table: dict[str, Any] = read_table(__package__, "cues.yaml")
    return table


def _any(patterns: str | list[str]) -> re.Pattern[str]:
    text = "|".join([patterns] if isinstance(patterns, str) else patterns)
    return re.compile(filled(text, cues()["parts"]))


def filled(pattern: str, parts: dict[str, str]) -> str:
    """The pattern with its parts in place; a part may hold those that stand above it."""
    for name, part in reversed(parts.items()):
        pattern = pattern.replace(f"{{{name}}}", part)
    return pattern


def digits(figure: str) -> str:
    """A figure's digits: "25,000" and "25000" are the same."""
    return re.sub(r"\D", "", figure)


def _all(patterns: Mapping[str, str | list[str]]) -> dict[str, re.Pattern[str]]:
    return {name: _any(pattern) for name, pattern in patterns.items()}


@dataclass(frozen=True)
class _Patterns:
    """The cues as regular expressions."""

    kinds: dict[Kind, re.Pattern[str]]
    valued: dict[str, re.Pattern[str]]
    worded: dict[str, re.Pattern[str]]
    many: dict[str, re.Pattern[str]]
    deals: dict[str, re.Pattern[str]]
    named: re.Pattern[str]
    supposed: re.Pattern[str]
    past: re.Pattern[str]
    denied: re.Pattern[str]
    revoked: re.Pattern[str]
    months: re.Pattern[str]
    days: re.Pattern[str]
    own: re.Pattern[str]
    other: re.Pattern[str]
    of: re.Pattern[str]
    not_a_subject: frozenset[str]
    of_symbols: frozenset[str]


@cache
def _patterns() -> _Patterns:
    """Compiled at the first use: it takes 0.2 s, and no first turn summarises."""
    table = cues()
    return _Patterns(
        kinds={kind: _any(patterns) for kind, patterns in table["kinds"].items()},
        valued=_all(table["valued"]),
        worded=_all(table["worded"]),
        many=_all(table["many"]),
        deals=_all(table["deals"]),
        named=_any(table["named"]),
        supposed=_any(table["supposed"]),
        past=_any(table["past"]),
        denied=_any(table["denied"]),
        revoked=_any(table["revoked"]),
        months=_any(table["months"]),
        days=_any(table["days"]),
        own=_any(table["own"]),
        other=_any(table["other"]),
        of=_any(table["of"]),
        not_a_subject=frozenset(table["not_a_subject"]),
        of_symbols=frozenset(table["of_symbols"]),
    )


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
        """The digits of its numbers."""
        return frozenset(digits(figure) for figure in FIGURE.findall(plain(self.body)))

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Tickers and the like."""
        return frozenset(_SYMBOL.findall(self.body)) - _NO_SYMBOLS

    @cached_property
    def names(self) -> frozenset[str]:
        """Folded words that have a capital where no sentence begins, and months."""
        capitalised = (comparable(plain(word)) for word in self.capitalised)
        return frozenset([*capitalised, *_patterns().months.findall(self.folded)])

    @cached_property
    def capitalised(self) -> tuple[str, ...]:
        """Words with a capital where no sentence begins, as they are written."""
        words = dict.fromkeys(_CAPITALISED.findall(self.body))
        return tuple(word for word in words if not _patterns().months.search(comparable(plain(word))))

    @cached_property
    def is_dated(self) -> bool:
        """Whether it names a month or a day."""
        return bool(_patterns().months.search(self.folded) or _patterns().days.search(self.folded))

    @cached_property
    def is_own(self) -> bool:
        """Whether it speaks of the user, not of the market."""
        return bool(_patterns().own.search(self.folded))

    @property
    def is_bare_price(self) -> bool:
        """Whether it is a price that was merely mentioned: neither dated, nor the user's own, nor set."""
        is_more = self.thing is not None or self.is_dated or self.is_own
        return self.kind == "figure" and bool(self.symbols) and not is_more

    @cached_property
    def stems(self) -> frozenset[str]:
        """Beginnings of its longer words."""
        return frozenset(word[:_STEM] for word in _WORD.findall(self.folded))

    @cached_property
    def thing(self) -> str | None:
        """The first thing that it speaks of and that can have a value or be revoked."""
        return next(
            (
                n
                for table in (_patterns().valued, _patterns().worded, _patterns().many)
                for n, p in table.items()
                if p.search(self.folded)
            ),
            None,
        )

    @cached_property
    def sets(self) -> Thing | None:
        """What it gives a value for; None for anything but a plain statement of the user."""
        if self._is_open or _patterns().past.search(self.folded) or _patterns().denied.search(self.folded):
            return None
        if self.thing in _patterns().worded:
            return (self.thing,) if self._is_order else None
        if self.thing in _patterns().valued and self.figures:
            unit = "%" if _PERCENT.search(self.folded) else ""
            return (self.thing, self._subject, unit)
        return None

    @cached_property
    def revokes(self) -> Thing | None:
        """What it says no longer holds, whatever its value was."""
        if self._is_open or not _patterns().revoked.search(self.folded):
            return None
        if self.thing is None:
            return self._deal
        return None if self.figures else self._about

    @cached_property
    def _about(self) -> Thing | None:
        if self.thing is None:
            return self._deal if self.kind == "decision" else None
        return (self.thing,) if self.thing in _patterns().worded else (self.thing, self._subject)

    @cached_property
    def _deal(self) -> Thing | None:
        """What it does with which symbol; None for two deals at once."""
        found = [name for name, pattern in _patterns().deals.items() if pattern.search(self.folded)]
        symbols = " ".join(sorted(symbol.lower() for symbol in self.symbols))
        return (found[0], symbols) if len(found) == 1 and symbols else None

    @property
    def _is_order(self) -> bool:
        """Whether its words hold from now on: talk of a language or a length sets nothing."""
        return self.kind == "instruction" or (self.kind == "name" and self.thing == "own_name")

    @property
    def _is_open(self) -> bool:
        """Whether it states nothing: a question, a supposition, or not the user's words."""
        return (
            self.kind in ("assistant", "point", "question")
            or self.body.rstrip().endswith("?")
            or bool(_patterns().supposed.search(self.folded))
        )

    @cached_property
    def _subject(self) -> str:
        """What its thing belongs to: symbols, names, and what stands behind "of"."""
        rest = self.folded
        for pattern in _patterns().valued.values():
            rest = pattern.sub(" ", rest)
        found = {comparable(symbol.lower()) for symbol in self.symbols}
        found |= {word for word in self.names if word in rest}
        found |= {word for word in _patterns().of.findall(rest) if word not in _patterns().not_a_subject}
        return " ".join(sorted(found))

    @cached_property
    def _says_more(self) -> bool:
        """Whether it holds more than one kind of thing, so that it cannot go for one of them."""
        cued = sum(bool(pattern.search(self.folded)) for pattern in _patterns().kinds.values())
        worded = sum(bool(pattern.search(self.folded)) for pattern in _patterns().worded.values())
        return (cued > 1 and self.kind != "question") or worded > 1

    def yields_to(self, newer: "Line", tickers: Mapping[str, str]) -> bool:
        """Whether ``newer`` takes its place: another value of the same thing, or the word that it is over.

        ``tickers`` has the symbol of a company's name, both in lower case.
        """
        if self._about is None or self._says_more or self.kind in ("assistant", "point"):
            return False
        about = _canonical(self._about, tickers)
        if newer.revokes and _canonical(newer.revokes, tickers) == about:
            return True
        if self.revokes and newer.kind == "decision":
            return newer._about == self.revokes
        if newer.sets is None or newer.sets[0] != self.thing:
            return False
        if newer.thing in _patterns().valued and len(self.figures) > len(newer.figures):
            return False
        sets = _canonical(newer.sets, tickers)
        settled = self.kind == "question" and sets[:2] == about
        return settled or (self.sets is not None and sets == _canonical(self.sets, tickers))


def _canonical(thing: Thing, tickers: Mapping[str, str]) -> Thing:
    """The thing with symbols in the place of companies' names."""
    if len(thing) == 1 or not tickers:
        return thing
    subject = {tickers.get(word, word) for word in thing[1].split()}
    return (thing[0], " ".join(sorted(subject)), *thing[2:])


@lru_cache(maxsize=1024)
def read_text(text: str, speaker: Speaker) -> tuple[Line, ...]:
    """The sentences of one message as lines. A message stays the same for its life in the window."""
    sentences = [" ".join(part.split()) for part in _SENTENCE_END.split(text)]
    if speaker == "user":
        sentences = _with_owners(sentences)
    return tuple(
        Line(kind, body)
        for sentence in sentences
        for kind in (_kind(sentence) if speaker == "user" else "assistant",)
        for body in wrapped(sentence)
    )


def _with_owners(sentences: Sequence[str]) -> list[str]:
    """The sentences and clauses, each figure beside what it belongs to.

    A figure without a symbol or a name belongs to the only one that the message has named so far.
    """
    told: list[str] = []
    symbols: dict[str, None] = {}
    people: dict[str, None] = {}
    for sentence in sentences:
        for place, clause in enumerate(_CLAUSE_END.split(sentence)):
            line = Line("user", clause)
            owner = _owner(line, symbols, people)
            if owner and place:
                told[-1] += f" {clause}"
            else:
                # No capital: behind the colon it would read as a name.
                told.append(f"{owner}: {clause[0].lower()}{clause[1:]}" if owner else clause)
            symbols |= dict.fromkeys(sorted(line.symbols))
            people |= dict.fromkeys(line.capitalised)
    return told


def _owner(line: Line, symbols: Mapping[str, None], people: Mapping[str, None]) -> str | None:
    """The symbol or the name that a sentence's figure belongs to, where it names none."""
    if not line.figures or line.symbols or line.capitalised or line.body.endswith("?"):
        return None
    if _patterns().other.search(line.folded) and len(people) == 1:
        return next(iter(people))
    is_price = line.thing in _patterns().of_symbols or not (line.thing or line.is_own)
    is_alone = len(symbols) == 1 and not people
    return next(iter(symbols)) if is_alone and is_price and _kind(line.body) == "figure" else None


def wrapped(sentence: str) -> list[str]:
    """A sentence in pieces of at most :data:`LONGEST_LINE` characters."""
    return textwrap.wrap(sentence, LONGEST_LINE, break_on_hyphens=False)


def _kind(sentence: str) -> Kind:
    line = Line("user", sentence)
    if sentence.endswith("?"):
        return "user"
    if line.revokes:
        return "decision"
    supposed = bool(_patterns().supposed.search(line.folded))
    # "If it falls below 170, warn me" is an instruction; any other supposition is mere talk.
    cued = (name for name, cue in _patterns().kinds.items() if cue.search(line.folded))
    kind = next((name for name in cued if not supposed or name == "instruction"), None)
    return kind or ("user" if supposed else _plain_kind(line))


def _plain_kind(line: Line) -> Kind:
    """The kind of a statement without a cue."""
    if _patterns().named.search(line.body):
        return "name"
    return "figure" if line.figures or line.is_dated else "user"
