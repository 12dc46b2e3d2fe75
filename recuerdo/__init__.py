"""Recuerdo: a LangGraph agent that manages its own context and memory.

The public face. Each name is loaded at its first use, so that a room can be imported without the whole house
and the command line starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recuerdo.agent import Agent
    from recuerdo.graph.studio import build_graph
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
    from recuerdo.stores.settings import Settings
    from recuerdo.stores.sources.registry import Source, SourceQuery
    from recuerdo.turn import Turn, TurnChunk

_HOMES = {
    "recuerdo.agent": ("Agent",),
    "recuerdo.graph.studio": ("build_graph",),
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
    "recuerdo.stores.settings": ("Settings",),
    "recuerdo.stores.sources.registry": ("Source", "SourceQuery"),
    "recuerdo.turn": ("Turn", "TurnChunk"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "BudgetError",
    "BusyError",
    "InputError",
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
    "open_agent",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
