"""Answers kept for a minute, one flight per key, and nobody ends the flight of another."""

import asyncio
from collections.abc import Hashable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recuerdo.stores.sources import cache
from recuerdo.stores.sources.cache import Answer, Failure, SharedAnswers

START = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)
MINUTE = timedelta(seconds=60)
who: ContextVar[str] = ContextVar("who", default="nobody")


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def at(self, seconds: float) -> None:
        self.now = START + timedelta(seconds=seconds)


class Provider:
    """Answers each key with the number of the call, once it is let go."""

    def __init__(self) -> None:
        self.calls: list[tuple[Hashable, ...]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = False
        self.seen: list[str] = []

    async def ask(self, keys: tuple[Hashable, ...]) -> Mapping[Hashable, Any]:
        self.calls.append(keys)
        self.seen.append(who.get())
        number = len(self.calls)
        await self.gate.wait()
        return dict.fromkeys(keys, Failure("broken") if self.fails else number)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def answers(clock: Clock) -> SharedAnswers:
    return SharedAnswers(clock)


@pytest.fixture
async def provider() -> Provider:
    return Provider()


async def get(answers: SharedAnswers, provider: Provider, *keys: str, patience: float = 5) -> dict[Any, Any]:
    return await answers.get(keys, provider.ask, refresh=MINUTE, patience=patience)


async def test_rf_35_refreshed_after_60_seconds_by_the_clock(
    answers: SharedAnswers, provider: Provider, clock: Clock
) -> None:
    for seconds, calls in ((0, 1), (59, 1), (59.999, 1), (61, 2), (120, 2), (121, 3)):
        clock.at(seconds)
        found = (await get(answers, provider, "AAPL"))["AAPL"]
        assert len(provider.calls) == calls, seconds
        assert timedelta(0) <= clock.now - found.at < MINUTE


async def test_one_flight_per_key_and_others_are_asked_together(
    answers: SharedAnswers, provider: Provider
) -> None:
    provider.gate.clear()
    first = asyncio.create_task(get(answers, provider, "AAPL"))
    await asyncio.sleep(0)
    others = [asyncio.create_task(get(answers, provider, "AAPL", "TSLA", "NVDA")) for _ in range(20)]
    await asyncio.sleep(0)
    provider.gate.set()
    assert (await first)["AAPL"] == Answer(1, START)
    assert [found["TSLA"].value for found in await asyncio.gather(*others)] == [2] * 20
    assert provider.calls == [("AAPL",), ("TSLA", "NVDA")]


async def test_who_gives_up_does_not_end_the_flight_of_others(
    answers: SharedAnswers, provider: Provider
) -> None:
    provider.gate.clear()
    first = asyncio.create_task(get(answers, provider, "AAPL"))
    second = asyncio.create_task(get(answers, provider, "AAPL"))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    provider.gate.set()
    assert (await second)["AAPL"] == Answer(1, START)
    assert first.cancelled() and len(provider.calls) == 1


async def test_a_slow_answer_serves_who_comes_later(answers: SharedAnswers, provider: Provider) -> None:
    provider.gate.clear()
    late = (await get(answers, provider, "AAPL", patience=0.01))["AAPL"]
    assert isinstance(late, Failure) and late.late
    provider.gate.set()
    assert (await get(answers, provider, "AAPL"))["AAPL"] == Answer(1, START)


async def test_a_failed_flight_is_not_kept(answers: SharedAnswers, provider: Provider) -> None:
    provider.fails = True
    assert (await get(answers, provider, "AAPL"))["AAPL"] == Failure("broken")
    await asyncio.sleep(0)
    provider.fails = False
    assert (await get(answers, provider, "AAPL"))["AAPL"] == Answer(2, START)


async def test_a_flight_that_is_cancelled_from_within_is_a_failure(answers: SharedAnswers) -> None:
    async def cancelled(keys: tuple[Hashable, ...]) -> Mapping[Hashable, Any]:
        raise asyncio.CancelledError

    found = await answers.get(["AAPL"], cancelled, refresh=MINUTE, patience=5)
    assert found == {"AAPL": Failure("broken off")}


async def test_a_flight_does_not_last_for_ever(
    answers: SharedAnswers, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LONGEST_FLIGHT_SECONDS", 0.01)
    provider.gate.clear()
    found = (await get(answers, provider, "AAPL"))["AAPL"]
    assert isinstance(found, Failure) and found.late
    await asyncio.sleep(0)
    provider.gate.set()
    assert (await get(answers, provider, "AAPL"))["AAPL"] == Answer(2, START)


async def test_a_clock_that_went_back_asks_again(
    answers: SharedAnswers, provider: Provider, clock: Clock
) -> None:
    await get(answers, provider, "AAPL")
    clock.at(-30)
    assert (await get(answers, provider, "AAPL"))["AAPL"].value == 2


async def test_memory_is_bounded(
    answers: SharedAnswers, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_KEYS", 3)
    found = await get(answers, provider, *"abcdef")
    assert set(found) == set("abcdef")
    await get(answers, provider, "f")
    assert len(provider.calls) == 1
    await get(answers, provider, "a")
    assert len(provider.calls) == 2
    assert len(answers._kept) == 3


async def test_fault_27_a_shared_flight_does_not_run_with_the_identity_of_whoever_came_first(
    answers: SharedAnswers, provider: Provider
) -> None:
    who.set("user-1")
    await get(answers, provider, "AAPL")
    assert provider.seen == ["nobody"]


async def test_close_ends_what_is_on_its_way(answers: SharedAnswers, provider: Provider) -> None:
    provider.gate.clear()
    waiting = asyncio.create_task(get(answers, provider, "AAPL"))
    await asyncio.sleep(0)
    await answers.close()
    assert (await waiting)["AAPL"] == Failure("broken off")
