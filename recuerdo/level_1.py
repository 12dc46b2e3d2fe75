"""Level 1 of a turn that runs or waits: what it works with, and what nobody will find once it is over (OR-3, OR-5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage

from recuerdo.state.levels import VOLATILE, Level
from recuerdo.state.turn import Work


@dataclass(frozen=True)
class Level1:
    """The thread with roles and texts, the calls of tools that the model asked for with their arguments, the intent.

    ``confidence`` of the intent goes from 0 to 1.
    """

    turn: str
    status: Literal["running", "waiting"]
    thread: list[dict[str, str]]
    calls: list[dict[str, Any]]
    intent: str | None
    confidence: float | None
    symbols: list[str]
    level: Level = VOLATILE


def read_level_1(work: Work, messages: Sequence[AnyMessage], status: Literal["running", "waiting"]) -> Level1:
    """Level 1 out of the working keys and the messages of a thread; what is not known yet is empty."""
    asked = [call for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
    return Level1(
        turn=work["turn"]["id"],
        status=status,
        thread=[{"role": one.type, "text": str(one.text)} for one in messages if one.type != "system"],
        calls=[{"tool": call["name"], "arguments": call["args"]} for call in asked],
        intent=work.get("intent"),
        confidence=work.get("intent_confidence"),
        symbols=work.get("symbols", []),
    )
