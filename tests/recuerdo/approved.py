"""A proposal as the Learning Hub makes it, and its approval by a person."""

from datetime import datetime
from uuid import UUID

from recuerdo.state.amendment import Amendment, ApprovedProposal
from recuerdo.state.sentences import Sentence
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.governance_audit import GovernanceAudit
from recuerdo.stores.postgres.proposal_links import tie_one
from recuerdo.stores.postgres.proposals import Link, NewProposal, ProposalKind, Proposals, make_proposal

_KINDS: dict[str, ProposalKind] = {
    "rule": "rule_suggestion",
    "eval_case": "eval_case_suggestion",
    "tool": "skill_lifecycle",
}


async def propose(
    connection: Connection, tenant: str, plan: str, change: Amendment, at: datetime, audit: GovernanceAudit
) -> str:
    """A pending proposal that rests on one piece; returns its id."""
    kind = _KINDS[change.kind]
    wording = Sentence(es="¿Sí?", en="Yes?")
    new = NewProposal(kind, plan, 1, f"{change.kind} {change.name}", change, wording, {"share": 0.5})
    tie = tie_one(tenant, Link(at, revision=1))
    made = await make_proposal(connection, tenant, new, tie, audit=audit, at=at)
    assert made is not None, "none of its subject was open"
    return str(made)


async def approved(
    database: Database,
    keys: KeyFolder,
    tenant: str,
    plan: str,
    change: Amendment,
    *,
    actor: str,
    at: datetime,
) -> ApprovedProposal:
    """A proposal that ``actor`` has approved."""
    async with database.tenant(tenant) as connection:
        audit = GovernanceAudit(database, tenant, keys)
        proposal = await propose(connection, tenant, plan, change, at, audit)
    decided = await Proposals(database, tenant, keys).decide(UUID(proposal), "approve", actor=actor, at=at)
    return ApprovedProposal(proposal=proposal, change=decided.amendment)
