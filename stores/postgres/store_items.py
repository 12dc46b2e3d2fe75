"""Items of the store's LangGraph face in PostgreSQL: an app's own, not the memories of a user."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from langgraph.store.base import MatchCondition
from psycopg.rows import DictRow
from psycopg.sql import SQL, Composed, Placeholder
from psycopg.types.json import Jsonb

from recuerdo.stores.memory_store.filters import Condition, filter_sql
from recuerdo.stores.memory_store.items import Candidate, ItemKey, Namespace, NewItem, StoredItem, expiry
from recuerdo.stores.memory_store.namespaces import NamespaceQuery
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.recall.analysis import ANALYZER

# What every read is bound to: the tenant, and the expiry at the moment of reading.
_IN_FORCE = SQL("tenant = %(tenant)s and (expires_at is null or expires_at > %(now)s)")
# Labels have no dots, and "/" is the character after it: the range is exactly what stands below.
_BELOW = SQL(
    " and (namespace = %(prefix)s or (namespace > %(prefix)s || '.' and namespace < %(prefix)s || '/'))"
)
_STORED = SQL("namespace, key, value, ttl_minutes, created_at, updated_at")

_GET = SQL(
    "select {} from recuerdo.store_items"
    " join unnest(%(namespaces)s::text[], %(keys)s::text[]) as wanted (namespace, key)"
    " using (namespace, key) where {}"
).format(_STORED, _IN_FORCE)

_TOUCH = SQL(
    "update recuerdo.store_items kept set expires_at = %(now)s + kept.ttl_minutes * interval '1 minute'"
    " from unnest(%(namespaces)s::text[], %(keys)s::text[]) as wanted (namespace, key)"
    " where kept.tenant = %(tenant)s and kept.namespace = wanted.namespace and kept.key = wanted.key"
    " and kept.expires_at > %(now)s"
)

_DELETE = (
    "delete from recuerdo.store_items kept"
    " using unnest(%(namespaces)s::text[], %(keys)s::text[]) as wanted (namespace, key)"
    " where kept.tenant = %(tenant)s and kept.namespace = wanted.namespace and kept.key = wanted.key"
)

# One that has expired is no more: what is put in its place begins anew.
_UPSERT = """
insert into recuerdo.store_items as kept
    (tenant, namespace, key, value, text, terms, analyzer, embedding, embedder, ttl_minutes, expires_at,
     created_at, updated_at)
select %(tenant)s, item.*, %(now)s, %(now)s
from unnest(%(namespaces)s::text[], %(keys)s::text[], %(values)s::jsonb[], %(texts)s::text[],
            %(terms)s::bytea[], %(analyzers)s::text[], %(embeddings)s::bytea[], %(embedders)s::text[],
            %(ttls)s::float8[], %(expiries)s::timestamptz[]) as item
on conflict (tenant, namespace, key) do update set
    value = excluded.value, text = excluded.text, terms = excluded.terms, analyzer = excluded.analyzer,
    embedding = excluded.embedding, embedder = excluded.embedder, updated_at = excluded.updated_at,
    ttl_minutes = excluded.ttl_minutes, expires_at = excluded.expires_at,
    created_at = case when kept.expires_at <= %(now)s then excluded.created_at else kept.created_at end
"""


class PostgresItems:
    """The :class:`~recuerdo.stores.memory_store.items.ItemTable` of one tenant in PostgreSQL.

    Every method raises StoreError when the server is away.
    """

    def __init__(self, database: Database, tenant: str) -> None:
        """Raises ScopeError without a tenant (C-11)."""
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def get(self, keys: Sequence[ItemKey], now: datetime) -> dict[ItemKey, StoredItem]:
        """See ItemTable."""
        rows = await self._rows(_GET, now, _address(keys))
        return {item.at: item for item in map(_stored, rows)}

    async def newest(
        self, prefix: Namespace, conditions: Sequence[Condition], now: datetime, limit: int, offset: int
    ) -> list[StoredItem]:
        """See ItemTable."""
        where, values = _where(prefix, conditions)
        query = SQL(
            "select {} from recuerdo.store_items where {}"
            " order by updated_at desc, namespace, key limit %(limit)s offset %(offset)s"
        ).format(_STORED, where)
        rows = await self._rows(query, now, {**values, "limit": limit, "offset": offset})
        return [_stored(row) for row in rows]

    async def candidates(
        self, prefix: Namespace, conditions: Sequence[Condition], now: datetime
    ) -> list[Candidate]:
        """See ItemTable."""
        where, values = _where(prefix, conditions)
        query = SQL(
            "select namespace, key, text, terms, analyzer, embedding, embedder from recuerdo.store_items"
            " where {} and text is not null"
        ).format(where)
        return [
            Candidate(_key(row), *(row[column] for column in _CANDIDATE))
            for row in await self._rows(query, now, values)
        ]

    async def namespaces(self, query: NamespaceQuery, now: datetime) -> list[Namespace]:
        """See ItemTable."""
        conditions, values = _namespace_conditions(query.conditions)
        statement = SQL(
            "select distinct array_to_string(labels[1:coalesce(%(depth)s, cardinality(labels))], '.')"
            ' collate "C" as namespace'
            " from (select namespace, string_to_array(namespace, '.') as labels"
            "       from recuerdo.store_items where {}) as listed"
            " where true{} order by 1 limit %(limit)s offset %(offset)s"
        ).format(_IN_FORCE, conditions)
        page = {"depth": query.max_depth, "limit": query.limit, "offset": query.offset}
        rows = await self._rows(statement, now, {**values, **page})
        return [tuple(row["namespace"].split(".")) for row in rows]

    async def touch(self, keys: Sequence[ItemKey], now: datetime) -> None:
        """See ItemTable."""
        async with self._database.tenant(self._tenant) as connection:
            await connection.execute(_TOUCH, {"tenant": self._tenant, "now": now, **_address(keys)})

    async def write(self, items: Sequence[NewItem], deleted: Sequence[ItemKey], now: datetime) -> None:
        """See ItemTable. One statement for all that is written, one for all that is deleted."""
        async with self._database.tenant(self._tenant) as connection:
            if deleted:
                await connection.execute(_DELETE, {"tenant": self._tenant, **_address(deleted)})
            if items:
                await connection.execute(
                    _UPSERT, {"tenant": self._tenant, "now": now, **_columns(items, now)}
                )

    async def keep_embeddings(self, candidates: Sequence[Candidate]) -> None:
        """See ItemTable."""
        values = {
            "tenant": self._tenant,
            **_address([candidate.at for candidate in candidates]),
            "texts": [candidate.text for candidate in candidates],
            "embeddings": [candidate.embedding for candidate in candidates],
            "embedders": [candidate.embedder for candidate in candidates],
        }
        async with self._database.tenant(self._tenant) as connection:
            await connection.execute(
                "update recuerdo.store_items kept set embedding = made.embedding, embedder = made.embedder"
                " from unnest(%(namespaces)s::text[], %(keys)s::text[], %(texts)s::text[],"
                " %(embeddings)s::bytea[], %(embedders)s::text[]) as made (namespace, key, text, embedding, embedder)"
                " where kept.tenant = %(tenant)s and kept.namespace = made.namespace"
                " and kept.key = made.key and kept.text = made.text",
                values,
            )

    async def _rows(self, query: Composed, now: datetime, values: dict[str, Any]) -> list[DictRow]:
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(binary=True)
            await cursor.execute(query, {"tenant": self._tenant, "now": now, **values})
            return await cursor.fetchall()


async def delete_expired_items(
    database: Database, now: datetime, *, tenant: str | None = None, spared: Sequence[str] = ()
) -> int:
    """Delete the items that have expired, of one tenant or (None) of every one but the spared. Returns how many.

    Reads never wait for this: they check the expiry themselves.
    """
    async with database.operator() as connection:
        cursor = await connection.execute(
            "delete from recuerdo.store_items where expires_at <= %(now)s"
            " and (%(tenant)s::text is null or tenant = %(tenant)s) and tenant <> all(%(spared)s)",
            {"now": now, "tenant": tenant, "spared": list(spared)},
        )
        return cursor.rowcount


_CANDIDATE = ("text", "terms", "analyzer", "embedding", "embedder")


def _where(prefix: Namespace, conditions: Sequence[Condition]) -> tuple[Composed, dict[str, Any]]:
    filters, values = filter_sql(conditions)
    below = _BELOW if prefix else SQL("")
    return SQL("{}{}{}").format(_IN_FORCE, below, filters), {**values, "prefix": ".".join(prefix)}


def _namespace_conditions(conditions: Sequence[MatchCondition]) -> tuple[Composed, dict[str, Any]]:
    """Each condition label by label: ``*`` is any one, and what is too short meets none."""
    values: dict[str, Any] = {}
    parts: list[Composed] = []
    for condition in conditions:
        parts.append(SQL(" and cardinality(labels) >= {}").format(len(condition.path)))
        start = (
            SQL("0")
            if condition.match_type == "prefix"
            else SQL("cardinality(labels) - {}").format(len(condition.path))
        )
        for place, label in enumerate(condition.path, 1):
            if label != "*":
                name = f"label_{len(values)}"
                values[name] = label
                parts.append(SQL(" and labels[{} + {}] = {}").format(start, place, Placeholder(name)))
    return SQL("").join(parts), values


def _address(keys: Sequence[ItemKey]) -> dict[str, Any]:
    return {
        "namespaces": [".".join(at.namespace) for at in keys],
        "keys": [at.key for at in keys],
    }


def _columns(items: Sequence[NewItem], now: datetime) -> dict[str, Any]:
    return {
        **_address([item.at for item in items]),
        "values": [Jsonb(item.value) for item in items],
        "texts": [item.text for item in items],
        "terms": [item.terms for item in items],
        "analyzers": [None if item.text is None else ANALYZER for item in items],
        "embeddings": [item.embedding for item in items],
        "embedders": [item.embedder for item in items],
        "ttls": [item.ttl for item in items],
        "expiries": [expiry(item.ttl, now) for item in items],
    }


def _key(row: DictRow) -> ItemKey:
    return ItemKey(tuple(row["namespace"].split(".")), row["key"])


def _stored(row: DictRow) -> StoredItem:
    return StoredItem(_key(row), row["value"], row["ttl_minutes"], row["created_at"], row["updated_at"])
