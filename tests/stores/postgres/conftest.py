"""Builders of turns for the tests of the tables."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID, uuid4

import pytest

from recuerdo.state.usage import Usage
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.approvals import Approvals
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.turns import NewMessage, NewTurn, TurnLog, TurnOutcome

NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)
LEASE = timedelta(seconds=60)
AT_ONCE = timedelta()


class PlayTurn(Protocol):
    async def __call__(self, text: str, reply: str, **outcome: Any) -> UUID: ...


@pytest.fixture
def log(database: Database) -> TurnLog:
    return TurnLog(database, "t1")


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
def approvals(database: Database, keys: KeyFolder) -> Approvals:
    return Approvals(database, "t1", keys)


@pytest.fixture
def new_turn() -> Callable[..., NewTurn]:
    """A turn of user-123 in conv-456, any field changed by name."""

    def build(**changes: Any) -> NewTurn:
        turn_id = changes.pop("id", None) or uuid4()
        fields: dict[str, Any] = {
            "conversation": "conv-456",
            "assistant": "A1",
            "user": "user-123",
            "parent": None,
            "mode": "live",
            "at": NOW,
            "language": "es",
            "message_id": f"message-{turn_id}",
            "text": "¿Cómo va Tesla?",
        }
        return NewTurn(id=turn_id, **{**fields, **changes})

    return build


@pytest.fixture
def play(log: TurnLog, new_turn: Callable[..., NewTurn]) -> PlayTurn:
    """Run one whole turn; names that are fields of a turn change it, the others its outcome."""

    async def play_turn(text: str, reply: str, **changes: Any) -> UUID:
        of_turn = {key: changes.pop(key) for key in list(changes) if key in NewTurn.__dataclass_fields__}
        turn = new_turn(text=text, **of_turn)
        outcome: dict[str, Any] = {
            "turn": turn.id,
            "at": turn.at,
            "messages": [NewMessage(f"reply-{turn.id}", "assistant", reply, turn.at)],
            "usage": Usage(100, 20, 120),
        }
        await log.begin(turn, lease=LEASE, wait=AT_ONCE)
        await log.finish(TurnOutcome(**{**outcome, **changes}))
        return turn.id

    return play_turn
