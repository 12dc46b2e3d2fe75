"""The services that nodes use beside the state: plan, model, stores, sources, clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from recuerdo.state.plan import Plan
from recuerdo.stores.chroma import VectorIndex
from recuerdo.stores.embeddings import Embedder
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.memory_store.opening import TenantStores
from recuerdo.stores.plans import Revision
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.token_factors import TokenFactor
from recuerdo.stores.settings import Settings
from recuerdo.stores.sources.calendar import MarketCalendar
from recuerdo.stores.sources.registry import Sources
from recuerdo.stores.tokens import TokenCounter

Clock = Callable[[], datetime]
"""Returns the present instant, aware."""


def system_clock() -> datetime:
    """The machine's clock."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Toolbox:
    """The tools of an agent by name, and their schemas as they are sent."""

    tools: dict[str, BaseTool] = field(default_factory=dict)
    schemas: list[dict[str, Any]] = field(default_factory=list)


class InForce(Protocol):
    """Gives services another plan: the one in force, or one that is tried."""

    async def under(self, services: "Services", tenant: str, sha256: str | None) -> "Services":
        """The services under the revision of that hash, None: under the one in force."""
        ...

    def equip(self, services: "Services", plan: Plan) -> "Services":
        """The services with this plan, its tools and its sources, as a draft."""
        ...


@dataclass(frozen=True)
class Services:
    """Everything a node may use beside the state. Opened by :mod:`recuerdo.graph.services`.

    ``revision`` is the signed revision that ``plan`` is of, None for a draft.
    """

    settings: Settings
    plan: Plan
    revision: Revision | None
    model: BaseChatModel
    database: Database
    index: VectorIndex
    embedder: Embedder
    counter: TokenCounter
    factor: TokenFactor
    sources: Sources
    calendar: MarketCalendar
    clock: Clock
    toolbox: Toolbox
    stores: TenantStores
    keys: KeyFolder
    app_tools: Sequence[BaseTool]
    in_force: InForce

    async def under(self, tenant: str, sha256: str | None = None) -> "Services":
        """The services under a tenant's signed revision, by its hash; None: the one in force now (OR-20).

        A draft stays what it is. Raises SettingsError when the revision is missing or refused.
        """
        return await self.in_force.under(self, tenant, sha256)
