"""The ledger of tool calls: each is entered before it runs, so that a tool runs at most once (governance, part 3).

A call that only reads may be repeated. One that changes something elsewhere and whose result is not known is shown
to a person as "outcome unknown", and never repeated by itself. One that writes in a transaction of ours has its
effect exactly once: see :meth:`ToolCalls.once`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.evidence import NOWHERE, NewEvidence, Run, write_evidence
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import storable

Effect = Literal["none", "own", "foreign"]
"""What a tool changes: nothing, rows in a transaction of ours, or something elsewhere."""

CallStatus = Literal["started", "done", "failed", "unknown"]
Outcome = Literal["done", "failed", "unknown"]
Settled = Literal["happened", "did_not_happen"]
"""What a person found out about a call whose outcome nobody knew."""

COLUMNS: LiteralString = (
    "id, tool, effect, status, result, turn_id as turn, conversation, assistant, user_id as user, plan, revision,"
    " started_at, ended_at, settled, settled_at, settled_by"
)
"""The columns of a :class:`ToolCall`."""

_CLAIM = """
insert into recuerdo.tool_calls (tenant, id, turn_id, conversation, assistant, user_id, plan, revision, tool, effect,
    status, started_at)
values (%(tenant)s, %(id)s, %(turn)s, %(conversation)s, %(assistant)s, %(user)s, %(plan)s, %(revision)s, %(tool)s,
    %(effect)s, 'started', %(at)s)
on conflict (tenant, id) do nothing
"""

# A call that runs elsewhere for a turn whose process went away: nothing holds its conversation for it any more.
_LOST: LiteralString = """
(status = 'started' and effect = 'foreign' and not exists (
    select from recuerdo.conversations c where c.tenant = tool_calls.tenant and c.id = tool_calls.conversation
        and c.lease_turn = tool_calls.turn_id and c.lease_until > clock_timestamp()))
"""

# Calls whose turn is over before they were: what had no effect elsewhere has failed, of the rest nobody knows.
_LEAVE_OPEN: LiteralString = f"""
update recuerdo.tool_calls
set status = case when effect = 'foreign' then 'unknown' else 'failed' end, ended_at = %(at)s
where tenant = %(tenant)s and status = 'started'
    and (turn_id = %(turn)s or conversation = %(conversation)s or user_id = %(user)s
        or (id = %(call)s and {_LOST}))
returning {COLUMNS}
"""

# What is left of it is what a person needs to look into it, and nothing of the user.
_KEEP_UNKNOWN = """
update recuerdo.tool_calls
set user_id = null, conversation = %(nowhere)s, turn_id = gen_random_uuid(), result = null
where tenant = %(tenant)s and user_id = %(user)s and status = 'unknown' and settled is null
"""


@dataclass(frozen=True)
class NewToolCall:
    """A call about to run. ``id`` stands for turn, place, tool and arguments: the same call has the same id."""

    id: UUID
    run: Run
    tool: str
    effect: Effect
    at: datetime


@dataclass(frozen=True)
class ToolCall:
    """A call in the ledger. ``result`` is what went back to the model; None: it only read, or is not over.

    Of one whose outcome nobody knew ``settled`` says what ``settled_by`` found out; None: nobody has yet.
    """

    id: UUID
    tool: str
    effect: Effect
    status: CallStatus
    result: str | None
    turn: UUID
    conversation: str
    assistant: str
    user: str | None
    plan: str
    revision: int | None
    started_at: datetime
    ended_at: datetime | None
    settled: Settled | None
    settled_at: datetime | None
    settled_by: str | None

    @property
    def run(self) -> Run:
        """The turn that it belongs to."""
        return Run(self.turn, self.conversation, self.assistant, self.user, self.plan, self.revision)

    @property
    def is_final(self) -> bool:
        """Whether it must not run again: it may have changed something elsewhere, or has in our own database."""
        return self.effect == "foreign" or (self.status == "done" and self.effect == "own")


class ToolCalls:
    """The ledger of one tenant."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def claim(self, call: NewToolCall) -> ToolCall | None:
        """Enter a call. None: it is this caller's to run. Else it was entered before and must not run again."""
        values = {**vars(call.run), "tenant": self._tenant, "id": call.id, "at": call.at}
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(_CLAIM, {**values, "tool": call.tool, "effect": call.effect})
            if cursor.rowcount:
                return None
            before = await self._locked(connection, call.id)
            if before.is_final:
                return before
            # It changed nothing, or nothing that lasted: it can run again.
            await connection.execute(
                "update recuerdo.tool_calls set status = 'started', ended_at = null, started_at = %s"
                " where tenant = %s and id = %s",
                (call.at, self._tenant, call.id),
            )
            return None

    async def complete(self, call_id: UUID, outcome: Outcome, result: str, at: datetime) -> ToolCall:
        """Write how a call ended, with its evidence; what it wrote in our own transaction stands before that."""
        async with self._database.tenant(self._tenant) as connection:
            await connection.execute(
                "update recuerdo.tool_calls set status = %(outcome)s, ended_at = %(at)s,"
                " result = case when effect <> 'none' then %(result)s end"
                " where tenant = %(tenant)s and id = %(id)s and status = 'started'",
                {
                    "outcome": outcome,
                    "at": at,
                    "result": storable(result),
                    "tenant": self._tenant,
                    "id": call_id,
                },
            )
            ended = await self._locked(connection, call_id)
            await write_evidence(connection, self._tenant, _evidence(ended, at))
        return ended

    async def once(self, call_id: UUID, at: datetime, effect: Callable[[Connection], Awaitable[str]]) -> str:
        """Run ``effect`` in one transaction with the ledger: all it writes is there exactly once, or not at all.

        Returns its text; that of the time before when the call has had its effect already.
        """
        async with self._database.tenant(self._tenant) as connection:
            before = await self._locked(connection, call_id)
            if before.status == "done":
                return before.result or ""
            result = await effect(connection)
            await connection.execute(
                "update recuerdo.tool_calls set status = 'done', result = %s, ended_at = %s"
                " where tenant = %s and id = %s",
                (storable(result), at, self._tenant, call_id),
            )
            return result

    async def unknown(self, *, limit: int = 100) -> Sequence[ToolCall]:
        """Calls whose outcome nobody knows or has settled, newest first: a person has to look.

        Those of a process that went away are among them as soon as its lease is over.
        """
        found = await self._select(
            f"and ((status = 'unknown' and settled is null) or {_LOST})"
            " order by started_at desc, id limit %(n)s",
            n=limit,
        )
        return [replace(call, status="unknown") for call in found]

    async def of_turn(self, turn: UUID) -> Sequence[ToolCall]:
        """The calls of a turn, in the order in which they began."""
        return await self._select("and turn_id = %(turn)s order by started_at, id", turn=turn)

    async def _locked(self, connection: Connection, call_id: UUID) -> ToolCall:
        cursor = connection.cursor(row_factory=class_row(ToolCall))
        await cursor.execute(
            f"select {COLUMNS} from recuerdo.tool_calls where tenant = %s and id = %s for update",
            (self._tenant, call_id),
        )
        call = await cursor.fetchone()
        assert call is not None, "it was claimed"
        return call

    async def _select(self, which: LiteralString, **values: Any) -> Sequence[ToolCall]:
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(ToolCall))
            await cursor.execute(
                f"select {COLUMNS} from recuerdo.tool_calls where tenant = %(tenant)s {which}",
                {**values, "tenant": self._tenant},
            )
            return await cursor.fetchall()


async def leave_open_calls(
    connection: Connection,
    tenant: str,
    at: datetime,
    *,
    turn: UUID | None = None,
    conversation: str | None = None,
    user: str | None = None,
    call: UUID | None = None,
) -> None:
    """Turns are over before their calls were: those whose outcome nobody knows are marked, with evidence.

    The calls of a turn, of a conversation or of a user's; or one call, if its turn's process went away.
    """
    which = {"turn": turn, "conversation": conversation, "user": user, "call": call}
    cursor = connection.cursor(row_factory=class_row(ToolCall))
    await cursor.execute(_LEAVE_OPEN, {**which, "tenant": tenant, "at": at})
    for left in await cursor.fetchall():
        await write_evidence(connection, tenant, _evidence(left, at))


async def keep_unknown_calls(connection: Connection, tenant: str, user: str, at: datetime) -> None:
    """Before a user is forgotten: calls whose outcome nobody knows stay to be settled, without him.

    Neither user nor conversation, turn or result stays: the tool, the time and the id do.
    """
    await leave_open_calls(connection, tenant, at, user=user)
    await connection.execute(_KEEP_UNKNOWN, {"tenant": tenant, "user": user, "nowhere": NOWHERE})


def _evidence(call: ToolCall, at: datetime) -> list[NewEvidence]:
    """That a tool was used, and that its outcome is unknown where it is."""
    names = {"call": str(call.id), "status": call.status, "effect": call.effect}
    used = NewEvidence("tool_used", call.started_at, call.run, str(call.id), call.tool, names)
    if call.status != "unknown":
        return [used]
    return [used, NewEvidence("outcome_unknown", at, call.run, str(call.id), call.tool, names)]
