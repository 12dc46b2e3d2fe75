"""Writes the rows of a turn and of its messages, by upsert: a replay writes nothing twice.

Each function works in the transaction of the connection that it is given, under its tenant; what gives no answer may
stand in a pipeline.
"""

from collections.abc import Sequence
from uuid import UUID

from psycopg.types.json import Jsonb

from recuerdo.state.errors import ScopeError
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.text import storable, storable_json
from recuerdo.stores.postgres.turns.lease import sentences
from recuerdo.stores.postgres.turns.rows import MessageStatus, NewMessage, NewTurn, TurnOutcome

# A replay takes up its own row again; an id that names another conversation's turn is refused.
_INSERT_TURN = """
insert into recuerdo.turns as kept
    (tenant, id, conversation, user_id, number, parent_turn, status, mode, started_at, events_unread)
values
    (%(tenant)s, %(turn)s, %(conversation)s, %(user)s,
     (select coalesce(max(number), 0) + 1 from recuerdo.turns
      where tenant = %(tenant)s and conversation = %(conversation)s and mode = 'live'),
     %(parent)s, 'running', %(mode)s, %(at)s, %(events_unread)s)
on conflict (tenant, id) do update set status = 'running', ended_at = null, error = null
where (kept.conversation, kept.user_id, kept.mode)
    is not distinct from (excluded.conversation, excluded.user_id, excluded.mode)
returning number, xmax <> 0 as replayed
"""

_UPSERT_MESSAGE = """
insert into recuerdo.messages
    (tenant, turn_id, position, conversation, id, role, content, tool_calls, tool_name, tool_call_id,
     status, created_at)
values
    (%(tenant)s, %(turn)s, %(position)s, %(conversation)s, %(id)s, %(role)s, %(content)s, %(tool_calls)s,
     %(tool_name)s, %(tool_call_id)s, %(status)s, %(at)s)
on conflict (tenant, turn_id, position) do update set
    id = excluded.id, role = excluded.role, content = excluded.content, tool_calls = excluded.tool_calls,
    tool_name = excluded.tool_name, tool_call_id = excluded.tool_call_id, status = excluded.status,
    created_at = excluded.created_at
"""


async def write_turn(connection: Connection, tenant: str, turn: NewTurn) -> int:
    """Write the turn's row and the user's message; returns its number in the conversation.

    Raises ScopeError when the id is that of another conversation's turn.
    """
    async with connection.pipeline():
        written = await connection.execute(_INSERT_TURN, {**vars(turn), "tenant": tenant, "turn": turn.id})
        if turn.mode == "live":
            message = NewMessage(turn.message_id, "user", turn.text, turn.at)
            await write_messages(connection, tenant, turn.conversation, turn.id, [message], position=0)
    row = await written.fetchone()
    if row is None:
        raise ScopeError(sentences("conversation_foreign"))
    if row["replayed"]:
        # What the run before it said does not count; it begins anew.
        await delete_messages(connection, tenant, turn.id, after=0)
    return int(row["number"])


async def write_messages(
    connection: Connection,
    tenant: str,
    conversation: str,
    turn: UUID,
    messages: Sequence[NewMessage],
    *,
    position: int,
    reply_status: MessageStatus = "ok",
) -> None:
    """Write messages of a turn from ``position`` on."""
    for place, message in enumerate(messages, start=position):
        row = {
            **vars(message),
            "tenant": tenant,
            "turn": turn,
            "conversation": conversation,
            "position": place,
            "content": storable(message.content),
            "tool_calls": None
            if message.tool_calls is None
            else Jsonb(storable_json(list(message.tool_calls))),
            "status": reply_status if message.role == "assistant" and not message.tool_calls else "ok",
        }
        await connection.execute(_UPSERT_MESSAGE, row)


async def delete_messages(connection: Connection, tenant: str, turn: UUID, *, after: int) -> None:
    """Delete the turn's messages behind a position."""
    await connection.execute(
        "delete from recuerdo.messages where tenant = %s and turn_id = %s and position > %s",
        (tenant, turn, after),
    )


async def next_position(connection: Connection, tenant: str, turn: UUID) -> int:
    """Where the turn's next message stands."""
    cursor = await connection.execute(
        "select max(position) + 1 as position from recuerdo.messages where tenant = %s and turn_id = %s",
        (tenant, turn),
    )
    row = await cursor.fetchone()
    return int(row["position"]) if row else 1


async def write_done(connection: Connection, tenant: str, outcome: TurnOutcome) -> None:
    """The turn is done, with its usage and its record."""
    await connection.execute(
        "update recuerdo.turns set status = 'done', ended_at = %s, usage = %s, record = %s"
        " where tenant = %s and id = %s",
        (
            outcome.at,
            Jsonb(outcome.usage.as_json()),
            Jsonb(storable_json(outcome.record)),
            tenant,
            outcome.turn,
        ),
    )
