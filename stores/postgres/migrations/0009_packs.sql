-- Knowledge packs (OR-13 to OR-16): what a folder was compiled into, by name and pin. A new version is a new row;
-- nothing here is ever changed.
create table recuerdo.packs (
    tenant text not null check (tenant <> ''),
    name text not null check (name <> ''),
    pin text not null check (pin ~ '^[0-9a-f]{64}$'),  -- SHA-256 of the manifest, in full (A-27)
    manifest bytea not null,                           -- RFC 8785 JSON with the files' contents
    built_at timestamptz not null,
    built_by text not null check (built_by <> ''),
    primary key (tenant, name, pin)
);
create unique index packs_by_reference on recuerdo.packs (tenant, (name || '@' || left(pin, 12)));

-- Apart from the pack: one that was sealed with a key that is lost can be sealed with another.
create table recuerdo.pack_signatures (
    tenant text not null,
    name text not null,
    pin text not null,
    key_id text not null check (key_id <> ''),
    signature bytea not null,                          -- Ed25519 over the DSSE encoding of the manifest (A-28)
    signed_at timestamptz not null,
    signed_by text not null check (signed_by <> ''),
    primary key (tenant, name, pin, key_id),
    foreign key (tenant, name, pin) references recuerdo.packs
);

create trigger immutable before update or delete or truncate on recuerdo.packs
    for each statement execute function recuerdo.refuse_change();
create trigger immutable before update or delete or truncate on recuerdo.pack_signatures
    for each statement execute function recuerdo.refuse_change();

select recuerdo.isolate('packs', 'select, insert');
select recuerdo.isolate('pack_signatures', 'select, insert');
