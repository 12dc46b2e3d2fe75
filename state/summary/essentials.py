"""What a summary must not lose: the user's goals, instructions, decisions, names, dates and figures (RF-5)."""

from collections.abc import Container, Iterable, Mapping, Sequence

from recuerdo.state.summary.changes import change_in, changed_line, restated
from recuerdo.state.summary.lines import label_words
from recuerdo.state.summary.reading import Kind, Line

ESSENTIAL: frozenset[Kind] = frozenset({"goal", "instruction", "decision", "name", "figure"})

_OWN_WORDS: frozenset[Kind] = frozenset({"goal", "instruction", "decision"})
"""Kinds whose words matter, not only their figures and names."""


def settled(before: Iterable[Line], after: Iterable[Line], tickers: Mapping[str, str]) -> list[Line]:
    """The lines that hold once ``after`` was said: each once, at its newest place, superseded ones gone.

    Those of ``before`` are settled among themselves already, and stand in no order of time. ``tickers`` has
    the symbol of a company's name, both in lower case.
    """
    kept = dict.fromkeys(before)
    told = frozenset(kept)
    since: dict[Line, None] = {}
    for said in after:
        line = _applied(said, kept, told, since)
        kept.pop(line, None)
        since.pop(line, None)
        if line.sets or line.revokes or (line.kind == "decision" and any(old.revokes for old in kept)):
            kept = {old: None for old in kept if not old.yields_to(line, tickers)}
        kept[line] = since[line] = None
    return list(kept)


def _applied(said: Line, kept: dict[Line, None], told: Container[Line], since: Iterable[Line]) -> Line:
    """The line, or the one that it changes, with its new value; the old one is taken out."""
    change = change_in(said)
    if change is None:
        return said
    before = [line for line in kept if line in told]
    old = changed_line(change, before, [line for line in since if line in kept])
    if old is None:
        return said
    del kept[old]
    return restated(old, change)


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
