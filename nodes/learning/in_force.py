"""Which plan a tenant's evidence belongs to, as it is in force, and which tools it has had for the whole period."""

import logging
from dataclasses import dataclass
from datetime import datetime

from recuerdo.nodes.services import Services, Toolbox
from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan
from recuerdo.stores.plans import PlanOffice, PlanShelf, Revision
from recuerdo.stores.plans.rows import activations

_log = logging.getLogger(__name__)

_ACTIVATIONS = 200
"""Activations that are looked through; with more of them in one period nothing counts as old."""


@dataclass(frozen=True)
class PlanInForce:
    """A plan as it is in force for a tenant; ``revision`` is None for the draft that the services run under."""

    plan: Plan
    revision: Revision | None

    @property
    def number(self) -> int | None:
        """Number of the revision."""
        return self.revision.number if self.revision else None


@dataclass(frozen=True)
class LongHeld:
    """Tools that were in force from the beginning of the period on, and since when that revision was."""

    tools: frozenset[str] = frozenset()
    since: datetime | None = None


async def plan_in_force(services: Services, tenant: str, name: str) -> PlanInForce | None:
    """The plan of that name; None where nothing of it is in force, or what is has been refused: no one learns under
    such a revision, and the tenant's other plans go on.
    """
    try:
        revision = await PlanShelf(services.database, services.keys).active(tenant, name)
    except SettingsError:
        _log.warning("learning: the revision in force of the plan %s is refused", name)
        return None
    if revision is not None:
        return PlanInForce(revision.plan, revision)
    is_draft = services.revision is None and services.plan.name == name
    return PlanInForce(services.plan, None) if is_draft else None


def toolbox_of(services: Services, plan: Plan) -> Toolbox:
    """The plan's tools; none where it names one that this program does not have."""
    try:
        return services.in_force.equip(services, plan).toolbox
    except SettingsError:
        return Toolbox()


async def long_held(services: Services, tenant: str, found: PlanInForce, since: datetime) -> LongHeld:
    """The tools that every revision in force since then has had (A-34: younger ones are left alone).

    Nobody knows how old a draft is: it has none.
    """
    if found.revision is None:
        return LongHeld()
    name = found.plan.name
    async with services.database.tenant(tenant) as connection:
        history = await activations(connection, tenant, name, _ACTIVATIONS)
    before = next((index for index, one in enumerate(history) if one.activated_at <= since), None)
    if before is None:
        return LongHeld()
    office = PlanOffice(services.database, tenant, services.keys)
    try:
        plans = [(await office.read(name, one.number))[1].plan for one in history[: before + 1]]
    except SettingsError:
        # What one of them held is not known: nothing counts as old.
        return LongHeld()
    held = [frozenset(toolbox_of(services, plan).tools) for plan in plans]
    return LongHeld(frozenset.intersection(*held), history[before].activated_at)
