"""Reads key events out of conversations that have ended, for agents that do not write them themselves (LA-26)."""

from recuerdo.nodes.extract_events.run import PERIOD, ConversationEvents, EventReader

__all__ = ["PERIOD", "ConversationEvents", "EventReader"]
