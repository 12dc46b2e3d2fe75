"""Which plan a turn runs under: the revision in force for its tenant, read when the turn begins (OR-20).

Tools and sources belong to a plan, so they change with it; what two revisions have in common, they share.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from langchain_core.tools import BaseTool

from recuerdo.nodes.run_tools.toolbox import make_toolbox
from recuerdo.nodes.services import Clock, Services, Toolbox
from recuerdo.state.plan import Plan
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.plans import PlanOffice, PlanShelf, Revision, load_plan, shipped_plans
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.sources.registry import Sources


class Equipment:
    """The tools and sources of each plan, made once. ``make_sources`` sees to it that they are closed."""

    def __init__(self, app_tools: Sequence[BaseTool], make_sources: Callable[[Plan], Sources]) -> None:
        self._app_tools = app_tools
        self._make_sources = make_sources
        self._tools: dict[str, Toolbox] = {}
        self._sources: dict[str, Sources] = {}

    def of(self, plan: Plan) -> tuple[Toolbox, Sources]:
        """Tools and sources. Raises SettingsError when the plan names one that does not exist."""
        whole, sources = plan.model_dump_json(), plan.model_dump_json(include={"sources"})
        if whole not in self._tools:
            self._tools[whole] = make_toolbox(plan, self._app_tools)
        if sources not in self._sources:
            self._sources[sources] = self._make_sources(plan)
        return self._tools[whole], self._sources[sources]

    def fit(self, services: Services, plan: Plan, revision: Revision | None) -> Services:
        """The services with another plan."""
        toolbox, sources = self.of(plan)
        return replace(services, plan=plan, revision=revision, toolbox=toolbox, sources=sources)


class OneDraft:
    """A draft is in force for as long as its services are open."""

    def __init__(self, plan: Plan, equipment: Equipment) -> None:
        self._plan = plan
        self._equipment = equipment

    async def first(self, tenant: str) -> tuple[Plan, Revision | None]:
        """What the services open with."""
        return self._plan, None

    async def under(self, services: Services, tenant: str, sha256: str | None) -> Services:
        """The services as they are."""
        return services

    def equip(self, services: Services, plan: Plan) -> Services:
        """The services with another draft."""
        return self._equipment.fit(services, plan, None)


class SignedPlans:
    """The signed revisions of one plan, for any tenant. One that ships is signed at a tenant's first use."""

    def __init__(
        self,
        name: str,
        database: Database,
        keys: KeyFolder,
        clock: Clock,
        equipment: Equipment,
        *,
        to_look: bool = False,
    ) -> None:
        self._name = name
        self._database = database
        self._keys = keys
        self._clock = clock
        self._equipment = equipment
        self._to_look = to_look
        self._shelf = PlanShelf(database, keys)
        self._fitted: dict[tuple[str, str], tuple[Toolbox, Sources]] = {}

    async def first(self, tenant: str) -> tuple[Plan, Revision | None]:
        """What the services open with. Raises SettingsError when there is no such plan, or it is refused.

        Who opens them only to look signs nothing: where no revision was ever in force he sees the draft that ships.
        """
        revision = await self._shelf.active(tenant, self._name)
        if revision is None and self._to_look and self._name in shipped_plans():
            return await asyncio.to_thread(load_plan, self._name), None
        revision = revision or await self._active(tenant)
        return revision.plan, revision

    async def under(self, services: Services, tenant: str, sha256: str | None) -> Services:
        """The services under the revision of that hash, None: under the one in force."""
        revision = (
            await self._shelf.load(tenant, self._name, sha256) if sha256 else await self._active(tenant)
        )
        if services.revision is revision:
            return services
        key = (tenant, revision.sha256)
        if key not in self._fitted:
            self._fitted[key] = self._equipment.of(revision.plan)
        toolbox, sources = self._fitted[key]
        return replace(services, plan=revision.plan, revision=revision, toolbox=toolbox, sources=sources)

    def equip(self, services: Services, plan: Plan) -> Services:
        """The services with a draft that is tried."""
        return self._equipment.fit(services, plan, None)

    async def _active(self, tenant: str) -> Revision:
        revision = await self._shelf.active(tenant, self._name)
        if revision is None:
            await PlanOffice(self._database, tenant, self._keys).first_use(self._name, self._clock())
            revision = await self._shelf.active(tenant, self._name)
        assert revision is not None, "activated, or an error"
        return revision
