"""The calls that a message of the model asks for, each under an id that stands for its tool and arguments."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool

from recuerdo.nodes.build_context.history import READ_ONLY
from recuerdo.nodes.call import Call
from recuerdo.state.turn import Work
from recuerdo.stores.postgres.text import storable
from recuerdo.stores.postgres.tool_calls import Effect

UNREADABLE = "unreadable_arguments"
"""Key in the arguments of a call that holds what the model wrote in place of JSON."""

OWN_EFFECT = "own_effect"
"""Key in a tool's ``metadata``: what it changes it writes with ``once``, in a transaction of ours."""

ASKS_FOR_HELP = "asks_for_help"
"""Key in a tool's ``metadata``: with a call of it the model asks for a person (A-33)."""

WHOLE_NUMBERS = range(-(2**63), 2**63)
"""Whole numbers that both the log and the checkpoint can keep."""

DEEPEST = 32
"""How deep lists and objects of an argument may stand in each other."""

ERROR_CHARACTERS = 500
"""Longest text of a failed tool that goes back to the model (IM-13)."""


@dataclass(frozen=True)
class Requested:
    """A call that the model asked for. ``tool`` is None when nobody brings one of that name.

    ``id`` is the same whenever the same turn comes to the same call again, and another for other arguments: what
    was approved is what runs.
    """

    id: UUID
    message_id: str
    asked: ToolCall
    tool: BaseTool | None

    @property
    def name(self) -> str:
        """The tool's name as the model wrote it."""
        return self.asked["name"]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the model wrote them."""
        return self.asked["args"]

    @property
    def can_run(self) -> bool:
        """Whether there is such a tool, and arguments for it."""
        return self.tool is not None and UNREADABLE not in self.arguments

    @property
    def effect(self) -> Effect:
        """What the tool changes; what does not say is taken to change something elsewhere."""
        marks = (self.tool.metadata if self.tool else None) or {}
        if marks.get(READ_ONLY):
            return "none"
        return "own" if marks.get(OWN_EFFECT) else "foreign"

    @property
    def asks_for_help(self) -> bool:
        """Whether the model asks for a person with it."""
        return bool(((self.tool.metadata if self.tool else None) or {}).get(ASKS_FOR_HELP))

    def result(self, text: str, *, failed: bool = False) -> ToolMessage:
        """The message that answers this call."""
        return ToolMessage(
            content=text[:ERROR_CHARACTERS] if failed else text,
            name=self.name,
            tool_call_id=self.asked["id"],
            id=self.message_id,
            status="error" if failed else "success",
            additional_kwargs={READ_ONLY: True} if self.effect == "none" else {},
        )


def read_arguments(text: str) -> dict[str, Any]:
    """A call's arguments as the model wrote them. Those that are not JSON, or that no store can keep (NaN, a number
    beyond 64 bits, NUL, a lone surrogate, nested too deep), stand in part under ``UNREADABLE``: nothing runs with
    half of them, and the model is told (IM-13).
    """
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, dict) and _can_be_kept(read, DEEPEST):
        return read
    return {UNREADABLE: storable(text[:ERROR_CHARACTERS])}


def _can_be_kept(value: Any, deepest: int) -> bool:
    if isinstance(value, str):
        return storable(value) == value
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int):
        return value in WHOLE_NUMBERS
    if isinstance(value, float):
        return math.isfinite(value)
    parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    return deepest > 0 and all(_can_be_kept(part, deepest - 1) for part in parts)


def requested_calls(asked: AIMessage, first: int, work: Work, call: Call) -> Sequence[Requested]:
    """The calls of a message; their results follow it in the round, from place ``first`` on."""
    turn, tools = work["turn"]["id"], call.services.toolbox.tools
    return [
        Requested(_call_id(turn, message_id, one), message_id, one, tools.get(one["name"]))
        for place, one in enumerate(asked.tool_calls, first)
        for message_id in [f"{turn}-{place}"]
    ]


def _call_id(turn: str, message_id: str, asked: ToolCall) -> UUID:
    arguments = json.dumps(asked["args"], sort_keys=True)
    return uuid5(NAMESPACE_URL, "\x1f".join((turn, message_id, asked["name"], arguments)))
