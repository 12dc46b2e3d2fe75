"""``agent.governance.roles``: who may do what in a tenant (OR-11, A-35)."""

from collections.abc import Mapping

from recuerdo.nodes.services import Services
from recuerdo.stores.postgres.roles import STAFF, Role, Roles


class GovernedRoles:
    """The roles of one tenant; every change stands in the audit.

    ``actor`` says who looks or changes: ScopeError is raised for one who has no role, or not the one that it takes.
    """

    def __init__(self, services: Services, tenant: str) -> None:
        self._roles = Roles(services.database, tenant, services.keys)
        self._clock = services.clock

    async def all(self, *, actor: str) -> Mapping[str, Role]:
        """Every role that was granted, by user."""
        await self._roles.require(actor, STAFF)
        return await self._roles.all()

    async def of(self, user: str, *, actor: str) -> Role:
        """The user's role; "user" where none was granted."""
        await self._roles.require(actor, STAFF)
        return await self._roles.role_of(user)

    async def appoint_first_owner(self, user: str) -> None:
        """Make ``user`` the owner of a tenant that has none: for whoever runs the deployment, so it names no actor.

        Raises ScopeError when there is an owner.
        """
        await self._roles.appoint_first_owner(user, self._clock())

    async def grant(self, user: str, role: Role, *, actor: str) -> bool:
        """Give ``user`` a role; False when it is his already: then nothing changes.

        Raises ScopeError when the actor is no owner, or the last owner would go.
        """
        return await self._roles.grant(user, role, actor=actor, at=self._clock())

    async def revoke(self, user: str, *, actor: str) -> bool:
        """Make ``user`` an ordinary user again; False when he is one. Raises as :meth:`grant` does."""
        return await self._roles.revoke(user, actor=actor, at=self._clock())
