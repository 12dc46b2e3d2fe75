"""``agent.governance``: what people decide about an agent, each call with its actor, role and audit entry.

Two acts of whoever runs the deployment name no actor: the first owner is appointed, and the audit is verified.
"""

from recuerdo.governance.approvals import GovernedApprovals
from recuerdo.governance.audit import GovernedAudit
from recuerdo.governance.evaluations import Evaluations
from recuerdo.governance.evidence import GovernedEvidence
from recuerdo.governance.packs import GovernedPacks
from recuerdo.governance.plans import GovernedPlans
from recuerdo.governance.proposals import GovernedProposals
from recuerdo.governance.roles import GovernedRoles
from recuerdo.nodes.services import Services
from recuerdo.stores.postgres.evidence import EvidenceFilter
from recuerdo.stores.postgres.governance_audit import Anchor

__all__ = ["Anchor", "EvidenceFilter", "Governance"]


class Governance:
    """The governance of one tenant."""

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._tenant = tenant

    @property
    def plans(self) -> GovernedPlans:
        """Signed revisions: compile, activate, roll back, compare, stop."""
        return GovernedPlans(self._services, self._tenant)

    @property
    def packs(self) -> GovernedPacks:
        """Knowledge packs."""
        return GovernedPacks(self._services, self._tenant)

    @property
    def roles(self) -> GovernedRoles:
        """Who is owner, supervisor or agent."""
        return GovernedRoles(self._services, self._tenant)

    @property
    def approvals(self) -> GovernedApprovals:
        """Calls of tools that wait for a second person."""
        return GovernedApprovals(self._services, self._tenant)

    @property
    def evidence(self) -> GovernedEvidence:
        """What happened in runs: failures, requests and decisions, use of tools, contradicted rules."""
        return GovernedEvidence(self._services, self._tenant)

    @property
    def proposals(self) -> GovernedProposals:
        """What the Learning Hub suggests, and what people decided on it."""
        return GovernedProposals(self._services, self._tenant)

    @property
    def evaluations(self) -> Evaluations:
        """Plans tried with their eval cases."""
        return Evaluations(self._services, self._tenant)

    @property
    def audit(self) -> GovernedAudit:
        """The chain of what was done: read and verify."""
        return GovernedAudit(self._services, self._tenant)
