"""The extractive summary: what a conversation said, without a model (RF-4, RF-5, RF-28, C-2).

Sentences are ranked by what they carry (figures, wishes, instructions, names) and the best that fit are
kept in their old order. The same input gives the same output.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from recuerdo.state.blocks import CountTokens
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)

LONGEST_LINE = 220
"""Characters of one summary line; a longer sentence makes several lines, so no figure of it is lost."""

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_FIGURE = re.compile(r"\d")
_SYMBOL = re.compile(r"\b[A-Z]{2,6}(?:[.\-/][A-Z]{1,4})?\b")
_WISH = re.compile(
    r"\b(objetivo|meta|prefiero|quiero|necesito|siempre|nunca|recuerda|no olvides|decid|acord|plazo|riesgo"
    r"|me llamo|soy|goal|target|prefer|want|need|always|never|remember|don't forget|decid|agree|deadline"
    r"|risk|my name|i am|i'm)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Line:
    text: str
    weight: float
    position: int


def extend_summary(
    previous: str, messages: Sequence[AnyMessage], language: str, max_tokens: int, count: CountTokens
) -> str:
    """A summary that covers what ``previous`` covered and ``messages`` too, within ``max_tokens``.

    Lines start with "- ". Empty only if nothing was said. The caller removes sensitive data first.
    """
    lines = [line for line in previous.splitlines() if line.strip()]
    lines += [line for message in messages for line in _lines_of(message, language)]
    return _best(list(dict.fromkeys(lines)), max_tokens, count)


def shorten_summary(summary: str, max_tokens: int, count: CountTokens) -> str:
    """The most telling lines of a summary that fit into ``max_tokens``."""
    return _best([line for line in summary.splitlines() if line.strip()], max_tokens, count)


def _lines_of(message: AnyMessage, language: str) -> list[str]:
    if isinstance(message, HumanMessage):
        key = "summary_user"
    elif isinstance(message, AIMessage):
        key = "summary_assistant"
    else:
        return []
    said = [line for part in _SENTENCE_END.split(str(message.text)) for line in _wrapped(part)]
    return ["- " + sentences(key, text=text).in_language(language) for text in said]


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(" ".join(sentence.split()), LONGEST_LINE, break_on_hyphens=False)


def _best(lines: Sequence[str], max_tokens: int, count: CountTokens) -> str:
    ranked = sorted(
        (_Line(text, _weight(text), position) for position, text in enumerate(lines)),
        key=lambda line: (-line.weight, -line.position),
    )
    kept: list[_Line] = []
    left = max_tokens
    for line in ranked:
        cost = count(line.text + "\n")
        if cost <= left:
            kept.append(line)
            left -= cost
    if ranked and not kept:
        return _beginning(ranked[0].text, max_tokens, count)
    return "\n".join(line.text for line in sorted(kept, key=lambda line: line.position))


def _beginning(line: str, max_tokens: int, count: CountTokens) -> str:
    """As much of a line as fits: a summary is never empty where something was said."""
    length = len(line)
    while length and count(line[:length] + "…\n") > max_tokens:
        length = length * 3 // 4
    return line[:length] + "…" if length else ""


_USER_PREFIXES = tuple(
    "- " + text.split("{", 1)[0] for text in (sentences("summary_user").es, sentences("summary_user").en)
)


def _weight(line: str) -> float:
    """What a line is worth: the user's own figures and wishes most, small talk least."""
    by_user = line.startswith(_USER_PREFIXES)
    body = line.split(":", 1)[-1]
    weight = 2.0 if by_user else 0.0
    weight += (3.0 if by_user else 1.0) * bool(_FIGURE.search(body))
    weight += 3.0 * bool(by_user and _WISH.search(body))
    weight += 1.0 * bool(_SYMBOL.search(body))
    weight -= 2.0 * (len(body.split()) < 3 and not _FIGURE.search(body))
    return weight - 0.5 * body.rstrip().endswith("?")
