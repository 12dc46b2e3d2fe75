"""What a model calls the tool with, checked: each fault is refused with the text that names it (ET-32 to ET-34)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from recuerdo.nodes.run_tools.memory_tool import texts

Mode = Literal["add", "search", "update", "delete"]
MODES: tuple[Mode, ...] = get_args(Mode)

ASSISTANT, USER = "assistant_id", "ad_user_id"
"""Keys in ``configurable`` that say whose memories a call is about (ET-30, ET-31)."""

_ECHOED = 100


class Refused(Exception):
    """The call cannot be done; the text goes to the model."""


@dataclass(frozen=True)
class Scope:
    """Whose memories: from the run's config, never from what the model writes (ET-28)."""

    assistant: str
    user: str


def checked_mode(arguments: Mapping[str, Any]) -> Mode:
    """One of the four, in small letters (ET-36, C-37)."""
    asked = arguments.get("mode")
    for mode in MODES:
        if asked == mode:
            return mode
    raise Refused(texts.INVALID_MODE.format(mode="" if asked is None else echoed(asked)))


def checked_scope(config: RunnableConfig) -> Scope:
    """Both, as opaque texts (C-19); whether they are names that can be kept is the store's to say."""
    configurable: dict[str, Any] = config.get("configurable") or {}
    if _is_missing(configurable.get(ASSISTANT)) or _is_missing(configurable.get(USER)):
        raise Refused(texts.NO_CONTEXT)
    return Scope(configurable[ASSISTANT], configurable[USER])


def required(arguments: Mapping[str, Any], names: tuple[str, ...], missing: str) -> tuple[str, ...]:
    """The texts of these arguments. Blank ones are missing (IM-27): refused with the sentence ``missing``."""
    values = tuple(arguments.get(name) for name in names)
    if any(map(_is_missing, values)):
        raise Refused(missing)
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, str):
            raise Refused(texts.NOT_TEXT.format(name=name))
    return tuple(str(value) for value in values)


def checked_k(arguments: Mapping[str, Any]) -> int:
    """How many results at most (ET-10, IM-27)."""
    k = arguments.get("k", texts.DEFAULT_K)
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= texts.MOST_K:
        raise Refused(texts.INVALID_K)
    return k


def as_id(memory_id: str) -> UUID | None:
    """The id, None for what is none: that names no memory."""
    try:
        return UUID(memory_id)
    except ValueError:
        return None


def echoed(value: object) -> str:
    """What the model wrote, in an error: the beginning of it."""
    text = str(value)
    return text if len(text) <= _ECHOED else text[:_ECHOED] + "…"


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
