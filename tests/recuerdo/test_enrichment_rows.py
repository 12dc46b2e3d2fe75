"""Rows on enrichment that need a whole agent: who waits for whom, whose language, what a downgrade takes away."""

import asyncio
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest

from recuerdo.agent import Agent
from recuerdo.stores.sources.registry import Source, SourceQuery
from tests.recuerdo.carlos import (
    AAPL,
    AAPL_POSITION,
    CARLOS,
    CONVERSATION,
    PROFILE,
    SAMPLE,
    SATURDAY,
    TSLA,
    House,
    SettableClock,
    prompt,
    sample,
    seed,
)
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

FREE = {**PROFILE, "subscription": "free"}
ENGLISH = {**PROFILE, "language": "en-US", "timezone": "America/New_York"}


async def say(agent: Agent, text: str, conversation: str = CONVERSATION) -> Any:
    return await agent.send(text, user=CARLOS, conversation=conversation)


def whole(request: Any) -> str:
    """Everything that goes to the model, the history included."""
    return "\n".join(str(message.text) for message in request["messages"])


# Side by side


class Meeting:
    """Sources that give nothing until all that are expected have been asked."""

    def __init__(self, expected: Iterable[str], data: dict[str, Any]) -> None:
        self.missing = set(expected)
        self.data = data
        self.met = asyncio.Event()

    def source(self, name: str) -> Source:
        return _Guest(self, name)

    async def arrive(self, name: str) -> None:
        self.missing.discard(name)
        if not self.missing:
            self.met.set()
        await self.met.wait()


class _Guest:
    def __init__(self, meeting: Meeting, name: str) -> None:
        self.name = name
        self._meeting = meeting

    async def fetch(self, query: SourceQuery) -> Any:
        await self._meeting.arrive(self.name)
        given = self._meeting.data[self.name]
        if self.name not in ("quotes", "signals"):
            return given
        return [row for row in given if row["symbol"] in query.symbols]


DATA = {
    "profile": PROFILE,
    "quotes": [AAPL, TSLA],
    "alerts": [],
    "signals": SAMPLE["signals"],
    "education": [],
    "events": SAMPLE["events"],
}


async def test_rf_47_the_wait_is_that_for_the_slowest_not_the_sum_where_symbols_are_named(
    house: House,
) -> None:
    """No source answers before all have been asked: in phases one of them would be late."""
    names = (*DATA, "positions")
    meeting = Meeting(names, {**DATA, "positions": []})
    async with house.open(sources=[meeting.source(name) for name in names]) as agent:
        turn = await say(agent, "¿Cómo va AAPL?")
    asked = {one["name"]: one["status"] for one in turn.record.providers}
    assert meeting.missing == set()
    assert turn.record.unavailable == [] and asked["quotes"] == asked["signals"] == "ok"
    assert "185.50" in prompt(turn.request) and "alcista" in prompt(turn.request)


@pytest.mark.parametrize("text", ["¿Cuál es mi mayor posición?", "¿Cómo va mi inversión?"])
async def test_rf_27_rf_47_a_question_about_holdings_waits_for_positions_and_then_once(
    house: House, text: str
) -> None:
    """Positions come at once, the others not before prices and signals of what is held have been asked for."""
    meeting = Meeting(DATA, DATA)
    sources = [*(meeting.source(name) for name in DATA), _Held()]
    async with house.open(sources=sources) as agent:
        turn = await say(agent, text)
    assert meeting.missing == set() and turn.record.unavailable == []
    assert "P&L 525.00" in prompt(turn.request) and "alcista" in prompt(turn.request)


class _Held:
    name = "positions"

    async def fetch(self, query: SourceQuery) -> Any:
        return [AAPL_POSITION]


async def test_rf_12_im_40_what_is_held_beside_the_question_does_not_hold_it_up(house: House) -> None:
    class Slow:
        """A price of TSLA that never comes."""

        name = "quotes"

        async def fetch(self, query: SourceQuery) -> Any:
            if "TSLA" in query.symbols:
                await asyncio.Event().wait()
            return [AAPL]

    async with house.open(sources=[Slow()]) as agent:
        await seed(agent)
        named = await say(agent, "¿Cómo va AAPL?")
        greeting = await say(agent, "hola")
        about_it = await say(agent, "¿Cómo va TSLA?")
    assert "185.50" in prompt(named.request)
    assert named.record.unavailable == greeting.record.unavailable == []
    assert [missing.partition(":")[0] for missing in about_it.record.unavailable] == ["quotes TSLA"]


async def test_rf_25_the_wait_for_prices_is_booked_on_them(house: House) -> None:
    class Slow:
        name = "quotes"

        async def fetch(self, query: SourceQuery) -> Any:
            await asyncio.sleep(0.2)
            return [row for row in (AAPL, TSLA) if row["symbol"] in query.symbols]

    async with house.open(sources=[Slow()]) as agent:
        await seed(agent)
        turn = await say(agent, "¿Cuál es mi mayor posición?")
    took = {step["step"]: step["ms"] for step in turn.record.trace}
    assert turn.record.symbols == ["AAPL"]
    assert took["market"] >= 190 > took["symbols"]


# Whose language


@pytest.mark.parametrize("text", ["AAPL", "TSLA?", "ok"])
async def test_rf_20_a_first_message_that_shows_no_language_is_answered_in_the_users_own(
    open_agent: OpenAgent, text: str
) -> None:
    agent = await open_agent()
    await seed(agent, sample(profiles=[ENGLISH]))
    turn = await say(agent, text)
    assert turn.record.language == "en"
    assert "Answer in English unless" in prompt(turn.request)
    assert "Responde en español" not in prompt(turn.request)
    spanish = await say(agent, "¿Cómo va AAPL?")
    assert spanish.record.language == "es"
    assert (await say(agent, "ok")).record.language == "es"


async def test_rf_20_a_language_of_neither_gets_that_of_the_plan_alone(open_agent: OpenAgent) -> None:
    agent = await open_agent()
    await seed(agent, sample(profiles=[{**PROFILE, "language": "pt-BR", "timezone": "America/Sao_Paulo"}]))
    turn = await say(agent, "AAPL")
    assert turn.record.language == "es"
    assert "Answer in" not in whole(turn.request)
    assert "Idioma: pt-BR; zona horaria: America/Sao_Paulo" in prompt(turn.request)


async def test_rf_20_a_7_numbers_dates_and_hours_as_an_american_writes_them(open_agent: OpenAgent) -> None:
    agent = await open_agent()
    await seed(agent, sample(profiles=[ENGLISH], positions=[{**AAPL_POSITION, "quantity": "5000"}]))
    turn = await say(agent, "How is my AAPL position doing?")
    assert "open position of 5,000 at 175.00 USD" in prompt(turn.request)
    assert "P&L 52,500.00 USD (+6.00%)" in prompt(turn.request)
    assert "Now: Friday December 5, 2025, 11:30 (-05:00)" in prompt(turn.request)
    assert turn.context["market"]["current_time"] == "2025-12-05T11:30:00-05:00"
    assert (turn.context["user"]["language"], turn.context["user"]["timezone"]) == (
        "en-US",
        "America/New_York",
    )


# Signals


@pytest.mark.parametrize("text", ["signals", "What does the model predict?", "Is there a signal for AAPL?"])
async def test_rf_16_a_6_who_asks_in_plain_english_without_access_is_told_so(
    open_agent: OpenAgent, text: str
) -> None:
    agent = await open_agent()
    await seed(agent, sample(profiles=[{**ENGLISH, "subscription": "free"}]))
    turn = await say(agent, text)
    assert "ml_signals" not in turn.context
    assert "Signals are not included in the subscription" in turn.reply
    assert not any(word in whole(turn.request) for word in ("bullish", "0.72", "<ml_signals>"))


async def test_rf_16_a_6_after_a_downgrade_no_earlier_reply_carries_signals_on(open_agent: OpenAgent) -> None:
    quoting = "AAPL cotiza a 185.50. El modelo la ve alcista, con confianza 0.72."
    agent = await open_agent(model=ScriptedModel(replies=[quoting, "Vale."]))
    first = await say(agent, "¿Cómo va AAPL?")
    assert "0.72" in whole(first.request)
    still = await say(agent, "¿Y el volumen?")
    assert quoting in whole(still.request)
    await seed(agent, sample(profiles=[FREE]))
    turn = await say(agent, "¿Y qué opinas?")
    assert not any(
        word in whole(turn.request).lower() for word in ("alcista", "bullish", "0.72", "<ml_signals>")
    )
    assert "¿Cómo va AAPL?" in whole(turn.request)


async def test_rf_16_no_summary_keeps_what_a_reply_told_of_signals(open_agent: OpenAgent) -> None:
    quoting = "AAPL cotiza a 185.50 USD. El modelo la ve alcista, con confianza 0.72."
    agent = await open_agent(model=ScriptedModel(replies=[quoting]))
    for _ in range(12):
        turn = await say(agent, "¿Cómo va AAPL?")
    summary = (await say(agent, "¿Cómo va AAPL?")).context["conversation"]["summary"]
    assert summary and "185.50" in summary
    assert "alcista" not in summary and "0.72" not in summary
    await seed(agent, sample(profiles=[FREE]))
    turn = await say(agent, "¿Cómo va AAPL?")
    assert not any(word in whole(turn.request) for word in ("alcista", "0.72"))


# Alerts, markets, what is kept


async def test_rf_14_with_a_short_budget_the_other_alert_goes_and_the_facts_of_the_turn_stay(
    open_agent: OpenAgent,
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Vale."]))
    at_ease = await say(agent, "¿Cómo va AAPL?")
    assert "TSLA <= 240" in prompt(at_ease.request)
    short = await say(agent, "¿Cómo va AAPL?" + " hola" * 6000)
    assert "TSLA <= 240" not in prompt(short.request)
    assert "AAPL: posición abierta de 50" in prompt(short.request) and "185.50" in prompt(short.request)
    dropped = [step for step in short.record.steps if step.block == "other_alerts"]
    assert dropped and all(step.tier == "medium" for step in dropped)


async def test_rf_29_im_41_also_where_the_question_is_in_other_words(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    agent = await open_agent()
    clock.set(SATURDAY)
    turn = await say(agent, "¿entro en AAPL hoy?")
    assert "paper trading" in turn.reply and "lunes 8 de diciembre de 2025, 08:30" in turn.reply


async def test_rf_18_c_35_a_question_about_an_exchange_has_its_state(open_agent: OpenAgent) -> None:
    agent = await open_agent()
    turn = await say(agent, "¿Está abierta la bolsa mexicana?")
    assert re.search(r"Mercado [^:]*XMEX[^:]*: abierto", prompt(turn.request))
    assert "XMEX" in turn.reply


async def test_rf_47_the_size_of_a_step_is_that_of_what_it_put_into_the_prompt(open_agent: OpenAgent) -> None:
    agent = await open_agent()
    turn = await say(agent, "¿Cómo va mi inversión?")
    sizes = {step["step"]: step["size"] for step in turn.record.trace}
    in_use: dict[str, int] = {}
    for block in turn.record.blocks:
        in_use[block.source] = in_use.get(block.source, 0) + block.tokens
    for step in ("profile", "preferences", "market", "positions", "alerts", "signals"):
        assert sizes[step] == in_use[step] > 0
    other = {step["step"]: step["size"] for step in (await say(agent, "¿qué es RSI?", "c2")).record.trace}
    assert other["positions"] == other["alerts"] == other["signals"] == 0


LOGS = ("turns", "messages", "tool_results")
"""What happened, word for word; the platform's own tables are no memory either."""
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+-]+")


async def test_c_16_after_rf_27_no_long_term_row_of_any_table_has_tsla_with_a_quantity(agent: Agent) -> None:
    await say(agent, "¿Cómo va mi inversión?")
    await say(agent, "recuerda que tengo 20 acciones de TSLA a 250")
    await say(agent, "me interesa TSLA a largo plazo")
    async with agent.services.database.operator() as connection:
        cursor = await connection.execute(
            "select table_name from information_schema.tables"
            " where table_schema = 'recuerdo' and table_type = 'BASE TABLE'"
        )
        tables = [row["table_name"] for row in await cursor.fetchall()]
        kept: dict[str, list[str]] = {}
        for table in (name for name in tables if name not in LOGS and not name.startswith("platform_")):
            cursor = await connection.execute(f"select to_jsonb(t)::text as row from recuerdo.{table} t")
            kept[table] = [INSTANT.sub("", row["row"]) for row in await cursor.fetchall()]
    naming = {
        table: found for table, rows in kept.items() if (found := [row for row in rows if "TSLA" in row])
    }
    assert "user_symbols" in naming or "user_memory" in naming
    figures = re.compile(r"(?<![\d.\w-])(?:20|250|-?100|5,?000)(?:\.0+)?(?![\d\w-])")
    assert {table: row for table, found in naming.items() for row in found if figures.search(row)} == {}


async def test_c_21_every_stored_time_has_an_offset(agent: Agent) -> None:
    turn = await say(agent, "¿Cómo va AAPL?")
    async with agent.services.database.operator() as connection:
        cursor = await connection.execute(
            "select table_name, column_name, data_type from information_schema.columns"
            " where table_schema = 'recuerdo' and data_type like 'timestamp%'"
        )
        columns = await cursor.fetchall()
    assert len(columns) > 20
    assert [column for column in columns if column["data_type"] != "timestamp with time zone"] == []
    told = (
        turn.context["market"]["current_time"],
        turn.context["conversation"]["started_at"],
        turn.context["ml_signals"]["AAPL"]["updated_at"],
        turn.context["market"]["quotes"]["AAPL"]["as_of"],
    )
    assert all(datetime.fromisoformat(instant).tzinfo is not None for instant in told)
