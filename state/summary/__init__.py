"""The running summary: goal, instructions, decisions, figures, names, what is open (RF-4, RF-5, RF-28, C-2).

Pure functions from text and messages to text: the same input gives the same output. A summary is lines with a
label in the user's language. Goals and instructions outrank decisions, names and figures, these outrank talk;
among equals the newest wins, and a newer value of the same thing takes the older one's place. The caller
removes sensitive data first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from recuerdo.state.blocks import CountTokens
from recuerdo.state.summary.essentials import lacking, settled
from recuerdo.state.summary.lines import best, in_display_order, parse, ranked, render
from recuerdo.state.summary.reading import Kind, Line, read_text, wrapped

__all__ = [
    "Kind",
    "Known",
    "Line",
    "complete_summary",
    "extend_summary",
    "missing_essentials",
    "shorten_summary",
    "wrapped",
]


@dataclass(frozen=True)
class Known:
    """What the caller knows of the words: it changes what a line is about, never what it says."""

    tickers: Mapping[str, str] = field(default_factory=dict)
    """Symbols by the company's name in one word, without accents; both in lower case."""
    left_out: Sequence[str] = ()
    """Fixed sentences of the assistant that are not summarised, such as the disclaimer."""


NOTHING_KNOWN = Known()


def extend_summary(
    previous: str,
    messages: Sequence[AnyMessage],
    language: str,
    max_tokens: int,
    count: CountTokens,
    known: Known = NOTHING_KNOWN,
) -> str:
    """A summary that covers what ``previous`` covered and ``messages`` too, within ``max_tokens``.

    Lines start with "- ". Empty only if nothing was said.
    """
    lines = settled(parse(previous), _said(messages, known), known.tickers)
    return _written(lines, language, max_tokens, count)


def shorten_summary(summary: str, max_tokens: int, count: CountTokens) -> str:
    """The most important lines of a summary that fit into ``max_tokens``, in their order."""
    texts = [text for text in summary.splitlines() if text.strip()]
    lines = [parse(text)[0] for text in texts]
    return _joined(lines, texts, sorted(best(lines, texts, max_tokens, count)), max_tokens, count)


def missing_essentials(
    messages: Sequence[AnyMessage], summary: str, previous: str = "", known: Known = NOTHING_KNOWN
) -> list[Line]:
    """What ``messages``, and the summary before them, hold and ``summary`` has lost, in order.

    That is the user's goals, instructions, decisions, names, dates, and figures beside their symbols, as far
    as they still hold.
    """
    return lacking(settled(parse(previous), _said(messages, known), known.tickers), parse(summary))


def complete_summary(
    draft: Sequence[Line],
    previous: str,
    messages: Sequence[AnyMessage],
    language: str,
    max_tokens: int,
    count: CountTokens,
    known: Known = NOTHING_KNOWN,
) -> str:
    """A summary from lines that a model wrote: what it lost is added, figures that nobody named are dropped.

    Within ``max_tokens``, by the same order of importance as :func:`extend_summary`.
    """
    said = _said(messages, known)
    held = settled(parse(previous), said, known.tickers)
    named = frozenset[str]().union(*(line.figures for line in [*parse(previous), *said]))
    true = [line for line in dict.fromkeys(draft) if line.figures <= named]
    lines = settled(true, lacking(held, true), known.tickers)
    return _written(lines, language, max_tokens, count)


def _said(messages: Sequence[AnyMessage], known: Known) -> list[Line]:
    answered = max(
        (i for i, m in enumerate(messages) if isinstance(m, AIMessage) and str(m.text)), default=-1
    )
    return [
        line
        for place, message in enumerate(messages)
        for line in _lines_of(message, known, is_answered=place < answered)
    ]


def _lines_of(message: AnyMessage, known: Known, *, is_answered: bool) -> Iterable[Line]:
    if isinstance(message, HumanMessage):
        lines = read_text(str(message.text), "user")
        return lines if is_answered else [_open(line) for line in lines]
    return read_text(_own_words(message, known), "assistant") if isinstance(message, AIMessage) else ()


def _own_words(message: AIMessage, known: Known) -> str:
    text = str(message.text)
    for sentence in known.left_out:
        text = text.replace(sentence, "\n")
    return text


def _open(line: Line) -> Line:
    """A question that nobody has answered yet."""
    return Line("question", line.body) if line.kind == "user" and line.body.endswith("?") else line


def _written(lines: Sequence[Line], language: str, max_tokens: int, count: CountTokens) -> str:
    texts = [render(line, language) for line in lines]
    places = in_display_order(lines, best(lines, texts, max_tokens, count))
    return _joined(lines, texts, places, max_tokens, count)


def _joined(
    lines: Sequence[Line], texts: Sequence[str], places: Sequence[int], max_tokens: int, count: CountTokens
) -> str:
    if lines and not places:
        return _beginning(texts[ranked(lines)[0]], max_tokens, count)
    return "\n".join(texts[place] for place in places)


def _beginning(line: str, max_tokens: int, count: CountTokens) -> str:
    """As much of a line as fits: a summary is never empty where something was said."""
    length = len(line)
    while length and count(line[:length] + "…\n") > max_tokens:
        length = length * 3 // 4
    return line[:length] + "…" if length else ""
