"""The evidence as the Learning Hub reads it: counted in the database, or streamed piece by piece.

Each function works in the transaction of the connection that it is given, under its tenant. What has expired is not
read, whether or not it was swept; what is dated in the future, because the clock went back, is.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncServerCursor
from psycopg.rows import class_row, scalar_row

from recuerdo.stores.postgres.database import Connection

BATCH = 2000
"""Pieces that are in memory at once."""

# Decisions of people on one tool that no proposal rests on yet, and that were not reversed since.
APPROVED: LiteralString = """
from recuerdo.evidence e
where e.tenant = %(tenant)s and e.kind = 'approval_decided' and e.at > %(since)s and e.expires_at > %(now)s
    and e.data ->> 'status' = 'approved' and jsonb_typeof(e.data -> 'arguments') = 'object'
    and pg_input_is_valid(e.data ->> 'approval', 'uuid')
    and not exists (select from recuerdo.proposal_evidence l where l.tenant = e.tenant and l.evidence = e.id)
    and not exists (select from recuerdo.evidence r where r.tenant = e.tenant and r.kind = 'reversal'
        and r.data ->> 'approval' = e.data ->> 'approval')
"""
"""Rows of ``e`` that a rule can rest on; the values are those of a window."""

_ARGUMENTS: LiteralString = "select (e.data -> 'arguments')::text"

_DECIDED: LiteralString = """
from recuerdo.evidence e
where e.tenant = %(tenant)s and e.kind = 'approval_decided' and e.plan = %(plan)s and e.tool = %(tool)s
    and e.at > %(since)s and e.expires_at > %(now)s and e.data ->> 'status' in ('approved', 'rejected')
"""

_OBJECTED: LiteralString = """
from recuerdo.evidence e
where e.tenant = %(tenant)s and e.plan = %(plan)s and e.tool = %(tool)s and e.at > %(since)s
    and e.expires_at > %(now)s and jsonb_typeof(e.data -> 'arguments') = 'object'
    and (e.kind = 'reversal' or (e.kind = 'approval_decided' and e.data ->> 'status' = 'rejected'))
"""

# Runs that were flagged, that no proposal rests on yet, and that a person has ended.
_AMBIGUOUS = """
select e.id, e.turn_id as turn, e.at, e.plan, e.revision, e.conversation, e.user_id as user,
    e.data ->> 'message' as message, d.called, d.refused, d.approval
from recuerdo.evidence e
join lateral (
    select array_agg(distinct tool) filter (where status = 'approved') as called,
        array_agg(distinct tool) filter (where status = 'rejected') as refused,
        (array_agg(approval order by at))[1] as approval
    from (select tool, at, data ->> 'status' as status, (data ->> 'approval')::uuid as approval
        from recuerdo.evidence where tenant = e.tenant and turn_id = e.turn_id and kind = 'approval_decided'
            and pg_input_is_valid(data ->> 'approval', 'uuid')) one
    where status in ('approved', 'rejected')
) d on d.approval is not null
where e.tenant = %(tenant)s and e.kind = 'ambiguity' and e.plan is not null and e.at > %(since)s
    and e.expires_at > %(now)s
    and not exists (select from recuerdo.proposal_evidence l where l.tenant = e.tenant and l.evidence = e.id)
order by e.at, e.id limit %(limit)s
"""

_USES = """
select tool, count(*) as uses, min(at) as first, max(at) as last,
    count(*) filter (where not exists (select from recuerdo.proposal_evidence l
        where l.tenant = e.tenant and l.evidence = e.id)) as fresh
from recuerdo.evidence e
where tenant = %(tenant)s and kind = 'tool_used' and plan = %(plan)s and tool is not null and expires_at > %(now)s
group by tool
"""

_SAID = """
select m.content from recuerdo.messages m join recuerdo.turns t on t.tenant = m.tenant and t.id = m.turn_id
where m.tenant = %(tenant)s and m.role = 'user' and t.conversation = %(conversation)s
    and t.user_id is not distinct from %(user)s
    and t.number <= (select number from recuerdo.turns where tenant = %(tenant)s and id = %(turn)s)
order by t.number desc, m.position desc limit %(limit)s
"""


@dataclass(frozen=True)
class Window:
    """Which evidence of a tenant: from ``since`` on, by the clock ``now``."""

    tenant: str
    since: datetime
    now: datetime


@dataclass(frozen=True)
class ApprovedCalls:
    """How many approved calls of a tool argue for nothing yet."""

    plan: str
    tool: str
    approved: int


@dataclass(frozen=True)
class Decided:
    """How many requests of a tool people decided, and when the first of them; None: none."""

    requests: int
    first: datetime | None


@dataclass(frozen=True)
class AmbiguousRun:
    """A flagged run that a person ended: tools whose call was approved, and refused. ``message`` is filtered."""

    id: UUID
    turn: UUID
    at: datetime
    plan: str
    revision: int | None
    conversation: str
    user: str | None
    message: str | None
    called: list[str] | None
    refused: list[str] | None
    approval: UUID


@dataclass(frozen=True)
class ToolUse:
    """How often a tool was used in all the evidence; ``fresh`` are uses that no proposal rests on."""

    tool: str
    uses: int
    first: datetime
    last: datetime
    fresh: int


async def count_evidence(connection: Connection, window: Window) -> int:
    """How many pieces there are."""
    cursor = await connection.execute(
        "select count(*) as pieces from recuerdo.evidence"
        " where tenant = %(tenant)s and at > %(since)s and expires_at > %(now)s",
        vars(window),
    )
    row = await cursor.fetchone()
    return int(row["pieces"]) if row else 0


async def plans_at_work(connection: Connection, window: Window) -> list[str]:
    """Plans that there is evidence of, or that were put in force."""
    cursor = await connection.execute(
        "select distinct plan as name from recuerdo.evidence"
        " where tenant = %(tenant)s and plan is not null and expires_at > %(now)s"
        " union select name from recuerdo.plan_activations where tenant = %(tenant)s order by name",
        vars(window),
    )
    return [row["name"] for row in await cursor.fetchall()]


async def approved_calls(connection: Connection, window: Window, least: int) -> Sequence[ApprovedCalls]:
    """The tools with at least so many approved calls that argue for nothing yet."""
    cursor = connection.cursor(row_factory=class_row(ApprovedCalls))
    await cursor.execute(
        f"select plan, tool, count(*) as approved {APPROVED} and plan is not null and tool is not null"
        " group by plan, tool having count(*) >= %(least)s order by plan, tool",
        {**vars(window), "least": least},
    )
    return await cursor.fetchall()


def approved_arguments(
    connection: Connection, window: Window, plan: str, tool: str
) -> AsyncIterator[Sequence[str]]:
    """The arguments, as JSON texts, of a tool's approved calls that argue for nothing yet, in batches."""
    query: LiteralString = f"{_ARGUMENTS} {APPROVED} and e.plan = %(plan)s and e.tool = %(tool)s"
    return _stream(connection, query, {**vars(window), "plan": plan, "tool": tool})


def objected_arguments(
    connection: Connection, window: Window, plan: str, tool: str
) -> AsyncIterator[Sequence[str]]:
    """As :func:`approved_arguments`, of rejected calls and of those reversed, whatever they argued for before."""
    query: LiteralString = f"{_ARGUMENTS} {_OBJECTED}"
    return _stream(connection, query, {**vars(window), "plan": plan, "tool": tool})


async def decided_requests(connection: Connection, window: Window, plan: str, tool: str) -> Decided:
    """The requests of a tool that people approved or rejected, whatever argues for what."""
    cursor = connection.cursor(row_factory=class_row(Decided))
    query: LiteralString = f"select count(*) as requests, min(e.at) as first {_DECIDED}"
    await cursor.execute(query, {**vars(window), "plan": plan, "tool": tool})
    found = await cursor.fetchone()
    assert found is not None, "a count is always a row"
    return found


def decided_arguments(
    connection: Connection, window: Window, plan: str, tool: str
) -> AsyncIterator[Sequence[str]]:
    """As :func:`approved_arguments`, of all that :func:`decided_requests` counts and whose arguments are known."""
    query: LiteralString = f"{_ARGUMENTS} {_DECIDED} and jsonb_typeof(e.data -> 'arguments') = 'object'"
    return _stream(connection, query, {**vars(window), "plan": plan, "tool": tool})


async def _stream(
    connection: Connection, query: LiteralString, values: dict[str, Any]
) -> AsyncIterator[Sequence[str]]:
    async with AsyncServerCursor(connection, "learning", row_factory=scalar_row) as cursor:
        await cursor.execute(query, values)
        while batch := await cursor.fetchmany(BATCH):
            yield batch


async def ambiguous_runs(connection: Connection, window: Window, limit: int) -> Sequence[AmbiguousRun]:
    """Runs that were flagged as ambiguous and that a person ended, the oldest first (A-33)."""
    cursor = connection.cursor(row_factory=class_row(AmbiguousRun))
    await cursor.execute(_AMBIGUOUS, {**vars(window), "limit": limit})
    return await cursor.fetchall()


async def said_before(connection: Connection, tenant: str, run: AmbiguousRun, limit: int) -> list[str]:
    """What the user said in the conversation up to the run, that included, oldest first; none when it was cleared."""
    cursor = await connection.execute(_SAID, {**vars(run), "tenant": tenant, "limit": limit})
    return [row["content"] for row in await cursor.fetchall()][::-1]


async def remembered_of(connection: Connection, window: Window, user: str, limit: int) -> list[str]:
    """Texts of the user's memories that are in force, with any assistant, the newest first."""
    cursor = await connection.execute(
        "select text from recuerdo.user_memory where tenant = %(tenant)s and user_id = %(user)s and active"
        " and status <> 'withdrawn' and (expires_at is null or expires_at > %(now)s)"
        " order by updated_at desc, id limit %(limit)s",
        {**vars(window), "user": user, "limit": limit},
    )
    return [row["text"] for row in await cursor.fetchall()]


async def tool_uses(connection: Connection, window: Window, plan: str) -> dict[str, ToolUse]:
    """The use of every tool under a plan that there is evidence of."""
    cursor = connection.cursor(row_factory=class_row(ToolUse))
    await cursor.execute(_USES, {**vars(window), "plan": plan})
    return {use.tool: use for use in await cursor.fetchall()}
