"""The services that nodes use beside the state: plan, model, stores, sources, clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from recuerdo.state.plan import Plan
from recuerdo.stores.chroma import VectorIndex
from recuerdo.stores.embeddings import Embedder
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


@dataclass(frozen=True)
class Services:
    """Everything a node may use beside the state. Opened by :mod:`recuerdo.graph.services`."""

    settings: Settings
    plan: Plan
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
