"""Proposals against their entries, both ways: what was asked, what it rested on, what was decided, what came of it.

An eval case holds a user's words, and goes when he is forgotten.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, LiteralString

import rfc8785

from recuerdo.stores.postgres.database import Connection

CHANGE = "change_sha256"
"""The detail of an entry that holds the hash of what a proposal changes."""

ASKED = "asked_sha256"
"""The detail that holds the hash of the whole question: plan, kind, change, wording, effect."""

BASIS = "basis_sha256"
"""The detail of a decision that holds the hash of what it rested on: sample, period, each piece."""

DECISIONS = ("proposal.approved", "proposal.rejected")

# Text of JSON is the same in every session; an instant is so only without its zone.
_ASKED: LiteralString = """encode(sha256(convert_to(jsonb_build_array(p.id, p.kind, p.plan, p.revision, p.subject,
    p.change, p.wording, p.effect)::text, 'UTF8')), 'hex')"""

# What the same finding was tied to after the decision comes after what it rested on.
_BASIS: LiteralString = """encode(sha256(convert_to(jsonb_build_array(p.id, p.sample_size,
    p.period_from at time zone 'UTC', p.period_to at time zone 'UTC', (
        select jsonb_agg(jsonb_build_array(l.evidence, l.turn_id, l.approval, l.revision, l.at at time zone 'UTC')
            order by l.id)
        from (select * from recuerdo.proposal_evidence l where l.tenant = p.tenant and l.proposal = p.id
            order by l.id limit p.sample_size) l
    ))::text, 'UTF8')), 'hex')"""

_MARKS: LiteralString = f"""
select p.change::text as change, {_ASKED} as asked, {_BASIS} as basis
from recuerdo.proposals p where p.tenant = %(tenant)s and p.id::text = %(proposal)s
"""

_ROWS: LiteralString = f"""
with noted as (
    select subject, action, actor, at, details::jsonb as details from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('proposal.made', 'proposal.approved', 'proposal.rejected')
), decided as (
    select * from noted where action <> 'proposal.made'
)
select p.id::text as subject
from recuerdo.proposals p
left join noted made on made.subject = p.id::text and made.action = 'proposal.made'
left join decided on decided.subject = p.id::text
cross join lateral (
    select count(*) as number from recuerdo.proposal_evidence l where l.tenant = p.tenant and l.proposal = p.id
) ties
where p.tenant = %(tenant)s and (
    (p.status = 'pending') <> (decided.subject is null)
    or (decided.action, decided.actor, decided.at) is distinct from (
        'proposal.' || case p.status when 'included' then 'approved' when 'pending' then null else p.status end,
        p.decided_by, p.decided_at)
    or (made.subject is null and not exists (
        select from recuerdo.held_before b
        where b.tenant = %(tenant)s and b.kind = 'proposal' and b.subject = p.id::text
    ))
    or {_ASKED} <> any(array[made.details ->> '{ASKED}', decided.details ->> '{ASKED}'])
    or {_BASIS} <> decided.details ->> '{BASIS}'
    or (decided.details ? '{ASKED}'
        and encode(sha256(convert_to(p.id::text || chr(31) || p.reason, 'UTF8')), 'hex')
            is distinct from decided.details ->> 'reason_sha256')
    or p.sample_size > ties.number or (p.status = 'pending' and p.sample_size < ties.number)
)
"""

_GONE: LiteralString = """
select noted.subject
from recuerdo.governance_audit noted
where noted.tenant = %(tenant)s and noted.action in ('proposal.made', 'proposal.approved', 'proposal.rejected')
    and noted.details::jsonb ->> 'kind' <> 'eval_case_suggestion'
    and not exists (
        select from recuerdo.proposals p where p.tenant = noted.tenant and p.id::text = noted.subject
    )
"""

# Evidence expires and goes with its user, the entries of decisions stay. A rule rests on approvals alone.
_LINKS: LiteralString = """
select p.id::text as subject
from recuerdo.proposals p
join recuerdo.proposal_evidence l on l.tenant = p.tenant and l.proposal = p.id and l.approval is not null
left join recuerdo.governance_audit noted on noted.tenant = l.tenant and noted.subject = l.approval::text
    and noted.action in ('approval.approved', 'approval.rejected')
where p.tenant = %(tenant)s and (noted.action is null
    or (p.kind = 'rule_suggestion' and noted.action <> 'approval.approved'))
"""

# What a revision has taken in is noted with the first that did: else the next one would take it in again.
_INCLUDED: LiteralString = """
with taken as (
    select noted.subject as plan, one.proposal, min(substr(noted.details::jsonb ->> 'revision', 2)::integer) as first
    from recuerdo.governance_audit noted
    cross join lateral jsonb_array_elements_text(noted.details::jsonb -> 'included') as one (proposal)
    where noted.tenant = %(tenant)s and noted.action = 'plan.compiled'
    group by noted.subject, one.proposal
)
select held.id::text as subject
from recuerdo.proposals held left join taken on taken.proposal = held.id::text and taken.plan = held.plan
where held.tenant = %(tenant)s and held.included_in is distinct from taken.first
"""

CHECKS = (_ROWS, _GONE, _LINKS, _INCLUDED)

# Decided before entries held the whole question: they hold the change.
_EARLIER: LiteralString = f"""
select p.id::text as subject, p.change::text as change, noted.details::jsonb ->> '{CHANGE}' as hash
from recuerdo.proposals p
join recuerdo.governance_audit noted on noted.tenant = p.tenant and noted.subject = p.id::text
    and noted.action in ('proposal.approved', 'proposal.rejected') and not noted.details::jsonb ? '{ASKED}'
    and noted.details::jsonb ? '{CHANGE}'
where p.tenant = %(tenant)s
"""


def change_hash(change: Mapping[str, Any]) -> str:
    """The SHA-256 of the canonical form (RFC 8785) of what a proposal changes, in hex.

    Raises ValueError when it has none.
    """
    return sha256(rfc8785.dumps(dict(change))).hexdigest()


async def find_changed(connection: Connection, tenant: str) -> str | None:
    """A proposal decided earlier that would change something else now."""
    cursor = await connection.execute(_EARLIER, {"tenant": tenant})
    for row in await cursor.fetchall():
        change = read_json(row["change"])
        if change is None or change_hash(change) != row["hash"]:
            return str(row["subject"])
    return None


async def proposal_marks(connection: Connection, tenant: str, action: str, proposal: str) -> dict[str, str]:
    """What an entry on a proposal holds of it as it stands: its row could be changed since."""
    row = await (await connection.execute(_MARKS, {"tenant": tenant, "proposal": proposal})).fetchone()
    if row is None:
        return {}
    change = read_json(row["change"])
    marks = {ASKED: row["asked"]}
    if change is not None:
        marks[CHANGE] = change_hash(change)
    if action in DECISIONS:
        marks[BASIS] = row["basis"]
    return marks


async def was_there_before(connection: Connection, tenant: str, proposal: str) -> bool:
    """Whether a proposal was made before the audit had entries of that."""
    cursor = await connection.execute(
        "select from recuerdo.held_before where tenant = %s and kind = 'proposal' and subject = %s",
        (tenant, proposal),
    )
    return await cursor.fetchone() is not None


def read_json(text: str) -> dict[str, Any] | None:
    """A change as it stands in the database; None for one that no proposal was made with."""
    try:
        change = json.loads(text)
        rfc8785.dumps(change)
    except (ValueError, RecursionError):
        return None
    return change if isinstance(change, dict) else None
