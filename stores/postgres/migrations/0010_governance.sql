-- Plans and the audit of what governs (design section 6; OR-29, A-28). Everything but the head of the audit only
-- grows: what is in force, or stopped, is what was written last.

-- A plan's signed revisions, r1, r2 ...
create table recuerdo.plan_revisions (
    tenant text not null check (tenant <> ''),
    name text not null check (name <> ''),
    number int not null check (number > 0),
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),  -- of the document
    document bytea not null,                                 -- RFC 8785 JSON: plan, parent, pins, proposals
    key_id text not null check (key_id <> ''),
    signature bytea not null,                                -- Ed25519 over the DSSE encoding of the document
    compiled_at timestamptz not null,
    compiled_by text not null check (compiled_by <> ''),
    primary key (tenant, name, number)
);

-- newest: the number of the newest revision at that moment. One that is compiled later goes on from the newest of
-- those that came after, else from the one in force: what was rolled back does not come in again.
create table recuerdo.plan_activations (
    id bigint generated always as identity primary key,
    tenant text not null,
    name text not null,
    number int not null,
    newest int not null check (newest >= number),
    activated_at timestamptz not null,
    activated_by text not null check (activated_by <> ''),
    foreign key (tenant, name, number) references recuerdo.plan_revisions
);
create index plan_activations_by_plan on recuerdo.plan_activations (tenant, name, id);

-- The emergency stop (IM-52): no auto-approve rule holds, with all_tools every tool waits for a person.
create table recuerdo.plan_stops (
    id bigint generated always as identity primary key,
    tenant text not null check (tenant <> ''),
    name text not null check (name <> ''),
    stopped boolean not null,
    all_tools boolean not null,
    at timestamptz not null,
    actor text not null check (actor <> '')
);
create index plan_stops_by_plan on recuerdo.plan_stops (tenant, name, id);

-- A chain of keyed hashes for each tenant. The key is in the key folder, never here.
create table recuerdo.governance_audit (
    tenant text not null check (tenant <> ''),
    number bigint not null check (number > 0),
    at timestamptz not null,
    actor text not null check (actor <> ''),
    action text not null check (action <> ''),
    subject text not null check (subject <> ''),
    before text,                                             -- hash or state before and after, never a text
    after text,
    details text not null,                                   -- JSON as it was hashed: names, numbers, a filtered reason
    hash bytea not null,                                     -- HMAC-SHA-256 over the hash before it and this row
    primary key (tenant, number)
);

-- Where the chain ends, with a keyed hash of its own: a tail that is cut off shows.
create table recuerdo.governance_audit_heads (
    tenant text primary key check (tenant <> ''),
    number bigint not null,
    hash bytea not null,
    seal bytea not null,
    key_id text not null
);

create trigger immutable before update or delete or truncate on recuerdo.plan_revisions
    for each statement execute function recuerdo.refuse_change();
create trigger immutable before update or delete or truncate on recuerdo.plan_activations
    for each statement execute function recuerdo.refuse_change();
create trigger immutable before update or delete or truncate on recuerdo.plan_stops
    for each statement execute function recuerdo.refuse_change();
create trigger immutable before update or delete or truncate on recuerdo.governance_audit
    for each statement execute function recuerdo.refuse_change();
create trigger immutable before delete or truncate on recuerdo.governance_audit_heads
    for each statement execute function recuerdo.refuse_change();

select recuerdo.isolate('plan_revisions', 'select, insert');
select recuerdo.isolate('plan_activations', 'select, insert');
select recuerdo.isolate('plan_stops', 'select, insert');
select recuerdo.isolate('governance_audit', 'select, insert');
select recuerdo.isolate('governance_audit_heads', 'select, insert, update');
