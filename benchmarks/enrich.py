"""What the context of a turn costs with every source from PostgreSQL, and that sources are asked side by side.

``recuerdo bench enrich [--json]``. Everything runs on this machine in a data folder of its own.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

import recuerdo
from benchmarks._same_answer import SameAnswer
from recuerdo.demo import SAMPLE_USER
from recuerdo.demo.sample import load_sample
from recuerdo.nodes.build_context.node import build_context
from recuerdo.nodes.call import Call, Caller
from recuerdo.nodes.services import Services
from recuerdo.state.turn import TurnInfo, TurnState, Work
from recuerdo.stores.postgres.platform import Platform, parse_sample, platform_sources
from recuerdo.stores.sources.registry import Source, SourceQuery, Sources
from recuerdo.stores.sources.rows import Quote

MESSAGES = (
    "¿Cómo va mi inversión?",
    "¿Qué opinas de AAPL?",
    "¿Debería comprar TSLA ahora?",
    "¿Qué lección sigue en mi curso de RSI?",
    "¿Qué opinas de NVDA y de Bitcoin?",
)
NAMED = ("¿Qué opinas de AAPL?", "¿Cómo va TSLA?", "¿Qué opinas de NVDA y de Bitcoin?")
HELD = ("¿Cómo va mi inversión?", "¿Cuál es mi mayor posición?")
WARM_UP, BUILDS, COLD_BUILDS, SLOW_BUILDS = 10, 200, 60, 20
USERS, SYMBOLS, SOURCE_SECONDS, SLOW_SECONDS = 100, ("AAPL", "TSLA", "NVDA"), 0.05, 0.2


def measure(data: Path | None) -> dict[str, Any]:
    """Times in milliseconds, and numbers of calls."""
    with tempfile.TemporaryDirectory(prefix="recuerdo-bench-") as folder:
        os.environ["RECUERDO_DATA"] = folder
        return asyncio.run(_figures())


async def _figures() -> dict[str, Any]:
    async with recuerdo.open_agent(model=SameAnswer(responses=["De acuerdo."])) as agent:
        await _load(agent)
        await agent.send(MESSAGES[0], user=SAMPLE_USER, conversation="bench")
        warm, slow = agent.services.sources, _slow(agent.services, SOURCE_SECONDS)
        return {
            "from_postgresql": await _builds(agent, lambda: warm, MESSAGES, WARM_UP, BUILDS),
            "from_postgresql_cold": await _builds(
                agent, lambda: _fresh(agent.services), MESSAGES, 1, COLD_BUILDS
            ),
            "each_source_50_ms_slow": await _builds(agent, lambda: slow, MESSAGES, 1, SLOW_BUILDS),
            "each_source_200_ms_slow_cold": {
                name: await _builds(
                    agent, lambda: _slow(agent.services, SLOW_SECONDS), messages, 1, SLOW_BUILDS
                )
                for name, messages in (("symbols_named", NAMED), ("holdings_asked_for", HELD))
            },
            "one_quote_source_of_50_ms": await _crowd(),
        }


async def _load(agent: recuerdo.Agent) -> None:
    now = datetime.now(UTC)
    await load_sample(agent.services, agent.tenant, now)
    course = {
        "user": SAMPLE_USER,
        "course": "Curso RSI",
        "topic": "RSI",
        "percent": 60,
        "next_lesson": "Divergencias",
        "updated_at": now,
    }
    await Platform(agent.services.database, agent.tenant).load(parse_sample({"education": [course]}))


async def _builds(
    agent: recuerdo.Agent,
    sources: Callable[[], Sources],
    messages: Sequence[str],
    warm_up: int,
    builds: int,
) -> dict[str, Any]:
    """The whole node, again and again: its time beside that of what it asked.

    ``sources`` is called for every build: new ones remember nothing, so that the turn is a cold one.
    """
    caller = Caller(agent.tenant, agent.assistant, SAMPLE_USER, "bench")
    spent, slowest, together = [], [], []
    for place in range(-warm_up, builds):
        services = replace(agent.services, sources=sources())
        call = Call(caller, services, emit=lambda chunk: None)
        started = time.perf_counter()
        work = (await build_context(_state(services, messages, place), call))["work"] or Work()
        if place < 0:
            continue
        spent.append((time.perf_counter() - started) * 1000)
        asked = [provider["ms"] for provider in work["providers"]]
        slowest.append(max(asked))
        together.append(sum(asked))
    return {
        "builds": builds,
        "build_context_ms_p50": _percentile(spent, 50),
        "build_context_ms_p95": _percentile(spent, 95),
        "slowest_provider_ms_p50": _percentile(slowest, 50),
        "sum_of_providers_ms_p50": _percentile(together, 50),
    }


def _state(services: Services, messages: Sequence[str], place: int) -> TurnState:
    """A turn as ``receive`` hands it on."""
    text = messages[place % len(messages)]
    turn = TurnInfo(
        id=f"turn-{place}",
        number=1,
        parent=None,
        message_id="m1",
        now=services.clock().isoformat(),
        language="es",
        mode="live",
        text=text,
        redacted=text,
    )
    return {"messages": [HumanMessage(text, id="m1")], "work": Work(turn=turn)}


class _Slower:
    """A source that takes longer."""

    def __init__(self, source: Source, seconds: float) -> None:
        self.name = source.name
        self._source = source
        self._seconds = seconds

    async def fetch(self, query: SourceQuery) -> Any:
        await asyncio.sleep(self._seconds)
        return await self._source.fetch(query)


def _fresh(services: Services) -> Sources:
    return Sources(platform_sources(services.database), clock=services.clock)


def _slow(services: Services, seconds: float) -> Sources:
    slower = (_Slower(source, seconds) for source in platform_sources(services.database))
    return Sources(slower, clock=services.clock)


class _Counted:
    """Quotes of a provider that takes its time, and how often each symbol was asked for."""

    name = "quotes"

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.asked: Counter[str] = Counter()
        self.calls = 0

    async def fetch(self, query: SourceQuery) -> Iterable[Quote]:
        self.calls += 1
        self.asked.update(query.symbols)
        await asyncio.sleep(SOURCE_SECONDS)
        return [Quote(symbol=s, price=Decimal(1), currency="USD", as_of=self.now) for s in query.symbols]


async def _crowd() -> dict[str, Any]:
    """Many users at once, each with one more of the symbols than the one before; then the same a minute later."""
    source = _Counted(datetime(2025, 12, 5, 16, 30, tzinfo=UTC))
    sources = Sources([source], clock=lambda: source.now)
    figures: dict[str, Any] = {"users": USERS, "symbols": len(SYMBOLS)}
    started = time.perf_counter()
    for minute in ("first", "second"):
        before = source.asked.copy()
        await asyncio.gather(*(_one_user(sources, source, place) for place in range(USERS)))
        figures[f"calls_per_symbol_in_the_{minute}_minute"] = max((source.asked - before).values())
        source.now += timedelta(seconds=61)
    figures["calls"] = source.calls
    figures["both_minutes_ms"] = round((time.perf_counter() - started) * 1000, 1)
    return figures


async def _one_user(sources: Sources, source: _Counted, place: int) -> None:
    symbols = SYMBOLS[: place % len(SYMBOLS) + 1]
    await sources.fetch("quotes", SourceQuery("t1", f"user-{place}", symbols, source.now))


def _percentile(values: list[float], percent: int) -> float:
    return round(statistics.quantiles(values, n=100, method="inclusive")[percent - 1], 2)
