"""What is read of conversations: in short, their messages, usage and records. Nothing of a foreign one."""

from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from recuerdo.state.usage import Usage
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.turns.rows import ConversationInfo, StoredMessage

_SELECT_CONVERSATIONS: LiteralString = """
select id, assistant, user_id as user, language, started_at, updated_at,
    (select count(*) from recuerdo.messages m
     where m.tenant = c.tenant and m.conversation = c.id
       and (m.role = 'user' or m.role = 'assistant' and m.tool_calls is null)) as messages_count,
    (select t.id from recuerdo.turns t
     where t.tenant = c.tenant and t.conversation = c.id and t.mode = 'live'
     order by t.number desc limit 1) as last_turn
from recuerdo.conversations c
"""

_SELECT_MESSAGES: LiteralString = """
select id, turn, role, content, at, status, tool_calls, tool_name, tool_call_id
from (
    select m.id, m.turn_id as turn, m.role, m.content, m.created_at as at, m.status, m.tool_calls,
        m.tool_name, m.tool_call_id, t.number, m.position
    from recuerdo.messages m
    join recuerdo.turns t on t.tenant = m.tenant and t.id = m.turn_id
    where m.tenant = %(tenant)s and m.conversation = %(conversation)s
        and t.user_id is not distinct from %(user)s
    order by t.number desc, m.position desc limit %(limit)s
) as newest
order by number, position
"""

_SELECT_MESSAGE: LiteralString = """
select m.id, m.turn_id as turn, m.role, m.content, m.created_at as at, m.status, m.tool_calls, m.tool_name,
    m.tool_call_id
from recuerdo.messages m
join recuerdo.turns t on t.tenant = m.tenant and t.id = m.turn_id
where m.tenant = %s and m.turn_id = %s and m.id = %s and t.user_id = %s
"""

_SUM_USAGE: LiteralString = """
with used as (
    select usage from recuerdo.turns
    where tenant = %(tenant)s and conversation = %(conversation)s and user_id is not distinct from %(user)s
)
select coalesce(sum((usage->>'input')::bigint), 0)::bigint as input,
    coalesce(sum((usage->>'output')::bigint), 0)::bigint as output,
    coalesce(sum((usage->>'total')::bigint), 0)::bigint as total,
    coalesce(sum((usage->>'cached')::bigint), 0)::bigint as cached,
    sum((usage->>'units')::numeric) as units,
    sum((usage->>'units_without_cache')::numeric) as units_without_cache,
    coalesce(sum((usage->>'unreported')::bigint), 0)::bigint as unreported,
    array(select distinct family from used, jsonb_array_elements_text(usage->'unpriced') as family
        order by family) as unpriced
from used
"""

_OWN: LiteralString = """
tenant = %(tenant)s and id = %(conversation)s and user_id is not distinct from %(user)s
"""


class TurnHistory:
    """The reads of the turn log of one tenant: they give nothing of a conversation that is not the user's."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def conversation(self, conversation: str, user: str | None) -> ConversationInfo | None:
        """The conversation in short; None when there is none or it is not the user's (RF-42)."""
        found = await self._database.read(
            self._tenant,
            _SELECT_CONVERSATIONS + f" where {_OWN}",
            self._scope(conversation, user),
            rows=class_row(ConversationInfo),
        )
        return found[0] if found else None

    async def started_at(self, conversation: str, user: str | None) -> datetime | None:
        """When the user's conversation began; None when there is none or it is not his."""
        found = await self._database.read(
            self._tenant,
            f"select started_at from recuerdo.conversations where {_OWN}",
            self._scope(conversation, user),
        )
        return found[0]["started_at"] if found else None

    async def conversations(self, user: str, *, limit: int = 50) -> list[ConversationInfo]:
        """The user's conversations that have turns, newest first. Anonymous sessions cannot be listed."""
        require_scope(user=user)
        return await self._database.read(
            self._tenant,
            _SELECT_CONVERSATIONS + " where tenant = %s and user_id = %s and exists (select 1"
            " from recuerdo.turns t"
            " where t.tenant = c.tenant and t.conversation = c.id and t.mode = 'live')"
            " order by updated_at desc, id limit %s",
            (self._tenant, user, limit),
            rows=class_row(ConversationInfo),
        )

    async def messages(
        self, conversation: str, user: str | None, *, limit: int | None = None
    ) -> list[StoredMessage]:
        """The newest ``limit`` messages (None: all) with role, text and time, oldest first (RF-2)."""
        values = {**self._scope(conversation, user), "limit": limit}
        return await self._database.read(
            self._tenant, _SELECT_MESSAGES, values, rows=class_row(StoredMessage)
        )

    async def message(self, turn: UUID, message_id: str, user: str) -> StoredMessage | None:
        """One message of the user's own turn: where something remembered came from. None: gone, or foreign."""
        require_scope(user=user)
        values = (self._tenant, turn, message_id, user)
        found = await self._database.read(
            self._tenant, _SELECT_MESSAGE, values, rows=class_row(StoredMessage)
        )
        return found[0] if found else None

    async def usage(self, conversation: str, user: str | None) -> Usage:
        """Tokens and cost of all turns of the conversation, previews too: they are billed (RF-21, IM-15)."""
        (row,) = await self._database.read(self._tenant, _SUM_USAGE, self._scope(conversation, user))
        return Usage(**{**row, "unpriced": tuple(row["unpriced"])})

    async def record(self, turn: UUID, user: str | None) -> dict[str, Any] | None:
        """What went into the turn's requests; None when it is not the user's or has left none (IM-45)."""
        require_session(user)
        found = await self._database.read(
            self._tenant,
            "select record from recuerdo.turns"
            " where tenant = %s and id = %s and user_id is not distinct from %s",
            (self._tenant, turn, user),
        )
        return found[0]["record"] if found else None

    async def newest_record(self, conversation: str | None, user: str | None) -> dict[str, Any] | None:
        """As ``record``, of the newest turn that left one; ``conversation`` None: of any of the user's."""
        require_scope(**({"conversation": conversation} if user is None or conversation is not None else {}))
        require_session(user)
        found = await self._database.read(
            self._tenant,
            "select record from recuerdo.turns where tenant = %(tenant)s and record is not null"
            " and user_id is not distinct from %(user)s"
            " and (%(conversation)s::text is null or conversation = %(conversation)s)"
            " order by started_at desc, number desc limit 1",
            {"tenant": self._tenant, "user": user, "conversation": conversation},
        )
        return found[0]["record"] if found else None

    async def tool_result(self, conversation: str, message_id: str, user: str | None) -> str | None:
        """The whole text of a tool's message that the prompt had a part of; None when not the user's."""
        found = await self._database.read(
            self._tenant,
            "select m.content from recuerdo.messages m"
            " join recuerdo.turns t on t.tenant = m.tenant and t.id = m.turn_id"
            " where m.tenant = %(tenant)s and m.conversation = %(conversation)s and m.id = %(id)s"
            " and m.role = 'tool' and t.user_id is not distinct from %(user)s"
            " order by t.number desc limit 1",
            {**self._scope(conversation, user), "id": message_id},
        )
        return found[0]["content"] if found else None

    def _scope(self, conversation: str, user: str | None) -> dict[str, Any]:
        require_scope(conversation=conversation)
        require_session(user)
        return {"tenant": self._tenant, "conversation": conversation, "user": user}


def require_session(user: str | None) -> None:
    """None is the anonymous session; an empty name is a caller's mistake: ScopeError."""
    if user is not None:
        require_scope(user=user)
