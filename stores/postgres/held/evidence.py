"""Evidence of decisions against the entries of those decisions, both ways: a rule is proposed from it.

What expired, and what went with a user who was forgotten, may be gone. But of a rejection or reversal of his an
objection stays, without him.
"""

from typing import Any, LiteralString
from uuid import UUID

from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.evidence import EvidenceKind, evidence_id

EVIDENCE = "evidence_sha256"
"""The detail of an entry that holds the hash of the decision's piece of evidence; without it there was none."""

_KINDS: dict[str, EvidenceKind] = {
    "approval.approved": "approval_decided",
    "approval.rejected": "approval_decided",
    "approval.withdrawn": "approval_decided",
    "approval.auto_approved": "auto_approved",
    "approval.reversed": "reversal",
}

# The user may come to be known later; all else stays as it was.
_HASH: LiteralString = """encode(sha256(convert_to(jsonb_build_array(e.kind, e.tool, e.plan, e.revision,
    e.data)::text, 'UTF8')), 'hex')"""

_HASH_OF: LiteralString = (
    f"select {_HASH} as hash from recuerdo.evidence e where e.tenant = %(tenant)s and e.id = %(id)s"
)

# In this order: a piece of a decision that nobody took, or of one taken otherwise (who took a request back was not
# always noted, and that argues for nothing); a piece without a request that is nobody's objection; a piece that is
# counted twice; a piece whose request is gone, which goes with its evidence or not at all; a decision without its
# piece, whose request is still there, or that should have left an objection.
_PIECES: LiteralString = f"""
with noted as (
    select subject, action, at, details::jsonb ->> 'tool' as tool, details::jsonb ->> 'plan' as plan,
        details::jsonb ->> '{EVIDENCE}' as hash
    from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('approval.approved', 'approval.rejected', 'approval.withdrawn',
        'approval.auto_approved', 'approval.reversed')
), pieces as (
    select e.id, e.data ->> 'approval' as approval, e.at, e.tool, e.plan, case e.kind
            when 'reversal' then 'approval.reversed' when 'auto_approved' then 'approval.auto_approved'
            else 'approval.' || (e.data ->> 'status') end as action,
        {_HASH} as hash
    from recuerdo.evidence e
    where e.tenant = %(tenant)s and e.kind in ('approval_decided', 'auto_approved', 'reversal')
), requests as (
    select id::text as id from recuerdo.approvals where tenant = %(tenant)s
), missing as (
    select lasting.*, requests.id as request
    from noted lasting left join pieces on pieces.approval = lasting.subject and pieces.action = lasting.action
        and pieces.at = lasting.at and pieces.hash = coalesce(lasting.hash, pieces.hash)
    left join requests on requests.id = lasting.subject
    where pieces.id is null and lasting.at > coalesce(
        (select at from recuerdo.evidence_horizons where tenant = %(tenant)s), '-infinity')
)
select coalesce(pieces.approval, pieces.id::text) as subject
from pieces left join noted on noted.subject = pieces.approval and noted.action = pieces.action
    and noted.at = pieces.at and pieces.hash = coalesce(noted.hash, pieces.hash)
where pieces.approval is not null and noted.subject is null and pieces.action is distinct from 'approval.withdrawn'
union all
select pieces.id::text
from pieces left join noted on noted.action = pieces.action and noted.at = pieces.at and noted.tool = pieces.tool
    and noted.action in ('approval.rejected', 'approval.reversed')
where pieces.approval is null and noted.subject is null
union all
select approval from pieces where approval is not null group by approval, action having count(*) > 1
union all
select pieces.approval from pieces left join requests on requests.id = pieces.approval
where pieces.approval is not null and requests.id is null and pieces.action <> 'approval.withdrawn'
union all
select subject from missing where request is not null
union all
select min(gone.subject)
from missing gone left join (
    select action, at, tool, plan, count(*) as objections from pieces where approval is null
    group by action, at, tool, plan
) kept using (action, at, tool, plan)
where gone.request is null and gone.hash is not null and gone.action in ('approval.rejected', 'approval.reversed')
group by action, at, tool, plan, kept.objections having count(*) > coalesce(kept.objections, 0)
"""

CHECKS = (_PIECES,)


async def evidence_marks(connection: Connection, tenant: str, action: str, request: str) -> dict[str, str]:
    """What the entry of a decision on a request holds of its evidence, which was written before it."""
    kind = _KINDS.get(action)
    if kind is None:
        return {}
    values: dict[str, str | UUID] = {"tenant": tenant, "id": evidence_id(tenant, kind, request)}
    row: dict[str, Any] | None = await (await connection.execute(_HASH_OF, values)).fetchone()
    return {EVIDENCE: row["hash"]} if row else {}
