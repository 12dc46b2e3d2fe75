"""What a memory said before: its earlier texts, with when and why each one ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from psycopg.rows import class_row

from recuerdo.state.limits import MEMORY_MAX_DAYS
from recuerdo.stores.postgres.database import Connection

Reason = Literal["updated", "superseded"]
"""Why a text is no longer in force: its memory was given another, or another memory took its place."""


@dataclass(frozen=True)
class Revision:
    """A text that was in force until ``at``, as the memory ``memory_id``; ``message_id`` is where it came from."""

    text: str
    at: datetime
    reason: Reason
    message_id: str | None
    memory_id: UUID


def revision_expiry(expires_at: datetime | None, ended: datetime) -> datetime:
    """Until when an old text is kept: as long as it would have been in force, and at most 90 days (RF-32)."""
    latest = ended + timedelta(days=MEMORY_MAX_DAYS)
    return latest if expires_at is None else min(expires_at, latest)


async def revisions_of(
    connection: Connection, tenant: str, assistant: str, user: str, memory_id: UUID, now: datetime
) -> Sequence[Revision]:
    """Earlier texts of the user's memory and of those it took the place of, oldest first.

    A memory that was superseded shares the history of the one in its place.
    """
    cursor = connection.cursor(row_factory=class_row(Revision))
    await cursor.execute(
        "select text, at, reason, message_id, was_id as memory_id from recuerdo.memory_revisions"
        " where tenant = %(tenant)s and assistant = %(assistant)s and user_id = %(user)s"
        " and expires_at > %(now)s and memory_id in (select %(id)s union"
        " select memory_id from recuerdo.memory_revisions where tenant = %(tenant)s and was_id = %(id)s)"
        " order by id",
        {"tenant": tenant, "assistant": assistant, "user": user, "id": memory_id, "now": now},
    )
    return await cursor.fetchall()
