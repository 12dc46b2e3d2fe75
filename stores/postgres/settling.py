"""A person says what came of a call whose outcome nobody knew: once, audited, with evidence. Nothing runs by that."""

from datetime import datetime
from typing import get_args
from uuid import UUID

from psycopg.rows import class_row

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.approvals import kept_reason, run_details
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.evidence import NewEvidence, write_evidence
from recuerdo.stores.postgres.governance_audit import AuditAct, GovernanceAudit
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.marks import reason_mark
from recuerdo.stores.postgres.roles import SUPERVISING, require_role
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.tool_calls import COLUMNS, Settled, ToolCall, leave_open_calls

_sentences = load_sentences(__package__, "approvals_sentences.yaml")


async def settle_call(
    database: Database,
    tenant: str,
    keys: KeyFolder,
    call_id: UUID,
    outcome: Settled,
    *,
    actor: str,
    at: datetime,
    reason: str | None = None,
) -> ToolCall:
    """Note what came of a call whose outcome is unknown. ``keys`` holds the key of the audit; ``at`` is aware.

    Raises InputError when there is no such outcome or call, when its outcome is known or was settled before;
    ScopeError when the actor is neither supervisor nor owner.
    """
    require_scope(tenant=tenant, actor=actor)
    require_aware(at)
    if outcome not in get_args(Settled):
        raise InputError(_sentences("outcome_invalid", outcome=str(outcome)[:40]))
    kept = await kept_reason(reason)
    async with database.tenant(tenant) as connection:
        await require_role(connection, tenant, actor, SUPERVISING)
        await leave_open_calls(connection, tenant, at, call=call_id)
        cursor = connection.cursor(row_factory=class_row(ToolCall))
        await cursor.execute(
            "update recuerdo.tool_calls set settled = %s, settled_at = %s, settled_by = %s"
            f" where tenant = %s and id = %s and status = 'unknown' and settled is null returning {COLUMNS}",
            (outcome, at, actor, tenant, call_id),
        )
        settled = await cursor.fetchone()
        if settled is None:
            raise InputError(_sentences("call_not_open", id=call_id))
        await write_evidence(connection, tenant, [_evidence(settled, at, kept)])
        await GovernanceAudit(database, tenant, keys).append(
            connection, _act(settled, outcome, actor, at, kept)
        )
    return settled


def _evidence(call: ToolCall, at: datetime, reason: str | None) -> NewEvidence:
    names = {"call": str(call.id), "settled": call.settled, "actor": call.settled_by}
    return NewEvidence(
        "outcome_settled", at, call.run, str(call.id), call.tool, names, {"reason": reason} if reason else {}
    )


def _act(call: ToolCall, outcome: Settled, actor: str, at: datetime, reason: str | None) -> AuditAct:
    details = {**run_details(call.tool, call.run), **reason_mark(str(call.id), reason)}
    return AuditAct(at, actor, "call.settled", str(call.id), before="unknown", after=outcome, details=details)
