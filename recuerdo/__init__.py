"""Recuerdo: a LangGraph agent that manages its own context and memory.

The public face. Each name is loaded at its first use, so that a room can be imported without the whole house
and the command line starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recuerdo.agent import Agent
    from recuerdo.graph.studio import build_graph
    from recuerdo.nodes.run_tools.key_events import key_event_tools
    from recuerdo.nodes.run_tools.memory_tool import memory_tool
    from recuerdo.opening import open_agent
    from recuerdo.state.errors import (
        BudgetError,
        BusyError,
        InputError,
        ModelError,
        RecuerdoError,
        ScopeError,
        SettingsError,
        StoreError,
    )
    from recuerdo.state.plan import Plan
    from recuerdo.state.record import TurnRecord
    from recuerdo.store import open_store
    from recuerdo.stores.memory_store.namespaces import memories_namespace
    from recuerdo.stores.memory_store.opening import InMemoryStore
    from recuerdo.stores.memory_store.store import MemoryStore
    from recuerdo.stores.plans import load_plan
    from recuerdo.stores.settings import Settings
    from recuerdo.stores.sources.registry import Source, SourceQuery
    from recuerdo.turn import Turn, TurnChunk

_HOMES = {
    "recuerdo.agent": ("Agent",),
    "recuerdo.graph.studio": ("build_graph",),
    "recuerdo.nodes.run_tools.key_events": ("key_event_tools",),
    "recuerdo.nodes.run_tools.memory_tool": ("memory_tool",),
    "recuerdo.opening": ("open_agent",),
    "recuerdo.state.errors": (
        "BudgetError",
        "BusyError",
        "InputError",
        "ModelError",
        "RecuerdoError",
        "ScopeError",
        "SettingsError",
        "StoreError",
    ),
    "recuerdo.state.plan": ("Plan",),
    "recuerdo.state.record": ("TurnRecord",),
    "recuerdo.store": ("open_store",),
    "recuerdo.stores.memory_store.namespaces": ("memories_namespace",),
    "recuerdo.stores.memory_store.opening": ("InMemoryStore",),
    "recuerdo.stores.memory_store.store": ("MemoryStore",),
    "recuerdo.stores.plans": ("load_plan",),
    "recuerdo.stores.settings": ("Settings",),
    "recuerdo.stores.sources.registry": ("Source", "SourceQuery"),
    "recuerdo.turn": ("Turn", "TurnChunk"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "BudgetError",
    "BusyError",
    "InMemoryStore",
    "InputError",
    "MemoryStore",
    "ModelError",
    "Plan",
    "RecuerdoError",
    "ScopeError",
    "Settings",
    "SettingsError",
    "Source",
    "SourceQuery",
    "StoreError",
    "Turn",
    "TurnChunk",
    "TurnRecord",
    "build_graph",
    "key_event_tools",
    "load_plan",
    "memories_namespace",
    "memory_tool",
    "open_agent",
    "open_store",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
