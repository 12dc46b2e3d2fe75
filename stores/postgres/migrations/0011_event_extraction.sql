-- Key events that are read out of conversations in the background (LA-26, IM-6). A turn of an agent that does not
-- write them itself waits here to be read; being read and the events that it gave are one transaction.
alter table recuerdo.turns add column events_unread boolean not null default false;
create index turns_events_unread on recuerdo.turns (tenant, conversation, number) where events_unread;

-- Who reads a conversation now, and what keeps it waiting after a failure. A lease that ends frees it.
create table recuerdo.event_extraction_leases (
    tenant text not null check (tenant <> ''),
    conversation text not null check (conversation <> ''),
    holder uuid,                               -- null: nobody reads it
    lease_until timestamptz,                   -- by the database's own clock
    failures integer not null default 0,       -- since it was last read
    not_before timestamptz,                    -- by the worker's clock
    primary key (tenant, conversation),
    foreign key (tenant, conversation) references recuerdo.conversations (tenant, id) on delete cascade
);
select recuerdo.isolate('event_extraction_leases');

-- Every extraction: ids and numbers, never a text. What its model used is billed by the usage here.
create table recuerdo.event_extractions (
    tenant text not null check (tenant <> ''),
    id bigint generated always as identity,
    conversation text not null check (conversation <> ''),
    assistant text not null check (assistant <> ''),
    at timestamptz not null,
    reason text not null check (reason in ('idle', 'threshold', 'manual')),
    extractor text not null check (extractor in ('rules', 'model')),
    turns uuid[] not null,                     -- those that were read
    created uuid[] not null,                   -- events
    updated uuid[] not null,
    refused integer not null,                  -- items of the model's that did not stand the checks
    usage jsonb not null,
    primary key (tenant, id),
    foreign key (tenant, conversation) references recuerdo.conversations (tenant, id) on delete cascade
);
create index event_extractions_of_conversation on recuerdo.event_extractions (tenant, conversation, id);
select recuerdo.isolate('event_extractions', 'select, insert, delete');
