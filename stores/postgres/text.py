"""What PostgreSQL cannot hold is replaced, and what long-term memory may not hold is taken out."""

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any

from recuerdo.stores.sensitive import redact

_log = logging.getLogger(__name__)
_REFUSED = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def storable(text: str) -> str:
    """``text`` with NUL and lone surrogates, which PostgreSQL refuses, replaced by U+FFFD."""
    return _REFUSED.sub(_REPLACEMENT, text)


def storable_json(value: Any) -> Any:
    """``value`` (plain JSON data) with every text in it made storable."""
    return _map_texts(value, storable)


async def without_sensitive(value: Any) -> Any:
    """A text, or plain JSON data, with sensitive spans taken out (RF-33); logs the kinds, never the value."""
    kinds: set[str] = set()
    cleaned = await asyncio.to_thread(_map_texts, value, lambda text: _redacted(text, kinds))
    if kinds:
        _log.info("redacted before storing: %s", ", ".join(sorted(kinds)))
    return cleaned


def _redacted(text: str, kinds: set[str]) -> str:
    result = redact(storable(text))
    kinds.update(result.kinds)
    return result.text


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(str(key)): _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return value
