"""``agent.governance.packs``: the knowledge packs of a tenant (OR-13 to OR-16)."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from recuerdo.nodes.services import Services
from recuerdo.stores.packs import Pack, PackEntry, Packs, read_folder, unseal
from recuerdo.stores.plans import PlanOffice


class GovernedPacks:
    """The packs of one tenant: added, never changed."""

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._tenant = tenant

    async def all(self) -> Sequence[PackEntry]:
        """Every version of every pack, the newest of each first."""
        return await Packs(self._services.database, self._tenant).all()

    async def show(self, reference: str) -> Pack:
        """A pack by ``name@pin``, verified. Raises SettingsError when it is missing or refused."""
        sealed = await Packs(self._services.database, self._tenant).read([reference])
        return unseal(sealed[reference], await asyncio.to_thread(self._services.keys.trusted))

    async def build(self, folder: Path, *, actor: str, name: str | None = None) -> Pack:
        """Check a folder, sign it and keep it; it acts once a plan that names it is in force.

        Raises ScopeError for one who is neither supervisor nor owner, SettingsError for what cannot go in.
        """
        pack = await asyncio.to_thread(read_folder, folder, name)
        office = PlanOffice(self._services.database, self._tenant, self._services.keys)
        await office.build_pack(pack, actor=actor, at=self._services.clock())
        return pack
