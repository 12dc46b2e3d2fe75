-- A call whose outcome nobody knows outlives its turn: whoever clears the conversation, or is forgotten, does not take
-- it off the list of what a person has to look into (governance, part 3). All other calls go with their turns.
alter table recuerdo.tool_calls drop constraint tool_calls_tenant_turn_id_fkey;

create function recuerdo.delete_calls_of_turn() returns trigger language plpgsql as $$
begin
    delete from recuerdo.tool_calls
    where tenant = old.tenant and turn_id = old.id and (status <> 'unknown' or settled is not null);
    return null;
end
$$;
create trigger delete_calls after delete on recuerdo.turns
    for each row execute function recuerdo.delete_calls_of_turn();

-- Calls that have not ended: whether their turn still runs says whether anybody knows what comes of them.
create index tool_calls_open on recuerdo.tool_calls (tenant, started_at desc) where status = 'started';

-- A request is held against its entries whenever its call is about to run.
create index governance_audit_of_subject on recuerdo.governance_audit (tenant, subject, number);

-- Who goes on with an anonymous session makes it his own, and so the evidence of it (A-22). Nothing else of a piece
-- can be changed.
grant update (user_id) on recuerdo.evidence to recuerdo_tenant;
