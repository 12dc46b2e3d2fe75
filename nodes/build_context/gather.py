"""Loads what a turn's context is made of: steps a to h of RF-47, asked side by side where they can be."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from langchain_core.messages import HumanMessage

from recuerdo.nodes.build_context.asked import asked_kinds
from recuerdo.nodes.build_context.by_symbol import BySymbol
from recuerdo.nodes.build_context.exchanges import named_exchanges
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.history import split_present
from recuerdo.nodes.build_context.instructions import exchange_of
from recuerdo.nodes.build_context.intent import Intent, read_intent
from recuerdo.nodes.build_context.memories import recalled_at_most
from recuerdo.nodes.build_context.symbols import (
    Standings,
    asks_for_holdings,
    asks_for_rank,
    find_symbols,
    instrument,
)
from recuerdo.nodes.build_context.symbols.holdings import standings_of
from recuerdo.nodes.build_context.topic import as_state, understand
from recuerdo.nodes.call import Call
from recuerdo.state.errors import InputError, RecuerdoError
from recuerdo.state.key_events import KeyEvent, Origin, Owner, are_active
from recuerdo.state.limits import FREQUENT_MENTIONS
from recuerdo.state.turn import BuildStep, ProviderCall, Topic, TurnState
from recuerdo.stores.postgres.memories import StoredMemory
from recuerdo.stores.postgres.platform import Alert, EconomicEvent, Position
from recuerdo.stores.recall.search import Recall
from recuerdo.stores.sources.calendar import MarketCalendar
from recuerdo.stores.sources.registry import Fetched, SourceQuery

_log = logging.getLogger(__name__)

STEPS = ("profile", "preferences", "history", "symbols", "market", "positions", "alerts", "signals")
"""Steps a to h, in the order of RF-47; the record lists them so, whichever ended first."""

ML_SIGNALS = "ml_signals"

Held = TypeVar("Held", Position, Alert)


async def gather(state: TurnState, call: Call) -> Gathered:
    """Load everything. A source that fails leaves its part empty and is named in ``unavailable``."""
    work = state["work"]
    assert work is not None, "receive has run"
    turn = work["turn"]
    intent = read_intent(turn["text"])
    data = Gathered(
        now=datetime.fromisoformat(turn["now"]),
        language=turn["language"],
        plan_language=call.services.plan.language,
        intent=intent.name,
        intent_confidence=intent.confidence,
        text=turn["text"],
        asked=asked_kinds(turn["text"]),
    )
    steps: dict[str, Fetched] = {}
    market = _Market.of(data, call)
    try:
        glance = await asyncio.to_thread(_glance, data, state, call)
        market.begin(glance.likely)
        await _load_person(data, state, call, steps, market, glance)
        await _resolve(data, state, call, steps, market)
        await _load_market(data, call, steps, market)
    finally:
        await market.close()
    data.trace = [_build_step(name, steps[name]) for name in STEPS]
    return data


@dataclass(frozen=True)
class _Market:
    """What is asked by symbol: it begins as soon as a symbol is known, beside what is asked of the person."""

    quotes: BySymbol
    signals: BySymbol

    @classmethod
    def of(cls, data: Gathered, call: Call) -> "_Market":
        def ask(name: str) -> BySymbol:
            return BySymbol(
                lambda symbols: call.services.sources.fetch(name, _query(data, call, symbols)),
            )

        return cls(ask("quotes"), ask("signals"))

    def begin(self, symbols: Iterable[str]) -> None:
        """Ask for both. Whether the user may see signals is known later: what he may not see goes no farther."""
        self.quotes.begin(symbols)
        self.signals.begin(symbols)

    async def close(self) -> None:
        """End what nobody waits for any more."""
        await self.quotes.close()
        await self.signals.close()


@dataclass(frozen=True)
class _Earlier:
    """What a turn may know of the rounds before it; nothing with short-term memory off or in a preview (C-28)."""

    topics: Sequence[Topic] = ()
    messages: Sequence[str] = ()

    @classmethod
    def of(cls, state: TurnState, call: Call) -> "_Earlier":
        work = state["work"]
        assert work is not None, "receive has run"
        if call.caller.mode == "preview" or not call.services.plan.memory.short_term.enabled:
            return cls()
        past, _ = split_present(state["messages"], work["turn"]["message_id"])
        said = [str(message.text) for message in past if isinstance(message, HumanMessage)]
        return cls(state.get("topics") or [], said)


@dataclass(frozen=True)
class _Glance:
    """What the message shows before anything is loaded, so that what it needs is asked for at once.

    ``likely`` is what it names, else what was spoken of until now; ``of_holdings``: it asks for what is held.
    """

    likely: Sequence[str]
    of_holdings: bool


def _glance(data: Gathered, state: TurnState, call: Call) -> _Glance:
    work, earlier = state["work"] or {}, _Earlier.of(state, call)
    if "topic" in work:
        return _Glance(work["symbols"], of_holdings=False)
    named = [one.symbol for one in find_symbols(data.text) if one.certain]
    spoken_of = earlier.topics[-1]["symbols"] if earlier.topics else ()
    of_holdings = "signals" in data.asked or asks_for_holdings(data.text, earlier.messages)
    return _Glance(named or spoken_of, of_holdings=not named and of_holdings)


async def _load_person(
    data: Gathered,
    state: TurnState,
    call: Call,
    steps: dict[str, Fetched],
    market: _Market,
    glance: _Glance,
) -> None:
    """Everything that needs no symbols: what is the person's own, memories, economic events."""
    query = _query(data, call, ())
    fetch = call.services.sources.fetch
    found = await _side_by_side(
        profile=fetch("profile", query),
        preferences=_timed("preferences", _preferences(data, call)),
        history=_timed("history", _started_at(call)),
        positions=_positions(data, call, market, glance),
        alerts=fetch("alerts", query),
        education=fetch("education", query),
        events=fetch("events", query),
        interests=_timed("interests", _frequent(data, call)),
        memories=_timed("memories", _recall(data, state, call)),
        **_asked_for_key_events(call),
    )
    data.profile = found["profile"].value
    active = (alert for alert in found["alerts"].value or () if alert.active and alert.triggered_at is None)
    data.alerts = [_spelled(alert) for alert in active]
    data.education = list(found["education"].value or ())
    data.events = _upcoming(found["events"].value or (), data)
    data.preferences = found["preferences"].value or {}
    data.frequent = tuple(found["interests"].value or ())
    data.started_at = found["history"].value or data.now
    data.memories = found["memories"].value or []
    data.key_events = list(found["key_events"].value or ()) if "key_events" in found else []
    steps.update({name: fetched for name, fetched in found.items() if name in STEPS})
    for name, fetched in found.items():
        _note(data, name, fetched)


async def _positions(data: Gathered, call: Call, market: _Market, glance: _Glance) -> Fetched:
    """What is held; its prices begin at once, so that a question about it waits for two sources, not for three."""
    fetched = await call.services.sources.fetch("positions", _query(data, call, ()))
    data.positions = [_spelled(one) for one in fetched.value or () if one.quantity]
    market.quotes.begin(data.held)
    if glance.of_holdings:
        market.signals.begin(data.held)
    return fetched


def _spelled(row: Held) -> Held:
    """With its symbol as messages and quotes spell it: a position in "BTC" is one in BTCUSD.

    Another instrument may have the same code, so the currency has to agree where the row names one.
    """
    known = instrument(row.symbol)
    if known is None or getattr(row, "currency", known.currency) != known.currency:
        return row
    return row.model_copy(update={"symbol": known.symbol})


def _upcoming(events: Iterable[EconomicEvent], data: Gathered) -> list[EconomicEvent]:
    """From today on, by the user's own calendar, ordered by date (RF-19, RF-39)."""
    today = data.now.astimezone(data.timezone).date()
    return sorted((e for e in events if e.date >= today), key=lambda event: (event.date, event.event))


async def _resolve(
    data: Gathered, state: TurnState, call: Call, steps: dict[str, Fetched], market: _Market
) -> None:
    """Step d, once per turn: a later pass of the tool loop keeps what was understood."""
    work = state["work"] or {}
    # The wait for prices is booked on them.
    standings = Standings() if "topic" in work else await _standings(data, state, call, market)
    started = time.perf_counter()
    if "topic" in work:
        data.symbols, data.resolved_by, data.topic = (
            tuple(work["symbols"]),
            work["resolved_by"],
            work["topic"],
        )
    else:
        await _understand(data, state, call, standings)
    data.unknown_symbols = tuple(symbol for symbol in data.symbols if instrument(symbol) is None)
    ms = round((time.perf_counter() - started) * 1000, 3)
    steps["symbols"] = Fetched(data.symbols, "ok" if data.symbols else "empty", ms)


async def _understand(data: Gathered, state: TurnState, call: Call, standings: Standings) -> None:
    """What the message is about, beside what the conversation was about until now."""
    work = state["work"]
    assert work is not None, "receive has run"
    turn = work["turn"]
    earlier = _Earlier.of(state, call)
    reading, likeness = await understand(
        turn["text"],
        turn["redacted"],
        turn["language"],
        Intent(data.intent, data.intent_confidence),
        topics=earlier.topics,
        held=data.held,
        before=earlier.messages,
        embedder=call.services.embedder,
        standings=standings,
        home=data.home_currency,
    )
    data.symbols, data.resolved_by = reading.symbols, reading.how
    data.topic = as_state(reading, likeness)


async def _standings(data: Gathered, state: TurnState, call: Call, market: _Market) -> Standings:
    """How what is held stands by value and gain, where the message asks for that."""
    earlier = _Earlier.of(state, call).messages
    if not data.held or not asks_for_rank(data.text, earlier):
        return Standings()
    fetched = await market.quotes.answers(data.held)
    return standings_of(data.positions, {quote.symbol: quote for quote in fetched.value or ()})


async def _load_market(data: Gathered, call: Call, steps: dict[str, Fetched], market: _Market) -> None:
    """Everything that needs the symbols: quotes, status of their exchanges, signals."""
    watched = [alert.symbol for alert in data.alerts] if "alerts" in data.asked else []
    data.signals_allowed = _entitled(data, call)
    found = await _side_by_side(
        quotes=market.quotes.answers([*data.symbols, *watched], [*data.held, *data.frequent]),
        calendar=_timed("calendar", _statuses(data, call)),
        signals=_signals(data, market),
    )
    data.quotes = {quote.symbol: quote for quote in found["quotes"].value or ()}
    data.signals = list(found["signals"].value or ())
    steps["market"] = _together(found["quotes"], found["calendar"])
    steps["signals"] = found["signals"]
    for name, fetched in found.items():
        _note(data, name, fetched)


async def _side_by_side(**asked: Awaitable[Fetched]) -> dict[str, Fetched]:
    """All at once: the wait is that for the slowest."""
    return dict(zip(asked, await asyncio.gather(*asked.values()), strict=True))


def _asked_for_key_events(call: Call) -> dict[str, Awaitable[Fetched]]:
    """Asked for only where the plan has them: without a type nothing is injected (LA-28); a preview has none."""
    if call.caller.mode == "preview" or not are_active(call.services.plan.key_events):
        return {}
    return {"key_events": _timed("key_events", _open_events(call))}


async def _open_events(call: Call) -> list[KeyEvent]:
    """The first events that are not closed; what the session had before its user was known is his now (A-22)."""
    caller, settings = call.caller, call.services.plan.key_events
    if caller.user is not None:
        origin = Origin(call.services.clock(), caller.user, caller.conversation)
        await call.events.adopt(caller.conversation, caller.user, origin)
    owner = Owner(caller.user, caller.conversation)
    return await call.events.open(owner, settings.injected_max, resolved=settings.inject_resolved)


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
    return await call.turns.started_at(call.caller.conversation, call.caller.user)


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
    """Status of the user's main market, of each symbol's exchange, and of those that the message names (C-35).

    One that no calendar covers takes nothing from the others. An agent without quotes has no business with
    markets (C-39). Raises InputError when no calendar covers the main market.
    """
    if "quotes" not in call.services.sources.names:
        return False
    await asyncio.to_thread(_read_statuses, data, call.services.calendar)
    return True


def _read_statuses(data: Gathered, calendar: MarketCalendar) -> None:
    codes = {exchange_of(symbol) for symbol in data.symbols} - {""} | named_exchanges(data.text)
    for code in sorted(codes - {data.main_market}):
        with suppress(InputError):
            data.markets[code] = calendar.status(code, data.now)
    data.market = calendar.status(data.main_market, data.now)
    data.markets[data.main_market] = data.market


async def _signals(data: Gathered, market: _Market) -> Fetched:
    if not data.signals_allowed:
        return Fetched(None, "skipped", 0.0, "no access")
    symbols = data.symbols
    if not symbols and "signals" in data.asked:
        symbols = tuple(dict.fromkeys([*data.held, *data.frequent]))
    if not symbols:
        return Fetched(None, "empty", 0.0)
    return await market.signals.answers(symbols)


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
    except Exception as error:
        if not isinstance(error, RecuerdoError):
            # A fault of ours. Only its kind: the text may quote what users wrote.
            _log.error("building the context: %s failed: %s", name, type(error).__name__)
        return Fetched(None, "unavailable", _ms(started), f"{name}: {type(error).__name__}")
    return Fetched(value, "ok" if value else "empty", _ms(started))


def _ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _together(*parts: Fetched) -> Fetched:
    """Several sources as one step: the slowest time, the worst status."""
    worst = next((part for part in parts if part.is_away), parts[0])
    return Fetched(None, worst.status, max(part.ms for part in parts), worst.reason)


def _note(data: Gathered, name: str, fetched: Fetched) -> None:
    """Keep what the provider answered; its tokens are known once there are blocks."""
    data.providers.append(
        ProviderCall(
            name=name,
            status=fetched.status,
            ms=fetched.ms,
            tokens=0,
            reason=fetched.reason,
            age_seconds=fetched.age_seconds,
            as_of=fetched.as_of.isoformat() if fetched.as_of else None,
        )
    )
    if fetched.is_away:
        data.unavailable[name] = fetched.reason
    for symbol in fetched.missing:
        data.unavailable[f"{name} {symbol}"] = fetched.reason


def _build_step(name: str, fetched: Fetched) -> BuildStep:
    return BuildStep(step=name, status=fetched.status, ms=fetched.ms, size=0, reason=fetched.reason)
