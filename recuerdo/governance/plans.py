"""``agent.governance.plans``: compile, activate, return, compare and stop what governs the agent (OR-20, OR-29)."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recuerdo.governance.arguments import (
    checked_flag,
    checked_instance,
    checked_names,
    checked_path,
    checked_revision,
)
from recuerdo.governance.evaluations import Evaluations, objection
from recuerdo.nodes.check_tokens import refuse_unusable_packs
from recuerdo.nodes.run_tools.toolbox import refuse_unknown_tools
from recuerdo.nodes.services import Services
from recuerdo.state.key_events import removed_types
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import Sentence
from recuerdo.stores.keys import KeyRecord
from recuerdo.stores.plans import (
    EmergencyStop,
    PlanOffice,
    PlanShelf,
    Revision,
    RevisionEntry,
    SealedRevision,
    checked_plan_name,
    is_file,
    load_plan,
    shipped_plans,
)
from recuerdo.stores.plans.diff import Difference, differences
from recuerdo.stores.postgres.eval_cases import EvalRun
from recuerdo.stores.postgres.key_events import OperatorEvents
from recuerdo.stores.postgres.proposals import Proposals
from recuerdo.stores.postgres.roles import STAFF, SUPERVISING, Roles

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShownRevision:
    """A verified revision, and the DSSE envelope that it is kept in."""

    revision: Revision
    sealed: SealedRevision

    @property
    def envelope(self) -> dict[str, Any]:
        """The envelope as a JSON document, for tools of others."""
        return self.sealed.envelope()


@dataclass(frozen=True)
class ActivatedRevision(Revision):
    """A revision that was put in force; ``against`` is what its eval cases say against it (OR-35)."""

    against: Sentence | None = None


class GovernedPlans:
    """The plans of one tenant. ``name`` None is the plan that the agent runs under.

    ``actor`` says who looks or decides. To look takes any role; ScopeError is raised for one who has none, and by what
    changes anything for one who is neither supervisor nor owner; InputError for an argument that is none. A revision is
    its number, or its text such as "r8".
    """

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._office = PlanOffice(services.database, tenant, services.keys)
        self._roles = Roles(services.database, tenant, services.keys)

    async def all(self, name: str | None = None, *, actor: str) -> Sequence[RevisionEntry]:
        """Every revision of every plan, or of one, the newest first."""
        await self._roles.require(actor, STAFF)
        return await self._office.revisions(None if name is None else checked_plan_name(name))

    async def show(
        self, revision: int | str | None = None, *, actor: str, name: str | None = None
    ) -> ShownRevision:
        """A revision, None: the one in force. Raises SettingsError when it is missing or refused."""
        await self._roles.require(actor, STAFF)
        sealed, verified = await self._office.read(self._named(name), _wanted(revision))
        return ShownRevision(verified, sealed)

    async def compile(
        self,
        draft: Plan | str,
        *,
        actor: str,
        without: Sequence[str] = (),
        include: Sequence[str] = (),
    ) -> Revision:
        """Make the next signed revision of a draft: a plan, the name of one that ships, or a YAML file. The name of a
        plan of the tenant's own stands for what its last revision says by itself, where nothing but proposals is new.

        It changes nothing until it is activated. It takes in the proposals that were approved since; ``without``
        names proposals, rules, cases or tools whose change it leaves out, as every later revision does until
        ``include`` names the proposal's id. So comes in again what a rollback left behind, too.

        Raises SettingsError for a draft that could not be used: an unknown tool or source, a pack that is
        missing, refused or over budget (C-23); InputError for a rule that no proposal brought (OR-21), and for what
        cannot be left out or taken in.
        """
        await self._roles.require(actor, SUPERVISING)
        without, include = checked_names("without", without), checked_names("include", include)
        draft = await self._draft(draft)
        parent = await self._office.next_parent(draft.name)
        refuse_unknown_tools(_newly_named(draft, parent), self._services.app_tools)
        await self._require_usable(draft)
        proposals = Proposals(self._services.database, self._tenant, self._services.keys)
        return await self._office.compile_revision(
            draft,
            await proposals.changes(draft.name, without, include),
            actor=actor,
            at=self._services.clock(),
            also=proposals.included,
        )

    async def activate(
        self, revision: int | str, *, actor: str, name: str | None = None
    ) -> ActivatedRevision:
        """Put a revision in force: turns that begin from now on run under it, those under way end as they began.

        What its eval cases say against it is logged before, stands in ``against`` and in the audit (OR-35);
        ``agent.governance.evaluations`` tells it without putting anything in force.

        Raises InputError when it is in force, SettingsError when it cannot be used.
        """
        return await self._put_in_force(self._named(name), checked_revision(revision), actor)

    async def removed_types(self, revision: Revision, *, actor: str) -> dict[str, int]:
        """Types of key event that the parent had and this revision has not, with the events of each in the tenant.

        They keep their type and stay readable; whoever activates the revision should know (IM-18).
        """
        await self._roles.require(actor, STAFF)
        checked_instance("revision", revision, Revision)
        if revision.parent is None:
            return {}
        shelf = PlanShelf(self._services.database, self._services.keys)
        parent = await shelf.load(self._tenant, revision.plan.name, revision.parent)
        removed = removed_types(parent.plan, revision.plan)
        counted = await OperatorEvents(self._services.database, self._tenant).count(removed)
        return {name: counted[name] for name in removed if name in counted}

    async def rollback(
        self, revision: int | str | None = None, *, actor: str, name: str | None = None
    ) -> ActivatedRevision:
        """Return to an earlier revision, None: to the one before (IM-50), as :meth:`activate` does.

        Raises InputError when there is none earlier, SettingsError when one of its packs or tools is gone.
        """
        name = self._named(name)
        return await self._put_in_force(
            name, await self._office.earlier(name, _wanted(revision), actor=actor), actor
        )

    async def diff(
        self,
        before: int | str | Plan,
        after: int | str | Plan | None = None,
        *,
        actor: str,
        name: str | None = None,
    ) -> list[Difference]:
        """What differs between two revisions or drafts; ``after`` None is the revision in force."""
        await self._roles.require(actor, STAFF)
        old = before if isinstance(before, Plan) else checked_revision(before)
        return differences(await self._plan(old, name), await self._plan(after, name))

    async def stop(self, *, actor: str, all_tools: bool = False, name: str | None = None) -> EmergencyStop:
        """Let no auto-approve rule hold from now on, with ``all_tools`` let every tool wait (IM-52).

        It acts at once, in turns under way too, and can only become stricter until an owner lifts it. ``name`` may be
        the YAML file of a draft. Raises SettingsError for a plan that nothing is known of here.
        """
        await self._roles.require(actor, SUPERVISING)
        checked_flag("all_tools", all_tools)
        plan = await self._name_or_file(name)
        if name == plan != self._services.plan.name:
            # A slip must not pass for a stop.
            await self._office.require_plan(plan)
        return await self._office.stop(plan, all_tools=all_tools, actor=actor, at=self._services.clock())

    async def lift(self, *, actor: str, name: str | None = None) -> None:
        """End the emergency stop. Raises ScopeError for one who is no owner, InputError when there is none."""
        await self._office.lift(await self._name_or_file(name), actor=actor, at=self._services.clock())

    async def stopped(self, name: str | None = None, *, actor: str) -> EmergencyStop | None:
        """The emergency stop that is on."""
        await self._roles.require(actor, STAFF)
        return await self._office.stop_of(await self._name_or_file(name))

    async def stops(self, *, actor: str) -> Mapping[str, EmergencyStop]:
        """Every emergency stop that is on, by plan."""
        await self._roles.require(actor, STAFF)
        return await self._office.stops()

    async def rotate_key(self, *, actor: str) -> KeyRecord:
        """Sign with a new key from now on; what the old one signed stays valid. An owner's decision (A-28)."""
        return await self._office.rotate_key(actor=actor, at=self._services.clock())

    def _named(self, name: str | None) -> str:
        return self._services.plan.name if name is None else checked_plan_name(name)

    async def _name_or_file(self, name: str | None) -> str:
        """As :meth:`_named`; of a YAML file the name of the draft in it, which may be known nowhere else."""
        is_draft = isinstance(name, str) and is_file(name)
        return (await self._draft(name)).name if name and is_draft else self._named(name)

    async def _draft(self, draft: Plan | str) -> Plan:
        if not isinstance(draft, str):
            return checked_instance("draft", draft, Plan)
        name = str(checked_path("draft", draft))
        if is_file(name) or name in shipped_plans():
            return await asyncio.to_thread(load_plan, name)
        return await self._office.draft_of(name)

    async def _plan(self, version: int | str | Plan | None, name: str | None) -> Plan:
        if isinstance(version, Plan):
            return version
        _, revision = await self._office.read(self._named(name), _wanted(version))
        return revision.plan

    async def _put_in_force(self, name: str, number: int, actor: str) -> ActivatedRevision:
        await self._roles.require(actor, SUPERVISING)
        _, revision = await self._office.read(name, number)
        await self._require_usable(revision.plan)
        tried = await Evaluations(self._services, self._tenant).newest(revision, actor=actor)
        against = objection(revision, tried)
        if against is not None:
            _log.warning("%s", against.en)
        at = self._services.clock()
        await self._office.activate(name, number, actor=actor, at=at, tried=_outcome(revision, tried))
        return ActivatedRevision(**vars(revision), against=against)

    async def _require_usable(self, plan: Plan) -> None:
        """What would fail at the first turn fails here: a tool that the plan has to have, a pack.

        A name in ``four_eyes`` that nobody brings here only narrows. It was no slip when the revision was compiled,
        and an app may bring it.
        """
        trial = self._services.in_force.equip(self._services, plan)
        await refuse_unusable_packs(trial, self._tenant)


def _newly_named(draft: Plan, parent: Revision | None) -> Plan:
    """The draft without those names of tools that its parent has in the same place: they were checked with that, where
    the app was that brings them.
    """
    if parent is None:
        return draft
    before = parent.plan
    update = {
        "four_eyes": tuple(tool for tool in draft.four_eyes if tool not in before.four_eyes),
        "deactivated_tools": tuple(
            tool for tool in draft.deactivated_tools if tool not in before.deactivated_tools
        ),
    }
    return draft.model_copy(update=update)


def _outcome(revision: Revision, tried: EvalRun | None) -> str | None:
    """What came of a revision's eval cases, in a word for the audit; None where it has none."""
    if not revision.plan.eval_cases:
        return None
    if tried is None:
        return "never tried"
    return "failed" if tried.failed else "passed"


def _wanted(revision: int | str | None) -> int | None:
    """The number of a revision; None: whichever is in force, or came before."""
    return None if revision is None else checked_revision(revision)
