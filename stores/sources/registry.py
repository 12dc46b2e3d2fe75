"""The source protocol and the registry that asks sources without ever failing a turn (RF-63, IM-40).

Every source has its own time-out and its own cache. What serves every user of a tenant (quotes, signals,
events) is asked for once a minute by the agent's clock, however many users wait for it (RF-35); what is a
user's own is shared with nobody.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import SourceSettings
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.sources.answers import WrongAnswer, rows_by_symbol, tenant_rows, user_rows
from recuerdo.stores.sources.cache import Answer, Failure, SharedAnswers
from recuerdo.stores.sources.kinds import KINDS, Kind
from recuerdo.stores.sources.rows import Row

logger = logging.getLogger(__name__)
sentences = load_sentences(__package__)

Status = Literal["ok", "empty", "skipped", "unavailable", "late"]


@dataclass(frozen=True)
class SourceQuery:
    """What a source is asked: whose data, which symbols, and the instant (aware) to answer for.

    ``user`` is None for an anonymous person, and in every query whose answer is shared by users.
    """

    tenant: str
    user: str | None
    symbols: tuple[str, ...]
    now: datetime


class Source(Protocol):
    """One kind of platform data. ``name`` says which of :data:`recuerdo.stores.sources.kinds.KINDS`.

    ``fetch`` returns rows of :mod:`recuerdo.stores.sources.rows`, or mappings with their fields: a ``Profile``
    or None for ``profile``, an iterable of rows for the others, symbols spelled as they were asked for. It may
    raise, be late, or return nonsense: the turn goes on without it.
    """

    @property
    def name(self) -> str:
        """Which kind of data it gives."""
        ...

    async def fetch(self, query: SourceQuery) -> Any:
        """The data for ``query``; empty when there is none."""
        ...


@dataclass(frozen=True)
class Fetched:
    """What a source answered, or why it did not.

    ``ms`` is the time waited. ``age_seconds`` is how long ago the oldest part was asked for, by the clock;
    ``as_of`` is the oldest instant that the data itself bears. ``missing`` names the symbols that could not be
    had although the source answered for others; ``reason`` never shows an error's text, which may hold secrets.
    """

    value: Any
    status: Status
    ms: float
    reason: str = ""
    age_seconds: float | None = None
    as_of: datetime | None = None
    missing: tuple[str, ...] = ()

    @property
    def is_away(self) -> bool:
        """Whether the turn has to do without what was asked for."""
        return self.status in ("unavailable", "late")


class Sources:
    """The sources of one agent by name, for one event loop; a later one of a name replaces an earlier one.

    ``settings`` are those of the plan, by name. Raises SettingsError for a name that is no kind of data.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        *,
        clock: Callable[[], datetime],
        settings: Mapping[str, SourceSettings] | None = None,
    ) -> None:
        self._sources = {source.name: source for source in sources}
        self._settings = settings or {}
        self._clock = clock
        self._answers = SharedAnswers(clock)
        for name in (*self._sources, *self._settings):
            if name not in KINDS:
                raise SettingsError(sentences("source_unknown", name=name[:50], known=", ".join(KINDS)))

    @property
    def names(self) -> frozenset[str]:
        """The kinds of data that there are."""
        return frozenset(self._sources)

    async def fetch(self, name: str, query: SourceQuery) -> Fetched:
        """Ask one source. Errors, lateness and nonsense become a status."""
        source = self._sources.get(name)
        if source is None:
            return Fetched(None, "skipped", 0.0, "not configured")
        settings = self._settings.get(name, SourceSettings())
        asking = _Asking(KINDS[name], source, query, settings, self._clock)
        started = time.perf_counter()
        found = await asking.parts(self._answers)
        ms = round((time.perf_counter() - started) * 1000, 3)
        return _fetched(name, KINDS[name], found, ms, self._clock())

    async def close(self) -> None:
        """End what is still being asked."""
        await self._answers.close()


@dataclass(frozen=True)
class _Asking:
    """One question to one source."""

    kind: Kind
    source: Source
    query: SourceQuery
    settings: SourceSettings
    clock: Callable[[], datetime]

    @property
    def refresh(self) -> timedelta:
        if self.settings.refresh_seconds is None:
            return self.kind.refresh
        return timedelta(seconds=self.settings.refresh_seconds)

    @property
    def patience(self) -> float:
        return self.settings.timeout_ms / 1000

    async def parts(self, answers: SharedAnswers) -> dict[Hashable, Answer | Failure]:
        """The answer by key: by symbol where the kind is shared so, else under one key."""
        if not self._keys():
            return {}
        if not self.refresh:
            return await self._unshared()
        return await answers.get(self._keys(), self._ask, refresh=self.refresh, patience=self.patience)

    def _keys(self) -> tuple[Hashable, ...]:
        """Each holds the tenant, and the user where the answer is his own."""
        common = (self.source.name, self.query.tenant)
        if self.kind.shared_by == "symbol":
            return tuple((*common, symbol) for symbol in self.query.symbols)
        return ((*common, self.query.user if self.kind.shared_by == "user" else None),)

    async def _unshared(self) -> dict[Hashable, Answer | Failure]:
        """Asked for this turn only; who stops waiting ends it."""
        now = self.clock()
        asked = asyncio.create_task(self._ask(self._keys()))
        try:
            done, _ = await asyncio.wait({asked}, timeout=self.patience)
        finally:
            # Not awaited: a source that does not let itself be cancelled would hold the turn.
            asked.cancel()
        if not done:
            return {key: Failure("no answer in time", late=True) for key in self._keys()}
        if asked.cancelled():
            return {key: Failure("broken off") for key in self._keys()}
        return {
            key: value if isinstance(value, Failure) else Answer(value, now)
            for key, value in asked.result().items()
        }

    async def _ask(self, keys: tuple[Hashable, ...]) -> Mapping[Hashable, Any]:
        """What the source gives under each key, checked."""
        try:
            return self._by_key(keys, await self.source.fetch(self._query_for(keys)))
        except WrongAnswer as wrong:
            reason = str(wrong)
        except Exception as error:
            reason = type(error).__name__
        logger.warning("source %s failed: %s", self.source.name, reason)
        return dict.fromkeys(keys, Failure(reason))

    def _query_for(self, keys: tuple[Hashable, ...]) -> SourceQuery:
        if self.kind.shared_by == "user":
            return self.query
        symbols = tuple(map(_symbol, keys)) if self.kind.shared_by == "symbol" else ()
        return replace(self.query, user=None, symbols=symbols, now=self.clock())

    def _by_key(self, keys: tuple[Hashable, ...], given: Any) -> Mapping[Hashable, Any]:
        now = self.clock()
        if self.kind.shared_by == "symbol":
            rows = rows_by_symbol(self.kind, map(_symbol, keys), given, now)
            return {key: rows[_symbol(key)] for key in keys}
        if self.kind.shared_by == "tenant":
            return dict.fromkeys(keys, tenant_rows(self.kind, given, now))
        return dict.fromkeys(keys, user_rows(self.kind, self.query.user, given, now))


def _symbol(key: Hashable) -> str:
    assert isinstance(key, tuple)
    return str(key[-1])


def _fetched(
    name: str, kind: Kind, parts: Mapping[Hashable, Answer | Failure], ms: float, now: datetime
) -> Fetched:
    answers = [part for part in parts.values() if isinstance(part, Answer)]
    failed = {key: part for key, part in parts.items() if isinstance(part, Failure)}
    rows = [row for answer in answers for row in _rows_in(answer.value)]
    reason = f"{name}: {next(iter(failed.values())).reason}" if failed else ""
    if failed and not rows:
        late = any(failure.late for failure in failed.values())
        return Fetched(None, "late" if late else "unavailable", ms, reason)
    return Fetched(
        value=(rows[0] if rows else None) if kind.single else rows,
        status="ok" if rows else "empty",
        ms=ms,
        reason=reason,
        age_seconds=max((round((now - answer.at).total_seconds(), 3) for answer in answers), default=None),
        as_of=min(filter(None, map(_as_of, rows)), default=None),
        missing=tuple(map(_symbol, failed)),
    )


def _rows_in(value: Any) -> list[Row]:
    if value is None:
        return []
    return [value] if isinstance(value, Row) else list(value)


def _as_of(row: Row) -> datetime | None:
    return getattr(row, "as_of", None) or getattr(row, "updated_at", None)
