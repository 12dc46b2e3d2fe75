"""What can be said of a candidate and of the words around it, as names that the weights are kept by."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from recuerdo.stores.sensitive.cues import Opinion
from recuerdo.stores.sensitive.vocabulary import Kind, plain_words

_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d[\d.,]*|[^\w\s]|\n")
_NO_WORD = re.compile(r"[^\w]+")
_NUMBER, _START, _END = "0", "^", "$"
_TAKEN = "\ue000"
# Words to the left and the right, those with a place of their own, and those of the message.
_LEFT, _RIGHT, _PLACED, _PAIRED, _MESSAGE = 10, 8, 3, 4, 25
_STEM, _INNER, _FORM, _MOST_DIGITS, _MOST_CANDIDATES, _NEAR = 5, 6, 14, 13, 6, 6
# An accented end tells "compré" from "compre", "ganó" from "gano".
_ACCENTED, _SHORTEST_VERB = "éóí", 2
_AMOUNT_SHAPES = frozenset({"money", "large", "small", "price", "quantity", "percent", "worded"})
_WORD_SHAPES = frozenset({"odd", "phrase", "said"})
_FIRST_PERSON = plain_words("first_person")
_BY_SHAPE: Mapping[str, Kind] = {
    **dict.fromkeys(("percent", "price", "quantity", "worded"), "holding"),
    **dict.fromkeys(("money", "large", "small"), "balance"),
    **dict.fromkeys(("odd", "code", "short", "phrase", "said"), "credential"),
    **dict.fromkeys(("number", "grouped", "mixed", "last", "spoken"), "account"),
}
_FORMS = tuple(
    (re.compile(pattern), sign) for pattern, sign in (("[a-z]", "a"), ("[A-Z]", "A"), (r"\d", "0"))
)


@dataclass(frozen=True)
class Group:
    """Candidates that overlap, as one: what it looks like, and what the tables say of it and of the words around."""

    start: int
    end: int
    shapes: frozenset[str]
    said: frozenset[str]
    kind: Kind
    is_said: bool


def grouped(opinions: Iterable[Opinion]) -> list[Group]:
    """Candidates in order, those that overlap as one."""
    rows: list[list[Opinion]] = []
    end = 0
    for row in sorted(opinions, key=lambda row: (row.candidate.start, row.candidate.end)):
        if rows and row.candidate.start < end:
            rows[-1].append(row)
        else:
            rows.append([row])
        end = max(end, row.candidate.end)
    return [_group(row) for row in rows]


def _group(row: Sequence[Opinion]) -> Group:
    shapes = [one.candidate.shape for one in row]
    kind = next((one.kind for one in row if one.kind), None)
    return Group(
        start=row[0].candidate.start,
        end=max(one.candidate.end for one in row),
        shapes=frozenset(shapes),
        said=frozenset({f"kind={kind}"}).union(*(one.said for one in row)),
        kind=kind or _BY_SHAPE[shapes[0]],
        is_said=kind is not None,
    )


class Context:
    """The words of one text, each candidate and each number being one word "0" among them, whatever it holds."""

    def __init__(self, plain_text: str, folded_text: str, groups: Sequence[Group]) -> None:
        """Split the text into words."""
        self._plain, self._folded, self._groups = plain_text, folded_text, groups
        self._words: list[str] = []
        self._places: list[int] = []
        position = 0
        for group in groups:
            self._read(position, group.start)
            self._places.append(len(self._words))
            self._words.append(_NUMBER)
            position = group.end
        self._read(position, len(plain_text))
        is_own = not _FIRST_PERSON.isdisjoint(self._words) or any(word[-1] == "é" for word in self._words)
        self._person = "me" if is_own else "it"
        self._question = "?" if "?" in self._words else "."
        self._said = {group.kind for group in groups if group.is_said}

    def features(self, index: int) -> Iterator[str]:
        """The names of what holds for a candidate, by its index among the groups."""
        group, place = self._groups[index], self._places[index]
        yield "1"
        yield f"{_family(group)}1"
        yield from group.said
        yield from self._shapes(group, place)
        yield from self._form(group)
        yield from self._others(index)
        yield from self._around(place)

    def _read(self, start: int, end: int) -> None:
        for match in _TOKEN.finditer(self._folded, start, end):
            word = match.group()
            if word[0] == _TAKEN and self._words and self._words[-1] == _NUMBER:
                continue
            if word[0].isdigit() or word[0] == _TAKEN:
                self._words.append(_NUMBER)
                continue
            last = self._plain[match.end() - 1]
            self._words.append(word + last if last in _ACCENTED and len(word) > _SHORTEST_VERB else word)

    def _word(self, place: int) -> str:
        if place < 0:
            return _START
        return self._words[place] if place < len(self._words) else _END

    def _shapes(self, group: Group, place: int) -> Iterator[str]:
        left, right = self._word(place - 1), self._word(place + 1)
        yield f"ss={'+'.join(sorted(group.shapes))}"
        for shape in group.shapes:
            yield f"s={shape}"
            yield f"{shape}<{left}"
            yield f"{shape}>{right}"
            yield f"{shape}{self._person}"
        yield f"{group.kind}{self._person}"
        yield f"{group.kind}/{self._question}"

    def _form(self, group: Group) -> Iterator[str]:
        text = self._plain[group.start : group.end]
        yield f"d={min(sum(map(str.isdigit, text)), _MOST_DIGITS)}"
        yield from (f"has{sign}" for sign in ".,%" if sign in text)
        if text[0] in "+-":
            yield "signed"
        if any(map(str.isupper, text)):
            yield "upper"
        yield f"f={_form(text[:_FORM])}"
        yield from self._tickers(group)
        if group.shapes & _WORD_SHAPES:
            yield from self._inner(group)

    def _tickers(self, group: Group) -> Iterator[str]:
        before = _NO_WORD.sub(" ", self._plain[max(0, group.start - 12) : group.start]).split()[-1:]
        after = _NO_WORD.sub(" ", self._plain[group.end : group.end + 14]).split()[:1]
        count = min(len(self._groups), _MOST_CANDIDATES)
        for side, words in (("<", before), (">", after)):
            if any(_is_ticker(word) for word in words):
                yield f"T{side}"
                yield f"T{side}{count}"
                yield f"T{side}{self._person}"

    def _inner(self, group: Group) -> Iterator[str]:
        inner = _TOKEN.findall(self._folded, group.start, min(group.end, group.start + 200))
        yield f"n={len(inner)}"
        yield f"in0={inner[0] if inner else ''}"
        yield from (f"in={_NUMBER if word[0].isdigit() else word}" for word in inner[:_INNER])

    def _others(self, index: int) -> Iterator[str]:
        """What the candidates beside this one look like, and what the tables say of the others."""
        yield from self._beside(index, index - 1, "p")
        yield from self._beside(index, index + 1, "q")
        own = self._groups[index]
        for kind in self._said:
            yield f"o{kind}+{own.kind}"
            yield f"o{kind}+{'said' if own.is_said else 'not'}"
        yield f"c{min(len(self._groups), _MOST_CANDIDATES)}"

    def _beside(self, index: int, other: int, side: str) -> Iterator[str]:
        if not 0 <= other < len(self._groups):
            yield f"{side}0"
            return
        group, distance = self._groups[other], abs(self._places[other] - self._places[index])
        yield f"{side}{group.kind if group.is_said else None}"
        yield from (f"{side}{shape}" for shape in group.shapes)
        yield f"{side}near{distance // 2 if distance < _NEAR else _NEAR}"

    def _around(self, place: int) -> Iterator[str]:
        left = [*self._words[max(0, place - _LEFT) : place][::-1], _START]
        right = [*self._words[place + 1 : place + 1 + _RIGHT], _END]
        yield from _side("<", left)
        yield from _side(">", right)
        yield f"<>{left[0]} {right[0]}"
        message = self._words[max(0, place - _MESSAGE) : place] + self._words[place + 1 : place + _MESSAGE]
        yield from (f"@{word}" for word in set(message))


def _side(side: str, words: Sequence[str]) -> Iterator[str]:
    for distance, word in enumerate(words):
        yield f"{side}{word}"
        if len(word) > _STEM + 1:
            yield f"{side}~{word[:_STEM]}"
        if distance < _PLACED:
            yield f"{side}{distance}{word}"
    for one, other in pairwise(words[: _PAIRED + 1]):
        yield f"{side}{one} {other}"


def _family(group: Group) -> str:
    if group.shapes & _AMOUNT_SHAPES:
        return "amount"
    return "word" if group.shapes & _WORD_SHAPES else "number"


def _form(text: str) -> str:
    for pattern, sign in _FORMS:
        text = pattern.sub(sign, text)
    return text


def _is_ticker(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and word.isupper()
