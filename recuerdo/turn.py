"""A finished turn, and the pieces of a streamed one."""

from dataclasses import dataclass, field
from typing import Any, Literal

from recuerdo.state.record import TurnRecord
from recuerdo.state.turn import Request
from recuerdo.stores.postgres.approvals import Approval


@dataclass(frozen=True)
class Turn:
    """A finished turn, or one that waits for a person: then ``pending`` says for what, and ``reply`` says so."""

    id: str
    conversation: str
    reply: str
    requests: list[Request]
    record: TurnRecord
    context: dict[str, Any]
    pending: Approval | None = None

    @property
    def request(self) -> Request:
        """The last request that went to the model."""
        return self.requests[-1]


@dataclass(frozen=True)
class TurnChunk:
    """A piece of a streamed turn: a ``token`` of the reply, a ``tool`` that ran, or the end with the turn: ``done``, or
    ``pending`` when it waits for a person.
    """

    type: Literal["token", "tool", "pending", "done"]
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    turn: Turn | None = None
