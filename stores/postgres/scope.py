"""No query without a scope: tenant, and user or session (C-11)."""

from recuerdo.state.errors import ScopeError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.text import storable

_sentences = load_sentences(__package__)

LONGEST_NAME = 200
"""Characters of a tenant's, assistant's, user's or conversation's name."""


def require_scope(**parts: str | None) -> None:
    """Raise ScopeError that names the first part which is missing, empty or no name that can be kept."""
    for name, value in parts.items():
        if not value:
            key = "actor_missing" if name == "actor" else "scope_missing"
            raise ScopeError(_sentences(key, part=name))
        if not isinstance(value, str) or storable(value) != value:
            raise ScopeError(_sentences("scope_no_text", part=name))
        if len(value) > LONGEST_NAME:
            raise ScopeError(_sentences("scope_too_long", part=name, longest=LONGEST_NAME))
