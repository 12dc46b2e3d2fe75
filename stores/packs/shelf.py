"""The packs in use: loaded and verified once for each tenant and pin, for the life of a database's pool."""

import asyncio
from collections.abc import Sequence

from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.packs.pack import Pack
from recuerdo.stores.packs.seal import SealedPack, unseal
from recuerdo.stores.packs.store import Packs
from recuerdo.stores.postgres.database import Database


class PackShelf:
    """Gives verified packs. A pin stands for its content, so what was verified once stays true."""

    def __init__(self, database: Database, keys: KeyFolder) -> None:
        self._database = database
        self._keys = keys
        self._packs: dict[tuple[str, str], Pack] = {}

    async def load(self, tenant: str, references: Sequence[str]) -> tuple[Pack, ...]:
        """The packs of these ``name@pin``, in this order.

        Raises SettingsError that names the first pack which is missing or refused, StoreError when the
        database does not answer.
        """
        new = [reference for reference in references if (tenant, reference) not in self._packs]
        if new:
            stored = await Packs(self._database, tenant).read(new)
            packs = await asyncio.to_thread(self._unsealed, [stored[reference] for reference in new])
            self._packs.update({(tenant, pack.reference): pack for pack in packs})
        return tuple(self._packs[tenant, reference] for reference in references)

    def _unsealed(self, sealed: Sequence[SealedPack]) -> list[Pack]:
        trusted = self._keys.trusted()
        return [unseal(pack, trusted) for pack in sealed]
