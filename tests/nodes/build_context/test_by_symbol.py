"""A source asked by symbol: each once, and nothing waits for what only stands beside the turn."""

import asyncio

from recuerdo.nodes.build_context.by_symbol import BySymbol
from recuerdo.stores.sources.registry import Fetched
from tests.nodes.build_context.enrichment import NOW, quote


class Exchange:
    """Gives a price for every symbol; some only when a test lets them."""

    def __init__(
        self,
        held_back: frozenset[str] | set[str] = frozenset(),
        away: frozenset[str] | set[str] = frozenset(),
    ) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.go = asyncio.Event()
        self.held_back, self.away = held_back, away

    async def fetch(self, symbols: tuple[str, ...]) -> Fetched:
        self.asked.append(symbols)
        if self.held_back & set(symbols):
            await self.go.wait()
        if not symbols:
            return Fetched([], "empty", 0.0)
        if self.away & set(symbols):
            return Fetched(None, "unavailable", 5.0, "quotes: ConnectionError")
        rows = [quote(symbol, "10") for symbol in symbols]
        return Fetched(rows, "ok", 3.0, age_seconds=float(len(self.asked)), as_of=NOW)


def symbols(found: Fetched) -> list[str]:
    return [row.symbol for row in found.value or ()]


async def test_rf_12_rf_35_each_symbol_is_asked_for_once_whenever_it_is_known() -> None:
    exchange = Exchange()
    quotes = BySymbol(exchange.fetch)
    quotes.begin(["AAPL"])
    quotes.begin(["AAPL", "TSLA"])
    found = await quotes.answers(["AAPL"], ["TSLA", "KO", "AAPL"])
    assert exchange.asked == [("AAPL",), ("TSLA",), ("KO",)]
    assert symbols(found) == ["AAPL", "TSLA", "KO"]
    assert (found.status, found.ms, found.age_seconds, found.as_of) == ("ok", 3.0, 3.0, NOW)
    assert symbols(await quotes.answers(["KO"])) == ["KO"]
    await quotes.close()


async def test_what_only_stands_beside_the_turn_is_not_waited_for_and_not_called_missing() -> None:
    exchange = Exchange(held_back={"TSLA"})
    quotes = BySymbol(exchange.fetch)
    found = await quotes.answers(["AAPL"], ["TSLA"])
    assert symbols(found) == ["AAPL"] and found.missing == ()
    only_beside = await quotes.answers([], ["TSLA"])
    assert (only_beside.value, only_beside.status, only_beside.is_away) == (None, "skipped", False)
    exchange.go.set()
    assert symbols(await quotes.answers(["TSLA"])) == ["TSLA"]
    await quotes.close()


async def test_im_40_a_part_that_is_away_is_named_by_its_symbols() -> None:
    exchange = Exchange(away={"TSLA"})
    quotes = BySymbol(exchange.fetch)
    quotes.begin(["AAPL"])
    found = await quotes.answers(["AAPL", "TSLA"])
    assert symbols(found) == ["AAPL"]
    assert (found.status, found.missing, found.reason) == ("ok", ("TSLA",), "quotes: ConnectionError")
    alone = await quotes.answers(["TSLA"])
    assert (alone.value, alone.status, alone.ms) == (None, "unavailable", 5.0)
    await quotes.close()


async def test_without_a_symbol_the_source_still_says_how_it_is() -> None:
    exchange = Exchange()
    quotes = BySymbol(exchange.fetch)
    assert (await quotes.answers([])).status == "empty"
    await quotes.close()


async def test_what_nobody_waits_for_ends_with_the_turn() -> None:
    exchange = Exchange(held_back={"TSLA"})
    quotes = BySymbol(exchange.fetch)
    quotes.begin(["TSLA"])
    await asyncio.sleep(0)
    await quotes.close()
    running = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert exchange.asked == [("TSLA",)] and running == []
