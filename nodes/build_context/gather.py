"""Loads what a turn's context is made of: steps a to h of RF-47, asked side by side where they can be."""

import asyncio
import time
from collections.abc import Awaitable
from datetime import datetime
from typing import Any
from uuid import UUID

from langchain_core.messages import HumanMessage

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.history import split_present
from recuerdo.nodes.build_context.instructions import exchange_of
from recuerdo.nodes.build_context.intent import Intent, read_intent
from recuerdo.nodes.build_context.memories import recalled_at_most
from recuerdo.nodes.build_context.symbols import instrument
from recuerdo.nodes.build_context.topic import as_state, understand
from recuerdo.nodes.call import Call
from recuerdo.state.errors import RecuerdoError
from recuerdo.state.limits import FREQUENT_MENTIONS
from recuerdo.state.turn import BuildStep, ProviderCall, TurnState
from recuerdo.stores.postgres.memories import StoredMemory
from recuerdo.stores.recall.search import Recall
from recuerdo.stores.sources.registry import Fetched, SourceQuery

STEPS = ("profile", "preferences", "history", "symbols", "market", "positions", "alerts", "signals")
"""Steps a to h, in the order of RF-47; the record lists them so, whichever ended first."""

ML_SIGNALS = "ml_signals"


async def gather(state: TurnState, call: Call) -> Gathered:
    """Load everything. A source that fails leaves its part empty and is named in ``unavailable``."""
    work = state["work"]
    assert work is not None, "receive has run"
    turn = work["turn"]
    intent = read_intent(turn["text"])
    data = Gathered(
        now=datetime.fromisoformat(turn["now"]),
        language=turn["language"],
        intent=intent.name,
        intent_confidence=intent.confidence,
    )
    steps: dict[str, Fetched] = {}
    await _load_person(data, state, call, steps)
    await _resolve(data, state, call, steps)
    await _load_market(data, call, steps)
    data.trace = [_build_step(name, steps[name]) for name in STEPS]
    return data


async def _load_person(data: Gathered, state: TurnState, call: Call, steps: dict[str, Fetched]) -> None:
    """Everything that needs only the person: profile, preferences, history, positions, alerts, memories."""
    query = _query(data, call, ())
    fetch = call.services.sources.fetch
    profile, positions, alerts, preferences, frequent, conversation, memories = await asyncio.gather(
        fetch("profile", query),
        fetch("positions", query),
        fetch("alerts", query),
        _timed("preferences", _preferences(data, call)),
        _timed("interests", _frequent(data, call)),
        _timed("history", _started_at(call)),
        _timed("memories", _recall(data, state, call)),
    )
    data.profile = profile.value
    data.positions = list(positions.value or ())
    data.alerts = [alert for alert in alerts.value or () if alert.active and alert.triggered_at is None]
    data.preferences = preferences.value or {}
    data.frequent = tuple(frequent.value or ())
    data.started_at = conversation.value or data.now
    data.memories = memories.value or []
    steps.update(
        profile=profile, preferences=preferences, history=conversation, positions=positions, alerts=alerts
    )
    for name, fetched in {**steps, "interests": frequent, "memories": memories}.items():
        _note(data, name, fetched)


async def _resolve(data: Gathered, state: TurnState, call: Call, steps: dict[str, Fetched]) -> None:
    """Step d, once per turn: a later pass of the tool loop keeps what was understood."""
    started = time.perf_counter()
    work = state["work"] or {}
    if "topic" in work:
        data.symbols, data.resolved_by, data.topic = (
            tuple(work["symbols"]),
            work["resolved_by"],
            work["topic"],
        )
    else:
        await _understand(data, state, call)
    data.unknown_symbols = tuple(symbol for symbol in data.symbols if instrument(symbol) is None)
    ms = round((time.perf_counter() - started) * 1000, 3)
    steps["symbols"] = Fetched(data.symbols, "ok" if data.symbols else "empty", ms)


async def _understand(data: Gathered, state: TurnState, call: Call) -> None:
    """What the message is about, beside what the conversation was about until now."""
    work = state["work"]
    assert work is not None, "receive has run"
    turn = work["turn"]
    preview = call.caller.mode == "preview"
    past, _ = split_present([] if preview else state["messages"], turn["message_id"])
    reading, likeness = await understand(
        turn["text"],
        turn["redacted"],
        turn["language"],
        Intent(data.intent, data.intent_confidence),
        topics=state.get("topics") or [],
        held=data.held,
        before=[str(message.text) for message in past if isinstance(message, HumanMessage)],
        embedder=call.services.embedder,
    )
    data.symbols, data.resolved_by = reading.symbols, reading.how
    data.topic = as_state(reading, likeness)


async def _load_market(data: Gathered, call: Call, steps: dict[str, Fetched]) -> None:
    """Everything that needs the symbols: quotes, status of their exchanges, events, signals."""
    wanted = tuple(dict.fromkeys([*data.symbols, *data.held, *data.frequent]))
    fetch = call.services.sources.fetch
    data.signals_allowed = _entitled(data, call)
    quotes, events, status, signals = await asyncio.gather(
        fetch("quotes", _query(data, call, wanted)),
        fetch("events", _query(data, call, ())),
        _timed("calendar", _statuses(data, call)),
        _signals(data, call),
    )
    data.quotes = {quote.symbol: quote for quote in quotes.value or ()}
    data.events = sorted(events.value or (), key=lambda event: (event.date, event.event))
    data.signals = list(signals.value or ())
    steps["market"] = _together(quotes, status)
    steps["signals"] = signals
    named = {"quotes": quotes, "events": events, "calendar": status, "signals": signals}
    for name, fetched in named.items():
        _note(data, name, fetched)


async def _preferences(data: Gathered, call: Call) -> dict[str, Any]:
    if not _has_memory(call):
        return {}
    return dict(await call.preferences.all(str(call.caller.user), data.now))


async def _frequent(data: Gathered, call: Call) -> list[str]:
    """Symbols mentioned in enough turns lately (A-3)."""
    if not _has_memory(call):
        return []
    interests = await call.interests.of(str(call.caller.user), data.now)
    return [interest.symbol for interest in interests if interest.count >= FREQUENT_MENTIONS]


async def _started_at(call: Call) -> datetime | None:
    if call.caller.mode == "preview":
        return None
    conversation = await call.turns.conversation(call.caller.conversation, call.caller.user)
    return conversation.started_at if conversation else None


async def _recall(data: Gathered, state: TurnState, call: Call) -> list[StoredMemory]:
    """The best memories, read under the caller's scope; searched once per turn."""
    work = state["work"] or {}
    if not _has_memory(call) or not call.services.plan.memory.recall_tokens:
        return []
    if "recalled" in work:
        ids = [UUID(memory_id) for memory_id in work["recalled"]]
        read = await call.memories.get(ids, call.caller.assistant, str(call.caller.user), data.now)
        found = {memory.id: memory for memory in read}
        return [found[memory_id] for memory_id in ids if memory_id in found]
    return await _searched(work["turn"]["text"], data, call)


async def _searched(text: str, data: Gathered, call: Call) -> list[StoredMemory]:
    """By meaning and by words; the record says when the index or the embedder was away."""
    services, caller = call.services, call.caller
    recall = Recall(services.database, services.index, services.embedder, caller.tenant)
    limit = recalled_at_most(services.plan.memory.recall_tokens)
    found = await recall.search(caller.assistant, str(caller.user), text, data.now, limit)
    if found and recall.missing:
        data.index_away = recall.missing.en
    return [recalled.memory for recalled in found]


async def _statuses(data: Gathered, call: Call) -> bool:
    """Status of the user's main market and of each symbol's exchange (C-35)."""
    codes = {exchange_of(symbol) for symbol in data.symbols} - {""}
    calendar = call.services.calendar
    for code in sorted(codes | {data.main_market}):
        data.markets[code] = await asyncio.to_thread(calendar.status, code, data.now)
    data.market = data.markets[data.main_market]
    return True


async def _signals(data: Gathered, call: Call) -> Fetched:
    if not data.signals_allowed:
        return Fetched(None, "skipped", 0.0, "no access")
    if not data.symbols:
        return Fetched(None, "empty", 0.0)
    return await call.services.sources.fetch("signals", _query(data, call, data.symbols))


def _entitled(data: Gathered, call: Call) -> bool:
    """Access by the profile's own entitlements or by the subscription; denied when unknown (A-6)."""
    if data.profile is None:
        return False
    by_plan = call.services.plan.entitlements.get(ML_SIGNALS, ())
    return ML_SIGNALS in data.profile.entitlements or data.profile.subscription in by_plan


def _has_memory(call: Call) -> bool:
    """Preview and anonymous turns have no long-term memory (LA-7, ET-39)."""
    return call.caller.user is not None and call.caller.mode == "live"


def _query(data: Gathered, call: Call, symbols: tuple[str, ...]) -> SourceQuery:
    return SourceQuery(call.caller.tenant, call.caller.user, symbols, data.now)


async def _timed(name: str, work: Awaitable[Any]) -> Fetched:
    """Load from our own stores; a store that is away costs its part, never the turn (IM-32)."""
    started = time.perf_counter()
    try:
        value = await work
    except RecuerdoError as error:
        return Fetched(None, "unavailable", _ms(started), f"{name}: {type(error).__name__}")
    return Fetched(value, "ok" if value else "empty", _ms(started))


def _ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _together(*parts: Fetched) -> Fetched:
    """Several sources as one step: the slowest time, the worst status."""
    worst = next((part for part in parts if part.status == "unavailable"), parts[0])
    return Fetched(None, worst.status, max(part.ms for part in parts), worst.reason)


def _note(data: Gathered, name: str, fetched: Fetched) -> None:
    """Keep what the provider answered; its tokens are known once there are blocks."""
    data.providers.append(
        ProviderCall(name=name, status=fetched.status, ms=fetched.ms, tokens=0, reason=fetched.reason)
    )
    if fetched.status == "unavailable":
        data.unavailable[name] = fetched.reason


def _build_step(name: str, fetched: Fetched) -> BuildStep:
    return BuildStep(step=name, status=fetched.status, ms=fetched.ms, size=0, reason=fetched.reason)
