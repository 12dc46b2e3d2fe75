"""No query without a scope: tenant, and user or session (C-11)."""

from recuerdo.state.errors import ScopeError
from recuerdo.state.sentences import load_sentences

_sentences = load_sentences(__package__)


def require_scope(**parts: str | None) -> None:
    """Raise ScopeError that names the first part which is missing or empty."""
    for name, value in parts.items():
        if not value:
            raise ScopeError(_sentences("scope_missing", part=name))
