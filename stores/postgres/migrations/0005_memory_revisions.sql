-- What memories said before, who may publish them, and an audit that says what was published.

create table recuerdo.memory_revisions (
    tenant text not null check (tenant <> ''),
    id bigint generated always as identity,
    memory_id uuid not null references recuerdo.user_memory on delete cascade,
    was_id uuid not null,                      -- the memory that said so: another one where it was superseded
    assistant text not null check (assistant <> ''),
    user_id text not null check (user_id <> ''),
    text text not null,
    reason text not null check (reason in ('updated', 'superseded')),
    message_id text,
    at timestamptz not null,                   -- in force until then
    expires_at timestamptz not null,
    primary key (tenant, id)
);
create index revisions_of_memory on recuerdo.memory_revisions (memory_id);
create index revisions_by_former on recuerdo.memory_revisions (tenant, was_id);
create index revisions_of_user on recuerdo.memory_revisions (tenant, user_id);
create index revisions_by_expiry on recuerdo.memory_revisions (expires_at);
select recuerdo.isolate('memory_revisions');

alter table recuerdo.user_memory
    drop constraint user_memory_status_check,
    add constraint user_memory_status_check check (status in ('low', 'confirmed', 'published', 'withdrawn')),
    add column words bytea,                    -- digest of the text without case, accents and blanks
    add column changed_in uuid;                -- the turn that changed it last; null: none did
create index memory_by_words on recuerdo.user_memory (tenant, assistant, user_id, words) where words is not null;
-- Not as the owner, who may be under the policies himself.
set local role recuerdo_operator;
update recuerdo.user_memory set changed_in = turn_id where turn_id is not null;
set local role none;

-- Why a supervisor published or withdrew it. Apart from the audit, which stays when a user is forgotten: a reason
-- may tell of the user.
create table recuerdo.memory_publications (
    tenant text not null check (tenant <> ''),
    id bigint generated always as identity,
    memory_id uuid not null references recuerdo.user_memory on delete cascade,
    user_id text not null check (user_id <> ''),
    action text not null check (action in ('published', 'withdrawn')),
    actor text not null check (actor <> ''),
    reason text not null check (reason <> ''),
    at timestamptz not null,
    primary key (tenant, id)
);
create index publications_of_memory on recuerdo.memory_publications (memory_id);
create index publications_of_user on recuerdo.memory_publications (tenant, user_id);
select recuerdo.isolate('memory_publications');

-- Who is not here has the role "user".
create table recuerdo.roles (
    tenant text not null check (tenant <> ''),
    user_id text not null check (user_id <> ''),
    role text not null check (role in ('owner', 'supervisor', 'agent')),
    granted_by text not null check (granted_by <> ''),
    granted_at timestamptz not null,
    primary key (tenant, user_id)
);
select recuerdo.isolate('roles');

-- The key of the hashes in the audit. It stands here and not in the data folder: every process of a deployment
-- must come to the same hash. It guards those who are shown the audit, not those who can read this database.
create table recuerdo.audit_keys (
    tenant text primary key check (tenant <> ''),
    key bytea not null check (octet_length(key) = 32)
);
select recuerdo.isolate('audit_keys', 'select, insert');

alter table recuerdo.memory_audit
    add column content_hash bytea,             -- HMAC-SHA-256 of the text with the tenant's key (OR-12)
    add column previous_status text,
    add column new_status text;

-- For every table that only grows.
create function recuerdo.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'the rows of recuerdo.% are immutable: they cannot be changed', tg_table_name;
end
$$;
create trigger grows_only before update or delete or truncate on recuerdo.memory_audit
    for each statement execute function recuerdo.refuse_change();
