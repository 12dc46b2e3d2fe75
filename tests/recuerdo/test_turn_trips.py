"""What a turn asks of the database: few transactions, and none that a turn of the offline model has no use for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from recuerdo.agent import Agent
from recuerdo.stores.postgres.database import Connection, Database
from tests.recuerdo.carlos import CARLOS, CONVERSATION

# The plan in force twice (the reservation and the graph's own), the reservation and its end, begin and finish; nine
# reads of the context; now and then the market, which all users share.
AT_MOST = 16


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> list[Database]:
    """One entry for every connection that our own tables' code takes."""
    taken: list[Database] = []
    connection = Database.connection

    @asynccontextmanager
    async def counted(self: Database) -> AsyncIterator[Connection]:
        taken.append(self)
        async with connection(self) as found:
            yield found

    monkeypatch.setattr(Database, "connection", counted)
    return taken


async def test_a_turn_needs_few_transactions(agent: Agent, uses: list[Database]) -> None:
    for text in ("¿Cómo va mi inversión?", "¿Qué opinas de AAPL?"):
        await agent.send(text, user=CARLOS, conversation=CONVERSATION)
    uses.clear()
    await agent.send("¿Y TSLA?", user=CARLOS, conversation=CONVERSATION)
    own = [database for database in uses if database is agent.services.database]
    assert 0 < len(own) <= AT_MOST, len(own)


async def test_nothing_is_embedded_to_learn_nothing(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded: list[Any] = []

    async def embed(texts: Any) -> Any:
        embedded.append(texts)
        raise AssertionError("there is nothing to compare")

    monkeypatch.setattr(agent.services.embedder, "embed", embed, raising=True)
    turn = await agent.send("¿Cómo va mi inversión?", user=CARLOS, conversation=CONVERSATION)
    assert turn.reply and embedded == []
