"""Where plans are compiled, put in force, taken back and stopped: each with a role, and with an entry in the audit.

The only other way in is the first use of a plan that ships: it is compiled and put in force once for a tenant, by
``SYSTEM``. After that nothing changes by itself, not even when a newer version ships with another YAML.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.resources import as_file

from pydantic import TypeAdapter

from recuerdo.state.amendment import Amendment, ApprovedProposal
from recuerdo.state.errors import InputError, SettingsError
from recuerdo.state.plan import Plan, is_plan_name
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import KeyFolder, KeyRecord
from recuerdo.stores.packs import Pack, Packs, read_folder, seal, unseal
from recuerdo.stores.plans import rows
from recuerdo.stores.plans.autonomy import EmergencyStop, add_stop, read_stop, read_stops
from recuerdo.stores.plans.merge import Carried, Changes, merge
from recuerdo.stores.plans.revision import (
    Revision,
    SealedRevision,
    label,
    reference,
    seal_revision,
    unseal_revision,
)
from recuerdo.stores.plans.shipped import load_plan, shipped_packs, shipped_plans
from recuerdo.stores.postgres.arguments import shown
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.governance_audit import AuditAct, GovernanceAudit, read_change
from recuerdo.stores.postgres.governance_held import CHANGE, change_hash
from recuerdo.stores.postgres.roles import SUPERVISING, SYSTEM, Role, Roles, require_role

sentences = load_sentences(__package__)

Compiled = Callable[[Connection, Revision], Awaitable[None]]
"""Called in the transaction of a compilation, once the revision is kept."""


_NO_CHANGES = Changes()


async def _nothing(connection: Connection, revision: Revision) -> None:
    """Nothing else belongs to this compilation."""


@dataclass(frozen=True)
class _By:
    """Who acts, when, and with which role; None: nobody's decision, the first use of what ships."""

    actor: str
    at: datetime
    roles: tuple[Role, ...] | None = SUPERVISING


class PlanOffice:
    """The plans of one tenant.

    Everything that changes raises ScopeError when the actor has not the role, StoreError when the database does
    not answer; ``at`` is aware.
    """

    def __init__(self, database: Database, tenant: str, keys: KeyFolder) -> None:
        self._database = database
        self._tenant = tenant
        self._keys = keys
        self._roles = Roles(database, tenant, keys)
        self.audit = GovernanceAudit(database, tenant, keys)

    async def revisions(self, name: str | None = None) -> Sequence[rows.RevisionEntry]:
        """Every revision of a plan, or of all, the newest first."""
        async with self._database.tenant(self._tenant) as connection:
            return await rows.list_revisions(connection, self._tenant, name)

    async def read(self, name: str, number: int | None = None) -> tuple[SealedRevision, Revision]:
        """A revision as it is kept and as it was verified; ``number`` None is the one in force.

        Raises SettingsError when there is none, or it is refused.
        """
        async with self._database.tenant(self._tenant) as connection:
            if number is None:
                number = (await self._in_force(connection, name)).number
            sealed = await self._sealed(connection, name, number)
        return sealed, await self._verified(sealed)

    async def compile_revision(
        self,
        draft: Plan,
        changes: Changes = _NO_CHANGES,
        *,
        actor: str,
        at: datetime,
        also: Compiled = _nothing,
    ) -> Revision:
        """Make the next signed revision of a plan; it acts once it is activated (OR-20, OR-29).

        What the parent carries of approved proposals comes along, and the changes are made to it; each proposal is
        in it once. ``also`` runs in the same transaction.

        Raises InputError as :func:`merge` does, and for a proposal that nobody approved, or not with this change;
        SettingsError when one of the packs is missing or refused.
        """
        packs = await self._pins(draft.packs)
        async with self._database.tenant(self._tenant) as connection:
            by = _By(actor, at)
            return await self._compile(connection, draft, changes, packs, by, also)

    async def next_parent(self, name: str) -> Revision | None:
        """The revision that the next one goes on from; None when there is none yet.

        Raises SettingsError when it is refused.
        """
        async with self._database.tenant(self._tenant) as connection:
            return await self._parent(connection, name)

    async def draft_of(self, name: str) -> Plan:
        """What a plan of the tenant's own says by itself, without what proposals brought: in the revision that the
        next one goes on from. Its file need not be at hand.

        Raises SettingsError when there is no such plan, or the revision is refused.
        """
        parent = await self.next_parent(name)
        if parent is not None:
            return parent.draft
        await self._require_shipped(name)
        return await asyncio.to_thread(load_plan, name)

    async def activate(
        self, name: str, number: int, *, actor: str, at: datetime, tried: str | None = None
    ) -> Revision:
        """Put a revision in force: turns that begin from now on run under it.

        ``tried`` says in the audit what came of its eval cases.

        Raises InputError when it is in force, SettingsError when it or one of its packs is missing or refused.
        """
        await self._roles.require(actor, SUPERVISING)
        _, revision = await self.read(name, number)
        await self._require_packs(revision)
        async with self._database.tenant(self._tenant) as connection:
            await self._activate(connection, revision, _By(actor, at), tried)
        return revision

    async def earlier(self, name: str, number: int | None = None, *, actor: str) -> int:
        """The number of the revision to return to, by activating it; ``number`` None: the one in force before (IM-50).

        Raises InputError when there is none earlier.
        """
        await self._roles.require(actor, SUPERVISING)
        async with self._database.tenant(self._tenant) as connection:
            return await self._earlier(connection, name, number)

    async def stop(self, name: str, *, all_tools: bool, actor: str, at: datetime) -> EmergencyStop:
        """Let no auto-approve rule of a plan hold from now on, with ``all_tools`` let every tool wait.

        A stop that is on can only become stricter.
        """
        async with self._database.tenant(self._tenant) as connection:
            await require_role(connection, self._tenant, actor, SUPERVISING)
            await rows.lock_plan(connection, self._tenant, name)
            before = await read_stop(connection, self._tenant, name)
            stop = EmergencyStop(all_tools or bool(before and before.all_tools), at, actor)
            await self._write_stop(connection, name, before, stop, _By(actor, at))
        return stop

    async def require_plan(self, name: str) -> None:
        """Raise SettingsError for a plan that nothing is known of here: no revision, none that ships, no draft whose
        calls stand in the ledger. A stop of a name that was mistyped would stop nothing.
        """
        async with self._database.tenant(self._tenant) as connection:
            known = await rows.is_known(connection, self._tenant, name)
        if not known:
            await self._require_shipped(name)

    async def lift(self, name: str, *, actor: str, at: datetime) -> None:
        """End an emergency stop: an owner's decision. Raises InputError when there is none."""
        async with self._database.tenant(self._tenant) as connection:
            await require_role(connection, self._tenant, actor, ("owner",))
            await rows.lock_plan(connection, self._tenant, name)
            before = await read_stop(connection, self._tenant, name)
            if before is None:
                raise InputError(sentences("no_stop", plan=name))
            await self._write_stop(connection, name, before, None, _By(actor, at))

    async def stop_of(self, name: str) -> EmergencyStop | None:
        """The emergency stop that is on."""
        async with self._database.tenant(self._tenant) as connection:
            return await read_stop(connection, self._tenant, name)

    async def stops(self) -> dict[str, EmergencyStop]:
        """Every emergency stop that is on, by plan."""
        async with self._database.tenant(self._tenant) as connection:
            return await read_stops(connection, self._tenant)

    async def rotate_key(self, *, actor: str, at: datetime) -> KeyRecord:
        """Put a new signing key in the place of the present one: an owner's decision (A-28).

        What the old one signed stays valid. The folder may be shared by tenants, and is no part of the transaction:
        a chain that has not the rotation takes it in with the tenant's next compilation, activation or pack.
        """
        async with self._database.tenant(self._tenant) as connection:
            await require_role(connection, self._tenant, actor, ("owner",))
            record = await asyncio.to_thread(self._keys.rotate, actor, at)
            await self._note_rotations(connection)
        return record

    async def build_pack(self, pack: Pack, *, actor: str, at: datetime) -> bool:
        """Seal a pack and keep it; False when it was there. It acts once a plan that names it is in force."""
        await self._roles.require(actor, SUPERVISING)
        return await self._keep_pack(pack, _By(actor, at))

    async def first_use(self, name: str, at: datetime) -> None:
        """Compile and activate a plan that ships, with its packs, where it has no revision yet.

        Raises SettingsError when no such plan ships, or when it has revisions and none is in force.
        """
        if not is_plan_name(name):
            await self._require_shipped(name)
        async with self._database.tenant(self._tenant) as connection:
            if await rows.active_hash(connection, self._tenant, name):
                return
            known = await rows.newest_number(connection, self._tenant, name)
        if known:
            raise SettingsError(sentences("plan_not_active", plan=name))
        await self._require_shipped(name)
        draft = await asyncio.to_thread(load_plan, name)
        by = _By(SYSTEM, at, roles=None)
        for folder in shipped_packs(name):
            with as_file(folder) as path:
                await self._keep_pack(await asyncio.to_thread(read_folder, path, folder.name), by)
        packs = await self._pins(draft.packs)
        async with self._database.tenant(self._tenant) as connection:
            await rows.lock_plan(connection, self._tenant, name)
            # Another process may have been first.
            if not await rows.newest_number(connection, self._tenant, name):
                revision = await self._compile(connection, draft, _NO_CHANGES, packs, by, _nothing)
                await self._activate(connection, revision, by)

    async def _require_shipped(self, name: str) -> None:
        if name not in shipped_plans():
            own = {entry.name for entry in await self.revisions()}
            known = ", ".join(sorted({*own, *shipped_plans()}))
            raise SettingsError(sentences("plan_unknown", plan=shown(name), known=known))

    async def _compile(
        self,
        connection: Connection,
        draft: Plan,
        changes: Changes,
        packs: dict[str, str],
        by: _By,
        also: Compiled,
    ) -> Revision:
        await self._require(connection, by)
        await rows.lock_plan(connection, self._tenant, draft.name)
        parent = await self._parent(connection, draft.name)
        before = parent.carried if parent else Carried()
        plan, carried = merge(draft, before, changes)
        new = [one for one in carried.included if one not in before.included]
        await self._require_approved(connection, draft.name, new)
        await self._require_first_time(
            connection, draft.name, {one.proposal for one in new}.difference(changes.include)
        )
        number = await rows.newest_number(connection, self._tenant, draft.name) + 1
        key = await asyncio.to_thread(self._keys.signing_key, by.actor, by.at)
        sha256 = parent.sha256 if parent else None
        sealed = seal_revision(self._tenant, plan, number, sha256, carried, packs, key)
        await rows.add_revision(connection, sealed, by.actor, by.at)
        revision = await self._verified(sealed)
        await also(connection, revision)
        await self._note_rotations(connection)
        details = {"revision": revision.label, "parent": parent.label if parent else "", "key": key.key_id}
        proposals = {"included": [one.proposal for one in carried.included], "excluded": carried.excluded}
        await self.audit.append(
            connection,
            AuditAct(
                by.at,
                by.actor,
                "plan.compiled",
                draft.name,
                before=sha256,
                after=revision.sha256,
                details={**details, **proposals},
            ),
        )
        return revision

    async def _require_approved(
        self, connection: Connection, plan: str, approved: Sequence[ApprovedProposal]
    ) -> None:
        """A proposal counts as approved when the audit says so, of this plan and this very change (OR-21)."""
        for one in approved:
            change = await read_change(connection, self._tenant, one.proposal)
            if change is None or _CHANGE.validate_json(json.dumps(change)) != one.change:
                raise InputError(sentences("proposal_not_approved", plan=plan, proposal=one.proposal))
            details = {"plan": plan, CHANGE: change_hash(change)}
            if not await self.audit.holds(connection, "proposal.approved", one.proposal, details):
                raise InputError(sentences("proposal_not_approved", plan=plan, proposal=one.proposal))

    async def _require_first_time(self, connection: Connection, plan: str, proposals: set[str]) -> None:
        """By itself a proposal comes in once, whatever its row says: what was rolled back is asked for (IM-48)."""
        cursor = await connection.execute(
            "select one.proposal from recuerdo.governance_audit noted"
            " cross join lateral jsonb_array_elements_text(noted.details::jsonb -> 'included') as one (proposal)"
            " where noted.tenant = %s and noted.action = 'plan.compiled' and noted.subject = %s"
            " and one.proposal = any(%s) limit 1",
            (self._tenant, plan, list(proposals)),
        )
        row = await cursor.fetchone()
        if row is not None:
            raise InputError(sentences("proposal_taken_before", plan=plan, proposal=row["proposal"]))

    async def _parent(self, connection: Connection, name: str) -> Revision | None:
        """What the next revision goes on from: the newest since the last activation, else what is in force."""
        newest = await rows.newest_number(connection, self._tenant, name)
        last = await rows.activations(connection, self._tenant, name, 1)
        number = last[0].number if last and last[0].newest == newest else newest
        return await self._verified(await self._sealed(connection, name, number)) if number else None

    async def _activate(
        self, connection: Connection, revision: Revision, by: _By, tried: str | None = None
    ) -> None:
        name, number = revision.plan.name, revision.number
        await self._require(connection, by)
        await rows.lock_plan(connection, self._tenant, name)
        last = await rows.activations(connection, self._tenant, name, 1)
        before = last[0].number if last else None
        if before == number:
            raise InputError(sentences("revision_active", revision=reference(name, number)))
        await rows.add_activation(connection, self._tenant, name, number, by.actor, by.at)
        old = await self._sealed(connection, name, before) if before else None
        await self._note_rotations(connection)
        back = before is not None and number < before
        details = {"revision": revision.label, "previous": label(before) if before else ""}
        await self.audit.append(
            connection,
            AuditAct(
                by.at,
                by.actor,
                "plan.rolled_back" if back else "plan.activated",
                name,
                before=old.sha256 if old else None,
                after=revision.sha256,
                details={**details, "eval": tried} if tried else details,
            ),
        )

    async def _earlier(self, connection: Connection, name: str, number: int | None) -> int:
        active = (await self._in_force(connection, name)).number
        if number is None:
            history = await rows.activations(connection, self._tenant, name, _HISTORY)
            number = next((one.number for one in history if one.number < active), None)
        if number is None or number >= active:
            raise InputError(sentences("nothing_earlier", revision=reference(name, active)))
        return number

    async def _in_force(self, connection: Connection, name: str) -> rows.Activation:
        last = await rows.activations(connection, self._tenant, name, 1)
        if last:
            return last[0]
        if await rows.newest_number(connection, self._tenant, name):
            raise SettingsError(sentences("plan_not_active", plan=name))
        raise SettingsError(sentences("plan_not_compiled", plan=shown(name)))

    async def _sealed(self, connection: Connection, name: str, number: int) -> SealedRevision:
        sealed = await rows.read_revision(connection, self._tenant, name, number)
        if sealed is None:
            raise SettingsError(sentences("revision_missing", plan=name, revision=label(number)))
        return sealed

    async def _verified(self, sealed: SealedRevision) -> Revision:
        trusted = await asyncio.to_thread(self._keys.trusted)
        return unseal_revision(sealed, trusted)

    async def _write_stop(
        self,
        connection: Connection,
        name: str,
        before: EmergencyStop | None,
        stop: EmergencyStop | None,
        by: _By,
    ) -> None:
        await add_stop(
            connection,
            self._tenant,
            name,
            stopped=stop is not None,
            all_tools=bool(stop and stop.all_tools),
            actor=by.actor,
            at=by.at,
        )
        await self.audit.append(
            connection,
            AuditAct(
                by.at,
                by.actor,
                "plan.stopped" if stop else "plan.stop_lifted",
                name,
                before=_stop_name(before),
                after=_stop_name(stop),
            ),
        )

    async def _keep_pack(self, pack: Pack, by: _By) -> bool:
        key = await asyncio.to_thread(self._keys.signing_key, by.actor, by.at)
        new = await Packs(self._database, self._tenant).add(seal(pack, key), by.actor, by.at)
        # Whether it was added now or just before a crash: what the chain has not yet, it takes in.
        async with self._database.tenant(self._tenant) as connection:
            await self._note_rotations(connection)
            signers = await self._noted(connection, ("pack.built", "pack.signed"), pack.reference)
            if key.key_id not in signers:
                action = "pack.signed" if signers else "pack.built"
                act = AuditAct(by.at, by.actor, action, pack.reference, after=pack.pin)
                await self.audit.append(connection, replace(act, details={"key": key.key_id}))
        return new

    async def _note_rotations(self, connection: Connection) -> None:
        """Take the rotations of the key folder that the tenant's chain has not into it, the oldest first."""
        noted = await self._noted(connection, ("key.rotated",))
        for record in await asyncio.to_thread(self._keys.records):
            if record.retires is not None and record.key_id not in noted:
                act = AuditAct(record.since, record.actor, "key.rotated", record.key_id)
                await self.audit.append(
                    connection,
                    replace(act, before=record.retires, after=record.key_id, details={"key": record.key_id}),
                )

    async def _noted(
        self, connection: Connection, actions: Sequence[str], subject: str | None = None
    ) -> set[str]:
        """The keys that the chain's entries of these actions name; nobody else notes one until the end."""
        await connection.execute(
            "select pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"keys\x1f{self._tenant}",)
        )
        cursor = await connection.execute(
            "select details::jsonb ->> 'key' as key from recuerdo.governance_audit where tenant = %(tenant)s"
            " and action = any(%(actions)s) and (%(subject)s::text is null or subject = %(subject)s)",
            {"tenant": self._tenant, "actions": list(actions), "subject": subject},
        )
        return {row["key"] for row in await cursor.fetchall()}

    async def _pins(self, references: Sequence[str]) -> dict[str, str]:
        """The full pin of each pack, verified. Raises SettingsError that names the pack."""
        if not references:
            return {}
        sealed = await Packs(self._database, self._tenant).read(references)
        trusted = await asyncio.to_thread(self._keys.trusted)
        return {name: unseal(pack, trusted).pin for name, pack in sealed.items()}

    async def _require_packs(self, revision: Revision) -> None:
        """A revision is only put in force with the very packs that it was compiled with."""
        try:
            found = await self._pins(revision.plan.packs)
        except SettingsError as error:
            values = {"revision": revision.reference, "reason": error.sentence}
            raise SettingsError(sentences("revision_packs", **values)) from None
        changed = [name for name, pin in revision.packs.items() if found[name] != pin]
        if changed:
            raise SettingsError(sentences("pack_changed", revision=revision.reference, pack=changed[0]))

    async def _require(self, connection: Connection, by: _By) -> None:
        if by.roles is not None:
            await require_role(connection, self._tenant, by.actor, by.roles)


def checked_plan_name(name: object) -> str:
    """``name`` when a plan can be called so. Raises InputError."""
    if isinstance(name, str) and is_plan_name(name):
        return name
    raise InputError(sentences("plan_name_invalid", name=shown(name)))


_CHANGE: TypeAdapter[Amendment] = TypeAdapter(Amendment)

_HISTORY = 1000
"""Activations looked through for the one before."""


def _stop_name(stop: EmergencyStop | None) -> str:
    if stop is None:
        return "none"
    return "all_tools" if stop.all_tools else "rules"
