"""What a summary must not lose: the user's goals, instructions, decisions, names, dates and figures (RF-5)."""

from collections.abc import Iterable, Sequence

from recuerdo.state.summary.lines import label_words
from recuerdo.state.summary.reading import Kind, Line

ESSENTIAL: frozenset[Kind] = frozenset({"goal", "instruction", "decision", "name", "figure"})

_OWN_WORDS: frozenset[Kind] = frozenset({"goal", "instruction", "decision"})
"""Kinds whose words matter, not only their figures and names."""


def settled(before: Iterable[Line], after: Iterable[Line]) -> list[Line]:
    """The lines that hold once ``after`` was said: each once, at its newest place, superseded ones gone.

    Those of ``before`` are settled among themselves already, and stand in no order of time.
    """
    kept = dict.fromkeys(before)
    for line in after:
        kept.pop(line, None)
        if line.sets or line.revokes:
            kept = {old: None for old in kept if not old.yields_to(line)}
        kept[line] = None
    return list(kept)


def lacking(lines: Iterable[Line], summary: Sequence[Line]) -> list[Line]:
    """The essential ones of ``lines`` that ``summary`` does not tell, in order."""
    return [line for line in lines if line.kind in ESSENTIAL and not _told(line, summary)]


def _told(line: Line, summary: Sequence[Line]) -> bool:
    if any(line.body in other.body for other in summary):
        return True
    if not all(any(_tells(figure, line, other) for other in summary) for figure in line.figures):
        return False
    symbols = frozenset[str]().union(*(other.symbols for other in summary))
    words = " ".join(other.folded for other in summary)
    if not (line.symbols <= symbols and all(name in words for name in line.names)):
        return False
    has_facts = line.figures or line.symbols or line.names
    if has_facts and line.kind not in _OWN_WORDS:
        return True
    return any(_shares_words(line, other) for other in summary)


def _tells(figure: str, line: Line, other: Line) -> bool:
    """Whether a line has the figure beside its symbol, or beside one of its words."""
    if figure not in other.figures:
        return False
    if line.symbols:
        return bool(line.symbols & other.symbols)
    return not line.stems or bool(line.stems & _stems(other))


def _shares_words(line: Line, other: Line) -> bool:
    return bool(line.stems) and 2 * len(line.stems & _stems(other)) >= len(line.stems)


def _stems(line: Line) -> frozenset[str]:
    return line.stems | label_words(line.kind)
