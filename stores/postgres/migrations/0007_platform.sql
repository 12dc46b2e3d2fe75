-- How far a user has come in each course (RF-15).
create table recuerdo.platform_education (
    tenant text not null check (tenant <> ''),
    user_id text not null check (user_id <> ''),
    course text not null check (course <> ''),
    topic text not null,
    percent numeric not null check (percent between 0 and 100),
    next_lesson text,
    updated_at timestamptz not null,
    primary key (tenant, user_id, course)
);

select recuerdo.isolate('platform_education');

-- Upcoming events are asked for by date in every turn.
create index platform_events_by_date on recuerdo.platform_events (tenant, date);
