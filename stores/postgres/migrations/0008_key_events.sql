-- Key events: what is open between a user and an assistant, like a ticket (LA-18, IM-1). Every text in it went
-- through the filter for sensitive data. Open ones never expire; closed ones are archived at the time of reading
-- (C-9), so nothing here is deleted but with its user.
create table recuerdo.key_events (
    tenant text not null check (tenant <> ''),
    id uuid not null,
    assistant text not null check (assistant <> ''),
    user_id text check (user_id <> ''),        -- null: the identity is not resolved, the session owns it (LA-32)
    session text check (session <> ''),        -- where it was created
    type text not null check (type <> ''),     -- as it was configured then; the dictionary may lose it (IM-18)
    summary text not null,
    entities jsonb not null,                   -- a list of texts
    status text not null check (status in ('PENDING', 'IN_PROGRESS', 'RESOLVED', 'CLOSED')),
    priority text not null check (priority in ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
    confidence real not null check (confidence between 0 and 1),
    created_at timestamptz not null,
    updated_at timestamptz not null,
    closed_at timestamptz,
    version integer not null check (version > 0),  -- number of its newest change
    primary key (tenant, id),
    check (user_id is not null or session is not null),
    check ((status = 'CLOSED') = (closed_at is not null))
);
-- Each in the order of A-18, so that the few that a prompt carries are read first, of however many.
create index key_events_open on recuerdo.key_events
    (tenant, assistant, user_id, (status = 'RESOLVED'), updated_at desc, id) where status <> 'CLOSED';
create index key_events_open_shared on recuerdo.key_events
    (tenant, user_id, (status = 'RESOLVED'), updated_at desc, id) where status <> 'CLOSED';
create index key_events_of_user on recuerdo.key_events (tenant, user_id);
create index key_events_of_session on recuerdo.key_events (tenant, session) where user_id is null;
create index key_events_newest on recuerdo.key_events (tenant, updated_at desc, id);
create index key_events_of_type on recuerdo.key_events (tenant, type);

-- Every change, in order (IM-2). A change with a key is written once, however often it is repeated.
create table recuerdo.key_event_changes (
    tenant text not null,
    event_id uuid not null,
    number integer not null,
    at timestamptz not null,
    action text not null check (action in ('created', 'updated', 'adopted')),
    actor text not null,                       -- the user, the session, or who acted for them
    session text,
    turn_id uuid,
    key text,
    fields jsonb not null,                     -- field: [old value, new value]
    primary key (tenant, event_id, number),
    foreign key (tenant, event_id) references recuerdo.key_events (tenant, id) on delete cascade
);
create unique index key_event_changes_once on recuerdo.key_event_changes (tenant, event_id, key)
    where key is not null;

select recuerdo.isolate('key_events');
select recuerdo.isolate('key_event_changes', 'select, insert, delete');

-- Which operator looked at key events: the view and its filter, never a text (IM-16).
create table recuerdo.key_event_views (
    tenant text not null check (tenant <> ''),
    id bigint generated always as identity,
    at timestamptz not null,
    actor text not null check (actor <> ''),
    action text not null check (action in ('listed', 'shown', 'exported', 'types')),
    filter jsonb not null,
    ids uuid[] not null,                       -- of the events that were given out
    primary key (tenant, id)
);
select recuerdo.isolate('key_event_views', 'select, insert');
