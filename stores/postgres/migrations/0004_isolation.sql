-- Row-level security: a tenant's transaction sees the rows of that tenant only, also when its statement forgets
-- to ask for them (OR-6). Two roles that cannot log in: owners and superusers would bypass the policies.

do $$
declare
    wanted text;
begin
    foreach wanted in array array['recuerdo_tenant', 'recuerdo_operator'] loop
        -- Roles belong to the whole server: another database of it may have made them, or is making them now.
        if not exists (select from pg_roles where rolname = wanted) then
            begin
                execute format('create role %I nologin', wanted);
            exception when duplicate_object or unique_violation then
                null;
            end;
        end if;
        if not pg_has_role(current_user, wanted, 'set') then
            -- To be taken on, not inherited: or the policies would hold nothing back from whoever logs in.
            execute format('grant %I to current_user with inherit false, set true', wanted);
        end if;
    end loop;
end
$$;

grant usage on schema recuerdo to recuerdo_tenant, recuerdo_operator;

-- Puts a table with a column "tenant" under it. recuerdo_tenant sees the rows of the tenant that its transaction
-- names; recuerdo_operator, for the worker, sees all. A later migration that changes rows needs the latter role.
create function recuerdo.isolate(name text, privileges text default 'select, insert, update, delete')
returns void language plpgsql as $$
begin
    execute format('alter table recuerdo.%I enable row level security', name);
    execute format('alter table recuerdo.%I force row level security', name);
    execute format(
        'create policy own_tenant on recuerdo.%I to recuerdo_tenant'
        ' using (tenant = current_setting(''recuerdo.tenant''))'
        ' with check (tenant = current_setting(''recuerdo.tenant''))', name);
    execute format('create policy every_tenant on recuerdo.%I to recuerdo_operator using (true)', name);
    execute format('grant %s on recuerdo.%I to recuerdo_tenant, recuerdo_operator', privileges, name);
end
$$;

select recuerdo.isolate(name)
from unnest(array[
    'conversations', 'turns', 'messages', 'user_preferences', 'user_symbols', 'user_memory', 'vector_deletions',
    'platform_profiles', 'platform_quotes', 'platform_positions', 'platform_alerts', 'platform_signals',
    'platform_events'
]) as name;
-- The audit grows only (OR-12).
select recuerdo.isolate('memory_audit', 'select, insert');

-- LangGraph's tables of an older installation: the worker removes checkpoints as the operator.
do $$
begin
    if to_regclass('checkpoints') is not null then
        grant select, delete on checkpoints, checkpoint_blobs, checkpoint_writes to recuerdo_operator;
    end if;
end
$$;
