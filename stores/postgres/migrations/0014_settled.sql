-- What a person finds out about a call whose outcome nobody knew: once, by whom and when (governance, part 3).

alter table recuerdo.tool_calls
    add column settled text check (settled in ('happened', 'did_not_happen')),
    add column settled_at timestamptz,
    add column settled_by text check (settled_by <> ''),
    add check ((settled is null) = (settled_at is null)),
    add check ((settled is null) = (settled_by is null)),
    add check (settled is null or status = 'unknown');
drop index recuerdo.tool_calls_unknown;
create index tool_calls_unknown on recuerdo.tool_calls (tenant, started_at desc)
    where status = 'unknown' and settled is null;

alter table recuerdo.evidence drop constraint evidence_kind_check;
alter table recuerdo.evidence add constraint evidence_kind_check
    check (kind in ('run_failed', 'approval_requested', 'approval_decided', 'auto_approved', 'reversal', 'ambiguity',
        'tool_used', 'outcome_unknown', 'outcome_settled', 'pack_conflict'));

-- From now on every request that was taken back has its entry in the audit. Clearing a conversation wrote none
-- before: those requests go as their turns went then.
set local role recuerdo_operator;
delete from recuerdo.approvals a
where a.status = 'withdrawn' and not exists (
    select from recuerdo.governance_audit g
    where g.tenant = a.tenant and g.subject = a.id::text and g.action = 'approval.withdrawn'
);
set local role none;
