"""The source protocol and the registry that asks sources without ever failing a turn (RF-63, IM-40)."""

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

logger = logging.getLogger(__name__)

SOURCE_TIMEOUT_SECONDS = 2.0
"""How long a turn waits for one source before it goes on without it."""


@dataclass(frozen=True)
class SourceQuery:
    """What a source is asked: whose data, which symbols, and the turn's instant (aware)."""

    tenant: str
    user: str | None
    symbols: tuple[str, ...]
    now: datetime


class Source(Protocol):
    """One kind of platform data. ``name`` says which: profile, quotes, positions, alerts, signals, events.

    ``fetch`` returns the rows of :mod:`recuerdo.stores.postgres.platform` for that name: a ``Profile`` or
    None for ``profile``, a sequence of rows for the others. It may raise: the turn goes on without it.
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
    """What a source answered, or why it did not."""

    value: Any
    status: Literal["ok", "empty", "skipped", "unavailable"]
    ms: float
    reason: str = ""


class Sources:
    """The sources of one agent by name; a later one of the same name replaces an earlier one."""

    def __init__(self, sources: Iterable[Source], *, timeout: float = SOURCE_TIMEOUT_SECONDS) -> None:
        self._sources = {source.name: source for source in sources}
        self._timeout = timeout

    async def fetch(self, name: str, query: SourceQuery) -> Fetched:
        """Ask one source. Errors and lateness become the status ``unavailable``."""
        source = self._sources.get(name)
        if source is None:
            return Fetched(None, "skipped", 0.0, "not configured")
        started = time.perf_counter()
        try:
            value = await asyncio.wait_for(source.fetch(query), self._timeout)
        except TimeoutError:
            return self._missing(name, started, f"no answer within {self._timeout:g} s")
        except Exception as error:
            logger.warning("source %s failed: %s", name, type(error).__name__)
            return self._missing(name, started, type(error).__name__)
        return Fetched(value, "ok" if value else "empty", _ms_since(started))

    @staticmethod
    def _missing(name: str, started: float, reason: str) -> Fetched:
        return Fetched(None, "unavailable", _ms_since(started), f"{name}: {reason}")


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
