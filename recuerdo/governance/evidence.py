"""Evidence, as supervisors see it (OR-22, IM-54)."""

from collections.abc import Sequence

from recuerdo.nodes.services import Services
from recuerdo.stores.postgres.evidence import Evidence, EvidenceFilter, EvidenceLog
from recuerdo.stores.postgres.roles import SUPERVISING, Roles

_ALL = EvidenceFilter()


class GovernedEvidence:
    """The evidence of one tenant, kept for 180 days (A-30)."""

    def __init__(self, services: Services, tenant: str) -> None:
        self._roles = Roles(services.database, tenant, services.keys)
        self._log = EvidenceLog(services.database, tenant)
        self._clock = services.clock

    async def list(
        self, which: EvidenceFilter = _ALL, *, actor: str, limit: int = 100, offset: int = 0
    ) -> Sequence[Evidence]:
        """What matches, newest first. Raises ScopeError when the actor is neither supervisor nor owner."""
        await self._roles.require(actor, SUPERVISING)
        return await self._log.list(self._clock(), which, limit=limit, offset=offset)
