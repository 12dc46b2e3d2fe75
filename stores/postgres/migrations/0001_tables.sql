create schema if not exists recuerdo;

create table recuerdo.migrations (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- The log: what happened.

create table recuerdo.conversations (
    tenant text not null check (tenant <> ''),
    id text not null check (id <> ''),
    assistant text not null check (assistant <> ''),
    user_id text check (user_id <> ''),        -- null: an anonymous session
    language text not null,
    started_at timestamptz not null,
    updated_at timestamptz not null,
    lease_turn uuid,                           -- the turn that runs now; one at a time
    lease_ticket uuid,                         -- of the agent that holds the thread from load to checkpoint
    lease_until timestamptz,                   -- by the database's own clock
    primary key (tenant, id)
);
create index conversations_of_user on recuerdo.conversations (tenant, user_id, updated_at desc);
create index conversations_leased on recuerdo.conversations (lease_turn) where lease_turn is not null;

-- No foreign key to conversations: a preview turn leaves usage, but no conversation.
create table recuerdo.turns (
    tenant text not null check (tenant <> ''),
    id uuid not null,
    conversation text not null check (conversation <> ''),
    user_id text check (user_id <> ''),
    number integer not null,
    parent_turn uuid,
    status text not null check (status in ('running', 'done', 'failed', 'cancelled')),
    mode text not null check (mode in ('live', 'preview')),
    started_at timestamptz not null,
    ended_at timestamptz,
    error text,
    usage jsonb,
    record jsonb,
    primary key (tenant, id)
);
create index turns_of_conversation on recuerdo.turns (tenant, conversation, number);
create index turns_by_id on recuerdo.turns (id);
create index turns_running on recuerdo.turns (tenant, id) where status = 'running';

create table recuerdo.messages (
    tenant text not null,
    turn_id uuid not null,
    position integer not null,
    conversation text not null,
    id text not null,
    role text not null check (role in ('user', 'assistant', 'tool')),
    content text not null,
    tool_calls jsonb,
    tool_name text,
    tool_call_id text,
    status text not null check (status in ('ok', 'failed', 'partial')),
    created_at timestamptz not null,
    primary key (tenant, turn_id, position),
    foreign key (tenant, turn_id) references recuerdo.turns (tenant, id) on delete cascade
);
create index messages_by_id on recuerdo.messages (tenant, conversation, id);

-- Long-term memory. Every text in it went through the filter for sensitive data.

create table recuerdo.user_preferences (
    tenant text not null check (tenant <> ''),
    user_id text not null check (user_id <> ''),
    key text not null check (key <> ''),
    value jsonb not null,
    quote text not null,
    message_id text,
    turn_id uuid,
    language text not null,
    confidence real not null check (confidence between 0 and 1),
    created_at timestamptz not null,
    updated_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (tenant, user_id, key)
);
create index preferences_by_expiry on recuerdo.user_preferences (expires_at);

-- One row for each turn that mentions a symbol: the count is derived, so a replay adds nothing.
create table recuerdo.user_symbols (
    tenant text not null check (tenant <> ''),
    user_id text not null check (user_id <> ''),
    symbol text not null check (symbol <> ''),
    turn_id uuid not null,
    mentioned_at timestamptz not null,
    primary key (tenant, user_id, symbol, turn_id)
);
create index symbols_by_time on recuerdo.user_symbols (mentioned_at);

create table recuerdo.user_memory (
    id uuid primary key,
    tenant text not null check (tenant <> ''),
    assistant text not null check (assistant <> ''),
    user_id text not null check (user_id <> ''),
    kind text not null check (kind <> ''),
    text text not null,
    embedding bytea storage external,          -- float32, little-endian: read straight into an array
    embedder text,
    status text not null check (status in ('low', 'confirmed', 'published')),
    confidence real check (confidence between 0 and 1),
    language text not null,
    quote text,
    message_id text,
    turn_id uuid,
    item integer not null,                     -- which of its kind within the turn
    metadata jsonb not null,
    active boolean not null default true,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    confirmed_at timestamptz,
    expires_at timestamptz,                    -- null: published, no expiry
    vector_waiting_since timestamptz,          -- null: the index has the vector
    unique (tenant, turn_id, kind, item),
    check ((embedding is null) = (embedder is null))
-- Embeddings stay in the row: the exact scan of a user's rows need not fetch each from elsewhere.
) with (toast_tuple_target = 8160);
create index memory_of_user on recuerdo.user_memory (tenant, assistant, user_id, updated_at desc);
create index memory_by_expiry on recuerdo.user_memory (expires_at) where expires_at is not null;
create index memory_waiting on recuerdo.user_memory (vector_waiting_since) where vector_waiting_since is not null;

-- Rows that are gone and whose vector is still in the index. Ids only.
create table recuerdo.vector_deletions (
    tenant text not null,
    assistant text not null,
    id uuid not null,
    since timestamptz not null,
    primary key (tenant, assistant, id)
);

-- Whoever deletes a memory, and however: its vector follows.
create function recuerdo.note_vector_deletion() returns trigger language plpgsql as $$
begin
    insert into recuerdo.vector_deletions (tenant, assistant, id, since)
    values (old.tenant, old.assistant, old.id, clock_timestamp())
    on conflict do nothing;
    return null;
end
$$;
create trigger note_vector_deletion after delete on recuerdo.user_memory
    for each row execute function recuerdo.note_vector_deletion();

-- Who changed what, when and because of which message; never what it said.
create table recuerdo.memory_audit (
    tenant text not null,
    id bigint generated always as identity,
    at timestamptz not null,
    actor text not null,
    action text not null,
    table_name text not null,
    item_id text not null,
    turn_id uuid,
    message_id text,
    primary key (tenant, id)
);
create index audit_of_item on recuerdo.memory_audit (tenant, table_name, item_id);

-- Platform data. Money is numeric: exact.

create table recuerdo.platform_profiles (
    tenant text not null check (tenant <> ''),
    user_id text not null check (user_id <> ''),
    name text not null,
    subscription text not null,
    risk_profile text,
    experience text,
    language text not null,
    timezone text not null,
    main_market text not null,
    entitlements jsonb not null,
    primary key (tenant, user_id)
);

create table recuerdo.platform_quotes (
    tenant text not null check (tenant <> ''),
    symbol text not null check (symbol <> ''),
    price numeric not null,
    change_percent numeric,
    volume numeric,
    open numeric,
    high numeric,
    low numeric,
    previous_close numeric,
    currency text not null,
    as_of timestamptz not null,
    more jsonb not null,
    primary key (tenant, symbol)
);

create table recuerdo.platform_positions (
    tenant text not null check (tenant <> ''),
    user_id text not null check (user_id <> ''),
    symbol text not null check (symbol <> ''),
    quantity numeric not null,
    avg_price numeric not null,
    currency text not null,
    primary key (tenant, user_id, symbol)
);

create table recuerdo.platform_alerts (
    tenant text not null check (tenant <> ''),
    user_id text not null check (user_id <> ''),
    id text not null check (id <> ''),
    symbol text not null check (symbol <> ''),
    condition text not null,
    price numeric not null,
    active boolean not null,
    triggered_at timestamptz,
    primary key (tenant, user_id, id)
);

create table recuerdo.platform_signals (
    tenant text not null check (tenant <> ''),
    symbol text not null check (symbol <> ''),
    prediction text not null,
    confidence numeric not null check (confidence between 0 and 1),
    updated_at timestamptz not null,
    primary key (tenant, symbol)
);

create table recuerdo.platform_events (
    tenant text not null check (tenant <> ''),
    event text not null check (event <> ''),
    date date not null,
    impact text not null,
    country text,
    primary key (tenant, event, date)
);

-- The schedule of the worker. The work itself is found in the tables above.
create table recuerdo.jobs (
    name text primary key,
    due_at timestamptz not null,
    lease_holder uuid,
    lease_until timestamptz,                   -- by the database's own clock
    last_run_at timestamptz
);
