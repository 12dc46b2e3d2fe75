"""The three tools of key events: for the agent's own loop, and alone for any other (LA-19, IM-4)."""

from recuerdo.nodes.run_tools.key_events.scope import RESULT, agent_scope, key_event_tools
from recuerdo.nodes.run_tools.key_events.tools import KEY_EVENT_TOOLS, make_tools

__all__ = ["KEY_EVENT_TOOLS", "RESULT", "agent_scope", "key_event_tools", "make_tools"]
