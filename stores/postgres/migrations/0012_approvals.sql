-- Four eyes, the ledger of tool calls, and evidence (OR-22, OR-33, IM-49, A-30).

-- While a person decides, a turn waits: it holds no lease, and no other turn of its conversation begins.
alter table recuerdo.turns drop constraint turns_status_check;
alter table recuerdo.turns add constraint turns_status_check
    check (status in ('running', 'waiting', 'done', 'failed', 'cancelled'));
create index turns_waiting on recuerdo.turns (tenant, conversation) where status = 'waiting';

-- Calls of tools that need a second person. The id is that of the call and stands for its tool and arguments:
-- with other arguments it is another call, and needs another approval.
create table recuerdo.approvals (
    tenant text not null check (tenant <> ''),
    id uuid not null,
    turn_id uuid not null,
    conversation text not null check (conversation <> ''),
    assistant text not null check (assistant <> ''),
    user_id text check (user_id <> ''),        -- who asked for it; null: an anonymous session
    plan text not null check (plan <> ''),
    revision integer,                          -- null: an unsigned draft
    tool text not null check (tool <> ''),
    arguments jsonb not null,
    status text not null check (status in ('pending', 'approved', 'rejected', 'withdrawn', 'auto_approved')),
    rule text,                                 -- the rule that let it pass without a person
    requested_at timestamptz not null,
    decided_at timestamptz,
    decided_by text,
    reason text,                               -- went through the filter for sensitive data
    reversed_at timestamptz,
    reversed_by text,
    primary key (tenant, id),
    check ((status = 'pending') = (decided_at is null)),
    check ((status = 'auto_approved') = (rule is not null)),
    check ((reversed_at is null) = (reversed_by is null))
);
create index approvals_newest on recuerdo.approvals (tenant, requested_at desc, id);
create index approvals_of_turn on recuerdo.approvals (tenant, turn_id);
create index approvals_pending on recuerdo.approvals (tenant, conversation) where status = 'pending';
select recuerdo.isolate('approvals');

-- Every call of a tool, entered before it runs. effect: what it changes.
create table recuerdo.tool_calls (
    tenant text not null check (tenant <> ''),
    id uuid not null,
    turn_id uuid not null,
    conversation text not null check (conversation <> ''),
    assistant text not null check (assistant <> ''),
    user_id text check (user_id <> ''),
    plan text not null check (plan <> ''),
    revision integer,
    tool text not null check (tool <> ''),
    effect text not null check (effect in ('none', 'own', 'foreign')),
    status text not null check (status in ('started', 'done', 'failed', 'unknown')),
    result text,                               -- null: a read, which can be repeated
    started_at timestamptz not null,
    ended_at timestamptz,
    primary key (tenant, id),
    foreign key (tenant, turn_id) references recuerdo.turns (tenant, id) on delete cascade
);
create index tool_calls_of_turn on recuerdo.tool_calls (tenant, turn_id);
create index tool_calls_unknown on recuerdo.tool_calls (tenant, started_at desc) where status = 'unknown';
create index tool_calls_by_tool on recuerdo.tool_calls (tenant, tool, started_at desc);
select recuerdo.isolate('tool_calls');

-- What the Learning Hub learns from, and supervisors look at. Texts in it went through the filter.
create table recuerdo.evidence (
    tenant text not null check (tenant <> ''),
    id uuid not null,
    kind text not null check (kind in ('run_failed', 'approval_requested', 'approval_decided', 'auto_approved',
        'reversal', 'ambiguity', 'tool_used', 'outcome_unknown', 'pack_conflict')),
    at timestamptz not null,
    turn_id uuid not null,                     -- the run
    conversation text not null check (conversation <> ''),
    assistant text not null check (assistant <> ''),
    user_id text check (user_id <> ''),
    plan text,
    revision integer,
    tool text,
    data jsonb not null,
    expires_at timestamptz not null,
    primary key (tenant, id)
);
create index evidence_newest on recuerdo.evidence (tenant, at desc, id desc);
create index evidence_of_kind on recuerdo.evidence (tenant, kind, at desc, id desc);
create index evidence_of_turn on recuerdo.evidence (tenant, turn_id);
create index evidence_by_expiry on recuerdo.evidence (expires_at);
select recuerdo.isolate('evidence', 'select, insert, delete');

-- The hotel of the demo (C-39). Money is numeric: exact.
create table recuerdo.hotel_rooms (
    tenant text not null check (tenant <> ''),
    room text not null check (room <> ''),     -- a type of room
    price numeric not null check (price > 0),  -- for a night
    currency text not null check (currency <> ''),
    number integer not null check (number > 0),
    primary key (tenant, room)
);
select recuerdo.isolate('hotel_rooms');

create table recuerdo.hotel_reservations (
    tenant text not null check (tenant <> ''),
    id text not null check (id <> ''),
    room text not null,
    guest text not null check (guest <> ''),
    check_in date not null,
    nights integer not null check (nights between 1 and 60),
    price numeric not null check (price > 0),  -- for a night, before the discount
    currency text not null,
    discount_pct numeric not null default 0 check (discount_pct between 0 and 100),
    made_at timestamptz not null,
    primary key (tenant, id),
    foreign key (tenant, room) references recuerdo.hotel_rooms (tenant, room)
);
create index hotel_reservations_of_room on recuerdo.hotel_reservations (tenant, room, check_in);
select recuerdo.isolate('hotel_reservations');
