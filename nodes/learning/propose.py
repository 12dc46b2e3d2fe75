"""Step 3 of a sweep: write what was found as proposals, each with all that it rests on (OR-21, OR-24).

Running it again writes nothing twice: what is open is not asked again, and a piece of evidence is used once.
"""

import json
from datetime import datetime
from uuid import UUID

from pydantic import TypeAdapter

from recuerdo.nodes.learning.collect import window_of
from recuerdo.nodes.services import Services
from recuerdo.state import limits
from recuerdo.state.amendment import Amendment, RuleAdded
from recuerdo.state.learning import AmbiguousTurn, Finding, LearningState
from recuerdo.state.sentences import Sentence
from recuerdo.stores.postgres.database import Connection
from recuerdo.stores.postgres.governance_audit import GovernanceAudit
from recuerdo.stores.postgres.learning_evidence import Window
from recuerdo.stores.postgres.proposal_links import tie_approved, tie_each, tie_one, tie_uses
from recuerdo.stores.postgres.proposals import (
    Link,
    NewProposal,
    Tie,
    join_proposal,
    make_proposal,
    was_rejected,
)

_AMENDMENT: TypeAdapter[Amendment] = TypeAdapter(Amendment)


async def propose(state: LearningState, services: Services) -> LearningState:
    """Make the proposals, each in a transaction of its own. Nothing else changes (OR-20)."""
    window = window_of(state, services)
    made = [await _propose(finding, window, services) for finding in state.get("findings", [])]
    return LearningState(proposals=[str(key) for key in made if key])


async def _propose(finding: Finding, window: Window, services: Services) -> UUID | None:
    change = _AMENDMENT.validate_json(json.dumps(finding["change"]))
    new = NewProposal(
        kind=finding["kind"],
        plan=finding["plan"],
        revision=finding["revision"],
        subject=finding["subject"],
        change=change,
        wording=Sentence(finding["es"], finding["en"]),
        effect=finding["effect"],
        user=finding["user"],
    )
    async with services.database.tenant(window.tenant) as connection:
        least = await _least(connection, new, window)
        tie = _tie(finding, change, window)
        if "ambiguous" in finding and await join_proposal(connection, window.tenant, new, tie):
            return None
        audit = GovernanceAudit(services.database, window.tenant, services.keys)
        return await make_proposal(
            connection, window.tenant, new, tie, audit=audit, at=window.now, least=least
        )


async def _least(connection: Connection, new: NewProposal, window: Window) -> int:
    """A rule needs RULE_SUGGESTION_MIN_APPROVALS pieces; what was rejected as many new ones to come back (C-41)."""
    if new.kind == "rule_suggestion" or await was_rejected(connection, window.tenant, new):
        return limits.RULE_SUGGESTION_MIN_APPROVALS
    return 1


def _tie(finding: Finding, change: Amendment, window: Window) -> Tie:
    if isinstance(change, RuleAdded):
        return tie_approved(window, finding["plan"], change.rule)
    if "ambiguous" in finding:
        return tie_each(window.tenant, [_link(run) for run in finding["ambiguous"]])
    idle = finding["idle"]
    if idle["uses"]:
        return tie_uses(window, finding["plan"], idle["tool"])
    since = datetime.fromisoformat(str(idle["in_force_since"]))
    return tie_one(window.tenant, Link(since, revision=idle["revision"]))


def _link(run: AmbiguousTurn) -> Link:
    at = datetime.fromisoformat(run["at"])
    return Link(at, UUID(run["evidence"]), UUID(run["turn"]), UUID(run["approval"]))
