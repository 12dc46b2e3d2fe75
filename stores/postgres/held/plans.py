"""Plans, stops, packs, roles and trials against their entries, both ways: each query gives one that is not as noted."""

from typing import LiteralString

TRIAL = "results_sha256"
"""The detail of an entry that holds the hash of what came of a trial's cases."""

# Rows of a plan are compared in their order.
_ACTIVATIONS: LiteralString = """
with held as (
    select name, 'r' || number as state, activated_at as at, activated_by as actor,
        row_number() over (partition by name order by id) as place
    from recuerdo.plan_activations where tenant = %(tenant)s
), noted as (
    select subject as name, details::jsonb ->> 'revision' as state, at, actor,
        row_number() over (partition by subject order by number) as place
    from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('plan.activated', 'plan.rolled_back')
)
select coalesce(held.name, noted.name) as subject
from held full join noted using (name, state, at, actor, place)
where held.place is null or noted.place is null
"""

_STOPS: LiteralString = """
with held as (
    select name, case when not stopped then 'none' when all_tools then 'all_tools' else 'rules' end as state,
        at, actor, row_number() over (partition by name order by id) as place
    from recuerdo.plan_stops where tenant = %(tenant)s
), noted as (
    select subject as name, after as state, at, actor,
        row_number() over (partition by subject order by number) as place
    from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('plan.stopped', 'plan.stop_lifted')
)
select coalesce(held.name, noted.name) as subject
from held full join noted using (name, state, at, actor, place)
where held.place is null or noted.place is null
"""

_REVISIONS: LiteralString = """
with held as (
    select name, 'r' || number as label, sha256 as state, compiled_at as at, compiled_by as actor
    from recuerdo.plan_revisions where tenant = %(tenant)s
), noted as (
    select subject as name, details::jsonb ->> 'revision' as label, after as state, at, actor
    from recuerdo.governance_audit where tenant = %(tenant)s and action = 'plan.compiled'
)
select name || ' ' || label as subject
from (select *, true as held from held) held full join (select *, true as noted from noted) noted
    using (name, label, state, at, actor)
where held.held is null or noted.noted is null
"""

_PACKS: LiteralString = """
with held as (
    select name || '@' || left(pin, 12) as name, pin as state from recuerdo.packs where tenant = %(tenant)s
), noted as (
    select distinct subject as name, after as state
    from recuerdo.governance_audit where tenant = %(tenant)s and action = 'pack.built'
)
select name as subject
from (select *, true as held from held) held full join (select *, true as noted from noted) noted
    using (name, state)
where held.held is null or noted.noted is null
"""

# Who is not in the table is a user: the last entry says what everybody is.
_ROLES: LiteralString = """
with noted as (
    select distinct on (subject) subject as name, after as state, actor, at
    from recuerdo.governance_audit
    where tenant = %(tenant)s and action in ('role.granted', 'role.revoked')
    order by subject, number desc
)
select coalesce(held.user_id, noted.name) as subject
from (select * from recuerdo.roles where tenant = %(tenant)s) held
full join (select * from noted where state <> 'user') noted
    on held.user_id = noted.name and held.role = noted.state
    and held.granted_by = noted.actor and held.granted_at = noted.at
where held.user_id is null or noted.name is null
"""

# Text of JSON is the same in every session; an instant is so only without its zone.
_RESULTS: LiteralString = """encode(sha256(convert_to(jsonb_agg(jsonb_build_array(case_id, plan, revision, sha256,
    model, passed, failures, at at time zone 'UTC', actor) order by case_id collate "C")::text, 'UTF8')), 'hex')"""

TRIAL_HASH: LiteralString = f"""
select {_RESULTS} as hash from recuerdo.eval_results where tenant = %(tenant)s and run = %(run)s
"""
"""The hash of a trial's rows as they stand."""

_TRIALS: LiteralString = f"""
with held as (
    select run::text as run, {_RESULTS} as hash from recuerdo.eval_results where tenant = %(tenant)s group by run
), noted as (
    select details::jsonb ->> 'run' as run, details::jsonb ->> '{TRIAL}' as hash
    from recuerdo.governance_audit where tenant = %(tenant)s and action = 'plan.tried'
)
select run as subject
from (select *, true as held from held) held full join (select *, true as noted from noted) noted using (run, hash)
where (held.held is null or noted.noted is null) and not exists (
    select from recuerdo.held_before b where b.tenant = %(tenant)s and b.kind = 'trial' and b.subject = run
)
"""

CHECKS = (_ACTIVATIONS, _STOPS, _REVISIONS, _PACKS, _ROLES, _TRIALS)
