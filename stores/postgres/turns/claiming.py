"""An anonymous session becomes the user's who goes on with it: all of it, so that he can read and forget it (A-22)."""

from typing import Final, LiteralString

from recuerdo.state.key_events import Origin
from recuerdo.stores.postgres.audit import Change, write_audit
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.evidence import NOWHERE
from recuerdo.stores.postgres.key_events import adopt_events
from recuerdo.stores.postgres.turns.rows import NewTurn, Reservation

_CONVERSATION: LiteralString = """
update recuerdo.conversations set user_id = %(user)s where tenant = %(tenant)s and id = %(conversation)s
"""

_TURNS: LiteralString = """
update recuerdo.turns set user_id = %(user)s
where tenant = %(tenant)s and conversation = %(conversation)s and user_id is null
"""

# Also of turns that were cleared since. What is kept of forgotten users has a conversation of that name too, but no
# turn that there is.
_OF_SESSION: LiteralString = """
where tenant = %(tenant)s and conversation = %(conversation)s and user_id is null
    and (conversation <> %(nowhere)s or turn_id in (
        select id from recuerdo.turns where tenant = %(tenant)s and conversation = %(conversation)s))
"""

# An eval case holds the user's words.
_PROPOSALS: LiteralString = """
update recuerdo.proposals p set user_id = %(user)s
where p.tenant = %(tenant)s and p.user_id is null and p.kind = 'eval_case_suggestion' and exists (
    select from recuerdo.proposal_evidence l join recuerdo.turns t on t.tenant = l.tenant and t.id = l.turn_id
    where l.tenant = p.tenant and l.proposal = p.id and t.conversation = %(conversation)s)
"""

_ADOPTIONS: Final[tuple[LiteralString, ...]] = (
    _CONVERSATION,
    _TURNS,
    f"update recuerdo.approvals set user_id = %(user)s {_OF_SESSION}",
    f"update recuerdo.tool_calls set user_id = %(user)s {_OF_SESSION}",
    f"update recuerdo.evidence set user_id = %(user)s {_OF_SESSION}",
    _PROPOSALS,
)


async def claim_session(connection: Connection, tenant: str, asked: NewTurn | Reservation, user: str) -> None:
    """The session's user is known now: its turns, requests, calls, evidence and key events become his, audited.

    Its row is locked, so of two users who claim it at once the second finds it foreign.
    """
    values = {"tenant": tenant, "conversation": asked.conversation, "user": user, "nowhere": NOWHERE}
    for adoption in _ADOPTIONS:
        await connection.execute(adoption, values)
    origin = Origin(asked.at, user, asked.conversation)
    await adopt_events(connection, tenant, asked.assistant, asked.conversation, user, origin)
    change = Change("conversations", asked.conversation, "adopted")
    await write_audit(connection, tenant, user, asked.at, [change])
