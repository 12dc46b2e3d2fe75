"""The platform's own data as PostgreSQL keeps it: profiles, quotes, positions and the like.

The rows are what the sources of :mod:`recuerdo.stores.sources` give, whoever implements them. Money is
``Decimal``, exact; times are aware.
"""

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, LiteralString, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from psycopg import sql
from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.sources.registry import SourceQuery

_sentences = load_sentences(__package__)

EVENT_HORIZON_DAYS = 45
"""How far ahead the events source looks."""


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, str_min_length=1)


class Profile(_Row):
    """Who a user is (RF-36). ``subscription`` is the seed's ``plan``; ``main_market`` a calendar code."""

    user: str
    name: str
    subscription: str
    risk_profile: str
    experience: str
    language: str
    timezone: str
    main_market: str = "XNYS"
    entitlements: tuple[str, ...] = ()

    @field_validator("timezone")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"unknown time zone {name!r}") from None
        return name


class Quote(_Row):
    """The price of a symbol (RF-12). ``change_percent`` 1.2 is +1.2 %; ``more`` is plain JSON data."""

    symbol: str
    price: Decimal
    currency: str
    as_of: AwareDatetime
    change_percent: Decimal | None = None
    volume: Decimal | None = None
    open: Decimal | None = None
    high: Decimal | None = None
    low: Decimal | None = None
    previous_close: Decimal | None = None
    more: dict[str, Any] = Field(default_factory=dict)


class Position(_Row):
    """An open position (RF-13); ``avg_price`` per unit."""

    user: str
    symbol: str
    quantity: Decimal
    avg_price: Decimal
    currency: str


class Alert(_Row):
    """A price alert (RF-14, RF-41); once triggered it is no longer active for the user."""

    user: str
    id: str
    symbol: str
    condition: Literal["<=", "<", ">=", ">"]
    price: Decimal
    active: bool = True
    triggered_at: AwareDatetime | None = None


class Signal(_Row):
    """A prediction for a symbol (RF-45); ``confidence`` 0 to 1."""

    symbol: str
    prediction: str
    confidence: Decimal = Field(ge=0, le=1)
    updated_at: AwareDatetime


class EconomicEvent(_Row):
    """A date of the economic calendar (RF-19)."""

    event: str
    date: dt.date
    impact: Literal["low", "medium", "high"]
    country: str | None = None


class PlatformSample(_Row):
    """Platform data to load: any of the kinds, each a list of rows."""

    profiles: tuple[Profile, ...] = ()
    quotes: tuple[Quote, ...] = ()
    positions: tuple[Position, ...] = ()
    alerts: tuple[Alert, ...] = ()
    signals: tuple[Signal, ...] = ()
    events: tuple[EconomicEvent, ...] = ()


def parse_sample(data: object) -> PlatformSample:
    """Validate plain data. Raises InputError that names the first place that is wrong."""
    try:
        return PlatformSample.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "-"
        raise InputError(_sentences("platform_sample_invalid", place=place, reason=first["msg"])) from None


RowType = TypeVar("RowType", bound=_Row)


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
        """The user's open positions, by symbol."""
        require_scope(user=user)
        return await self._read(Position, "user_id = %(user)s", {"user": user})

    async def alerts(self, user: str) -> list[Alert]:
        """The user's active alerts that have not been triggered (RF-41), by symbol."""
        require_scope(user=user)
        where: LiteralString = "user_id = %(user)s and active and triggered_at is null"
        return await self._read(Alert, where, {"user": user})

    async def signals(self, symbols: Sequence[str]) -> list[Signal]:
        """Signals of those symbols that have one. Whether the user has access is the caller's to check."""
        return await self._read(Signal, "symbol = any(%(symbols)s)", {"symbols": list(symbols)})

    async def events(self, start: dt.date, end: dt.date) -> list[EconomicEvent]:
        """Economic events from ``start`` to ``end``, both included, by date."""
        return await self._read(
            EconomicEvent, "date between %(start)s and %(end)s", {"start": start, "end": end}
        )

    async def load(self, sample: PlatformSample) -> None:
        """Write every row of the sample, replacing rows of the same key: all of it, or nothing."""
        async with self._database.transaction() as connection:
            for rows in (getattr(sample, name) for name in type(sample).model_fields):
                await self._write(connection, rows)

    async def _read(
        self, model: type[RowType], where: LiteralString, values: Mapping[str, Any]
    ) -> list[RowType]:
        table = _TABLES[model]
        names = [
            sql.SQL("{} as {}").format(*map(sql.Identifier, (_column(name), name)))
            for name in model.model_fields
        ]
        query = sql.SQL("select {} from {} where tenant = %(tenant)s and {} order by {}").format(
            sql.SQL(", ").join(names), table.name, sql.SQL(where), table.order
        )
        async with self._database.connection() as connection:
            cursor = connection.cursor(row_factory=class_row(model))
            await cursor.execute(query, {**values, "tenant": self._tenant})
            return await cursor.fetchall()

    async def _write(self, connection: Connection, rows: Sequence[_Row]) -> None:
        if rows:
            values = [{**_values(row), "tenant": self._tenant} for row in rows]
            await connection.cursor().executemany(_upsert(type(rows[0])), values)


@dataclass(frozen=True)
class PlatformSource:
    """One kind of platform data from PostgreSQL, behind the source protocol."""

    name: str
    read: Callable[[Platform, SourceQuery], Awaitable[Any]]
    database: Database

    async def fetch(self, query: SourceQuery) -> Any:
        """The rows for the query; a ``Profile`` or None for ``profile``."""
        return await self.read(Platform(self.database, query.tenant), query)


def platform_sources(database: Database) -> list[PlatformSource]:
    """Every kind as a source; an anonymous user has no profile, positions or alerts."""
    readers: dict[str, Callable[[Platform, SourceQuery], Awaitable[Any]]] = {
        "profile": _profile,
        "quotes": lambda platform, query: platform.quotes(query.symbols),
        "positions": _positions,
        "alerts": _alerts,
        "signals": lambda platform, query: platform.signals(query.symbols),
        "events": _events,
    }
    return [PlatformSource(name, read, database) for name, read in readers.items()]


async def _profile(platform: Platform, query: SourceQuery) -> Profile | None:
    return await platform.profile(query.user) if query.user else None


async def _positions(platform: Platform, query: SourceQuery) -> list[Position]:
    return await platform.positions(query.user) if query.user else []


async def _alerts(platform: Platform, query: SourceQuery) -> list[Alert]:
    return await platform.alerts(query.user) if query.user else []


async def _events(platform: Platform, query: SourceQuery) -> list[EconomicEvent]:
    today = query.now.date()
    return await platform.events(today, today + dt.timedelta(days=EVENT_HORIZON_DAYS))


@dataclass(frozen=True)
class _Table:
    name: sql.Identifier
    keys: tuple[str, ...]

    @property
    def order(self) -> sql.Composed:
        """Events by date, all else by its own key."""
        names = sorted(self.keys, key=lambda key: key != "date")
        return sql.SQL(", ").join(map(sql.Identifier, names))


def _table(name: str, *keys: str) -> _Table:
    return _Table(sql.Identifier("recuerdo", name), keys)


_TABLES: dict[type[_Row], _Table] = {
    Profile: _table("platform_profiles", "user_id"),
    Quote: _table("platform_quotes", "symbol"),
    Position: _table("platform_positions", "user_id", "symbol"),
    Alert: _table("platform_alerts", "user_id", "id"),
    Signal: _table("platform_signals", "symbol"),
    EconomicEvent: _table("platform_events", "event", "date"),
}


def _upsert(model: type[_Row]) -> sql.Composed:
    table = _TABLES[model]
    fields = ["tenant", *model.model_fields]
    columns = [_column(field) for field in fields]
    changed = [column for column in columns if column not in ("tenant", *table.keys)]
    return sql.SQL("insert into {} ({}) values ({}) on conflict ({}) do update set {}").format(
        table.name,
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(map(sql.Placeholder, fields)),
        sql.SQL(", ").join(map(sql.Identifier, ("tenant", *table.keys))),
        sql.SQL(", ").join(
            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(column)) for column in changed
        ),
    )


def _column(field: str) -> str:
    # "user" is a reserved word of SQL.
    return "user_id" if field == "user" else field


def _values(row: _Row) -> dict[str, Any]:
    """The row's fields; what is plain JSON data in Python becomes jsonb."""
    return {
        name: Jsonb(value) if isinstance(value, dict | tuple) else value for name, value in dict(row).items()
    }
