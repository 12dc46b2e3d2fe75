"""Step h: machine-learning signals, only for users with access (RF-16, RF-45, A-6)."""

import re
from collections.abc import Iterable

from langchain_core.messages import AnyMessage

from recuerdo.nodes.build_context.asked import tells_of_signals
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import fenced, sentences
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung

_SENTENCES = re.compile(r"(?<=[.!?;])\s+")

SIGNALS_SHOWN = "recuerdo_signals_shown"
"""Key in a reply's ``additional_kwargs``: its request held signals, so it may quote them."""

MOST_SIGNALS = 20
"""Signals told one by one, where those of all holdings are asked for."""


def signal_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Signals of the turn's symbols; of what the user holds, where he asks for signals and names no symbol."""
    if not data.signals:
        return []
    phrasing = data.phrasing
    lines = [
        phrasing.say(
            "signal",
            symbol=signal.symbol,
            prediction=phrasing.value(signal.prediction),
            confidence=phrasing.number(signal.confidence),
            time=phrasing.when(signal.updated_at),
        )
        for signal in data.signals
    ]
    rungs = [
        text_rung("full", fenced("ml_signals", phrasing.capped(lines, MOST_SIGNALS)), count, floor=True),
        REMOVED,
    ]
    return [make_block("ml_signals", "high", "turn", rungs, source="signals", order=20, relevance=0.5)]


def without_signals(messages: Iterable[AnyMessage], language: str) -> list[AnyMessage]:
    """The messages for a user who may see no signals now: what an earlier reply said of them is not sent (RF-16).

    A reply says it in words of its own, so the whole of it gives way to a line that says why.
    """
    withheld = sentences("reply_with_signals").in_language(language)
    return [
        message.model_copy(update={"content": withheld}) if _may_quote(message) else message
        for message in messages
    ]


def lasting_part(message: AnyMessage) -> str:
    """A message's text without the lines and sentences that tell of signals: they age in minutes and may cease to
    be the user's to see, so no summary keeps them (RF-16).
    """
    text = str(message.text)
    if not _may_quote(message):
        return text
    return "\n".join(_without_told(line) for line in text.splitlines())


def _may_quote(message: AnyMessage) -> bool:
    return bool(message.additional_kwargs.get(SIGNALS_SHOWN))


def _without_told(line: str) -> str:
    return " ".join(one for one in _SENTENCES.split(line) if not tells_of_signals(one))
