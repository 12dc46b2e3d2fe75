"""Whether what is in force is what the audit says: plans, stops, packs, roles, decisions (A-28, OR-12).

The chain shows that none of its own entries was changed. Somebody with the tenant's rights in the database could
still write a row that governs without an entry, or change one: here each is held against its entry, both ways.
What goes with time or with a user who is forgotten (requests, evidence, his own words in a proposal) may be gone.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, LiteralString

import rfc8785

from recuerdo.stores.postgres.database import Connection

# Each gives one subject whose rows are not as the chain says; rows of a plan are compared in their order.
_ACTIVATIONS: LiteralString = """
with held as (
    select name, 'r' || number as state, activated_at as at, activated_by as actor,
        row_number() over (partition by name order by id) as place
    from recuerdo.plan_activations where tenant = %(tenant)s
), noted as (
    select subject as name, details::jsonb ->> 'revision' as state, at, actor,
        row_number() over (partition by subject order by number) as place
    from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('plan.activated', 'plan.rolled_back')
)
select coalesce(held.name, noted.name) as subject
from held full join noted using (name, state, at, actor, place)
where held.place is null or noted.place is null limit 1
"""

_STOPS: LiteralString = """
with held as (
    select name, case when not stopped then 'none' when all_tools then 'all_tools' else 'rules' end as state,
        at, actor, row_number() over (partition by name order by id) as place
    from recuerdo.plan_stops where tenant = %(tenant)s
), noted as (
    select subject as name, after as state, at, actor,
        row_number() over (partition by subject order by number) as place
    from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('plan.stopped', 'plan.stop_lifted')
)
select coalesce(held.name, noted.name) as subject
from held full join noted using (name, state, at, actor, place)
where held.place is null or noted.place is null limit 1
"""

_REVISIONS: LiteralString = """
with held as (
    select name, 'r' || number as label, sha256 as state, compiled_at as at, compiled_by as actor
    from recuerdo.plan_revisions where tenant = %(tenant)s
), noted as (
    select subject as name, details::jsonb ->> 'revision' as label, after as state, at, actor
    from recuerdo.governance_audit where tenant = %(tenant)s and action = 'plan.compiled'
)
select name || ' ' || label as subject
from (select *, true as held from held) held full join (select *, true as noted from noted) noted
    using (name, label, state, at, actor)
where held.held is null or noted.noted is null limit 1
"""

_PACKS: LiteralString = """
with held as (
    select name || '@' || left(pin, 12) as name, pin as state from recuerdo.packs where tenant = %(tenant)s
), noted as (
    select distinct subject as name, after as state
    from recuerdo.governance_audit where tenant = %(tenant)s and action = 'pack.built'
)
select name as subject
from (select *, true as held from held) held full join (select *, true as noted from noted) noted
    using (name, state)
where held.held is null or noted.noted is null limit 1
"""

# Who is not in the table is a user: the last entry says what everybody is.
_ROLES: LiteralString = """
with noted as (
    select distinct on (subject) subject as name, after as state, actor, at
    from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('role.granted', 'role.revoked')
    order by subject, number desc
)
select coalesce(held.user_id, noted.name) as subject
from (select * from recuerdo.roles where tenant = %(tenant)s) held
full join (select * from noted where state <> 'user') noted
    on held.user_id = noted.name and held.role = noted.state
    and held.granted_by = noted.actor and held.granted_at = noted.at
where held.user_id is null or noted.name is null limit 1
"""

_APPROVALS: LiteralString = """
with noted as (
    select subject, action, actor, at from recuerdo.governance_audit
    where tenant = %(tenant)s
        and action in ('approval.approved', 'approval.rejected', 'approval.withdrawn', 'approval.auto_approved',
            'approval.reversed')
)
select held.id::text as subject
from recuerdo.approvals held
left join noted decided on decided.subject = held.id::text and decided.action <> 'approval.reversed'
left join noted reversed on reversed.subject = held.id::text and reversed.action = 'approval.reversed'
where held.tenant = %(tenant)s and (
    (held.status <> 'pending' and decided.action is null)
    or (decided.action is not null and (decided.action, decided.actor, decided.at) is distinct from
        ('approval.' || held.status, held.decided_by, held.decided_at))
    or (reversed.actor, reversed.at) is distinct from (held.reversed_by, held.reversed_at)
) limit 1
"""

# Evidence expires in the order of time: what is no older than the oldest that is there has not expired.
_EVIDENCE: LiteralString = """
select held.id::text as subject
from recuerdo.approvals held
where held.tenant = %(tenant)s and held.status in ('approved', 'rejected', 'withdrawn')
    and held.decided_at >= (select min(at) from recuerdo.evidence where tenant = %(tenant)s)
    and not exists (
        select from recuerdo.evidence e where e.tenant = held.tenant and e.turn_id = held.turn_id
            and e.kind = 'approval_decided' and e.data ->> 'approval' = held.id::text
    ) limit 1
"""

# Calls whose outcome nobody knew; one that went with its conversation may be gone.
_SETTLED: LiteralString = """
select held.id::text as subject
from recuerdo.tool_calls held
left join recuerdo.governance_audit noted on noted.tenant = held.tenant and noted.subject = held.id::text
    and noted.action = 'call.settled'
where held.tenant = %(tenant)s
    and (held.settled, held.settled_by, held.settled_at) is distinct from (noted.after, noted.actor, noted.at)
limit 1
"""

# An eval case holds a user's words, and goes when he is forgotten.
_PROPOSALS_GONE: LiteralString = """
select noted.subject
from recuerdo.governance_audit noted
where noted.tenant = %(tenant)s and noted.action in ('proposal.approved', 'proposal.rejected')
    and noted.details::jsonb ->> 'kind' <> 'eval_case_suggestion'
    and not exists (
        select from recuerdo.proposals p where p.tenant = noted.tenant and p.id::text = noted.subject
    ) limit 1
"""

_PROPOSALS: LiteralString = """
select held.id::text as subject, held.change, noted.details
from recuerdo.proposals held
left join recuerdo.governance_audit noted on noted.tenant = held.tenant and noted.subject = held.id::text
    and noted.action = 'proposal.' || case held.status when 'included' then 'approved' else held.status end
    and noted.actor = held.decided_by and noted.at = held.decided_at
where held.tenant = %(tenant)s and (held.status <> 'pending' or exists (
    select from recuerdo.governance_audit d where d.tenant = held.tenant and d.subject = held.id::text
        and d.action in ('proposal.approved', 'proposal.rejected')
))
"""

_INCLUDED: LiteralString = """
select held.id::text as subject
from recuerdo.proposals held
where held.tenant = %(tenant)s and held.status = 'included' and not exists (
    select from recuerdo.governance_audit noted
    where noted.tenant = held.tenant and noted.action = 'plan.compiled' and noted.subject = held.plan
        and noted.details::jsonb ->> 'revision' = 'r' || held.included_in
        and noted.details::jsonb -> 'included' ? held.id::text
) limit 1
"""

_CHECKS: tuple[LiteralString, ...] = (
    _ACTIVATIONS,
    _STOPS,
    _REVISIONS,
    _PACKS,
    _ROLES,
    _APPROVALS,
    _EVIDENCE,
    _SETTLED,
    _PROPOSALS_GONE,
    _INCLUDED,
)


CHANGE = "change_sha256"
"""The detail of an entry that holds the hash of what a proposal changes."""


def change_hash(change: Mapping[str, Any]) -> str:
    """The SHA-256 of the canonical form (RFC 8785) of what a proposal changes, in hex."""
    return sha256(rfc8785.dumps(dict(change))).hexdigest()


async def find_unaudited(connection: Connection, tenant: str) -> str | None:
    """A plan, revision, pack, person, request or proposal that is not as its entry says; None when all are."""
    values = {"tenant": tenant}
    for check in _CHECKS:
        row = await (await connection.execute(check, values)).fetchone()
        if row is not None:
            return str(row["subject"])
    proposals = await connection.execute(_PROPOSALS, values)
    return next((row["subject"] for row in await proposals.fetchall() if not _is_noted(row)), None)


def _is_noted(row: Mapping[str, Any]) -> bool:
    """Whether the entry of a decision is there, and its proposal says what it said then."""
    details = row["details"]
    return details is not None and json.loads(details).get(CHANGE) == change_hash(row["change"])
