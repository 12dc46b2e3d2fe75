"""A summary's text and its lines: each a label in the user's language, and what follows it.

The text is the whole truth: it is read back from its labels, in either language, so a summary that an older
version has written, or that was edited by hand, is extended like any other.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from recuerdo.state.blocks import CountTokens
from recuerdo.state.sentences import load_sentences
from recuerdo.state.summary.reading import KINDS, Kind, Line, read_text

sentences = load_sentences(__package__)

_BULLET = "- "

_BARE_PRICES = 3
"""How many prices that were merely mentioned rank as the user's figures."""

# Longest first: no label may hide behind the beginning of another.
_LABELS: tuple[tuple[str, Kind], ...] = tuple(
    sorted(
        (
            (text.split("{", 1)[0], kind)
            for kind in KINDS
            if kind != "point"
            for text in (sentences(f"summary_{kind}").es, sentences(f"summary_{kind}").en)
        ),
        key=lambda label: -len(label[0]),
    )
)

_DISPLAY: dict[Kind, int] = {kind: min(place, KINDS.index("point")) for place, kind in enumerate(KINDS)}
_RANK: dict[Kind, int] = {kind: min(place, KINDS.index("user")) for place, kind in enumerate(KINDS)}


def label_words(kind: Kind) -> frozenset[str]:
    """Stems of a kind's labels: "Goal: 10 %" speaks of a goal."""
    label = sentences(f"summary_{kind}")
    return Line(kind, f"{label.es} {label.en}".replace("{text}", "")).stems


@lru_cache(maxsize=256)
def parse(summary: str) -> tuple[Line, ...]:
    """The lines of a summary's text. What stands under "said" is read again: older versions knew no other label."""
    rows = (row.strip().removeprefix(_BULLET) for row in summary.splitlines())
    return tuple(line for row in rows if row for line in _parsed(row))


def _parsed(row: str) -> Iterable[Line]:
    for label, kind in _LABELS:
        if row.startswith(label):
            body = row.removeprefix(label).strip()
            return read_text(body, "user") if kind == "user" else (Line(kind, body),)
    return (Line("point", row),)


def render(line: Line, language: str) -> str:
    """The line with its bullet and its label."""
    return _BULLET + sentences(f"summary_{line.kind}", text=line.body).in_language(language)


def ranked(lines: Sequence[Line]) -> list[int]:
    """Places of the lines, the most important first; of equal ones the newest.

    Goals go before instructions, decisions, names and figures, these before what else was said. Prices that
    were merely mentioned go with the talk, but for the newest.
    """
    passing = {place for place, line in enumerate(lines) if line.is_bare_price}
    passing -= set(sorted(passing)[-_BARE_PRICES:])
    ranks = [_RANK["user"] if n in passing else _RANK[line.kind] for n, line in enumerate(lines)]
    return sorted(range(len(lines)), key=lambda place: (ranks[place], -_weight(lines[place]), -place))


def best(lines: Sequence[Line], texts: Sequence[str], max_tokens: int, count: CountTokens) -> list[int]:
    """Places of the lines that fit, by their rank; ``texts`` are the lines as they will stand."""
    kept: list[int] = []
    left = max_tokens
    for place in ranked(lines):
        cost = count(texts[place] + "\n")
        if cost <= left:
            kept.append(place)
            left -= cost
    return kept


def in_display_order(lines: Sequence[Line], places: Iterable[int]) -> list[int]:
    """Places by kind, what was said last, each kind in the order it was said."""
    return sorted(places, key=lambda place: (_DISPLAY[lines[place].kind], place))


def _weight(line: Line) -> float:
    """What a line is worth among its kind: a figure that was set, or is dated or the user's own, more."""
    if line.kind == "figure":
        return 4.0 * (line.thing is not None) + 2.0 * (line.is_dated or line.is_own) + bool(line.symbols)
    if line.kind not in ("user", "assistant"):
        return 0.0
    weight = 2.0 * (line.kind == "user") + bool(line.figures) + bool(line.symbols)
    weight -= 2.0 * (len(line.body.split()) < 3 and not line.figures)
    return weight - 0.5 * line.body.endswith("?")
