"""Names in Chroma for any tenant and any assistant: legal, and never the same for two (ET-27, IM-29)."""

import re
from hashlib import blake2b, sha256

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


def user_digest(user: str, salt: str) -> str:
    """What stands in the index for a user: no file of it names anybody. ``salt`` is the collection's, hexadecimal."""
    return blake2b(_encoded(user), key=bytes.fromhex(salt), digest_size=16).hexdigest()


def _hashed(text: str) -> str:
    return _HASHED + sha256(_encoded(text)).hexdigest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
