-- What a verification of the audit needs to know so that nothing which went as it should is taken for tampering.

-- Up to where the worker has deleted what expired: what is older may be gone. Only the worker writes it: who may
-- delete a tenant's evidence must not be able to say that it had expired.
create table recuerdo.evidence_horizons (
    tenant text primary key check (tenant <> ''),
    at timestamptz not null
);
select recuerdo.isolate('evidence_horizons', 'select');
grant insert, update on recuerdo.evidence_horizons to recuerdo_operator;

-- What was there before the audit had entries of its kind: written here, once, and never again.
create table recuerdo.held_before (
    tenant text not null check (tenant <> ''),
    kind text not null check (kind in ('memory', 'proposal', 'trial', 'call')),
    subject text not null check (subject <> ''),
    primary key (tenant, kind, subject)
);
select recuerdo.isolate('held_before', 'select');
grant insert on recuerdo.held_before to recuerdo_operator;

create index governance_audit_by_action on recuerdo.governance_audit (tenant, action, number);
-- Memories that are kept for good, or longer than any that nobody published: a handful.
create index memory_kept_long on recuerdo.user_memory (tenant, id)
    where status = 'published' or expires_at is null
        or (status <> 'withdrawn'
            and expires_at - greatest(created_at, updated_at, confirmed_at) > interval '91 days');

set local role recuerdo_operator;
insert into recuerdo.held_before (tenant, kind, subject)
select tenant, 'proposal', id::text from recuerdo.proposals
union all
select distinct tenant, 'trial', run::text from recuerdo.eval_results
union all
-- Until now one that nobody had settled went with its conversation.
select distinct e.tenant, 'call', e.data ->> 'call' from recuerdo.evidence e
where e.kind = 'outcome_unknown' and e.data ->> 'call' <> '' and not exists (
    select from recuerdo.tool_calls c where c.tenant = e.tenant and c.id::text = e.data ->> 'call'
)
union all
select m.tenant, 'memory', m.id::text from recuerdo.user_memory m
where (m.status = 'published' or m.expires_at is null
        or (m.status <> 'withdrawn'
            and m.expires_at - greatest(m.created_at, m.updated_at, m.confirmed_at) > interval '91 days'))
    and not exists (
    select from recuerdo.governance_audit g
    where g.tenant = m.tenant and g.subject = m.id::text and g.action = 'memory.published'
);
-- Evidence that is missing now has expired: nobody noted it until now.
insert into recuerdo.evidence_horizons (tenant, at)
select g.tenant, max(g.at)
from recuerdo.governance_audit g
join recuerdo.approvals a on a.tenant = g.tenant and a.id::text = g.subject
where g.action in ('approval.approved', 'approval.rejected', 'approval.withdrawn', 'approval.auto_approved',
        'approval.reversed')
    and not exists (
        select from recuerdo.evidence e
        where e.tenant = g.tenant and e.data ->> 'approval' = g.subject and e.kind = case g.action
            when 'approval.auto_approved' then 'auto_approved' when 'approval.reversed' then 'reversal'
            else 'approval_decided' end
    )
group by g.tenant;
set local role none;
