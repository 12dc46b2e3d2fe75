"""The Learning Hub as supervisors see it: proposals, what they rest on, decisions, sweeps (OR-2, OR-24 to OR-30)."""

from collections.abc import Sequence
from typing import get_args
from uuid import UUID

from recuerdo.governance.arguments import checked_choice, checked_flag, checked_id, checked_reason
from recuerdo.graph.learning import LearningHub
from recuerdo.nodes.services import Services
from recuerdo.stores.plans import PlanOffice, PlanShelf, checked_plan_name
from recuerdo.stores.plans.standing import Standing, read_standing
from recuerdo.stores.postgres.approvals import Decision
from recuerdo.stores.postgres.arguments import checked_page
from recuerdo.stores.postgres.proposals import Link, Proposal, Proposals, ProposalStatus
from recuerdo.stores.postgres.roles import SUPERVISING, Roles
from recuerdo.stores.postgres.sweeps import Sweep, Sweeps


class GovernedProposals:
    """The proposals of one tenant. ``actor`` says who looks or decides.

    Every call raises ScopeError when the actor is neither supervisor nor owner, StoreError when the database does
    not answer, and InputError for an argument that is none, and an id of no proposal.
    """

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._proposals = Proposals(services.database, tenant, services.keys)
        self._roles = Roles(services.database, tenant, services.keys)

    async def list(
        self,
        status: ProposalStatus | None = None,
        *,
        actor: str,
        plan: str | None = None,
        archived: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> Sequence[Proposal]:
        """Proposals, newest first; without a status all but the rejected, which are ``archived`` (OR-30)."""
        await self._roles.require(actor, SUPERVISING)
        checked_page(limit, offset)
        checked_flag("archived", archived)
        if status is not None:
            checked_choice("status", status, get_args(ProposalStatus))
        if plan is not None:
            checked_plan_name(plan)
        return await self._proposals.list(status, plan=plan, archived=archived, limit=limit, offset=offset)

    async def show(self, proposal: UUID | str, *, actor: str) -> Proposal:
        """One proposal."""
        await self._roles.require(actor, SUPERVISING)
        return await self._proposals.get(checked_id(proposal))

    async def links(
        self, proposal: UUID | str, *, actor: str, limit: int = 100, offset: int = 0
    ) -> Sequence[Link]:
        """What a proposal rests on, piece by piece, in the order of time (IM-55)."""
        await self._roles.require(actor, SUPERVISING)
        checked_page(limit, offset)
        return await self._proposals.links(checked_id(proposal), limit=limit, offset=offset)

    async def standing(self, proposal: UUID | str, *, actor: str) -> Standing | None:
        """Where an approved proposal stands in the plan's revisions; None for one that is not approved.

        Raises SettingsError when one of the revisions is refused.
        """
        found = await self.show(proposal, actor=actor)
        if found.status not in ("approved", "included"):
            return None
        services = self._services
        office = PlanOffice(services.database, self._tenant, services.keys)
        shelf = PlanShelf(services.database, services.keys)
        return await read_standing(office, shelf, self._tenant, found.plan, str(found.id), found.included_in)

    async def decide(
        self, proposal: UUID | str, decision: Decision, *, actor: str, reason: str | None = None
    ) -> Proposal:
        """Approve or reject, once. What was approved acts in the next signed revision, not before (OR-29, IM-47).

        Raises InputError when it is not pending.
        """
        checked_choice("decision", decision, get_args(Decision))
        checked_reason(reason)
        key, now = checked_id(proposal), self._services.clock()
        return await self._proposals.decide(key, decision, actor=actor, at=now, reason=reason)

    async def sweeps(self, *, actor: str, limit: int = 20) -> Sequence[Sweep]:
        """The sweeps, newest first; the one that is due next among them."""
        await self._roles.require(actor, SUPERVISING)
        checked_page(limit)
        return await Sweeps(self._services.database, self._tenant).list(limit=limit)

    async def sweep(self, *, actor: str) -> Sequence[Proposal]:
        """Look at the evidence now, not only when the next sweep is due; returns the new proposals.

        Raises BusyError while a sweep is under way.
        """
        await self._roles.require(actor, SUPERVISING)
        made = await LearningHub(self._services).sweep(self._tenant, self._services.clock())
        return [await self._proposals.get(UUID(key)) for key in made]
