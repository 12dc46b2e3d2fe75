"""Names in Chroma for any tenant and any assistant: legal, and never the same for two (ET-27, IM-29)."""

import re
from hashlib import sha256

# What Chroma takes as it is: ASCII letters and digits, "-", "_" and single dots, a letter or digit first.
_PLAIN = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9_-]|\.(?!\.)){0,199}")
# Begins every hashed name, and no other.
_HASHED = "x--"


def database_name(tenant: str) -> str:
    """The Chroma database of ``tenant``."""
    return f"tenant-{tenant}" if _PLAIN.fullmatch(tenant) else _hashed(tenant)


def collection_name(assistant: str) -> str:
    """The collection of ``assistant``: ``{assistant}_memories`` wherever Chroma allows that name."""
    plain = _PLAIN.fullmatch(assistant) and not assistant.startswith(_HASHED)
    return f"{assistant if plain else _hashed(assistant)}_memories"


def _hashed(text: str) -> str:
    return _HASHED + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
