"""What can be quoted from a prompt: the lines of its fenced parts, and what was said before."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from recuerdo.nodes.build_prompt.layouts import is_opening, split_turn_part
from recuerdo.nodes.call_llm.vocabulary import terms

HISTORY = "history"
REPLIES = "replies"
INSTRUCTIONS = "instructions"
# The parts that have a title of their own; a part with any other name is quoted too.
SECTIONS = frozenset(
    {
        HISTORY,
        REPLIES,
        INSTRUCTIONS,
        "user",
        "preferences",
        "summary",
        "market",
        "events",
        "quotes",
        "portfolio",
        "more_positions",
        "alerts",
        "ml_signals",
        "education",
        "memories",
        "key_events",
    }
)

_SYMBOL_SECTIONS = frozenset({"quotes", "portfolio", "alerts", "ml_signals"})

_OPENS = re.compile(r"<([a-z_]+)>\s*")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*")
# "AAPL (Apple): ...", "TSLA: ...", "Alerta activa: TSLA <= 240", "Señal ML de AAPL: ..."
_SYMBOL = re.compile(
    r"(?<![\w&.])(\^?[A-Z][A-Z0-9]*(?:[.^=/-][A-Z0-9]+)*)(?: \(([^\W\d][^)]*)\)|(?=:| [<>=]))"
)


@dataclass(frozen=True)
class Fact:
    """One line that can be quoted, and the part of the prompt that it comes from."""

    section: str
    text: str

    @cached_property
    def terms(self) -> frozenset[str]:
        """The stems of its words."""
        return terms(self.text)

    @cached_property
    def symbol(self) -> str:
        """The symbol that a line of market data is about, else empty."""
        return self._head[0]

    @cached_property
    def company(self) -> frozenset[str]:
        """The stems of the company's name, where it stands in brackets behind the symbol."""
        return terms(self._head[1])

    @cached_property
    def _head(self) -> tuple[str, str]:
        if self.section not in _SYMBOL_SECTIONS:
            return "", ""
        found = _SYMBOL.search(self.text)
        return (found[1], found[2] or "") if found else ("", "")


@dataclass(frozen=True)
class PromptFacts:
    """The user's words, what the user said before (newest first), and what can be quoted, in order.

    ``instructions`` are all of the prompt, the standing ones first: those of the turn have the last word.
    """

    question: str
    earlier: tuple[str, ...]
    facts: tuple[Fact, ...]
    instructions: tuple[str, ...]


def read_prompt(messages: Sequence[BaseMessage], own_marks: Sequence[str]) -> PromptFacts:
    """Take a prompt of any layout apart (design, section 4).

    ``own_marks`` are texts by which a reply of the offline responder is known: quoting it would quote the
    quotes of an earlier turn.
    """
    said = [message.text for message in messages if isinstance(message, HumanMessage)]
    systems = [str(message.text) for message in messages if isinstance(message, SystemMessage)]
    turn, question = split_turn_part(said[-1], systems) if said else ("", "")
    earlier = [text for text in said[:-1] if not is_opening(text)]
    replies = [message.text for message in messages if isinstance(message, AIMessage)]
    parts = [*systems, turn] if turn else systems
    facts = [*_fenced(parts), *_sentences(HISTORY, earlier)]
    facts += _sentences(REPLIES, [reply for reply in replies if not any(mark in reply for mark in own_marks)])
    told = tuple(fact.text for part in parts for fact in _lines(part) if fact.section == INSTRUCTIONS)
    return PromptFacts(question, tuple(reversed(earlier)), tuple(dict.fromkeys(facts)), told)


def _fenced(parts: Sequence[str]) -> Iterator[Fact]:
    # Parts of our own only: a fence that a user types is the user's words, not data.
    for index, text in enumerate(parts, 1):
        # Instructions above the last part are the standing ones, not about this turn.
        standing = index < len(parts)
        yield from (fact for fact in _lines(text) if not (standing and fact.section == INSTRUCTIONS))


def _lines(text: str) -> Iterator[Fact]:
    """The lines between ``<name>`` and ``</name>``; a line such as a day stands in front of those below it."""
    section = heading = ""
    for line in text.splitlines():
        if not section:
            opened = _OPENS.fullmatch(line)
            section, heading = (opened[1] if opened else ""), ""
        elif line.rstrip() == f"</{section}>":
            section = ""
        elif not line.startswith("- ") and line.rstrip().endswith(":"):
            heading = line.strip() + " "
        elif words := line.strip().removeprefix("- ").strip():
            yield Fact(section, heading + words)


def _sentences(section: str, texts: Sequence[str]) -> Iterator[Fact]:
    for text in texts:
        found = (sentence.strip(" \t-") for sentence in _SENTENCE.findall(text))
        yield from (Fact(section, sentence) for sentence in found if sentence)
