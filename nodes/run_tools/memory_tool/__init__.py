"""``MemoryTool``: what a model remembers of its user, in four modes; usable with any LangChain agent (ET)."""

from recuerdo.nodes.run_tools.memory_tool.operations import Backing, HasMemories
from recuerdo.nodes.run_tools.memory_tool.tool import MemoryTool
from recuerdo.nodes.services import Clock, system_clock

__all__ = ["MemoryTool", "memory_tool"]


def memory_tool(store: HasMemories, *, inferred: bool = False, clock: Clock = system_clock) -> MemoryTool:
    """The tool ``MemoryTool`` over a store, to be used alone (ET-1, ET-40).

    Whose memories a call is about comes with it: ``config["configurable"]`` holds ``assistant_id`` and
    ``ad_user_id``.

    Args:
        store: any store of ours, the one in memory included.
        inferred: what the model adds counts as inferred, so it is kept 7 days, not 90 (C-8).
        clock: returns the present instant, aware.
    """
    backing = Backing(store, clock, inferred=inferred)
    return MemoryTool(backing=lambda config: backing)
