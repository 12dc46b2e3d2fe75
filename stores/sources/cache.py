"""Answers of sources kept for a while, by the agent's clock, with one flight per key (RF-35)."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

MOST_KEYS = 10_000
"""Answers that are kept at most; of more, the oldest go first."""

LONGEST_FLIGHT_SECONDS = 30.0
"""A flight goes on when those who wait have given up, so that a slow source serves the next turn; not longer."""


@dataclass(frozen=True)
class Failure:
    """Why there is no answer under a key. ``late``: none has come yet."""

    reason: str
    late: bool = False


@dataclass(frozen=True)
class Answer:
    """What there is under a key, and since when by the clock."""

    value: Any
    at: datetime


Ask = Callable[[tuple[Hashable, ...]], Awaitable[Mapping[Hashable, Any]]]
"""Gives a value or a :class:`Failure` for every key that it is asked for. It does not raise."""

_Flight = asyncio.Task[Mapping[Hashable, Any]]


@dataclass(frozen=True)
class _Kept:
    at: datetime
    flight: _Flight


class SharedAnswers:
    """A bounded cache for one event loop. What failed is not kept, and who stops waiting ends nobody's flight."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._kept: dict[Hashable, _Kept] = {}
        self._flying: set[_Flight] = set()

    async def get(
        self, keys: Sequence[Hashable], ask: Ask, *, refresh: timedelta, patience: float
    ) -> dict[Hashable, Answer | Failure]:
        """The answer under each key, not older than ``refresh``. What is neither kept nor on its way is asked
        for together, in one call. Waits ``patience`` seconds at most.
        """
        now = self._clock()
        absent = tuple(key for key in dict.fromkeys(keys) if not self._is_fresh(key, now, refresh))
        if absent:
            self._start(absent, ask, now)
        wanted = {key: self._kept[key] for key in keys}
        self._forget_oldest()
        flights = {kept.flight for kept in wanted.values()}
        if not all(flight.done() for flight in flights):
            await asyncio.wait(flights, timeout=patience)
        return {key: _answer(key, kept) for key, kept in wanted.items()}

    async def close(self) -> None:
        """End what is still on its way."""
        for flight in self._flying:
            flight.cancel()
        if self._flying:
            await asyncio.wait(self._flying, timeout=1)

    def _is_fresh(self, key: Hashable, now: datetime, refresh: timedelta) -> bool:
        """A clock that went back (a demo, a test) makes a kept answer one of the future: it is asked again."""
        kept = self._kept.get(key)
        return kept is not None and timedelta(0) <= now - kept.at < refresh

    def _start(self, keys: tuple[Hashable, ...], ask: Ask, now: datetime) -> None:
        # In a context of its own: what serves all must not run with the identity of whoever came first.
        flight = asyncio.create_task(_fly(keys, ask), context=Context())
        self._flying.add(flight)
        for key in keys:
            self._kept.pop(key, None)
            self._kept[key] = _Kept(now, flight)
        flight.add_done_callback(lambda done: self._land(keys, done))

    def _land(self, keys: tuple[Hashable, ...], flight: _Flight) -> None:
        self._flying.discard(flight)
        for key in keys:
            kept = self._kept.get(key)
            if kept and kept.flight is flight and isinstance(_answer(key, kept), Failure):
                del self._kept[key]

    def _forget_oldest(self) -> None:
        while len(self._kept) > MOST_KEYS:
            del self._kept[next(iter(self._kept))]


async def _fly(keys: tuple[Hashable, ...], ask: Ask) -> Mapping[Hashable, Any]:
    async with asyncio.timeout(LONGEST_FLIGHT_SECONDS):
        return await ask(keys)


def _answer(key: Hashable, kept: _Kept) -> Answer | Failure:
    flight = kept.flight
    if not flight.done():
        return Failure("no answer in time", late=True)
    if flight.cancelled():
        return Failure("broken off")
    if isinstance(flight.exception(), TimeoutError):
        return Failure("no answer in time", late=True)
    value = flight.result()[key]
    return value if isinstance(value, Failure) else Answer(value, kept.at)
