"""What the turn log takes and gives: a new turn, what it leaves behind, and what is read of a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from recuerdo.state.levels import EPISODIC, Level
from recuerdo.state.usage import Usage
from recuerdo.stores.postgres.memories import MemoryChanges, NewMemory
from recuerdo.stores.postgres.preferences import PreferenceChange

TurnMode = Literal["live", "preview"]
TurnStatus = Literal["running", "waiting", "done", "failed", "cancelled"]
Role = Literal["user", "assistant", "tool"]
MessageStatus = Literal["ok", "failed", "partial"]


@dataclass(frozen=True)
class NewTurn:
    """A turn about to run. ``at`` is aware; ``user`` None is the anonymous session of LA-32.

    ``ticket`` is that of the reservation under which it runs, if any: see ``TurnLog.reserve``. ``events_unread``:
    key events will be read out of it in the background (LA-26).
    """

    id: UUID
    conversation: str
    assistant: str
    user: str | None
    parent: UUID | None
    mode: TurnMode
    at: datetime
    language: str
    message_id: str
    text: str
    ticket: UUID | None = None
    events_unread: bool = False


@dataclass(frozen=True)
class Reservation:
    """Takes a conversation for an agent, from before its thread is loaded until its checkpoint is written.

    A turn's own lease ends with its last write in the log, but LangGraph writes the checkpoint after that: who
    loads the thread in between would go on from a stale state. ``resumes`` is the waiting turn that is to go on;
    None: a new one.
    """

    ticket: UUID
    conversation: str
    assistant: str
    user: str | None
    at: datetime
    language: str
    resumes: UUID | None = None


@dataclass(frozen=True)
class NewMessage:
    """A reply, a call of tools or a tool's result, for the log. ``tool_calls`` is plain JSON data."""

    id: str
    role: Role
    content: str
    at: datetime
    tool_calls: Sequence[dict[str, Any]] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


NO_USAGE = Usage()
_NO_CHANGES = MemoryChanges()


@dataclass(frozen=True)
class TurnOutcome:
    """What a finished turn leaves behind. User, assistant and mode are those the turn began with.

    ``messages`` stand from ``position`` on (the user's is 0); those before it were written while it ran.
    ``dropped_preferences`` are keys, ``unfollowed`` symbols that the user takes back.
    """

    turn: UUID
    at: datetime
    messages: Sequence[NewMessage]
    position: int = 1
    usage: Usage = NO_USAGE
    record: dict[str, Any] = field(default_factory=dict)
    preferences: Sequence[PreferenceChange] = ()
    symbols: Sequence[str] = ()
    memories: Sequence[NewMemory] = ()
    memory_changes: MemoryChanges = _NO_CHANGES
    dropped_preferences: Sequence[str] = ()
    unfollowed: Sequence[str] = ()


@dataclass(frozen=True)
class StoredMessage:
    """A message of the log."""

    id: str
    turn: UUID
    role: Role
    content: str
    at: datetime
    status: MessageStatus
    tool_calls: list[dict[str, Any]] | None
    tool_name: str | None
    tool_call_id: str | None
    level: Level = EPISODIC


@dataclass(frozen=True)
class ConversationInfo:
    """A conversation in short; ``messages_count`` counts user and assistant texts (A-41)."""

    id: str
    assistant: str
    user: str | None
    language: str
    started_at: datetime
    updated_at: datetime
    messages_count: int
    last_turn: UUID | None
    level: Level = EPISODIC
