"""``agent.governance.packs``: the knowledge packs of a tenant (OR-13 to OR-16)."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from recuerdo.governance.arguments import checked_path
from recuerdo.nodes.services import Services
from recuerdo.stores.packs import Pack, PackEntry, Packs, read_folder, unseal
from recuerdo.stores.plans import PlanOffice
from recuerdo.stores.postgres.roles import STAFF, SUPERVISING, Roles


class GovernedPacks:
    """The packs of one tenant: added, never changed.

    ``actor`` says who looks: ScopeError is raised for one who has no role.
    """

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._roles = Roles(services.database, tenant, services.keys)
        self._packs = Packs(services.database, tenant)

    async def all(self, *, actor: str) -> Sequence[PackEntry]:
        """Every version of every pack, the newest of each first."""
        await self._roles.require(actor, STAFF)
        return await self._packs.all()

    async def show(self, reference: str, *, actor: str) -> Pack:
        """A pack by ``name@pin``, verified. Raises SettingsError when it is missing or refused."""
        await self._roles.require(actor, STAFF)
        sealed = await self._packs.read([reference])
        return unseal(sealed[reference], await asyncio.to_thread(self._services.keys.trusted))

    async def build(self, folder: Path | str, *, actor: str, name: str | None = None) -> Pack:
        """Check a folder, sign it and keep it; it acts once a plan that names it is in force.

        Raises ScopeError for one who is neither supervisor nor owner, SettingsError for what cannot go in, InputError
        for what is no path.
        """
        await self._roles.require(actor, SUPERVISING)
        pack = await asyncio.to_thread(read_folder, checked_path("folder", folder), name)
        office = PlanOffice(self._services.database, self._tenant, self._services.keys)
        await office.build_pack(pack, actor=actor, at=self._services.clock())
        return pack
