-- Items of LangGraph's BaseStore face that are no memories of a user: an app's own.
create table recuerdo.store_items (
    tenant text not null check (tenant <> ''),
    namespace text collate "C" not null check (namespace <> ''),  -- labels joined by dots, which no label has
    key text collate "C" not null,
    value jsonb not null check (jsonb_typeof(value) = 'object'),
    text text,                                 -- what search compares; null: not found by a query
    terms bytea,                               -- of the text: CRC-32 of stems, uint32 little-endian
    analyzer text,                             -- what made the terms
    embedding bytea storage external,          -- float32, little-endian
    embedder text,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    ttl_minutes double precision,              -- null: it stays
    expires_at timestamptz,
    primary key (tenant, namespace, key),
    check ((embedding is null) = (embedder is null)),
    check ((text is null) = (terms is null) and (text is null) = (analyzer is null)),
    check ((ttl_minutes is null) = (expires_at is null))
) with (toast_tuple_target = 8160);
create index store_items_by_change on recuerdo.store_items (tenant, updated_at desc, namespace, key);
create index store_items_by_expiry on recuerdo.store_items (expires_at) where expires_at is not null;

select recuerdo.isolate('store_items');
