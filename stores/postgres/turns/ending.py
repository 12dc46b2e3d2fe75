"""The end of a turn that has no outcome: it failed, was stopped, or its process went away (RF-52, IM-38)."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from recuerdo.state.usage import Usage
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.evidence import NewEvidence, Run, write_evidence
from recuerdo.stores.postgres.tool_calls import leave_open_calls
from recuerdo.stores.postgres.turns.rows import TurnStatus

ABANDONED = "abandoned"
"""The error of a turn whose process went away: its lease expired (RF-52)."""


async def fail_abandoned(database: Database, now: datetime) -> int:
    """Mark turns of every tenant whose lease has expired as failed, and release them. Returns how many."""
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select tenant, id, lease_turn from recuerdo.conversations"
            " where lease_until <= clock_timestamp() for update skip locked"
        )
        expired = await cursor.fetchall()
        for row in expired:
            await end_running(connection, row["tenant"], row["lease_turn"], "failed", now, ABANDONED)
            await connection.execute(
                "update recuerdo.conversations set lease_turn = null, lease_ticket = null, lease_until = null"
                " where tenant = %s and id = %s",
                (row["tenant"], row["id"]),
            )
        return len(expired)


async def end_running(
    connection: Connection,
    tenant: str,
    turn: UUID,
    status: Literal["failed", "cancelled"],
    at: datetime,
    error: str | None,
) -> None:
    """End a running turn that has no outcome; the user's message of a failed one is marked (RF-52).

    Its calls of tools that are still open are marked, and a failed run is evidence (OR-22).
    """
    cursor = await connection.execute(
        "update recuerdo.turns t set status = %s, ended_at = %s, error = %s from recuerdo.conversations c"
        " where t.tenant = %s and t.id = %s and t.status = 'running'"
        " and c.tenant = t.tenant and c.id = t.conversation"
        " returning t.conversation, c.assistant, t.user_id as user",
        (status, at, error, tenant, turn),
    )
    ended = await cursor.fetchone()
    await leave_open_calls(connection, tenant, at, turn=turn)
    if ended and status == "failed":
        run = Run(turn, **ended)
        failure = NewEvidence("run_failed", at, run, str(turn), data={"error": error})
        await write_evidence(connection, tenant, [failure])
    if status == "failed":
        await connection.execute(
            "update recuerdo.messages set status = 'failed'"
            " where tenant = %s and turn_id = %s and role = 'user'",
            (tenant, turn),
        )


async def end_preview(
    connection: Connection,
    tenant: str,
    turn: UUID,
    status: TurnStatus,
    at: datetime,
    error: str | None,
    usage: Usage,
) -> None:
    """End a running preview, which leaves its usage and nothing else (IM-15)."""
    await connection.execute(
        "update recuerdo.turns set status = %s, ended_at = %s, error = %s, usage = %s"
        " where tenant = %s and id = %s and mode = 'preview' and status = 'running'",
        (status, at, error, Jsonb(usage.as_json()), tenant, turn),
    )
