"""Evidence, as supervisors see it (OR-22, IM-54)."""

from collections.abc import Sequence

from recuerdo.nodes.services import Services
from recuerdo.stores.postgres.evidence import Evidence, EvidenceFilter, EvidenceLog
from recuerdo.stores.postgres.roles import SUPERVISING, require_role

_ALL = EvidenceFilter()


class GovernedEvidence:
    """The evidence of one tenant, kept for 180 days (A-30)."""

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._tenant = tenant

    async def list(
        self, which: EvidenceFilter = _ALL, *, actor: str, limit: int = 100, offset: int = 0
    ) -> Sequence[Evidence]:
        """What matches, newest first. Raises ScopeError when the actor is neither supervisor nor owner."""
        async with self._services.database.tenant(self._tenant) as connection:
            await require_role(connection, self._tenant, actor, SUPERVISING)
        log = EvidenceLog(self._services.database, self._tenant)
        return await log.list(self._services.clock(), which, limit=limit, offset=offset)
