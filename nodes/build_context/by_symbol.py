"""A source that is asked symbol by symbol, each as soon as it is known: nothing waits for what is known last."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from recuerdo.stores.sources.registry import Fetched

GRACE_SECONDS = 0.03
"""How long a turn waits, when all that it is about is there, for what would only stand beside it."""

Fetch = Callable[[tuple[str, ...]], Awaitable[Fetched]]


@dataclass(frozen=True)
class _Part:
    """One question to the source."""

    symbols: frozenset[str]
    asked: asyncio.Future[Fetched]


class BySymbol:
    """One source in one turn. ``fetch`` gives rows that have a ``symbol``; it does not raise."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._parts: list[_Part] = []

    def begin(self, symbols: Iterable[str]) -> None:
        """Ask for those that were not asked for yet, and do not wait."""
        known = frozenset().union(*(part.symbols for part in self._parts))
        fresh = tuple(dict.fromkeys(symbol for symbol in symbols if symbol not in known))
        if fresh:
            self._parts.append(_Part(frozenset(fresh), asyncio.ensure_future(self._fetch(fresh))))

    async def answers(self, needed: Sequence[str], beside: Sequence[str] = ()) -> Fetched:
        """What there is about ``needed``, waited for, and about ``beside``, waited for a little.

        Several questions are told as one: the longest time, and what failed named by its symbols.
        """
        self.begin(needed)
        self.begin(beside)
        wanted = {*needed, *beside}
        parts = [part for part in self._parts if part.symbols & wanted]
        if not parts:
            return await self._fetch(())
        await asyncio.gather(*(part.asked for part in parts if part.symbols & {*needed}))
        if others := [part.asked for part in parts if not part.asked.done()]:
            await asyncio.wait(others, timeout=GRACE_SECONDS)
        landed = [part for part in parts if part.asked.done()]
        return _joined(landed, wanted) if landed else Fetched(None, "skipped", 0.0, "not waited for")

    async def close(self) -> None:
        """End what nobody waits for any more."""
        for part in self._parts:
            part.asked.cancel()
        await asyncio.gather(*(part.asked for part in self._parts), return_exceptions=True)


def _joined(parts: Sequence[_Part], wanted: set[str]) -> Fetched:
    """The answers as one. ``parts`` may lack some of what is wanted: it was not waited for, so it is not missing."""
    answers = [part.asked.result() for part in parts]
    rows = [row for answer in answers for row in answer.value or () if row.symbol in wanted]
    failed = next((answer for answer in answers if answer.reason), answers[0])
    away = next((answer for answer in answers if answer.is_away), None)
    missing = [
        symbol
        for part, answer in zip(parts, answers, strict=True)
        for symbol in (part.symbols if answer.is_away else answer.missing)
    ]
    ages = [answer.age_seconds for answer in answers if answer.age_seconds is not None]
    if not rows and away:
        return Fetched(None, away.status, max(answer.ms for answer in answers), away.reason)
    return Fetched(
        value=rows,
        status="ok" if rows else answers[0].status if answers[0].status == "skipped" else "empty",
        ms=max(answer.ms for answer in answers),
        reason=failed.reason,
        age_seconds=max(ages, default=None),
        as_of=min(filter(None, (answer.as_of for answer in answers)), default=None),
        missing=tuple(sorted(wanted.intersection(missing))),
    )
