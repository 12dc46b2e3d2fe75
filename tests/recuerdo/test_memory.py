"""``agent.memory``: what an app, a user and a supervisor can do with what is remembered."""

import asyncio
import subprocess
import sys
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import typer
from typer.testing import CliRunner

from recuerdo.agent import Agent
from recuerdo.cli.memory_publish import add_publishing
from recuerdo.nodes.run_tools.toolbox import make_toolbox
from recuerdo.state.errors import InputError, ScopeError, SettingsError
from recuerdo.stores.plans import load_plan
from recuerdo.stores.settings import Settings
from tests.recuerdo.carlos import CARLOS, CONVERSATION, TENANT, House, prompt
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

ANA = "user-456"
QUESTION = "¿qué pisos prefiero en los hoteles?"
TEXT = "Prefiere los pisos altos de los hoteles"


async def say(agent: Agent, text: str, user: str = CARLOS, conversation: str = CONVERSATION) -> Any:
    return await agent.send(text, user=user, conversation=conversation)


async def rows(agent: Agent, statement: str, *values: object) -> list[dict[str, Any]]:
    async with agent.services.database.connection() as connection:
        return await (await connection.execute(statement, values)).fetchall()


async def appoint(agent: Agent) -> None:
    now = agent.services.clock()
    await agent.memory.roles.appoint_first_owner("olga", now)
    await agent.memory.roles.grant("sara", "supervisor", actor="olga", at=now)
    await agent.memory.roles.grant("bot", "agent", actor="olga", at=now)


async def test_im_43_remember_recall_correct_confirm_and_forget(agent: Agent, house: House) -> None:
    memory = agent.memory
    kept = await memory.remember(TEXT, user=CARLOS, metadata={"tags": ["hotel"]})
    assert (kept.language, kept.status, kept.metadata) == ("es", "confirmed", {"tags": ["hotel"]})
    assert (await memory.remember(TEXT.lower(), user=CARLOS)).id == kept.id
    low = await memory.remember("Quizá viaje en mayo", user=CARLOS, confidence=None)
    assert next(r.memory.id for r in await memory.recall(QUESTION, user=CARLOS)) == kept.id
    assert await memory.recall(QUESTION, user=ANA) == []
    house.clock.forward(days=6)
    corrected = await memory.update(low.id, "Viaja en junio", user=CARLOS)
    assert corrected is not None
    # The user says it: no longer a guess.
    assert (corrected.status, corrected.metadata) == ("confirmed", {})
    assert corrected.expires_at == house.clock.now + timedelta(days=90)
    assert await memory.confirm(kept.id, user=CARLOS)
    assert [m.id for m in await memory.list(user=CARLOS)] == sorted([kept.id, low.id], key=str)
    for call in (memory.update(low.id, "mío", user=ANA), memory.confirm(low.id, user=ANA)):
        assert not await call
    assert await memory.forget(low.id, user=CARLOS)
    assert [m.id for m in await memory.list(user=CARLOS)] == [kept.id]


async def test_im_43_why_shows_the_words_the_message_the_turn_and_what_changed(agent: Agent) -> None:
    turn = await say(agent, "recuerda que prefiero los pisos altos")
    (kept,) = await agent.memory.list(user=CARLOS)
    why = await agent.memory.why(kept.id, user=CARLOS)
    assert why is not None
    assert why.message is not None
    assert "pisos altos" in str(why.memory.quote)
    assert (why.message.content, why.memory.turn) == ("recuerda que prefiero los pisos altos", UUID(turn.id))
    assert [(e.action, e.turn, e.message_id) for e in why.audit] == [("added", UUID(turn.id), why.message.id)]
    await agent.memory.update(kept.id, "prefiere pisos bajos", user=CARLOS)
    why = await agent.memory.why(kept.id, user=CARLOS)
    assert why is not None
    assert [(r.text, r.message_id) for r in why.history] == [(kept.text, kept.message_id)]
    assert await agent.memory.why(kept.id, user=ANA) is None
    assert await agent.memory.why(uuid4(), user=CARLOS) is None


async def test_im_30_im_33_only_the_active_one_is_in_the_request(agent: Agent) -> None:
    await agent.memory.remember(TEXT, user=CARLOS)
    off = await agent.memory.remember("Prefiere los hoteles con piscina", user=CARLOS)
    assert "piscina" in prompt((await say(agent, QUESTION)).request)
    assert await agent.memory.set_active(off.id, False, user=CARLOS)
    request = prompt((await say(agent, QUESTION)).request)
    assert TEXT in request
    assert "piscina" not in request
    assert [m.id for m in await agent.memory.list(user=CARLOS, inactive=True)] == [off.id]
    await agent.memory.set_active(off.id, True, user=CARLOS)
    assert "piscina" in prompt((await say(agent, QUESTION)).request)


async def test_or_11_im_51_published_is_injected_on_day_400_and_withdrawn_is_not(
    open_agent: OpenAgent, house: House
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Vale."]))
    await appoint(agent)
    kept = await agent.memory.remember(TEXT, user=CARLOS)
    for actor in (CARLOS, "bot"):
        with pytest.raises(ScopeError, match="supervisor"):
            await agent.memory.publish(kept.id, actor=actor, reason="porque sí")
    await agent.memory.publish(kept.id, actor="sara", reason="lo pidió")
    house.clock.forward(days=400)
    assert TEXT in prompt((await say(agent, QUESTION)).request)
    await agent.memory.withdraw(kept.id, actor="olga", reason="es falso")
    turn = await say(agent, QUESTION)
    assert TEXT not in prompt(turn.request)
    assert turn.record.memories == []
    entries = await agent.memory.audit(kept.id, actor="sara")
    assert [(e.action, e.actor) for e in entries[-2:]] == [("published", "sara"), ("withdrawn", "olga")]
    with pytest.raises(ScopeError, match="supervisor"):
        await agent.memory.audit(kept.id, actor=CARLOS)


def test_c_15_the_model_is_given_no_way_to_publish() -> None:
    plan = load_plan("trading")
    box = make_toolbox(plan.model_copy(update={"tools": [*plan.tools, "memory"]}), ())
    assert box.schemas
    assert "publish" not in str(box.schemas)
    assert "withdraw" not in str(box.schemas)


async def test_a_26_what_three_turns_used_is_proposed_to_supervisors(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Vale."]))
    await appoint(agent)
    kept = await agent.memory.remember(TEXT, user=CARLOS)
    for _ in range(2):
        await say(agent, QUESTION)
    assert await agent.memory.candidates(actor="sara") == []
    await say(agent, QUESTION)
    (candidate,) = await agent.memory.candidates(actor="sara")
    assert (candidate.id, candidate.user, candidate.uses) == (kept.id, CARLOS, 3)
    with pytest.raises(ScopeError):
        await agent.memory.candidates(actor=CARLOS)
    await agent.memory.publish(kept.id, actor="sara", reason="se usa siempre")
    assert await agent.memory.candidates(actor="sara") == []


async def test_im_43_c_17_after_forget_all_only_ids_in_the_audit(agent: Agent) -> None:
    for user, conversation in ((CARLOS, CONVERSATION), (ANA, "conv-ana")):
        await say(agent, "recuerda que prefiero los pisos altos", user, conversation)
        await say(agent, "siempre usa velas de 4h para TSLA", user, conversation)
    others = await agent.conversations.get("conv-ana", user=ANA)
    gone = await agent.memory.forget_all(user=CARLOS)
    assert (gone.conversations, gone.remembered > 0, gone.assistants) == (1, True, [agent.assistant])
    assert await agent.memory.list(user=CARLOS) == []
    assert await agent.memory.preferences(user=CARLOS) == {}
    assert await agent.memory.symbols(user=CARLOS) == []
    assert await agent.conversations.get(CONVERSATION, user=CARLOS) == []
    for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
        found = await rows(agent, f"select thread_id from {table}")
        assert {row["thread_id"].endswith("conv-ana") for row in found} <= {True}
    assert len(others) == 4
    assert await agent.conversations.get("conv-ana", user=ANA) == others
    assert len(await agent.memory.list(user=ANA)) == 1
    # One vector: that of the other user.
    assert await agent.services.index.count(TENANT, agent.assistant) == 1
    # The thread begins anew.
    turn = await say(agent, "¿qué pisos prefiero?")
    assert len(turn.request["messages"]) < 5
    assert "pisos altos" not in str(turn.request["messages"])


async def test_et_2_et_27_a_memory_is_in_chroma_and_survives_a_restart(house: House) -> None:
    async with house.open() as agent:
        kept = await agent.memory.remember(TEXT, user=CARLOS)
        assert await agent.services.index.count(TENANT, agent.assistant) == 1
    async with house.open() as again:
        assert await again.services.index.count(TENANT, again.assistant) == 1
        assert [r.memory.id for r in await again.memory.recall(QUESTION, user=CARLOS)] == [kept.id]
    async with house.open(assistant="A2") as other:
        assert await other.memory.recall(QUESTION, user=CARLOS) == []


FORGET_ELSEWHERE = """
import asyncio, sys
from datetime import datetime
from uuid import UUID
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.memories import Memories

async def forget(url, tenant, assistant, user, memory, at):
    database = await Database.open(url)
    gone = await Memories(database, tenant).forget(
        UUID(memory), assistant, user, datetime.fromisoformat(at)
    )
    await database.close()
    return gone

sys.exit(0 if asyncio.run(forget(*sys.argv[1:])) else 1)
"""


async def test_fault_8_what_another_process_deletes_is_not_found_here(agent: Agent, house: House) -> None:
    kept = await agent.memory.remember(TEXT, user=CARLOS)
    assert [r.memory.id for r in await agent.memory.recall(QUESTION, user=CARLOS)] == [kept.id]
    scope = (house.database_url, TENANT, agent.assistant, CARLOS, str(kept.id), house.clock.now.isoformat())
    command = [sys.executable, "-c", FORGET_ELSEWHERE, *scope]
    await asyncio.to_thread(subprocess.run, command, check=True)
    assert await agent.services.index.count(TENANT, agent.assistant) == 1, "the index knows nothing yet"
    assert await agent.memory.recall(QUESTION, user=CARLOS) == []
    assert await agent.memory.list(user=CARLOS) == []


async def test_im_43_a_preference_is_corrected_and_forgotten(agent: Agent) -> None:
    corrected = await agent.memory.correct_preference("preferred_timeframe", "1d", user=CARLOS)
    assert (corrected.value, corrected.confidence) == ("1d", 1.0)
    assert "1d" in prompt((await say(agent, "¿Cómo va AAPL?")).request)
    assert await agent.memory.forget_preference("preferred_timeframe", user=CARLOS)
    for key, value in (("", "x"), ("k", object()), ("k", float("nan"))):
        with pytest.raises(InputError):
            await agent.memory.correct_preference(key, value, user=CARLOS)
    with pytest.raises(InputError, match="JSON"):
        await agent.memory.remember("x", user=CARLOS, metadata={"k": {1, 2}})


@pytest.mark.parametrize(("days", "limit"), [("8", "7"), ("0", "1")])
def test_or_9_start_fails_with_the_name_and_the_limit(
    monkeypatch: pytest.MonkeyPatch, days: str, limit: str
) -> None:
    monkeypatch.setenv("LOW_CONFIDENCE_MAX_DAYS", days)
    with pytest.raises(SettingsError) as error:
        Settings.load()
    for text in (error.value.sentence.es, error.value.sentence.en):
        assert "LOW_CONFIDENCE_MAX_DAYS" in text
        assert limit in text


async def test_or_9_with_3_days_what_is_inferred_is_gone_on_the_third(house: House) -> None:
    async with house.open(settings={"low_confidence_max_days": 3}) as agent:
        await agent.memory.remember(TEXT, user=CARLOS, confidence=None)
        house.clock.forward(days=3, seconds=-1)
        assert len(await agent.memory.list(user=CARLOS)) == 1
        house.clock.forward(seconds=1)
        assert await agent.memory.list(user=CARLOS) == []


def test_or_11_im_51_the_command_line_publishes_and_withdraws(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = typer.Typer()
    add_publishing(app)
    monkeypatch.setenv("DATABASE_URL", house.database_url)
    monkeypatch.setenv("RECUERDO_DATA", str(house.data))
    monkeypatch.setenv("RECUERDO_TENANT", TENANT)
    with house.open(clock=None) as agent:
        kept = agent.run_sync(agent.memory.remember(TEXT, user=CARLOS))
        agent.run_sync(appoint(agent))
    for command, status in (("publish", "published"), ("withdraw", "withdrawn")):
        arguments = [command, str(kept.id), "--actor", "sara", "--reason", "lo pidió", "--json"]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert status in result.stdout
        refused = CliRunner().invoke(app, [command, str(kept.id), "--actor", CARLOS, "--reason", "x"])
        assert isinstance(refused.exception, ScopeError)
    assert isinstance(
        CliRunner().invoke(app, ["publish", "../x", "--actor", "sara", "--reason", "x"]).exception,
        InputError,
    )
