"""One batch of a store's operations: all are checked first, reads come before writes, as PostgresStore does it."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp

from recuerdo.state.errors import StoreError
from recuerdo.stores.memory_store.filters import read_filter
from recuerdo.stores.memory_store.home import Backend
from recuerdo.stores.memory_store.items import (
    Candidate,
    FoundItem,
    ItemKey,
    KeptItem,
    NewItem,
    StoredItem,
    check_names,
    check_op,
    plain_value,
    searched_text,
)
from recuerdo.stores.memory_store.namespaces import MemoryScope, Namespace, NamespaceQuery, memory_scope
from recuerdo.stores.memory_store.ranking import Ranked, Ranking, analysed, has_vector, vector_bytes
from recuerdo.stores.memory_store.user_items import MemoryPut, UserItems, checked_puts
from recuerdo.stores.postgres.text import without_sensitive

_log = logging.getLogger(__name__)

# Of items that have no vector of the present embedder so many get one at a search; the others at the next.
_EMBEDDED_ANEW = 256

Found = tuple[StoredItem, float | None]
"""An item and, for a query, its score."""


@dataclass(frozen=True)
class _Writes:
    """What a batch writes, checked: an app's own items, and the memories of each user."""

    items: list[NewItem]
    deleted: list[ItemKey]
    memories: dict[MemoryScope, list[MemoryPut]]


async def run_batch(backend: Backend, ops: Sequence[Op]) -> list[Result]:
    """Run the operations: all are checked before any is done, reads come before writes."""
    for op in ops:
        check_op(op)
    now = backend.clock()
    results: list[Result] = [None] * len(ops)
    puts = {(tuple(op.namespace), op.key): op for op in ops if isinstance(op, PutOp)}
    writes = await _checked(list(puts.values()))
    await _read(backend, ops, results, now)
    await _write(backend, writes, now)
    return results


async def _checked(puts: Sequence[PutOp]) -> _Writes:
    await asyncio.to_thread(check_names, [op for op in puts if op.value is not None])
    own: list[PutOp] = []
    memories: defaultdict[MemoryScope, list[PutOp]] = defaultdict(list)
    for op in puts:
        scope = memory_scope(tuple(op.namespace))
        (memories[scope] if scope else own).append(op)
    return _Writes(
        await _new_items([op for op in own if op.value is not None]),
        [ItemKey(tuple(op.namespace), op.key) for op in own if op.value is None],
        {scope: await checked_puts(ops) for scope, ops in memories.items()},
    )


async def _read(backend: Backend, ops: Sequence[Op], results: list[Result], now: datetime) -> None:
    gets: dict[int, GetOp] = {}
    searches: dict[int, SearchOp] = {}
    for place, op in enumerate(ops):
        if isinstance(op, ListNamespacesOp):
            results[place] = await backend.items.namespaces(NamespaceQuery.of(op), now)
        elif isinstance(op, GetOp | SearchOp) and (scope := memory_scope(_namespace(op))):
            results[place] = await _read_memory(backend, scope, op, now)
        elif isinstance(op, GetOp):
            gets[place] = op
        elif isinstance(op, SearchOp):
            searches[place] = op
    await _get_items(backend, gets, results, now)
    await _search_items(backend, searches, results, now)


def _namespace(op: GetOp | SearchOp) -> Namespace:
    return tuple(op.namespace_prefix if isinstance(op, SearchOp) else op.namespace)


async def _read_memory(backend: Backend, scope: MemoryScope, op: GetOp | SearchOp, now: datetime) -> Result:
    items = UserItems(backend.memories(scope.assistant), scope)
    if isinstance(op, SearchOp):
        return await items.search(op, now)
    return await items.get(op, now)


async def _get_items(backend: Backend, gets: dict[int, GetOp], results: list[Result], now: datetime) -> None:
    keys = {place: ItemKey(tuple(op.namespace), op.key) for place, op in gets.items()}
    if not keys:
        return
    found = await backend.items.get(list(dict.fromkeys(keys.values())), now)
    read = [found[at] for place, at in keys.items() if at in found and gets[place].refresh_ttl]
    await _refresh(backend, read, now)
    for place, at in keys.items():
        results[place] = _item(found[at]) if at in found else None


async def _refresh(backend: Backend, read: Sequence[StoredItem], now: datetime) -> None:
    """What was read is kept for as long again, where it has an end at all."""
    keys = {item.at: None for item in read if item.ttl is not None}
    if keys:
        await backend.items.touch(list(keys), now)


async def _search_items(
    backend: Backend, searches: dict[int, SearchOp], results: list[Result], now: datetime
) -> None:
    answers = await _answers(backend, {place: op for place, op in searches.items() if op.query}, now)
    read: list[StoredItem] = []
    for place, op in searches.items():
        found = answers[place] if place in answers else await _newest(backend, op, now)
        results[place] = [_search_item(item, score) for item, score in found]
        if op.refresh_ttl:
            read += [item for item, _ in found]
    await _refresh(backend, read, now)


async def _newest(backend: Backend, op: SearchOp, now: datetime) -> list[Found]:
    conditions = read_filter(op.filter)
    found = await backend.items.newest(_namespace(op), conditions, now, op.limit, op.offset)
    return [(item, None) for item in found]


async def _answers(backend: Backend, asked: dict[int, SearchOp], now: datetime) -> dict[int, list[Found]]:
    """The answers to queries, by place: embedded in one call, and read once for the same prefix and filter."""
    queries = list(dict.fromkeys(str(op.query) for op in asked.values()))
    embeddings = await _embedded_queries(backend, queries)
    dimensions = max(map(len, embeddings.values()), default=0)
    rankings: dict[str, Ranking] = {}
    ranked: dict[int, list[Ranked]] = {}
    for place, op in asked.items():
        group = repr((_namespace(op), op.filter))
        if group not in rankings:
            rankings[group] = await _ranking(backend, op, dimensions, now)
        query = str(op.query)
        ranked[place] = await asyncio.to_thread(
            rankings[group].best, query, embeddings.get(query), op.limit, op.offset
        )
    keys = {each.at: None for best in ranked.values() for each in best}
    found = await backend.items.get(list(keys), now) if keys else {}
    return {
        place: [(found[each.at], each.score) for each in best if each.at in found]
        for place, best in ranked.items()
    }


async def _ranking(backend: Backend, op: SearchOp, dimensions: int, now: datetime) -> Ranking:
    candidates = await backend.items.candidates(_namespace(op), read_filter(op.filter), now)
    if dimensions:
        candidates = await _embedded_anew(backend, candidates, dimensions)
    return await asyncio.to_thread(Ranking, candidates, backend.embedder.name, dimensions)


async def _embedded_anew(backend: Backend, candidates: list[Candidate], dimensions: int) -> list[Candidate]:
    """Items that have no vector of this embedder get one: it was away, or is another now (A-40)."""
    name = backend.embedder.name
    stale = [each for each in candidates if not has_vector(each, name, dimensions)][:_EMBEDDED_ANEW]
    if not stale:
        return candidates
    embeddings = await _embedded(backend, [each.text for each in stale])
    if embeddings is None:
        return candidates
    anew = {
        each.at: replace(each, embedding=vector_bytes(embedding), embedder=name)
        for each, embedding in zip(stale, embeddings, strict=True)
    }
    await backend.items.keep_embeddings(list(anew.values()))
    return [anew.get(each.at, each) for each in candidates]


async def _embedded_queries(backend: Backend, queries: list[str]) -> dict[str, list[float]]:
    """By query; empty while the embedder does not answer: then words alone decide."""
    if len(queries) > 1:
        embeddings = await _embedded(backend, queries)
        return dict(zip(queries, embeddings, strict=True)) if embeddings else {}
    try:
        return {query: await backend.embedder.embed_query(query) for query in queries}
    except StoreError as error:
        _log.warning("store: %s; searching by words alone", error)
        return {}


async def _embedded(backend: Backend, texts: Sequence[str]) -> list[list[float]] | None:
    """None while the embedder does not answer: the items are kept without, and embedded at a later search."""
    try:
        return await backend.embedder.embed(texts)
    except StoreError as error:
        _log.warning("store: %s; going on without vectors", error)
        return None


async def _write(backend: Backend, writes: _Writes, now: datetime) -> None:
    """Each user's memories in one transaction, and the app's own items in one; first all changes are found out."""
    users = [
        (UserItems(backend.memories(scope.assistant), scope), puts) for scope, puts in writes.memories.items()
    ]
    changes = [(items, await items.changes(puts, now)) for items, puts in users]
    new = await _with_vectors(backend, writes.items)
    for items, batch in changes:
        await items.write(batch, now)
    if new or writes.deleted:
        await backend.items.write(new, writes.deleted, now)


async def _new_items(puts: Sequence[PutOp]) -> list[NewItem]:
    """Checked, and without what is sensitive."""
    values = await without_sensitive([plain_value(op.value or {}) for op in puts])
    return await asyncio.to_thread(_analysed_items, puts, values)


async def _with_vectors(backend: Backend, items: Sequence[NewItem]) -> Sequence[NewItem]:
    """Embedded in one call."""
    having = [item for item in items if item.text is not None]
    embeddings = await _embedded(backend, [str(item.text) for item in having]) if having else None
    if embeddings is None:
        return items
    name = backend.embedder.name
    vectors = {item.at: vector_bytes(made) for item, made in zip(having, embeddings, strict=True)}
    return [
        replace(item, embedding=vectors[item.at], embedder=name) if item.at in vectors else item
        for item in items
    ]


def _analysed_items(puts: Sequence[PutOp], values: Sequence[dict[str, Any]]) -> list[NewItem]:
    items = []
    for op, value in zip(puts, values, strict=True):
        text = searched_text(value, op.index)
        terms = None if text is None else analysed(text)
        items.append(NewItem(ItemKey(tuple(op.namespace), op.key), value, op.ttl, text, terms))
    return items


def _item(item: StoredItem) -> KeptItem:
    return KeptItem(
        value=item.value,
        key=item.at.key,
        namespace=item.at.namespace,
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def _search_item(item: StoredItem, score: float | None) -> SearchItem:
    return FoundItem(item.at.namespace, item.at.key, item.value, item.created_at, item.updated_at, score)
