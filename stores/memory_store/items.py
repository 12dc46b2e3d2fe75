"""Items of the store as they are kept, and what may be one: checked before anything is written."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Protocol

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
    get_text_at_path,
    validate_op_namespace,
)

from recuerdo.state.errors import InputError
from recuerdo.state.levels import EPISODIC, Level
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.memory_store.filters import Condition
from recuerdo.stores.memory_store.namespaces import NamespaceQuery, memory_scope
from recuerdo.stores.postgres.arguments import MOST_ROWS
from recuerdo.stores.postgres.text import storable
from recuerdo.stores.sensitive.naming import is_sensitive_name

sentences = load_sentences(__package__, "items_sentences.yaml")

MAX_VALUE_BYTES = 1_000_000
"""JSON bytes of an item's value."""

MAX_ADDRESS_BYTES = 1_500
"""UTF-8 bytes of namespace and key together: what an index of PostgreSQL takes."""

MAX_DEPTH = 50
"""Labels of a namespace."""

MAX_TTL_MINUTES = 100 * 366 * 24 * 60

# Fields that are the text itself: their names say nothing of it.
_TEXT_FIELDS = frozenset({"content", "text"})

Namespace = tuple[str, ...]


class ItemError(InputError, ValueError):
    """An operation on the store cannot be taken as it is."""


class NamespaceError(InputError, InvalidNamespaceError):
    """A namespace cannot be kept."""


@dataclass(frozen=True, order=True)
class ItemKey:
    """Where an item is."""

    namespace: Namespace
    key: str


@dataclass(frozen=True)
class NewItem:
    """An item to write. ``value`` is plain JSON data; ``ttl`` minutes, None: it stays.

    ``text`` is what search compares, None: the item is not found by a query. ``embedding`` (little-endian
    float32, of length 1) and ``embedder`` are both given or neither.
    """

    at: ItemKey
    value: dict[str, Any]
    ttl: float | None
    text: str | None
    terms: bytes | None
    embedding: bytes | None = None
    embedder: str | None = None


@dataclass(frozen=True)
class StoredItem:
    """An item in force; ``ttl`` minutes from its last read, None: it stays."""

    at: ItemKey
    value: dict[str, Any]
    ttl: float | None
    created_at: datetime
    updated_at: datetime


class KeptItem(Item):
    """An item as LangGraph's store gives it, which says its level too (OR-2)."""

    level: Final[Level] = EPISODIC

    def dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**super().dict(), "level": self.level}


class FoundItem(SearchItem):
    """The same for an item that a search has found."""

    level: Final[Level] = EPISODIC

    def dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**super().dict(), "level": self.level}


@dataclass(frozen=True)
class Candidate:
    """What search compares of an item; ``embedding`` is little-endian float32."""

    at: ItemKey
    text: str
    terms: bytes
    analyzer: str
    embedding: bytes | None
    embedder: str | None


class ItemTable(Protocol):
    """The items of one tenant. What reads returns only what is in force at ``now``."""

    async def get(self, keys: Sequence[ItemKey], now: datetime) -> dict[ItemKey, StoredItem]:
        """Those of ``keys`` that are there."""
        ...

    async def newest(
        self, prefix: Namespace, conditions: Sequence[Condition], now: datetime, limit: int, offset: int
    ) -> list[StoredItem]:
        """Items below ``prefix`` that meet all conditions, last changed first."""
        ...

    async def candidates(
        self, prefix: Namespace, conditions: Sequence[Condition], now: datetime
    ) -> list[Candidate]:
        """All items below ``prefix`` that meet all conditions and can be found by a query; in no order."""
        ...

    async def namespaces(self, query: NamespaceQuery, now: datetime) -> list[Namespace]:
        """Namespaces with items, in order, none twice."""
        ...

    async def touch(self, keys: Sequence[ItemKey], now: datetime) -> None:
        """Count the expiry of those that have one anew from ``now``."""
        ...

    async def write(self, items: Sequence[NewItem], deleted: Sequence[ItemKey], now: datetime) -> None:
        """Write and delete in one transaction; an item that is there keeps the time of its creation."""
        ...

    async def keep_embeddings(self, candidates: Sequence[Candidate]) -> None:
        """Keep their vectors beside the texts they were made of, unless a text has changed meanwhile."""
        ...


def check_op(op: Op) -> None:
    """Raise NamespaceError (also LangGraph's InvalidNamespaceError) or ItemError for what cannot be done."""
    validate_op_namespace(op)
    if isinstance(op, GetOp | PutOp):
        _check_address(op.namespace, op.key)
    if isinstance(op, PutOp):
        _check_put(op)
    if isinstance(op, SearchOp | ListNamespacesOp):
        _check_page(op.limit, op.offset)
    if isinstance(op, SearchOp):
        _check_labels(op.namespace_prefix)
    if isinstance(op, ListNamespacesOp):
        _check_listing(op)


def check_names(puts: Sequence[PutOp]) -> None:
    """Raise ItemError for a key or a label that is sensitive itself (C-16): refused, for altered it is not found.

    The names in the namespace of a user's memories are those of assistant and user, whatever they look like (C-19).
    """
    named = {op.key for op in puts}
    named |= {label for op in puts if not memory_scope(tuple(op.namespace)) for label in op.namespace}
    if any(map(is_sensitive_name, named)):
        raise ItemError(sentences("name_sensitive"))


def plain_value(value: Mapping[str, Any]) -> dict[str, Any]:
    """``value`` as JSON keeps it: a copy that shares nothing with the caller's. Raises ItemError."""
    if not isinstance(value, Mapping):
        raise ItemError(sentences("value_no_mapping"))
    try:
        text = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise ItemError(sentences("value_no_json")) from None
    if len(text.encode("utf-8", "replace")) > MAX_VALUE_BYTES:
        raise ItemError(sentences("value_too_large", bytes=MAX_VALUE_BYTES))
    plain: dict[str, Any] = json.loads(text)
    return plain


def searched_text(value: dict[str, Any], index: Literal[False] | list[str] | None) -> str | None:
    """What search compares of a value: all of it, what stands at the paths ``index``, or (False) nothing."""
    if index is False:
        return None
    lines = _lines(value, "") if index is None else _at_paths(value, index)
    return "\n".join(lines) if any(line.strip() for line in lines) else None


def _at_paths(value: dict[str, Any], paths: list[str]) -> list[str]:
    return [text for path in paths for text in get_text_at_path(value, path)]


def expiry(ttl: float | None, now: datetime) -> datetime | None:
    """When an item of so many minutes goes; None: it stays."""
    return None if ttl is None else now + timedelta(minutes=ttl)


def _lines(value: Any, name: str) -> list[str]:
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in _lines(item, key)]
    if isinstance(value, list):
        return [line for item in value for line in _lines(item, name)]
    if value is None:
        return []
    said = value if isinstance(value, str) else json.dumps(value)
    return [said if not name or name in _TEXT_FIELDS else f"{name}: {said}"]


def _check_address(namespace: Namespace, key: str) -> None:
    if not isinstance(key, str) or not key or storable(key) != key:
        raise ItemError(sentences("key_invalid"))
    _check_labels(namespace, key)
    if not namespace:
        raise _bad_namespace()


def _check_labels(namespace: Namespace, key: str = "") -> None:
    address = ".".join((*namespace, key))
    if storable(address) != address or len(namespace) > MAX_DEPTH:
        raise _bad_namespace()
    if len(address.encode()) > MAX_ADDRESS_BYTES:
        raise _bad_namespace()


def _bad_namespace() -> NamespaceError:
    return NamespaceError(sentences("namespace_invalid", depth=MAX_DEPTH, bytes=MAX_ADDRESS_BYTES))


def _check_put(op: PutOp) -> None:
    paths = op.index
    if not (paths is None or paths is False or _are_texts(paths)):
        raise ItemError(sentences("index_invalid"))
    if op.ttl is not None and not _is_minutes(op.ttl):
        raise ItemError(sentences("ttl_invalid", minutes=MAX_TTL_MINUTES))


def _are_texts(paths: object) -> bool:
    return isinstance(paths, list | tuple) and all(isinstance(path, str) for path in paths)


def _is_minutes(ttl: object) -> bool:
    number = isinstance(ttl, int | float) and not isinstance(ttl, bool)
    return number and math.isfinite(ttl) and abs(ttl) <= MAX_TTL_MINUTES  # type: ignore[arg-type]


def _check_listing(op: ListNamespacesOp) -> None:
    if op.max_depth is not None and not _is_count(op.max_depth, 1):
        raise ItemError(sentences("depth_invalid"))
    if any(each.match_type not in ("prefix", "suffix") for each in op.match_conditions or ()):
        raise ItemError(sentences("match_type_unknown"))


def _check_page(limit: object, offset: object) -> None:
    if not (_is_count(limit, 0) and _is_count(offset, 0)):
        raise ItemError(sentences("page_invalid"))


def _is_count(number: object, least: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and least <= number <= MOST_ROWS
