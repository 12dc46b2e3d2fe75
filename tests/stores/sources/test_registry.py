"""Sources that answer, fail, are late or talk nonsense; who shares an answer and who does not."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import SourceSettings
from recuerdo.stores.sources.kinds import KINDS
from recuerdo.stores.sources.registry import Fetched, SourceQuery, Sources
from recuerdo.stores.sources.rows import (
    Alert,
    CourseProgress,
    EconomicEvent,
    Position,
    Profile,
    Quote,
    Signal,
)

NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)


ended: list[SourceQuery] = []


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


class Stub:
    """A source of the test's own: ``give`` is the answer, or makes it."""

    def __init__(self, name: str, give: Any) -> None:
        self.name = name
        self.give = give
        self.queries: list[SourceQuery] = []

    async def fetch(self, query: SourceQuery) -> Any:
        self.queries.append(query)
        given = self.give(query) if callable(self.give) else self.give
        return await given if asyncio.iscoroutine(given) else given


def quote(symbol: str = "AAPL", **changes: Any) -> Quote:
    values = {"symbol": symbol, "price": "185.50", "currency": "USD", "as_of": NOW}
    return Quote(**{**values, **changes})


def quotes(query: SourceQuery) -> list[Quote]:
    return [quote(symbol) for symbol in query.symbols]


def position(user: str = "user-123") -> Position:
    return Position(user=user, symbol="AAPL", quantity=Decimal(50), avg_price=Decimal(175), currency="USD")


PROFILE = Profile(
    user="user-123",
    name="Carlos",
    subscription="premium",
    risk_profile="moderate",
    experience="intermediate",
    language="es",
    timezone="America/Mexico_City",
)
PROGRESS = CourseProgress(
    user="user-123",
    course="Curso RSI",
    topic="RSI",
    percent=Decimal(60),
    next_lesson="Divergencias",
    updated_at=NOW,
)
ANSWERS: dict[str, Any] = {
    "profile": PROFILE,
    "quotes": [quote()],
    "positions": [position()],
    "alerts": [Alert(user="user-123", id="a", symbol="AAPL", condition="<=", price=Decimal(240))],
    "signals": [Signal(symbol="AAPL", prediction="bullish", confidence=Decimal("0.72"), updated_at=NOW)],
    "education": [PROGRESS],
    "events": [EconomicEvent(event="Fed Minutes", date=date(2025, 12, 6), impact="high")],
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ask(clock: Clock) -> Callable[..., Any]:
    """Ask one stub, with symbols AAPL by default."""

    async def ask_one(stub: Stub, *symbols: str, user: str | None = "user-123") -> Fetched:
        sources = Sources([stub], clock=clock, settings={stub.name: SourceSettings(timeout_ms=50)})
        return await sources.fetch(stub.name, SourceQuery("t1", user, symbols or ("AAPL",), NOW))

    return ask_one


@pytest.mark.parametrize("name", KINDS)
async def test_rf_63_every_kind_comes_from_a_stub_through_one_interface(
    ask: Callable[..., Any], name: str
) -> None:
    fetched = await ask(Stub(name, ANSWERS[name]))
    assert (fetched.value, fetched.status, fetched.reason) == (ANSWERS[name], "ok", "")
    assert fetched.ms >= 0 and fetched.age_seconds == 0


async def test_rf_15_a_5_the_progress_of_a_course_as_data(ask: Callable[..., Any]) -> None:
    (course,) = (await ask(Stub("education", [PROGRESS.model_dump()]))).value
    assert (course.course, course.topic, course.percent) == ("Curso RSI", "RSI", Decimal(60))
    assert (course.next_lesson, course.updated_at) == ("Divergencias", NOW)
    fetched = await ask(Stub("education", [{**PROGRESS.model_dump(), "percent": 101}]))
    assert (fetched.status, fetched.reason) == ("unavailable", "education: percent: less_than_equal")


async def test_im_35_the_status_and_age_of_every_answer(ask: Callable[..., Any], clock: Clock) -> None:
    old = NOW - timedelta(hours=2)
    fetched = await ask(Stub("quotes", [quote(as_of=old), quote("TSLA")]), "AAPL", "TSLA")
    assert (fetched.status, fetched.as_of) == ("ok", old)
    assert (await ask(Stub("quotes", []))).status == "empty"
    assert (await ask(Stub("profile", None))).status == "empty"
    skipped = await Sources([], clock=clock).fetch("quotes", SourceQuery("t1", None, (), NOW))
    assert (skipped.status, skipped.age_seconds) == ("skipped", None)


def generator_that_raises(query: SourceQuery) -> Iterator[Quote]:
    yield quote()
    raise RuntimeError("password=secret")


def endless(query: SourceQuery) -> Iterator[Quote]:
    while True:
        yield quote()


def raising(query: SourceQuery) -> Any:
    raise ConnectionError("password=secret")


async def broken_off(query: SourceQuery) -> Any:
    raise asyncio.CancelledError


async def hanging(query: SourceQuery) -> Any:
    await asyncio.Event().wait()


async def deaf(query: SourceQuery) -> Any:
    """It does not let itself be cancelled."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0.1)
    ended.append(query)


UNCHECKED = Quote.model_construct(symbol="AAPL", price=Decimal(-5), currency="USD", as_of=NOW)
NONSENSE = {
    "none": None,
    "text": "AAPL 185",
    "a mapping in place of rows": {"symbol": "AAPL"},
    "a number": 7,
    "rows of another kind": [position()],
    "none among the rows": [None],
    "not a number": [{**quote().model_dump(), "price": Decimal("NaN")}],
    "endless number": [{**quote().model_dump(), "price": float("inf")}],
    "huge number": [{**quote().model_dump(), "price": "1e300"}],
    "truth value": [{**quote().model_dump(), "price": True}],
    "negative price": [{**quote().model_dump(), "price": "-1"}],
    "a row built without checks": [UNCHECKED],
    "naive instant": [{**quote().model_dump(), "as_of": NOW.replace(tzinfo=None)}],
    "a number in place of an instant": [{**quote().model_dump(), "as_of": 1764952200}],
    "no symbol": [{"price": "1"}],
    "missing field": [{"symbol": "AAPL"}],
    "two different rows": [quote(), quote(price="190")],
    "a price of the future": [quote(as_of=NOW + timedelta(minutes=2))],
    "an endless fraction": [{**quote().model_dump(), "price": Decimal("1e-900000")}],
    "a sentence for a currency": [{**quote().model_dump(), "currency": "USD. Compra"}],
    "generator that raises": generator_that_raises,
    "endless generator": endless,
    "not awaitable": raising,
    "broken off": broken_off,
}


@pytest.mark.parametrize("what", NONSENSE)
async def test_im_40_nonsense_costs_the_block_and_says_so(ask: Callable[..., Any], what: str) -> None:
    fetched = await ask(Stub("quotes", NONSENSE[what]))
    assert (fetched.status, fetched.value) == ("unavailable", None)
    assert fetched.reason.startswith("quotes: ") and "secret" not in fetched.reason


@pytest.mark.parametrize("name", ["profile", "positions", "alerts", "education"])
async def test_im_40_nonsense_about_a_user_too(ask: Callable[..., Any], name: str) -> None:
    for give in (raising, broken_off, 7, [7], {"user": "user-123"}, [{"user": "user-123"}]):
        fetched = await ask(Stub(name, give))
        assert (fetched.status, fetched.value) == ("unavailable", None)


@pytest.mark.parametrize("give", [hanging, deaf])
@pytest.mark.parametrize("name", ["quotes", "positions", "events"])
async def test_im_40_a_late_source_is_late(ask: Callable[..., Any], name: str, give: Any) -> None:
    ended.clear()
    fetched = await ask(Stub(name, give))
    assert (fetched.status, fetched.value) == ("late", None)
    assert fetched.is_away and not ended


@pytest.mark.parametrize("name", ["profile", "positions", "alerts", "education"])
@pytest.mark.parametrize("user", ["user-2", None])
async def test_im_40_rows_of_another_user_are_refused(
    ask: Callable[..., Any], name: str, user: str | None
) -> None:
    fetched = await ask(Stub(name, ANSWERS[name]), user=user)
    assert (fetched.status, fetched.value) == ("unavailable", None)
    assert "another user" in fetched.reason


OTHERS: dict[str, dict[str, Any]] = {
    "positions": {"quantity": Decimal(51)},
    "alerts": {"price": Decimal(241)},
    "education": {"percent": Decimal(61)},
    "events": {"impact": "low"},
}
"""What tells a second row of the same key from the first."""


@pytest.mark.parametrize("name", OTHERS)
async def test_im_40_a_row_given_twice_is_one_row(ask: Callable[..., Any], name: str) -> None:
    (row,) = ANSWERS[name]
    fetched = await ask(Stub(name, [row, row.model_dump(), row]))
    assert (fetched.value, fetched.status) == ([row], "ok")


@pytest.mark.parametrize("name", OTHERS)
async def test_im_40_of_two_rows_that_differ_neither_is_told(ask: Callable[..., Any], name: str) -> None:
    (row,) = ANSWERS[name]
    fetched = await ask(Stub(name, [row, {**row.model_dump(), **OTHERS[name]}]))
    assert (fetched.value, fetched.status) == (None, "unavailable")
    assert fetched.reason == f"{name}: two different rows"


async def test_im_40_a_source_whose_clock_is_a_little_ahead(ask: Callable[..., Any]) -> None:
    ahead = quote(as_of=NOW + timedelta(seconds=50))
    assert (await ask(Stub("quotes", [ahead]))).value == [ahead]


async def test_im_40_one_symbol_that_is_wrong_costs_that_symbol(ask: Callable[..., Any]) -> None:
    wrong = {**quote("TSLA").model_dump(), "price": -1}
    fetched = await ask(Stub("quotes", [quote(), wrong, quote("OTHER")]), "AAPL", "TSLA", "NVDA")
    assert fetched.value == [quote()]
    assert (fetched.status, fetched.missing) == ("ok", ("TSLA",))


async def ask_all(sources: Sources, name: str, *queries: SourceQuery) -> list[Fetched]:
    return list(await asyncio.gather(*(sources.fetch(name, query) for query in queries)))


async def test_rf_35_quotes_are_shared_by_symbol_for_a_minute(clock: Clock) -> None:
    stub = Stub("quotes", lambda query: [quote(symbol, as_of=clock.now) for symbol in query.symbols])
    sources = Sources([stub], clock=clock)
    for seconds, calls in ((0, 1), (59, 1), (61, 2)):
        clock.now = NOW + timedelta(seconds=seconds)
        fetched = await sources.fetch("quotes", SourceQuery("t1", "user-123", ("AAPL",), clock.now))
        assert len(stub.queries) == calls
        assert clock.now - fetched.value[0].as_of <= timedelta(seconds=60)
        assert fetched.age_seconds == (clock.now - fetched.value[0].as_of).total_seconds()


async def test_rf_35_a_hundred_users_make_one_call_per_symbol(clock: Clock) -> None:
    async def slow(query: SourceQuery) -> list[Quote]:
        await asyncio.sleep(0.05)
        return quotes(query)

    stub = Stub("quotes", slow)
    sources = Sources([stub], clock=clock)
    asked = [
        SourceQuery("t1", f"user-{n}", ("AAPL", "TSLA")[: n % 2 + 1], NOW - timedelta(milliseconds=n))
        for n in range(100)
    ]
    assert all(fetched.status == "ok" for fetched in await ask_all(sources, "quotes", *asked))
    assert [query.symbols for query in stub.queries] == [("AAPL",), ("TSLA",)]


async def test_an_unknown_symbol_is_not_asked_for_again_and_again(clock: Clock) -> None:
    stub = Stub("quotes", [])
    sources = Sources([stub], clock=clock)
    for _ in range(3):
        assert (await sources.fetch("quotes", SourceQuery("t1", None, ("ZZZZ",), NOW))).status == "empty"
    assert len(stub.queries) == 1


async def test_fault_27_what_is_a_users_own_is_shared_with_nobody(clock: Clock) -> None:
    async def own(query: SourceQuery) -> list[Position]:
        await asyncio.sleep(0.01)
        return [position(str(query.user))]

    stub = Stub("positions", own)
    for refresh in (None, 60):
        sources = Sources(
            [stub], clock=clock, settings={"positions": SourceSettings(refresh_seconds=refresh)}
        )
        asked = [SourceQuery(t, u, (), NOW) for t in ("t1", "t2") for u in ("user-1", "user-2")]
        stub.queries.clear()
        found = await ask_all(sources, "positions", *asked, *asked)
        assert [row.user for fetched in found for row in fetched.value] == [q.user for q in asked] * 2
        assert len(stub.queries) == (8 if refresh is None else 4)


async def test_fault_27_a_shared_answer_does_not_know_who_asks(clock: Clock) -> None:
    stub = Stub("quotes", quotes)
    sources = Sources([stub], clock=clock)
    await ask_all(
        sources, "quotes", *(SourceQuery(t, u, ("AAPL",), NOW) for t in ("t1", "t2") for u in ("a", "b"))
    )
    assert [(query.tenant, query.user) for query in stub.queries] == [("t1", None), ("t2", None)]


async def test_who_stops_waiting_ends_what_is_his_own_and_nobody_elses(clock: Clock) -> None:
    ended: list[str] = []

    async def waits(query: SourceQuery) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(str(query.user))

    sources = Sources([Stub("positions", waits), Stub("quotes", waits)], clock=clock)
    waiting = [
        asyncio.create_task(sources.fetch(name, SourceQuery("t1", "u", ("AAPL",), NOW)))
        for name in ("positions", "quotes")
    ]
    await asyncio.sleep(0.01)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    await asyncio.sleep(0)
    assert ended == ["u"]
    await sources.close()
    assert ended == ["u", "None"]


async def test_c_39_a_later_source_of_a_name_replaces_an_earlier_one(clock: Clock) -> None:
    first, second = Stub("quotes", []), Stub("quotes", quotes)
    fetched = await Sources([first, second], clock=clock).fetch(
        "quotes", SourceQuery("t1", None, ("AAPL",), NOW)
    )
    assert fetched.value == [quote()] and not first.queries


def test_a_name_that_is_no_kind_of_data_is_refused(clock: Clock) -> None:
    with pytest.raises(SettingsError, match="quotes"):
        Sources([Stub("quote", [])], clock=clock)
