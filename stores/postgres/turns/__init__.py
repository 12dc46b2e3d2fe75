"""The turn log: conversations, turns, messages, and the lease that orders the turns of a conversation."""

from recuerdo.stores.postgres.turns.ending import ABANDONED, fail_abandoned
from recuerdo.stores.postgres.turns.log import TurnLog
from recuerdo.stores.postgres.turns.rows import (
    ConversationInfo,
    NewMessage,
    NewTurn,
    Reservation,
    StoredMessage,
    TurnOutcome,
)

__all__ = [
    "ABANDONED",
    "ConversationInfo",
    "NewMessage",
    "NewTurn",
    "Reservation",
    "StoredMessage",
    "TurnLog",
    "TurnOutcome",
    "fail_abandoned",
]
