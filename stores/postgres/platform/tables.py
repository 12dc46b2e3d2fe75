"""The platform's tables of one tenant: read by a turn, written by the loader."""

import asyncio
import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, LiteralString, TypeVar

from psycopg import sql
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.platform.sample import PlatformSample
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.sources.rows import (
    Alert,
    CourseProgress,
    EconomicEvent,
    Position,
    Profile,
    Quote,
    Row,
    Signal,
)

Batch = tuple[type[Row], Sequence[Row]]
"""Rows of one kind."""

RowType = TypeVar("RowType", bound=Row)


class Platform:
    """The platform data of one tenant. Queries about a user raise ScopeError without one."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def profile(self, user: str) -> Profile | None:
        """The user's profile."""
        require_scope(user=user)
        return next(iter(await self._read(Profile, "user_id = %(user)s", {"user": user})), None)

    async def quotes(self, symbols: Sequence[str]) -> list[Quote]:
        """Quotes of those symbols that have one."""
        return await self._read(Quote, "symbol = any(%(symbols)s)", {"symbols": list(symbols)})

    async def positions(self, user: str) -> list[Position]:
        """The user's open positions, by symbol. One of quantity 0 is closed."""
        require_scope(user=user)
        return await self._read(Position, "user_id = %(user)s and quantity <> 0", {"user": user})

    async def alerts(self, user: str) -> list[Alert]:
        """The user's active alerts that have not been triggered (RF-41), by symbol."""
        require_scope(user=user)
        where: LiteralString = "user_id = %(user)s and active and triggered_at is null"
        return await self._read(Alert, where, {"user": user})

    async def signals(self, symbols: Sequence[str]) -> list[Signal]:
        """Signals of those symbols that have one. Whether the user has access is the caller's to check."""
        return await self._read(Signal, "symbol = any(%(symbols)s)", {"symbols": list(symbols)})

    async def education(self, user: str) -> list[CourseProgress]:
        """The user's progress in each course (RF-15), by course."""
        require_scope(user=user)
        return await self._read(CourseProgress, "user_id = %(user)s", {"user": user})

    async def events(self, start: dt.date, end: dt.date) -> list[EconomicEvent]:
        """Economic events from ``start`` to ``end``, both included, by date."""
        return await self._read(
            EconomicEvent, "date between %(start)s and %(end)s", {"start": start, "end": end}
        )

    async def load(self, sample: PlatformSample) -> None:
        """Write every row of the sample, replacing rows of the same key: all of it, or nothing."""
        await self.load_batches(sample.batches())

    async def load_batches(self, batches: Iterable[Batch]) -> dict[type[Row], int]:
        """Write every row of the batches, replacing rows of the same key, and count them by kind.

        All is written or, where ``batches`` raises, nothing. They are drawn off the event loop and streamed with
        COPY; each key may come once.
        """
        counts: dict[type[Row], int] = {}
        drawn = iter(batches)
        async with self._database.tenant(self._tenant) as connection:
            while (batch := await asyncio.to_thread(next, drawn, None)) is not None:
                model, rows = batch
                if model not in counts:
                    await connection.execute(_staging(model))
                counts[model] = counts.get(model, 0) + len(rows)
                await self._copy(connection, model, rows)
            for model in counts:
                await connection.execute(_merge(model))
        return counts

    async def _copy(self, connection: Connection, model: type[Row], rows: Sequence[Row]) -> None:
        async with connection.cursor().copy(_copy_in(model)) as copy:
            for values in await asyncio.to_thread(list, _tuples(self._tenant, rows)):
                await copy.write_row(values)

    async def _read(
        self, model: type[RowType], where: LiteralString, values: Mapping[str, Any]
    ) -> list[RowType]:
        return await self._database.read(
            self._tenant,
            _select(model, where),
            {**values, "tenant": self._tenant},
            rows=class_row(model),
        )


@dataclass(frozen=True)
class _Table:
    name: sql.Identifier
    staging: sql.Identifier
    keys: tuple[str, ...]

    @property
    def order(self) -> sql.Composed:
        """Events by date, all else by its own key."""
        names = sorted(self.keys, key=lambda key: key != "date")
        return sql.SQL(", ").join(map(sql.Identifier, names))


def _table(name: str, model: type[Row]) -> _Table:
    keys = tuple(map(_column, model.keys))
    return _Table(sql.Identifier("recuerdo", name), sql.Identifier(f"{name}_staging"), keys)


def _column(field: str) -> str:
    # "user" is a reserved word of SQL.
    return "user_id" if field == "user" else field


_NAMES: dict[type[Row], str] = {
    Profile: "platform_profiles",
    Quote: "platform_quotes",
    Position: "platform_positions",
    Alert: "platform_alerts",
    Signal: "platform_signals",
    CourseProgress: "platform_education",
    EconomicEvent: "platform_events",
}
_TABLES = {model: _table(name, model) for model, name in _NAMES.items()}


@cache
def _select(model: type[Row], where: LiteralString) -> bytes:
    """The query for a kind's rows; put together once for each kind and condition."""
    table = _TABLES[model]
    names = [
        sql.SQL("{} as {}").format(*map(sql.Identifier, (_column(name), name))) for name in model.model_fields
    ]
    query = sql.SQL("select {} from {} where tenant = %(tenant)s and {} order by {}").format(
        sql.SQL(", ").join(names), table.name, sql.SQL(where), table.order
    )
    return query.as_bytes(None)


def _columns(model: type[Row]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, ["tenant", *map(_column, model.model_fields)]))


def _staging(model: type[Row]) -> sql.Composed:
    """Rows go by way of a table of the transaction's own: PostgreSQL has no COPY into row-level security."""
    table = _TABLES[model]
    return sql.SQL("create temporary table {} on commit drop as select {} from {} with no data").format(
        table.staging, _columns(model), table.name
    )


def _copy_in(model: type[Row]) -> sql.Composed:
    return sql.SQL("copy {} ({}) from stdin").format(_TABLES[model].staging, _columns(model))


def _merge(model: type[Row]) -> sql.Composed:
    table = _TABLES[model]
    changed = [column for column in map(_column, model.model_fields) if column not in table.keys]
    return sql.SQL("insert into {} ({}) select {} from {} on conflict ({}) do update set {}").format(
        table.name,
        _columns(model),
        _columns(model),
        table.staging,
        sql.SQL(", ").join(map(sql.Identifier, ("tenant", *table.keys))),
        sql.SQL(", ").join(
            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(column)) for column in changed
        ),
    )


def _tuples(tenant: str, rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
    """A row's values, the tenant before; what is plain JSON data in Python becomes jsonb."""
    for row in rows:
        values = (getattr(row, name) for name in type(row).model_fields)
        yield (tenant, *(Jsonb(value) if isinstance(value, dict | tuple) else value for value in values))
