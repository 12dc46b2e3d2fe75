"""Takes out of a user's messages what names a person, before they become a case that is kept for good (OR-34, IM-12).

What is known is who the user is, by his id and profile, and what names stand in his memories; what can be read are
names after clear cues, addresses and numbers to reach somebody. Each becomes a placeholder that says what stood there,
numbered, so that two people stay two. A name that nobody introduces, a place, or the name of a firm stays: a company
that a case is about is none of these.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

from recuerdo.nodes.build_context.symbols.matcher import find_symbols
from recuerdo.nodes.receive.language import detect_language
from recuerdo.state.folding import folded, plain
from recuerdo.state.sentences import load_sentences
from recuerdo.state.tables import read_table

sentences = load_sentences(__package__, "people_sentences.yaml")

Kind = Literal["person", "email", "phone"]

Name = tuple[str, ...]
"""The words of a name, folded."""

SHORTEST_ID = 3
"""A shorter id of a user is likely to be a word."""

_SHORTEST_PART = 3
_SHORTEST_IN_LOWER_CASE = 4
_MOST_WORDS, _MOST_IN_LOWER_CASE = 6, 3

_WORD = re.compile(r"[^\W\d_]+(?:['.-](?=[^\W\d_])[^\W\d_]+)*")
_BETWEEN_WORDS = re.compile(r" {1,2}")
_AFTER_INITIAL = re.compile(r"\.? {1,2}|\.")
_BEFORE_NAME = re.compile(r"\s*[\"'«“(]?")
_LINE_ENDS = re.compile(r"[ .!)]*(?:\n|$)")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,4}[^\W\d_]{2,}")
_ABROAD = re.compile(r"(?<![\w+])\+\d(?:[ ().-]{0,2}\d){6,14}(?!\w)")
_GROUPED = re.compile(
    r"(?<![\w.,$€£+-])(?:\(?\d{3}\)?([ -])\d{3}(?:\1\d{4}|\1\d{3}|\1\d{2}\1\d{2})|\d{2}([ -])\d{4}\2\d{4})"
    r"(?![\w%]|[.,-]\d)"
)
_LABELLED = re.compile(
    r"(?<!\w)(?:tel|telf|tlf|telefono|movil|celular|cel|whatsapp|phone|mobile|cell|llamame al|llameme al|call me at"
    r"|call me on)(?: (?:es|is|numero|number))*[.:]? ?(?P<number>\(?\d(?:[ ().-]{0,2}\d){6,14})(?!\w)"
)
_THOUSANDS = "000"
"""How an amount ends that is written in groups of three."""


@dataclass(frozen=True)
class Known:
    """What is known of a case's user: his id, his name as the platform has it, and texts that may hold names."""

    user: str | None = None
    name: str | None = None
    texts: Sequence[str] = ()

    @cached_property
    def own(self) -> Name:
        """The words of his name."""
        return tuple(word.folded for word in _Text(self.name or "").words)

    @cached_property
    def names(self) -> list[Name]:
        """His name, its parts, and the names that his memories introduce."""
        parts = [
            (part,) for part in self.own if len(part) >= _SHORTEST_PART and part not in _listed("particles")
        ]
        return [self.own, *parts, *(name for text in self.texts for name in _Text(text).introduced())]


def without_people(messages: Sequence[str], known: Known) -> list[str]:
    """The messages with a placeholder for whatever names a person, the same for the same one in all of them.

    Takes a while, and may load a model of the language: off the event loop.
    """
    texts = [_Text(message) for message in messages]
    people = _People([*known.names, *(name for text in texts for name in text.introduced())])
    language = detect_language("\n".join(messages))
    numbers: dict[tuple[Kind, str], int] = {}
    return [text.without(list(_found(text, people, known)), numbers, language) for text in texts]


@dataclass(frozen=True)
class _Found:
    start: int
    end: int
    kind: Kind
    who: str


@dataclass(frozen=True)
class _Word:
    start: int
    end: int
    folded: str
    capital: bool


@dataclass
class _Text:
    """A message and its words."""

    text: str
    plain: str = field(init=False)
    folded: str = field(init=False)
    words: list[_Word] = field(init=False)

    def __post_init__(self) -> None:
        self.plain = plain(self.text)
        self.folded = folded(self.plain)
        self.words = [
            _Word(*match.span(), self.folded[slice(*match.span())], match.group()[0].isupper())
            for match in _WORD.finditer(self.plain)
        ]

    @cached_property
    def traded(self) -> list[tuple[int, int]]:
        """Where it names what is traded."""
        return [(one.start, one.end) for one in find_symbols(self.text) if one.certain]

    def introduced(self) -> Iterator[Name]:
        """The names that stand after a cue."""
        for cue in _cues():
            for match in cue.pattern.finditer(self.folded):
                run = self._run(match.end(), sure=cue.sure)
                if run and (not cue.ends_line or _LINE_ENDS.match(self.plain, run[-1].end)):
                    yield tuple(word.folded for word in run)

    def _run(self, place: int, *, sure: bool) -> list[_Word]:
        """The words of the name that begins at ``place``; none where no name does."""
        run: list[_Word] = []
        for word in self.words[bisect_left(self.words, place, key=lambda word: word.start) :]:
            if not self._goes_on(run, word, place) or not self._may_name(run, word, sure):
                break
            run.append(word)
        while run and run[-1].folded in _listed("particles"):
            run.pop()
        return [] if any(word.folded in _listed("not_people") for word in run) else run

    def _goes_on(self, run: list[_Word], word: _Word, place: int) -> bool:
        if not run:
            return _BEFORE_NAME.fullmatch(self.plain, place, word.start) is not None
        between = _AFTER_INITIAL if len(run[-1].folded) == 1 else _BETWEEN_WORDS
        return between.fullmatch(self.plain, run[-1].end, word.start) is not None

    def _may_name(self, run: list[_Word], word: _Word, sure: bool) -> bool:
        if run and word.folded in _listed("particles"):
            return len(run) < _MOST_WORDS and self._capital_follows(word)
        if word.folded in _listed("ends") or (not run and self._is_traded(word) and not sure):
            return False
        if word.capital:
            return len(run) < _MOST_WORDS
        in_lower_case = not any(one.capital for one in run)
        return sure and in_lower_case and len(run) < _MOST_IN_LOWER_CASE

    def _capital_follows(self, word: _Word) -> bool:
        after = bisect_right(self.words, word.start, key=lambda one: one.start)
        names = [one for one in self.words[after : after + 2] if one.folded not in _listed("particles")]
        return bool(names) and names[0].capital

    def _is_traded(self, word: _Word) -> bool:
        return any(start < word.end and word.start < end for start, end in self.traded)

    def named(self, people: "_People") -> Iterator[_Found]:
        """Where one of the people is named: by a whole name, or by a part of it that is written with a capital."""
        for index, word in enumerate(self.words):
            for name, who in people.beginning_with(word.folded):
                found = self.words[index : index + len(name)]
                if tuple(one.folded for one in found) == name and self._stands_for(found):
                    yield _Found(word.start, found[-1].end, "person", who)
            who_of_part = people.parts.get(word.folded)
            if who_of_part and word.capital and not self._is_traded(word):
                yield _Found(word.start, word.end, "person", who_of_part)

    def _stands_for(self, found: list[_Word]) -> bool:
        """A name of several words does; of one word, what is traded or a word in lower case is none."""
        if len(found) > 1:
            return True
        (word,) = found
        if self._is_traded(word):
            return self._after_sure_cue(word)
        in_lower_case = len(word.folded) >= _SHORTEST_IN_LOWER_CASE and word.folded not in _listed("ordinary")
        return word.capital or in_lower_case or self._after_sure_cue(word)

    def _after_sure_cue(self, word: _Word) -> bool:
        return any(
            0 <= word.start - match.end() <= 1
            for cue in _cues()
            if cue.sure
            for match in cue.pattern.finditer(self.folded)
        )

    def without(self, found: Sequence[_Found], numbers: dict[tuple[Kind, str], int], language: str) -> str:
        """The text with placeholders; of two that overlap the first stays, and of one place the longest."""
        parts, place = [], 0
        for one in sorted(found, key=lambda one: (one.start, -one.end)):
            if one.start < place:
                continue
            number = numbers.setdefault((one.kind, one.who), 1 + sum(kind == one.kind for kind, _ in numbers))
            said = sentences(one.kind, number=number).in_language(language)
            parts += [self.plain[place : one.start], said]
            place = one.end
        return "".join([*parts, self.plain[place:]]) if parts else self.text


class _People:
    """The people of a case: who each name, and each word of a longer one, stands for."""

    def __init__(self, names: Iterable[Name]) -> None:
        whole: dict[Name, str] = {}
        self.parts: dict[str, str] = {}
        # A short name is that of the first longer one that holds it: Carlos is Carlos Pérez.
        for name in sorted({name for name in names if name}, key=len, reverse=True):
            longer = next((other for other in whole if _holds(other, name)), None)
            whole[name] = whole[longer] if longer else " ".join(name)
            if len(name) > 1:
                for part in name:
                    if len(part) >= _SHORTEST_PART and part not in _listed("particles"):
                        self.parts.setdefault(part, whole[name])
        self._whole = whole
        self._by_first: dict[str, list[tuple[Name, str]]] = {}
        for name, who in whole.items():
            self._by_first.setdefault(name[0], []).append((name, who))

    def who(self, name: Name) -> str | None:
        """Whom a name stands for."""
        return self._whole.get(name)

    def beginning_with(self, word: str) -> Sequence[tuple[Name, str]]:
        """The names that begin with a word, and whom each stands for."""
        return self._by_first.get(word, ())


def _holds(longer: Name, name: Name) -> bool:
    return any(longer[start : start + len(name)] == name for start in range(len(longer) - len(name) + 1))


def _found(text: _Text, people: _People, known: Known) -> Iterator[_Found]:
    for match in _EMAIL.finditer(text.plain):
        yield _Found(*match.span(), "email", match.group().lower())
    for match in _ABROAD.finditer(text.plain):
        yield _phone(*match.span(), text)
    for match in _GROUPED.finditer(text.plain):
        if not match.group().endswith(_THOUSANDS):
            yield _phone(*match.span(), text)
    for match in _LABELLED.finditer(text.folded):
        yield _phone(*match.span("number"), text)
    user = folded(plain(known.user or ""))
    if len(user) >= SHORTEST_ID:
        for match in re.finditer(rf"(?<!\w){re.escape(user)}(?!\w)", text.folded):
            yield _Found(*match.span(), "person", people.who(known.own) or user)
    yield from text.named(people)


def _phone(start: int, end: int, text: _Text) -> _Found:
    return _Found(start, end, "phone", "".join(filter(str.isdigit, text.plain[start:end])))


@cache
def _lists() -> dict[str, frozenset[str]]:
    table = read_table(__package__, "people.yaml")
    return {name: frozenset(part.strip() for part in listed.split("|")) for name, listed in table.items()}


def _listed(name: str) -> frozenset[str]:
    return _lists()[name]


@dataclass(frozen=True)
class _Cue:
    """Words after which a name stands. ``sure``: also one in lower case; ``ends_line``: only one that ends its line."""

    pattern: re.Pattern[str]
    sure: bool = False
    ends_line: bool = False


@cache
def _cues() -> tuple[_Cue, ...]:
    title = rf"(?:(?:{_alternatives('titles')})\b\.? ?)?"
    kin = rf"(?:{_alternatives('possessives')}) (?:{_alternatives('relations')})"
    return (
        _Cue(_cue(rf"(?:{_alternatives('after_sure')})(?![\w'])[,:]? {{0,2}}{title}"), sure=True),
        _Cue(_cue(rf"(?:{_alternatives('titles')})(?:\. ?| )"), sure=True),
        _Cue(_cue(rf"(?:{_alternatives('after_likely')})(?![\w'])[,:]? {{0,2}}{title}")),
        _Cue(_cue(rf"{kin}(?: es| is|,)? {{1,2}}{title}")),
        _Cue(_cue(rf"(?:{_alternatives('labels')}) ?: {{0,2}}{title}")),
        _Cue(_cue(rf"(?:{_alternatives('sign_offs')}) ?[,\n.!]\s{{0,3}}{title}"), ends_line=True),
    )


def _cue(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{pattern})")


def _alternatives(name: str) -> str:
    """A list as alternatives, the longest first."""
    return "|".join(re.escape(one) for one in sorted(_listed(name), key=lambda one: (-len(one), one)))
