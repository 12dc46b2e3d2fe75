"""Requests and calls against their entries: what let a tool run, and what is still not known of one that did."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncServerCursor
from psycopg.rows import dict_row

from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.evidence import Run
from recuerdo.stores.postgres.marks import REQUEST_MARK, is_as_marked, request_mark

_BATCH = 2000

# Decisions, and what was decided on. A request that nobody decided is there and waits: whoever takes it away, with
# its conversation or with its user, takes it back first.
_APPROVALS: LiteralString = f"""
with noted as (
    select subject, action, actor, at, details::jsonb as details from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('approval.requested', 'approval.approved', 'approval.rejected',
        'approval.withdrawn', 'approval.auto_approved', 'approval.reversed')
), decided as (
    select * from noted where action not in ('approval.requested', 'approval.reversed')
), horizon as (
    select at from recuerdo.evidence_horizons where tenant = %(tenant)s
)
select held.id::text as subject
from recuerdo.approvals held
left join decided on decided.subject = held.id::text
left join noted reversed on reversed.subject = held.id::text and reversed.action = 'approval.reversed'
where held.tenant = %(tenant)s and (
    (held.status <> 'pending' and decided.action is null)
    or (decided.action is not null and (decided.action, decided.actor, decided.at) is distinct from
        ('approval.' || held.status, held.decided_by, held.decided_at))
    or (decided.action is not null and held.rule is distinct from decided.details ->> 'rule')
    or (reversed.actor, reversed.at) is distinct from (held.reversed_by, held.reversed_at)
    or (decided.details ? '{REQUEST_MARK}'
        and encode(sha256(convert_to(held.id::text || chr(31) || held.reason, 'UTF8')), 'hex')
            is distinct from decided.details ->> 'reason_sha256'
        and not (held.reason is null and held.decided_at <= (select at from horizon)))
)
union all
select noted.subject
from noted
where noted.action = 'approval.requested'
    and not exists (select from decided where decided.subject = noted.subject)
    and not exists (
        select from recuerdo.approvals held where held.tenant = %(tenant)s and held.id::text = noted.subject
    )
"""

# A call that was asked for ran, and nobody had let it pass: whatever became of its request since.
_RAN: LiteralString = """
with asked as (
    select data ->> 'approval' as id from recuerdo.evidence where tenant = %(tenant)s and kind = 'approval_requested'
    union
    select subject from recuerdo.governance_audit where tenant = %(tenant)s and action = 'approval.requested'
), passed as (
    select subject as id from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('approval.approved', 'approval.auto_approved')
)
select asked.id as subject
from recuerdo.tool_calls ran join asked on asked.id = ran.id::text left join passed on passed.id = ran.id::text
where ran.tenant = %(tenant)s and passed.id is null
"""

# Calls whose outcome nobody knew; one that went with its conversation may be gone.
_SETTLED: LiteralString = """
select held.id::text as subject
from recuerdo.tool_calls held
left join recuerdo.governance_audit noted on noted.tenant = held.tenant and noted.subject = held.id::text
    and noted.action = 'call.settled'
where held.tenant = %(tenant)s
    and (held.settled, held.settled_by, held.settled_at) is distinct from (noted.after, noted.actor, noted.at)
"""

# An outcome that was not known does not become known by itself, and is not lost before somebody has settled it.
_UNKNOWN: LiteralString = """
with open as (
    select data ->> 'call' as id from recuerdo.evidence where tenant = %(tenant)s and kind = 'outcome_unknown'
), over as (
    select subject as id from recuerdo.governance_audit where tenant = %(tenant)s and action = 'call.settled'
    union all
    select subject from recuerdo.held_before where tenant = %(tenant)s and kind = 'call'
)
select open.id as subject
from open
left join recuerdo.tool_calls held on held.tenant = %(tenant)s and held.id::text = open.id
left join over on over.id = open.id
where held.status <> 'unknown' or (held.id is null and over.id is null)
"""

CHECKS = (_APPROVALS, _RAN, _SETTLED, _UNKNOWN)

# What the entries say was asked for, as a rule the same twice; the worker empties what was decided long ago.
_ASKED: LiteralString = f"""
with noted as (
    select subject, action, details::jsonb ->> '{REQUEST_MARK}' as mark from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('approval.requested', 'approval.approved', 'approval.rejected',
        'approval.withdrawn', 'approval.auto_approved')
)
select held.id, held.tool, held.arguments::text as arguments, held.turn_id as turn, held.conversation,
    held.assistant, held.user_id as "user", held.plan, held.revision, asked.mark as asked,
    nullif(decided.mark, asked.mark) as decided
from recuerdo.approvals held
left join noted asked on asked.subject = held.id::text and asked.action = 'approval.requested'
left join noted decided on decided.subject = held.id::text and decided.action <> 'approval.requested'
where held.tenant = %(tenant)s and (asked.mark is not null or decided.mark is not null)
    and not (held.arguments = '{{}}' and held.decided_at is not null and held.decided_at <= coalesce(
        (select at from recuerdo.evidence_horizons where tenant = %(tenant)s), '-infinity'))
"""


async def find_changed(connection: Connection, tenant: str) -> str | None:
    """A request that is not the one of its entries: of another tool, with other arguments, another's."""
    # All rows are wanted, not the first of them soon.
    await connection.execute("set local cursor_tuple_fraction = 1")
    async with AsyncServerCursor(connection, "requests", row_factory=dict_row) as cursor:
        await cursor.execute(_ASKED, {"tenant": tenant})
        while rows := await cursor.fetchmany(_BATCH):
            if changed := await asyncio.to_thread(_changed, rows):
                return changed
    return None


def _changed(rows: Sequence[Mapping[str, Any]]) -> str | None:
    return next((str(row["id"]) for row in rows if not _is_as_asked(row)), None)


def _is_as_asked(row: Mapping[str, Any]) -> bool:
    key: UUID = row["id"]
    run = Run(row["turn"], row["conversation"], row["assistant"], row["user"], row["plan"], row["revision"])
    try:
        arguments = json.loads(row["arguments"])
        mark = request_mark(key, row["tool"], arguments, run)[REQUEST_MARK]
    except (ValueError, RecursionError):
        return False
    noted: Iterable[str | None] = (row["asked"], row["decided"])
    return all(
        one in (None, mark) or is_as_marked(str(one), key, row["tool"], arguments, run) for one in noted
    )
