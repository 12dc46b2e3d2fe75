"""Conversations of one tenant: read, list, clear (RF-2, RF-42, IM-36)."""

from collections.abc import Sequence
from uuid import UUID

from recuerdo.nodes.services import Services
from recuerdo.state.record import TurnRecord
from recuerdo.state.usage import Usage
from recuerdo.stores.postgres.approvals import Approvals
from recuerdo.stores.postgres.checkpoints import delete_thread
from recuerdo.stores.postgres.turns import ConversationInfo, StoredMessage, TurnLog


class Conversations:
    """The log of conversations as an app reads it; a foreign conversation reads as none."""

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._database = services.database
        self._tenant = tenant
        self._log = TurnLog(self._database, tenant)

    async def get(self, conversation: str, *, user: str | None = None) -> Sequence[StoredMessage]:
        """Messages with role, text and time, oldest first."""
        return await self._log.messages(conversation, user)

    async def info(self, conversation: str, *, user: str | None = None) -> ConversationInfo | None:
        """Start, number of messages and last turn; None when there is no such conversation of the user."""
        return await self._log.conversation(conversation, user)

    async def list(self, *, user: str, limit: int = 50) -> Sequence[ConversationInfo]:
        """The user's conversations, newest first."""
        return await self._log.conversations(user, limit=limit)

    async def record(self, turn: UUID, *, user: str | None = None) -> TurnRecord | None:
        """What went into the turn's prompt (IM-45); None when it is not the user's or left none."""
        record = await self._log.record(turn, user)
        return TurnRecord.model_validate(record) if record else None

    async def newest_record(
        self, conversation: str | None = None, *, user: str | None = None
    ) -> TurnRecord | None:
        """The record of the newest turn that left one, of a conversation or (None) of all the user's."""
        record = await self._log.newest_record(conversation, user)
        return TurnRecord.model_validate(record) if record else None

    async def usage(self, conversation: str, *, user: str | None = None) -> Usage:
        """Tokens of the whole conversation, cached and uncached apart, and their cost (RF-21, OR-19, A-29)."""
        return await self._log.usage(conversation, user)

    async def clear(self, conversation: str, *, user: str | None = None) -> None:
        """Delete messages, summary and checkpoints; long-term memory stays. What waits for a person is taken back."""
        approvals = Approvals(self._database, self._tenant, self._services.keys)
        await self._log.clear(conversation, user, approvals, self._services.clock())
        await delete_thread(self._database, self._tenant, conversation)
