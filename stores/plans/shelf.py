"""The revisions in use: verified once for each hash, for the life of the services."""

import asyncio

from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import is_plan_name
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.plans.revision import Revision, SealedRevision, unseal_revision
from recuerdo.stores.plans.rows import ACTIVE_HASH, read_by_hash
from recuerdo.stores.postgres.database import Database

sentences = load_sentences(__package__)


class PlanShelf:
    """Gives verified revisions. A hash stands for its document, so what was verified once stays true."""

    def __init__(self, database: Database, keys: KeyFolder) -> None:
        self._database = database
        self._keys = keys
        self._revisions: dict[tuple[str, str, str], Revision] = {}

    async def active(self, tenant: str, name: str) -> Revision | None:
        """The revision in force, None when there is none. Raises SettingsError when it is refused."""
        if not is_plan_name(name):
            return None
        rows = await self._database.read(tenant, ACTIVE_HASH, (tenant, name))
        return await self.load(tenant, name, rows[0]["sha256"]) if rows else None

    async def load(self, tenant: str, name: str, sha256: str) -> Revision:
        """The revision of that hash. Raises SettingsError when it is missing or refused."""
        known = self._revisions.get((tenant, name, sha256))
        if known is None:
            async with self._database.tenant(tenant) as connection:
                sealed = await read_by_hash(connection, tenant, name, sha256)
            if sealed is None:
                raise SettingsError(sentences("revision_missing", plan=name, revision=sha256[:12]))
            known = self._revisions[tenant, name, sha256] = await asyncio.to_thread(self._unsealed, sealed)
        return known

    def _unsealed(self, sealed: SealedRevision) -> Revision:
        return unseal_revision(sealed, self._keys.trusted())
