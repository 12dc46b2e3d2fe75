"""A finished turn, and the pieces of a streamed one."""

from dataclasses import dataclass, field
from typing import Any, Literal

from recuerdo.state.record import TurnRecord
from recuerdo.state.turn import Request


@dataclass(frozen=True)
class Turn:
    """A finished turn."""

    id: str
    conversation: str
    reply: str
    requests: list[Request]
    record: TurnRecord
    context: dict[str, Any]

    @property
    def request(self) -> Request:
        """The last request that went to the model."""
        return self.requests[-1]


@dataclass(frozen=True)
class TurnChunk:
    """A piece of a streamed turn: a ``token`` of the reply, a ``tool`` that ran, or ``done`` with the turn."""

    type: Literal["token", "tool", "done"]
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    turn: Turn | None = None
