"""``agent.governance.audit``: the chain of what was done, read and verified (OR-12)."""

from collections.abc import Sequence

from recuerdo.governance.arguments import checked_instance, checked_number, checked_text
from recuerdo.nodes.services import Services
from recuerdo.stores.postgres.arguments import checked_page
from recuerdo.stores.postgres.governance_audit import Anchor, GovernanceAudit, GovernanceEntry, Verification
from recuerdo.stores.postgres.roles import SUPERVISING, Roles


class GovernedAudit:
    """The audit of one tenant."""

    def __init__(self, services: Services, tenant: str) -> None:
        self._roles = Roles(services.database, tenant, services.keys)
        self._audit = GovernanceAudit(services.database, tenant, services.keys)

    async def entries(
        self, *, actor: str, limit: int = 100, before: int | None = None, subject: str | None = None
    ) -> Sequence[GovernanceEntry]:
        """The newest entries first: those below number ``before``, of ``subject`` alone where one is given.

        Raises ScopeError when the actor is neither supervisor nor owner, InputError for an argument that is none.
        """
        await self._roles.require(actor, SUPERVISING)
        checked_page(limit)
        if before is not None:
            checked_number("before", before)
        if subject is not None:
            checked_text("subject", subject)
        return await self._audit.entries(limit=limit, before=before, subject=subject)

    async def verify(self, anchor: Anchor | None = None) -> Verification:
        """Check the whole chain, that it holds ``anchor``, and that what is in force stands in it.

        For whoever runs the deployment, so it names no actor: it must work where the roles themselves were tampered
        with, and of people it says no more than the name of one whose role is not as its entry says.
        """
        if anchor is not None:
            checked_instance("anchor", anchor, Anchor)
        return await self._audit.verify(anchor)
