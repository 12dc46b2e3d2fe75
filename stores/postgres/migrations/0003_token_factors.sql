-- How many tokens the provider of a family of models counts for one of ours. No tenant: it says nothing of
-- anybody's data, only of two ways to count.
create table recuerdo.token_factors (
    family text primary key check (family <> ''),
    factor double precision not null check (factor >= 1),
    updated_at timestamptz not null
);
