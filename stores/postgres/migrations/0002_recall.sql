-- What recall compares beside the embedding. It stands in the row of the memory, so whoever writes, changes
-- or deletes a memory, and however, keeps both together.
alter table recuerdo.user_memory
    add column conversation text check (conversation <> ''),
    add column position integer,               -- place in the conversation: its neighbours are told by it
    add column terms bytea,                    -- of the text, in order: CRC-32 of stems, uint32 little-endian
    add column asks boolean,                   -- the text ends with a question
    add column analyzer text,                  -- what made terms and asks; null: they are made at each search
    add check ((terms is null) = (analyzer is null) and (asks is null) = (analyzer is null));

-- Memories of a turn stand where the turn does.
update recuerdo.user_memory kept
set conversation = turn.conversation, position = turn.number
from recuerdo.turns turn
where turn.tenant = kept.tenant and turn.id = kept.turn_id;
