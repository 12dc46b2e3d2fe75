-- The Learning Hub: its sweeps, its proposals with what they rest on, and runs of eval cases (OR-23 to OR-37).

-- One sweep of a tenant is open at a time: the one that is due next, or that runs. It is entered when the one
-- before it ends, so whoever comes late finds one, however many were missed.
create table recuerdo.sweeps (
    id bigint generated always as identity primary key,
    tenant text not null check (tenant <> ''),
    due_at timestamptz not null,
    status text not null check (status in ('due', 'running', 'done', 'failed')),
    holder uuid,                               -- who runs it
    lease_until timestamptz,                   -- by the database's own clock
    started_at timestamptz,                    -- by the worker's clock, as all but the lease
    ended_at timestamptz,
    evidence bigint,                           -- pieces that it looked at
    proposals integer,                         -- new ones
    error text,                                -- kind of error
    check ((status in ('done', 'failed')) = (ended_at is not null))
);
create unique index sweeps_open on recuerdo.sweeps (tenant) where status in ('due', 'running');
create index sweeps_newest on recuerdo.sweeps (tenant, id desc);
select recuerdo.isolate('sweeps', 'select, insert, update');

-- What a sweep suggests. Nothing acts by standing here: an approved one is compiled into the next signed revision.
create table recuerdo.proposals (
    tenant text not null check (tenant <> ''),
    id uuid not null,
    kind text not null check (kind in ('rule_suggestion', 'eval_case_suggestion', 'skill_lifecycle')),
    plan text not null check (plan <> ''),
    revision integer,                          -- in force when it was made; null: an unsigned draft
    subject text not null check (subject <> ''),  -- what it is about, told apart from others of its kind
    change jsonb not null,                     -- what it does to the plan
    wording jsonb not null,                    -- the question to the person, es and en
    effect jsonb not null,                     -- an estimate: names and numbers
    sample_size bigint not null check (sample_size > 0),
    period_from timestamptz not null,
    period_to timestamptz not null,
    user_id text check (user_id <> ''),        -- whose words are in it: it goes when he is forgotten
    status text not null default 'pending' check (status in ('pending', 'approved', 'rejected', 'included')),
    created_at timestamptz not null,
    decided_at timestamptz,
    decided_by text check (decided_by <> ''),
    reason text,                               -- went through the filter for sensitive data
    included_in integer,                       -- number of the revision
    included_at timestamptz,
    primary key (tenant, id),
    check ((status = 'pending') = (decided_at is null)),
    check ((decided_at is null) = (decided_by is null)),
    check ((status = 'included') = (included_in is not null)),
    check ((included_in is null) = (included_at is null))
);
create unique index proposals_open on recuerdo.proposals (tenant, plan, kind, subject)
    where status in ('pending', 'approved');
create index proposals_newest on recuerdo.proposals (tenant, created_at desc, id);
select recuerdo.isolate('proposals');

-- What a proposal rests on, piece by piece. A piece of evidence argues for one proposal only: what was decided on is
-- not asked again (C-41). A tool that was never used rests on the revision that has had it all the time.
create table recuerdo.proposal_evidence (
    id bigint generated always as identity primary key,
    tenant text not null check (tenant <> ''),
    proposal uuid not null,
    evidence uuid,                             -- may have expired since
    turn_id uuid,
    approval uuid,
    revision integer,
    at timestamptz not null,
    check (num_nonnulls(evidence, revision) = 1),
    foreign key (tenant, proposal) references recuerdo.proposals on delete cascade
);
create unique index proposal_evidence_once on recuerdo.proposal_evidence (tenant, evidence) where evidence is not null;
create index proposal_evidence_of_proposal on recuerdo.proposal_evidence (tenant, proposal, id);
select recuerdo.isolate('proposal_evidence');

-- No proposal without evidence (OR-21), whoever writes it.
create function recuerdo.require_proposal_evidence() returns trigger language plpgsql as $$
begin
    if not exists (select from recuerdo.proposal_evidence where tenant = new.tenant and proposal = new.id)
        and exists (select from recuerdo.proposals where tenant = new.tenant and id = new.id) then
        raise exception 'proposal % has no evidence', new.id using errcode = 'check_violation';
    end if;
    return null;
end
$$;
create constraint trigger has_evidence after insert on recuerdo.proposals
    deferrable initially deferred for each row execute function recuerdo.require_proposal_evidence();

-- What came of each case when a plan was tried: no texts of the model. A run is all its cases.
create table recuerdo.eval_results (
    tenant text not null check (tenant <> ''),
    run uuid not null,
    case_id text not null check (case_id <> ''),
    plan text not null check (plan <> ''),
    revision integer,                          -- null: an unsigned draft
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),  -- of the revision, or of the draft's canonical form
    model text not null,
    passed boolean not null,
    failures jsonb not null,                   -- what was expected and did not come, or came all the same
    at timestamptz not null,
    actor text not null check (actor <> ''),
    primary key (tenant, run, case_id)
);
create index eval_results_newest on recuerdo.eval_results (tenant, plan, sha256, at desc);
select recuerdo.isolate('eval_results', 'select, insert');
