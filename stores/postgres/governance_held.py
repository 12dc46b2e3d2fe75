"""Whether what is in force is what the audit says: plans, stops, packs, roles, decisions, memories (A-28, OR-12).

The chain shows that none of its own entries was changed. Somebody with the tenant's rights in the database could
still write a row that governs without an entry, or change one: here each is held against its entry, both ways.
What goes with time or with a user who is forgotten (requests, evidence, his own words in a proposal) may be gone.
"""

from typing import LiteralString

from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.held import evidence, memories, plans, proposals, requests
from recuerdo.stores.postgres.held.proposals import CHANGE, change_hash

__all__ = ["CHANGE", "change_hash", "find_unaudited"]

# Not "limit 1": whoever looks for one row alone compares every row with every other.
_FIRST: LiteralString = "select min(subject) as subject from ({}) as found"
_QUERIES = (*plans.CHECKS, *requests.CHECKS, *evidence.CHECKS, *proposals.CHECKS)
_SEARCHES = (requests.find_changed, proposals.find_changed, memories.find_kept)


async def find_unaudited(connection: Connection, tenant: str) -> str | None:
    """A plan, revision, pack, person, request, call, proposal, trial or memory that is not as its entry says.

    None when all are. The chain was verified before: its entries say what was written.
    """
    for query in _QUERIES:
        row = await (await connection.execute(_FIRST.format(query), {"tenant": tenant})).fetchone()
        if row is not None and row["subject"] is not None:
            return str(row["subject"])
    for search in _SEARCHES:
        if found := await search(connection, tenant):
            return found
    return None
