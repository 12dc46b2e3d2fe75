"""Every stored item says which level of memory it is of, by the API and in the lists of the command line (OR-2)."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from recuerdo import memories_namespace
from recuerdo.agent import Agent
from recuerdo.cli import app
from recuerdo.state.key_events import NewEvent, Origin, Owner
from recuerdo.state.plan import EventType, KeyEventSettings
from recuerdo.stores.postgres.key_events import OperatorFilter, PostgresKeyEvents
from tests.recuerdo.carlos import CARLOS, CONVERSATION, TENANT, House, SettableClock
from tests.recuerdo.conftest import OpenAgent
from tests.recuerdo.learning_house import OWNER, TOOL, appoint, plan_of_house, tools
from tests.scripted import ScriptedModel

REFUND = "reembolso"
EVENTS = KeyEventSettings(enabled=True, types=(EventType(name=REFUND, description="Espera dinero."),))
DISCOUNT = {"discount_pct": 10, "nights": 5}


@pytest.fixture
async def agent(open_agent: OpenAgent, clock: SettableClock, tmp_path: Path) -> Agent:
    """An agent with something of every kind kept, and a turn that waits for a person."""
    # The command line goes by the machine's clock: by that nothing may have expired.
    clock.now = datetime.now(UTC)
    asked = AIMessage("", tool_calls=[{"name": TOOL, "args": DISCOUNT, "id": "c1"}])
    agent = await open_agent(plan="trading", tools=tools(), model=ScriptedModel(replies=["Bien.", asked]))
    await appoint(agent.services)
    plans, packs = agent.governance.plans, agent.governance.packs
    folder = tmp_path / "tarifas"
    folder.mkdir()
    (folder / "salidas.md").write_text("El check-out es a las 11:00.\n")
    pack = await packs.build(folder, actor=OWNER)
    revision = await plans.compile(plan_of_house(key_events=EVENTS, packs=(pack.reference,)), actor=OWNER)
    await plans.activate(revision.number, actor=OWNER)
    await agent.memory.remember("Prefiere los pisos altos", user=CARLOS)
    await agent.memory.correct_preference("preferred_timeframe", "1d", user=CARLOS)
    await agent.store.aput(("app",), "k", {"v": 1})
    await PostgresKeyEvents(agent.services.database, TENANT, agent.assistant).create(
        Owner(CARLOS, CONVERSATION),
        NewEvent(REFUND, "El pedido 4471 no llegó"),
        Origin(agent.services.clock(), CARLOS, CONVERSATION),
    )
    await agent.send("¿Cómo va AAPL?", user=CARLOS, conversation=CONVERSATION)
    await agent.send("Un descuento", user=CARLOS, conversation=CONVERSATION)
    return agent


async def kept(agent: Agent) -> dict[str, list[Any]]:
    """What the API lists, by kind."""
    memory, governance, talks = agent.memory, agent.governance, agent.conversations
    mine = memories_namespace(agent.assistant, CARLOS)
    return {
        "memories": list(await memory.list(user=CARLOS)),
        "recalled": [hit.memory for hit in await memory.recall("pisos", user=CARLOS)],
        "preferences": list((await memory.preferences(user=CARLOS)).values()),
        "symbols": list(await memory.symbols(user=CARLOS)),
        "events": list((await agent.events.list(OperatorFilter(), actor=OWNER)).events),
        "items": [await agent.store.aget(("app",), "k"), *await agent.store.asearch(mine)],
        "conversations": list(await talks.list(user=CARLOS)),
        "messages": list(await talks.get(CONVERSATION, user=CARLOS)),
        "evidence": list(await governance.evidence.list(actor=OWNER)),
        "waiting": [await agent.level_1(CONVERSATION, user=CARLOS)],
        "packs": list(await governance.packs.all(actor=OWNER)),
        "revisions": list(await governance.plans.all(actor=OWNER)),
    }


async def test_or_2_every_stored_item_says_its_level(agent: Agent) -> None:
    found = await kept(agent)
    assert all(found.values()), "one of each kind at least"
    others = {"waiting": 1, "packs": 3, "revisions": 3}
    for kind, items in found.items():
        assert {one.level for one in items} == {others.get(kind, 2)}, kind
    assert [item.dict()["level"] for item in found["items"]] == [2, 2]
    assert [one["level"] for one in await agent.events.data(found["events"])] == [2]


LISTS: dict[str, tuple[tuple[str, ...], str, int]] = {
    "memories": (("memory", "list", "--user", CARLOS), "pisos altos", 2),
    "recalled": (("memory", "recall", "pisos", "--user", CARLOS), "pisos altos", 2),
    "events": (("events", "list", "--actor", OWNER), "4471", 2),
    "evidence": (("evidence", "list", "--actor", OWNER), "approval_requested", 2),
    "packs": (("pack", "list", "--actor", OWNER), "tarifas@", 3),
    "revisions": (("plan", "list", "--actor", OWNER), "r2", 3),
}


def run(house: House, *arguments: str) -> str:
    environment = {
        "RECUERDO_DATA": str(house.data),
        "DATABASE_URL": house.database_url,
        "RECUERDO_TENANT": TENANT,
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "200",
    }
    result = CliRunner().invoke(app, list(arguments), env=environment)
    assert result.exit_code == 0, result.output
    return result.stdout


async def test_or_2_the_lists_of_the_command_line_show_the_level(agent: Agent, house: House) -> None:
    for kind, (command, item, level) in LISTS.items():
        table = await asyncio.to_thread(run, house, *command)
        if kind in ("recalled", "events"):
            assert f"level {level}" in table
        else:
            assert _cell(table, item, "level") == str(level), table
        data = json.loads(await asyncio.to_thread(run, house, *command, "--json"))
        (found,) = [one for one in _items(data) if item in json.dumps(one, ensure_ascii=False)]
        assert found["level"] == level


def _cell(table: str, item: str, column: str) -> str:
    """What a table has of an item in a column, by the place of the column's name."""
    lines = table.splitlines()
    head = next(line for line in lines if column in line.split())
    (row,) = [line for line in lines if item in line]
    return row[head.index(column) :].split()[0]


def _items(data: Any) -> list[dict[str, Any]]:
    """The entries of a list, wherever its document has them."""
    if isinstance(data, list):
        return data
    return [one for part in data.values() if isinstance(part, list) for one in part]
