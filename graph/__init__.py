"""How things are wired: the turn graph and the factory for LangGraph Studio."""
