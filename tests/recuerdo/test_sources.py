"""Sources of an app's own in whole turns: shared by the minute, and away without harm."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from recuerdo.nodes.call import Call, Caller
from recuerdo.nodes.run_tools.tools import CALL, SHIPPED_TOOLS
from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan
from recuerdo.stores.plans import load_plan
from recuerdo.stores.sources.registry import SourceQuery

from .carlos import (
    AAPL,
    AAPL_POSITION,
    CARLOS,
    CONVERSATION,
    NVDA,
    PROFILE,
    SAMPLE,
    TSLA,
    House,
    SettableClock,
    prompt,
    sample,
    seed,
)

NEUTRAL = {"show_disclaimers": False}


class Stub:
    """A source of the test's own."""

    def __init__(self, name: str, give: Callable[[SourceQuery], Any]) -> None:
        self.name = name
        self.give = give
        self.queries: list[SourceQuery] = []

    async def fetch(self, query: SourceQuery) -> Any:
        self.queries.append(query)
        given = self.give(query)
        return await given if asyncio.iscoroutine(given) else given


def away(query: SourceQuery) -> Any:
    raise ConnectionError("password=secret")


async def hangs(query: SourceQuery) -> Any:
    await asyncio.Event().wait()


def trading(**changes: Any) -> Plan:
    return load_plan("trading").model_copy(update=changes)


async def say(agent: Any, text: str, conversation: str = CONVERSATION, user: str | None = CARLOS) -> Any:
    return await agent.send(text, user=user, conversation=conversation)


def provider_of(turn: Any, name: str) -> dict[str, Any]:
    return next(provider for provider in turn.record.providers if provider["name"] == name)


async def test_rf_35_im_35_the_market_is_refreshed_after_60_seconds(
    house: House, clock: SettableClock
) -> None:
    start = clock.now

    def fresh(query: SourceQuery) -> list[dict[str, Any]]:
        return [{**AAPL, "as_of": clock.now.isoformat()} for symbol in query.symbols if symbol == "AAPL"]

    stub = Stub("quotes", fresh)
    async with house.open(sources=[stub]) as agent:
        await seed(agent, sample(positions=[]))
        for seconds, calls, age in ((0, 1, 0), (59, 1, 59), (61, 2, 0)):
            clock.now = start + timedelta(seconds=seconds)
            turn = await say(agent, "¿Cómo va AAPL?")
            assert len(stub.queries) == calls
            asked = provider_of(turn, "quotes")
            assert (asked["status"], asked["age_seconds"]) == ("ok", age)
            assert asked["as_of"] == (clock.now - timedelta(seconds=age)).isoformat()
            assert asked["ms"] >= 0 and asked["tokens"] > 0


async def test_fault_27_two_users_at_once_share_quotes_and_nothing_else(house: House) -> None:
    async def own(query: SourceQuery) -> list[dict[str, Any]]:
        await asyncio.sleep(0.01)
        quantity = {"user-1": 11, "user-2": 22}[str(query.user)]
        return [{**AAPL_POSITION, "user": query.user, "quantity": quantity}]

    positions, quotes = Stub("positions", own), Stub("quotes", lambda query: [AAPL])
    async with house.open(sources=[positions, quotes]) as agent:
        await seed(agent, sample(positions=[]), NEUTRAL)
        first, second = await asyncio.gather(
            say(agent, "¿Cómo va AAPL?", "c1", "user-1"), say(agent, "¿Cómo va AAPL?", "c2", "user-2")
        )
    for turn, quantity in ((first, 11), (second, 22)):
        (held,) = turn.context["portfolio"]["positions"]
        assert held["quantity"] == quantity
    assert [query.user for query in quotes.queries] == [None]


async def test_rf_47_the_record_keeps_the_order_whichever_ended_first(house: House) -> None:
    async def late_profile(query: SourceQuery) -> Any:
        await asyncio.sleep(0.05)
        return {**PROFILE, "subscription": "free"}

    async with house.open(sources=[Stub("profile", late_profile)]) as agent:
        await seed(agent)
        turn = await say(agent, "¿Cómo va AAPL?")
    trace = turn.record.trace
    assert [step["step"] for step in trace] == [
        *("profile", "preferences", "history", "symbols", "market", "positions", "alerts", "signals")
    ]
    assert trace[-1]["status"] == "skipped"
    assert all(step["ms"] >= 0 and step["size"] >= 0 for step in trace)


async def test_rf_63_the_sources_come_from_stubs_of_the_app(house: House) -> None:
    stubs = [
        Stub("profile", lambda query: PROFILE),
        Stub("quotes", lambda query: [TSLA, AAPL]),
        Stub("positions", lambda query: [AAPL_POSITION]),
        Stub("signals", lambda query: SAMPLE["signals"]),
        Stub("alerts", lambda query: []),
        Stub("education", lambda query: []),
        Stub("events", lambda query: SAMPLE["events"]),
    ]
    async with house.open(sources=stubs) as agent:
        turn = await say(agent, "¿Cómo va AAPL?")
    assert all(stub.queries for stub in stubs)
    assert turn.context["user"]["plan"] == "premium"
    assert turn.context["market"]["quotes"]["AAPL"]["price"] == 185.5
    assert turn.context["portfolio"]["positions"][0]["current_pnl"] == 525
    assert turn.context["ml_signals"]["AAPL"]["prediction"] == "bullish"


@pytest.mark.parametrize("give", [away, hangs, lambda query: None, lambda query: [{"symbol": "AAPL"}]])
async def test_rf_63_im_40_a_source_that_is_away_costs_its_block(
    house: House, give: Callable[[SourceQuery], Any]
) -> None:
    plan = trading(
        sources={
            name: settings.model_copy(update={"timeout_ms": 50 if name == "signals" else 5000})
            for name, settings in load_plan("trading").sources.items()
        }
    )
    async with house.open(sources=[Stub("signals", give)], plan=plan) as agent:
        await seed(agent)
        turn = await say(agent, "¿Cómo va AAPL?")
    assert turn.reply
    assert provider_of(turn, "signals")["status"] == ("late" if give is hangs else "unavailable")
    assert turn.record.trace[-1]["status"] in ("late", "unavailable")
    assert [missing.partition(":")[0] for missing in turn.record.unavailable] == ["signals"]
    assert "Datos no disponibles ahora: señales" in prompt(turn.request)
    assert "alcista" not in prompt(turn.request) and "secret" not in str(turn.record)


async def test_im_40_one_symbol_that_is_nonsense_is_named(house: House) -> None:
    quotes = Stub("quotes", lambda query: [AAPL, {**TSLA, "price": "-245"}, NVDA])
    async with house.open(sources=[quotes]) as agent:
        await seed(agent)
        turn = await say(agent, "compara AAPL con TSLA")
    assert "185.50" in prompt(turn.request) and "245" not in prompt(turn.request)
    assert "Datos no disponibles ahora: cotizaciones de TSLA" in prompt(turn.request)
    assert turn.record.unavailable == ["quotes TSLA: quotes: price: greater_than_equal"]


async def test_im_40_the_tool_says_that_quotes_are_late(house: House, clock: SettableClock) -> None:
    plan = trading(
        sources={"quotes": load_plan("trading").sources["quotes"].model_copy(update={"timeout_ms": 20})}
    )
    async with house.open(sources=[Stub("quotes", hangs)], plan=plan) as agent:
        caller = Caller("t1", "trading", CARLOS, CONVERSATION)
        call = Call(caller, agent.services, emit=lambda chunk: None)
        said = await SHIPPED_TOOLS["get_quote"].ainvoke({"symbol": "AAPL"}, {"configurable": {CALL: call}})
    assert "not available" in said


@pytest.mark.parametrize(
    ("now", "days"),
    [("2025-12-05T19:00:00-06:00", ["05", "06", "08"]), ("2025-12-06T00:30:00-06:00", ["06", "08"])],
)
async def test_rf_19_rf_39_events_from_today_on_by_the_users_calendar(
    house: House, clock: SettableClock, now: str, days: list[str]
) -> None:
    clock.set(now)
    events = [
        {"event": f"Fed {day}", "date": f"2025-12-{day}", "impact": "high"}
        for day in ("08", "04", "06", "05")
    ]
    async with house.open() as agent:
        await seed(agent, sample(events=events))
        turn = await say(agent, "Hola, ¿qué hay hoy?")
    assert turn.context["market"]["upcoming_events"] == [
        {"event": f"Fed {day}", "date": f"2025-12-{day}", "impact": "high"} for day in days
    ]


async def test_c_39_the_core_runs_with_no_source(house: House) -> None:
    async with house.open(plan=trading(sources={})) as agent:
        turn = await say(agent, "¿Cómo va AAPL?")
    assert turn.reply
    statuses = {p["name"]: p["status"] for p in turn.record.providers}
    names = ("profile", "quotes", "positions", "alerts", "education", "events", "signals")
    assert {statuses[name] for name in names} == {"skipped"}
    assert turn.record.unavailable == []


async def test_c_39_a_plan_chooses_the_sample_prices(house: House) -> None:
    quotes = load_plan("trading").sources["quotes"].model_copy(update={"provider": "sample"})
    async with house.open(plan=trading(sources={"quotes": quotes})) as agent:
        turn = await say(agent, "¿Cómo va AAPL?")
        assert turn.context["market"]["quotes"]["AAPL"]["as_of"] == "2025-12-04T21:00:00+00:00"
    with pytest.raises(SettingsError, match="sample"):
        wrong = quotes.model_copy(update={"provider": "moon"})
        async with house.open(plan=trading(sources={"quotes": wrong})):
            pass


async def test_a_5_progress_of_courses_is_asked_for_the_caller_only(house: House) -> None:
    stub = Stub("education", lambda query: [])
    async with house.open(sources=[stub]) as agent:
        await seed(agent)
        turn = await say(agent, "¿Qué lección sigue en mi curso?")
    assert [(query.tenant, query.user) for query in stub.queries] == [("t1", CARLOS)]
    assert provider_of(turn, "education")["status"] == "empty"
