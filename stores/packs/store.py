"""The packs of a tenant in PostgreSQL: added, never changed (OR-16)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from recuerdo.state.errors import SettingsError
from recuerdo.state.levels import NORMATIVE, Level
from recuerdo.state.plan import PACK_REFERENCE
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import Signature
from recuerdo.stores.packs.seal import SealedPack
from recuerdo.stores.postgres.arguments import shown
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.scope import require_scope

sentences = load_sentences(__package__)

_REFERENCE = "name || '@' || left(pin, 12)"

_ADD_PACK = """
insert into recuerdo.packs (tenant, name, pin, manifest, built_at, built_by)
values (%(tenant)s, %(name)s, %(pin)s, %(manifest)s, %(at)s, %(actor)s)
on conflict (tenant, name, pin) do nothing
returning pin
"""

_ADD_SIGNATURE = """
insert into recuerdo.pack_signatures (tenant, name, pin, key_id, signature, signed_at, signed_by)
values (%(tenant)s, %(name)s, %(pin)s, %(key_id)s, %(signature)s, %(at)s, %(actor)s)
on conflict do nothing
"""


@dataclass(frozen=True)
class PackEntry:
    """A line in the list of packs; ``size`` is in bytes of the manifest."""

    name: str
    reference: str
    size: int
    built_at: datetime
    built_by: str
    level: Level = NORMATIVE


class Packs:
    """The packs of one tenant. Nothing that comes out is verified: see :func:`unseal`."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def add(self, sealed: SealedPack, actor: str, at: datetime) -> bool:
        """Keep a pack; False when it is there already, which then has one signature more if the key is new."""
        require_scope(actor=actor)
        values = {
            "tenant": self._tenant,
            "name": sealed.name,
            "pin": sealed.pin,
            "manifest": sealed.manifest,
            "at": at,
            "actor": actor,
        }
        async with self._database.tenant(self._tenant) as connection:
            added = await (await connection.execute(_ADD_PACK, values)).fetchone()
            for signature in sealed.signatures:
                signed = {**values, "key_id": signature.key_id, "signature": signature.value}
                await connection.execute(_ADD_SIGNATURE, signed)
        return added is not None

    async def all(self) -> Sequence[PackEntry]:
        """Every pack by name, the newest version first."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(PackEntry))
            await cursor.execute(
                f"select name, {_REFERENCE} as reference, length(manifest) as size, built_at, built_by"
                " from recuerdo.packs where tenant = %s order by name, built_at desc, pin",
                (self._tenant,),
            )
            return await cursor.fetchall()

    async def read(self, references: Sequence[str]) -> Mapping[str, SealedPack]:
        """The packs of these ``name@pin``. Raises SettingsError that names the first one that is missing."""
        for reference in references:
            if not isinstance(reference, str) or not re.fullmatch(PACK_REFERENCE, reference):
                raise await self._no_reference(reference)
        values = (self._tenant, list(references))
        async with self._database.tenant(self._tenant) as connection:
            cursor = await connection.execute(
                f"select {_REFERENCE} as reference, name, pin, manifest"
                f" from recuerdo.packs where tenant = %s and {_REFERENCE} = any(%s)",
                values,
            )
            rows = await cursor.fetchall()
            # After the packs: each is written together with its first signature.
            signatures = await _signatures(connection, values)
        found = {row["reference"] for row in rows}
        for reference in references:
            if reference not in found:
                raise self._missing(reference)
        return {
            row["reference"]: SealedPack(
                row["name"], row["pin"], row["manifest"], tuple(signatures.get(row["reference"], ()))
            )
            for row in rows
        }

    async def _no_reference(self, text: object) -> SettingsError:
        """Of the name of a pack alone, the versions to choose from."""
        versions = [entry.reference for entry in await self.all() if entry.name == text]
        if not versions:
            return self._missing(text)
        return SettingsError(sentences("pack_without_pin", pack=text, versions=", ".join(versions)))

    def _missing(self, reference: object) -> SettingsError:
        return SettingsError(sentences("pack_missing", pack=shown(reference), tenant=self._tenant))


async def _signatures(connection: Connection, values: tuple[str, list[str]]) -> dict[str, list[Signature]]:
    cursor = await connection.execute(
        f"select {_REFERENCE} as reference, key_id, signature from recuerdo.pack_signatures"
        f" where tenant = %s and {_REFERENCE} = any(%s) order by signed_at, key_id",
        values,
    )
    found: dict[str, list[Signature]] = {}
    for row in await cursor.fetchall():
        found.setdefault(row["reference"], []).append(Signature(row["key_id"], row["signature"]))
    return found
