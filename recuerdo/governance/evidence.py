"""Evidence, as supervisors see it (OR-22, IM-54)."""

from collections.abc import Sequence
from datetime import datetime
from typing import get_args
from uuid import UUID

from recuerdo.governance.arguments import checked_choice, checked_instance, checked_names, checked_text
from recuerdo.nodes.services import Services
from recuerdo.stores.postgres.arguments import checked_page
from recuerdo.stores.postgres.evidence import Evidence, EvidenceFilter, EvidenceKind, EvidenceLog
from recuerdo.stores.postgres.instants import require_aware
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
        """What matches, newest first.

        Raises ScopeError when the actor is neither supervisor nor owner, InputError for an argument that is none.
        """
        await self._roles.require(actor, SUPERVISING)
        checked_page(limit, offset)
        _check(checked_instance("which", which, EvidenceFilter))
        return await self._log.list(self._clock(), which, limit=limit, offset=offset)


def _check(which: EvidenceFilter) -> None:
    for kind in checked_names("kinds", which.kinds):
        checked_choice("kinds", kind, get_args(EvidenceKind))
    for part, name in (("tool", which.tool), ("conversation", which.conversation)):
        if name is not None:
            checked_text(part, name)
    if which.turn is not None:
        checked_instance("turn", which.turn, UUID)
    for part, instant in (("since", which.since), ("until", which.until)):
        if instant is not None:
            require_aware(checked_instance(part, instant, datetime))
