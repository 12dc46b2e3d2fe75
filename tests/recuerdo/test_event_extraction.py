"""Key events read out of conversations in the background, through the real agent (LA-24 to LA-26, C-34, A-20, IM)."""

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.constants import TAG_NOSTREAM

import recuerdo
from recuerdo.agent import Agent
from recuerdo.graph.services import events_job
from recuerdo.nodes.extract_events import EventReader
from recuerdo.nodes.extract_events.answer import TOOL
from recuerdo.nodes.extract_events.protocol import READ
from recuerdo.nodes.extract_events.run import TRIES
from recuerdo.state.errors import BusyError, InputError, ModelError
from recuerdo.state.key_events import EventFilter, KeyEvent, Owner
from recuerdo.state.plan import EventType, Extraction, KeyEventSettings, Learning, Plan
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.key_events import PostgresKeyEvents, extraction
from recuerdo.stores.postgres.key_events.extraction import ExtractionLog, Reading
from recuerdo.stores.worker import Worker
from tests.fake_openai import FakeOpenAI, text, tool_calls
from tests.recuerdo.carlos import CARLOS, TENANT, House, SettableClock, prompt, seed
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

REFUND, LATE = "Reembolso", "Envío retrasado"
TYPES = (
    EventType(name=REFUND, description="El cliente pide que se le devuelva dinero."),
    EventType(name=LATE, description="Un pedido no ha llegado o llega tarde."),
)
SAID = "El pedido 4471 todavía no ha llegado"
SUMMARY = "El pedido 4471 no ha llegado."


def plan_with(agent_type: str = "agent", *, shared: bool = False, **extraction: Any) -> Plan:
    settings = KeyEventSettings(
        enabled=True, types=TYPES, extraction=Extraction(**extraction), shared_across_assistants=shared
    )
    changes: dict[str, Any] = {"key_events": settings, "agent_type": agent_type}
    return load_plan("trading").model_copy(update=changes)


def found(*events: dict[str, Any]) -> AIMessage:
    call = {"name": TOOL, "args": {"events": list(events)}, "id": "x", "type": "tool_call"}
    usage = {"input_tokens": 700, "output_tokens": 60, "total_tokens": 760}
    return AIMessage("", tool_calls=[call], usage_metadata=usage)


LATE_ORDER = {
    "quote": SAID,
    "type": LATE,
    "summary": SUMMARY,
    "severity": "high",
    "entities": ["pedido 4471"],
}


class Supporting(ScriptedModel):
    """Chats as written, and answers a request for key events with ``events``; keeps those requests apart."""

    events: list[Any]
    asked: list[dict[str, Any]]

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        if not _is_extraction(kwargs):
            return super()._generate(messages, stop, run_manager, **kwargs)
        reply = self.events[min(len(self.asked), len(self.events) - 1)]
        tags = run_manager.tags if run_manager else []
        self.asked.append({"messages": messages, "tags": tags, **kwargs})
        if isinstance(reply, Exception):
            raise reply
        return ScriptedModel(replies=[reply])._generate(messages)


def _is_extraction(kwargs: dict[str, Any]) -> bool:
    return any(tool["function"]["name"] == TOOL for tool in kwargs.get("tools", []))


def supporting(*events: Any, replies: Sequence[Any] = ("De acuerdo.",)) -> Supporting:
    return Supporting(replies=list(replies), events=list(events) or [found(LATE_ORDER)], asked=[])


async def all_of(agent: Agent, user: str | None = CARLOS, session: str = "S") -> list[KeyEvent]:
    events = PostgresKeyEvents(agent.services.database, TENANT, agent.assistant)
    page = await events.query(
        Owner(user, session), EventFilter(closed=True), agent.services.clock(), limit=50
    )
    return list(page.events)


async def work(agent: Agent) -> int:
    """What the worker's job does when it is due."""
    return await EventReader(agent.services, agent.assistant).read_due(agent.services.clock(), tenant=TENANT)


async def say(agent: Agent, *texts: str, conversation: str = "S1", user: str | None = CARLOS) -> None:
    for said in texts:
        await agent.send(said, user=user, conversation=conversation)


@pytest.mark.parametrize("agent_type", ["agent", "flow"])
async def test_la_26_a_20_nothing_before_the_conversation_ended_then_the_event(
    open_agent: OpenAgent, clock: SettableClock, agent_type: str
) -> None:
    model = supporting()
    agent = await open_agent(model=model, plan=plan_with(agent_type))
    await say(agent, SAID)
    assert await work(agent) == 0 and await all_of(agent) == []
    clock.forward(minutes=4)
    assert await work(agent) == 0 and model.asked == []
    clock.forward(minutes=1)
    assert await work(agent) == 1
    (event,) = await all_of(agent)
    assert (event.type, event.summary, event.priority, event.session) == (LATE, SUMMARY, "HIGH", "S1")
    assert event.user == CARLOS and event.history and event.history[0].actor == "extraction"
    conversation = await agent.conversations.info("S1", user=CARLOS)
    assert conversation and event.history[0].turn == conversation.last_turn
    clock.forward(minutes=60)
    assert await work(agent) == 0 and len(model.asked) == 1
    assert (await agent.send("Hola", user=CARLOS, conversation="S2")).record.events == [str(event.id)]


async def test_la_26_a_loop_agents_conversations_are_not_read(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    model = supporting()
    agent = await open_agent(model=model, plan=plan_with("loop"))
    await say(agent, SAID)
    clock.forward(minutes=60)
    assert await work(agent) == 0
    assert (await agent.events.extract("S1")).turns == 0
    assert model.asked == [] and await all_of(agent) == []


async def test_im_6_the_threshold_the_idle_minutes_or_the_hand_make_one_extraction_each(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    agent = await open_agent(model=supporting(found()), plan=plan_with(message_threshold=10))
    await say(agent, *["Hola"] * 4, conversation="ten")
    assert await work(agent) == 0, "8 messages"
    await say(agent, "Hola", conversation="ten")
    assert await work(agent) == 1, "10 messages"
    await say(agent, "Hola", conversation="three")
    assert await work(agent) == 0
    clock.forward(minutes=5)
    assert await work(agent) == 1
    await say(agent, "Hola", conversation="hand")
    assert (await agent.events.extract("hand")).turns == 1
    clock.forward(minutes=5)
    assert await work(agent) == 0
    made = {name: await agent.events.extractions(name) for name in ("ten", "three", "hand")}
    assert {name: [one.reason for one in kept] for name, kept in made.items()} == {
        "ten": ["threshold"],
        "three": ["idle"],
        "hand": ["manual"],
    }
    assert len(made["ten"][0].turns) == 5


async def test_c_34_the_threshold_is_off_by_default(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=supporting(found()), plan=plan_with())
    await say(agent, *["Hola"] * 12)
    assert await work(agent) == 0


async def test_im_7_extraction_has_its_own_model_and_rules(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    model = supporting()
    plan = plan_with(model="small-extractor", rules=("Solo asuntos de envíos.",))
    agent = await open_agent(model=model, plan=plan)
    await say(agent, SAID)
    clock.forward(minutes=5)
    await work(agent)
    (request,) = model.asked
    assert request["model"] == "small-extractor" and TAG_NOSTREAM in request["tags"]
    assert all("model" not in call for call in model.calls), "the chat goes to the chat model"
    sent = str(request["messages"])
    assert "Solo asuntos de envíos." in sent and SAID in sent
    kinds = request["tools"][0]["function"]["parameters"]["properties"]["events"]["items"]["properties"][
        "type"
    ]
    assert kinds["enum"] == [REFUND, LATE]
    async with agent.services.database.tenant(TENANT) as connection:
        cursor = await connection.execute("select extractor, usage from recuerdo.event_extractions")
        assert [(row["extractor"], row["usage"]["total"]) for row in await cursor.fetchall()] == [
            ("model", 760)
        ]


async def test_im_7_the_extraction_model_stands_in_the_request_over_the_wire(house: House) -> None:
    answered = tool_calls((TOOL, {"events": [LATE_ORDER]}))
    with FakeOpenAI([text("De acuerdo."), answered]) as server:
        settings = {"openai_api_key": "sk-x", "openai_base_url": server.url, "model": "chat-model"}
        plan = plan_with(model="small-extractor")
        quiet = plan.memory.model_copy(update={"learning": Learning(by="rules")})
        plan = plan.model_copy(update={"memory": quiet})
        async with house.open(settings=settings, plan=plan) as agent:
            await say(agent, SAID)
            made = await agent.events.extract("S1")
    assert len(made.created) == 1
    assert [request["model"] for request in server.requests] == ["chat-model", "small-extractor"]
    assert not server.requests[1].get("stream")


async def test_la_31_im_7_what_the_model_answers_is_checked(open_agent: OpenAgent) -> None:
    wrong = [
        {**LATE_ORDER, "type": "envío retrasado"},
        {**LATE_ORDER, "type": "Queja"},
        {**LATE_ORDER, "quote": "Quiero un abogado"},
        {**LATE_ORDER, "severity": "alta"},
        {**LATE_ORDER, "status": "DONE"},
        {**LATE_ORDER, "known": 7},
        {**LATE_ORDER, "confidence": 3},
        "no es un evento",
    ]
    agent = await open_agent(model=supporting(found(*wrong, LATE_ORDER)), plan=plan_with())  # type: ignore[arg-type]
    await say(agent, SAID)
    made = await agent.events.extract("S1")
    assert (len(made.created), made.refused) == (1, len(wrong))
    assert [event.type for event in await all_of(agent)] == [LATE]


async def test_la_26_an_answer_in_a_text_is_read_too(open_agent: OpenAgent) -> None:
    said = f'<think>{{"no"}}</think>Aquí: {{"events": [{{"quote": "{SAID}", "type": "{LATE}"}}]}}'
    agent = await open_agent(model=supporting(AIMessage(said)), plan=plan_with())
    await say(agent, SAID)
    assert len((await agent.events.extract("S1")).created) == 1
    assert [event.summary for event in await all_of(agent)] == [SAID]


async def test_la_20_an_open_event_is_changed_instead_of_made_twice(open_agent: OpenAgent) -> None:
    done = {"quote": "Ya llegó", "known": 1, "status": "RESOLVED", "summary": "Llegó el viernes."}
    model = supporting(found(LATE_ORDER), found(done))
    agent = await open_agent(model=model, plan=plan_with())
    await say(agent, SAID)
    await agent.events.extract("S1")
    await say(agent, "Ya llegó, gracias", conversation="S2")
    made = await agent.events.extract("S2")
    (event,) = await all_of(agent)
    assert list(made.updated) == [event.id] and event.status == "RESOLVED"
    assert event.summary == "Llegó el viernes."
    assert [revision.session for revision in event.history or ()] == ["S1", "S2"]
    assert "pedido 4471" in str(model.asked[1]["messages"]), "the model is shown what is open"


async def test_c_34_an_extracted_event_of_a_flow_agent_is_injected_by_a_loop_agent_where_they_share(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    flow = await open_agent(model=supporting(), plan=plan_with("flow", shared=True), assistant="flow-1")
    await say(flow, SAID)
    clock.forward(minutes=5)
    assert await work(flow) == 1
    (event,) = await all_of(flow)
    loop = await open_agent(model=ScriptedModel(replies=["Sí."]), plan=plan_with("loop", shared=True))
    turn = await loop.send("Hola", user=CARLOS, conversation="L1")
    assert turn.record.events == [str(event.id)] and SUMMARY in prompt(turn.request)
    alone = await open_agent(model=ScriptedModel(replies=["Sí."]), plan=plan_with("loop"))
    assert (await alone.send("Hola", user=CARLOS, conversation="L2")).record.events == []


async def test_la_32_the_event_of_an_anonymous_session_is_the_sessions(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with())
    await say(agent, SAID, user=None)
    await agent.events.extract("S1")
    (event,) = await all_of(agent, None, "S1")
    assert not event.identity_resolved and event.session == "S1"


async def test_a_22_a_user_who_is_known_before_the_extraction_has_its_events(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with())
    await say(agent, SAID, user=None)
    await say(agent, "Soy Carlos")
    await agent.events.extract("S1")
    assert [event.user for event in await all_of(agent)] == [CARLOS]


async def test_c_16_neither_the_model_nor_the_event_sees_a_card_number(open_agent: OpenAgent) -> None:
    said = "Me cobraron dos veces con la tarjeta 4111 1111 1111 1111"
    stated = {"quote": "Me cobraron dos veces", "type": REFUND, "summary": said}
    model = supporting(found(stated))
    agent = await open_agent(model=model, plan=plan_with())
    await say(agent, said)
    await agent.events.extract("S1")
    assert "4111" not in str(model.asked[0]["messages"])
    (event,) = await all_of(agent)
    assert "dos veces" in event.summary and "4111" not in repr(event)


async def test_c_16_an_account_number_where_the_reading_ends_is_not_cut_in_two(open_agent: OpenAgent) -> None:
    model = supporting()
    agent = await open_agent(model=model, plan=plan_with())
    await say(agent, "Me cobraron dos veces. ".ljust(READ - 6, ".") + " ES9121000418450200051332")
    await agent.events.extract("S1")
    read = str(model.asked[0]["messages"])
    assert "dos veces" in read and "ES912" not in read


async def test_la_26_without_a_model_the_rules_read_both_languages(open_agent: OpenAgent) -> None:
    agent = await open_agent(plan=plan_with())
    await say(agent, "Buenos días", f"{SAID}. Es urgente", "¿A qué hora abren?")
    await say(agent, "I want my money back for order 88", conversation="S2")
    assert len((await agent.events.extract("S1")).created) == 1
    assert len((await agent.events.extract("S2")).created) == 1
    refund, late = sorted(await all_of(agent), key=lambda event: event.type, reverse=True)
    assert (late.type, late.entities, late.summary) == (LATE, ("pedido 4471",), f"{SAID}.")
    assert (refund.type, refund.entities) == (REFUND, ("order 88",))
    await say(agent, "El pedido 4471 sigue sin llegar", conversation="S3")
    assert (await agent.events.extract("S3")).created == [], "the same matter is one event"
    await say(agent, "El pedido 4471 ya llegó, gracias", conversation="S4")
    assert list((await agent.events.extract("S4")).updated) == [late.id]


async def test_la_26_a_model_that_is_away_costs_nothing_and_in_the_end_the_rules_read(
    open_agent: OpenAgent, clock: SettableClock, caplog: pytest.LogCaptureFixture
) -> None:
    model = supporting(ConnectionError(f"secret {SAID}"))
    agent = await open_agent(model=model, plan=plan_with())
    await say(agent, SAID)
    with pytest.raises(ModelError) as caught:
        await agent.events.extract("S1")
    assert "secret" not in str(caught.value)
    with caplog.at_level(logging.WARNING):
        for _ in range(TRIES - 1):
            assert await work(agent) == 0, "it pauses"
            clock.forward(minutes=30)
            assert await work(agent) == 0
    assert len(model.asked) == TRIES and await all_of(agent) == []
    assert "secret" not in caplog.text
    clock.forward(minutes=30)
    assert await work(agent) == 1
    assert [event.type for event in await all_of(agent)] == [LATE]
    assert [one.extractor for one in await agent.events.extractions("S1")] == ["rules"]


async def test_la_26_of_two_workers_at_once_one_reads(open_agent: OpenAgent, clock: SettableClock) -> None:
    agents = [await open_agent(model=supporting(), plan=plan_with()) for _ in range(2)]
    await say(agents[0], SAID)
    clock.forward(minutes=5)
    assert sum(await asyncio.gather(*(work(agent) for agent in agents * 2))) == 1
    assert len(await all_of(agents[0])) == 1
    assert sum(len(agent.services.model.asked) for agent in agents) == 1  # type: ignore[attr-defined]


async def test_la_26_what_was_read_until_the_lease_came_free_is_not_read_again(
    open_agent: OpenAgent, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with())
    await say(agent, SAID)
    clock.forward(minutes=5)
    log = ExtractionLog(
        agent.services.database,
        TENANT,
        agent.assistant,
        PostgresKeyEvents(agent.services.database, TENANT, agent.assistant),
    )
    unread = extraction._unread

    async def read_by_another_meanwhile(connection: Any, values: dict[str, Any]) -> Any:
        waiting = await unread(connection, values)
        monkeypatch.setattr(extraction, "_unread", unread)
        assert await work(agent) == 1
        return waiting

    monkeypatch.setattr(extraction, "_unread", read_by_another_meanwhile)
    assert await log.claim("S1") is None
    await say(agent, "¿Ya salió?")
    assert await log.claim("S1") is not None, "nobody holds it"


async def test_la_26_the_worker_runs_it_as_one_of_its_jobs(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with())
    await say(agent, SAID)
    clock.forward(minutes=5)
    services = agent.services
    job = events_job(services, agent.assistant)
    worker = Worker(services.database, services.index, services.embedder, services.clock, jobs=[job])
    assert job.name in await worker.run_due(clock())
    assert len(await all_of(agent)) == 1


async def test_la_26_the_agents_own_worker_has_the_job(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with(), assistant="A9")
    async with agent.services.database.connection() as connection:
        for _ in range(100):
            cursor = await connection.execute("select name from recuerdo.jobs")
            if f"key_events:A9:{TENANT}" in {row["name"] for row in await cursor.fetchall()}:
                return
            await asyncio.sleep(0.05)
    raise AssertionError("the job is not in the schedule")


async def test_la_26_a_reader_that_was_killed_leaves_nothing_and_another_takes_over(
    open_agent: OpenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with())
    await say(agent, SAID)
    services = agent.services
    log = ExtractionLog(
        services.database,
        TENANT,
        agent.assistant,
        PostgresKeyEvents(services.database, TENANT, agent.assistant),
    )
    # Killed while it asked its model: the lease is held, and runs out.
    assert await log.claim("S1") is not None
    with pytest.raises(BusyError):
        await agent.events.extract("S1")
    async with services.database.operator() as connection:
        await connection.execute(
            "update recuerdo.event_extraction_leases set lease_until = clock_timestamp() - interval '1 second'"
        )
    # Killed in the middle of writing: after the event, before the transaction ended.
    create = PostgresKeyEvents.create_in

    async def killed(*args: Any, **kwargs: Any) -> Any:
        await create(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PostgresKeyEvents, "create_in", killed)
        with pytest.raises(KeyboardInterrupt):
            await agent.events.extract("S1")
    assert await all_of(agent) == [] and await agent.events.extractions("S1") == []
    async with services.database.operator() as connection:
        await connection.execute(
            "update recuerdo.event_extraction_leases set lease_until = clock_timestamp() - interval '1 second'"
        )
    assert len((await agent.events.extract("S1")).created) == 1
    assert len(await all_of(agent)) == 1
    assert (await agent.events.extract("S1")).turns == 0


READER = """
import asyncio, sys, time
from pathlib import Path
from recuerdo.nodes.extract_events import EventReader
from recuerdo.stores.postgres.key_events import PostgresKeyEvents
from tests.recuerdo import test_event_extraction as here

url, data, where = sys.argv[1:]

async def stop(*args, **kwargs):
    if where == "writing":
        await create(*args, **kwargs)
    print("there", flush=True)
    time.sleep(600)

async def main():
    async with here.House(url, Path(data)).open(model=here.supporting(), plan=here.plan_with()) as agent:
        await EventReader(agent.services, agent.assistant).read(
            here.TENANT, "S1", "manual", agent.services.clock())

create = PostgresKeyEvents.create_in
if where == "writing":
    PostgresKeyEvents.create_in = stop
else:
    from recuerdo.nodes.extract_events.model import ModelExtractor
    ModelExtractor.extract = stop
asyncio.run(main())
"""


@pytest.mark.parametrize("where", ["asking", "writing"])
async def test_la_26_a_process_killed_with_9_in_the_middle_leaves_nothing_and_another_reads_once(
    open_agent: OpenAgent, house: House, tmp_path: Path, where: str
) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with())
    await say(agent, SAID)
    other = tmp_path / "other"
    other.mkdir()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", READER, house.database_url, str(other), where),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert (await asyncio.wait_for(process.stdout.readline(), 60)).strip() == b"there"
    process.send_signal(signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL
    assert await all_of(agent) == [] and await agent.events.extractions("S1") == []
    with pytest.raises(BusyError):
        await agent.events.extract("S1")
    async with agent.services.database.operator() as connection:
        await connection.execute(
            "update recuerdo.event_extraction_leases set lease_until = clock_timestamp() - interval '1 second'"
        )
    assert len((await agent.events.extract("S1")).created) == 1
    assert len(await all_of(agent)) == 1 and (await agent.events.extract("S1")).turns == 0


async def test_la_26_who_lost_the_lease_writes_nothing(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with())
    await say(agent, SAID)
    services = agent.services
    events = PostgresKeyEvents(services.database, TENANT, agent.assistant)
    log = ExtractionLog(services.database, TENANT, agent.assistant, events)
    slow = await log.claim("S1")
    assert slow is not None
    async with services.database.operator() as connection:
        await connection.execute(
            "update recuerdo.event_extraction_leases set lease_until = clock_timestamp()"
        )
    assert len((await agent.events.extract("S1")).created) == 1
    reading = Reading([slow.spoken[0].turn], [], "rules")
    assert await log.finish(slow, reading, "idle", services.clock()) is None
    assert len(await agent.events.extractions("S1")) == 1


async def test_la_26_a_turn_read_again_makes_no_second_event(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with())
    await say(agent, SAID)
    first = await agent.events.extract("S1")
    async with agent.services.database.operator() as connection:
        await connection.execute("update recuerdo.turns set events_unread = true")
    assert (await agent.events.extract("S1")).created == first.created
    assert len(await all_of(agent)) == 1


async def test_la_26_a_cleared_conversation_gives_nothing_and_new_turns_are_read(
    open_agent: OpenAgent,
) -> None:
    model = supporting()
    agent = await open_agent(model=model, plan=plan_with())
    await say(agent, SAID)
    await agent.conversations.clear("S1", user=CARLOS)
    assert (await agent.events.extract("S1")).turns == 0 and model.asked == []
    await say(agent, SAID)
    assert (await agent.events.extract("S1")).turns == 1


async def test_la_26_a_long_conversation_is_read_in_parts_and_nothing_is_left(open_agent: OpenAgent) -> None:
    model = supporting(found())
    agent = await open_agent(model=model, plan=plan_with())
    await say(agent, *[f"{number} " + "hola " * 1200 for number in range(8)])
    assert (await agent.events.extract("S1")).turns == 8
    assert len(model.asked) > 1
    seen = "".join(str(request["messages"]) for request in model.asked)
    assert all(f"user: {number} hola" in seen for number in range(8))


async def test_c_14_a_preview_is_never_read(open_agent: OpenAgent, clock: SettableClock) -> None:
    model = supporting()
    agent = await open_agent(model=model, plan=plan_with(), mode="preview")
    await say(agent, SAID)
    clock.forward(minutes=60)
    assert await work(agent) == 0 and model.asked == []


async def jobs_run(agent: Agent) -> set[str]:
    async with agent.services.database.connection() as connection:
        cursor = await connection.execute("select name from recuerdo.jobs where last_run_at is not null")
        return {row["name"] for row in await cursor.fetchall()}


async def test_la_7_c_14_beside_a_preview_no_worker_runs_however_much_time_goes_by(
    house: House, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recuerdo.stores.worker._IDLE_SECONDS", 0.02)
    live, plan = supporting(), plan_with()
    # The worker of the agent that speaks finds nothing: the conversation goes on.
    async with house.open(model=live, plan=plan) as agent:
        await seed(agent)
        await say(agent, SAID)
    model = supporting()
    async with house.open(model=model, plan=plan, mode="preview") as preview:
        before = await jobs_run(preview)
        for _ in range(10):
            clock.forward(minutes=30)
            await asyncio.sleep(0.05)
        assert await jobs_run(preview) == before and model.asked == [] and await all_of(preview) == []
    async with house.open(model=live, plan=plan) as agent:
        for _ in range(200):
            if await all_of(agent):
                return
            clock.forward(minutes=1)
            await asyncio.sleep(0.05)
    raise AssertionError("a live agent's worker reads what the preview left alone")


async def test_c_14_la_7_a_preview_writes_no_event_by_hand_nor_by_the_tools_alone(
    open_agent: OpenAgent,
) -> None:
    live = await open_agent(model=supporting(), plan=plan_with())
    await say(live, SAID)
    await say(live, SAID, conversation="A1", user=None)
    loop = plan_with("loop")
    preview = await open_agent(model=supporting(), plan=loop, mode="preview")
    with pytest.raises(InputError, match="preview"):
        await preview.events.extract("S1")
    with pytest.raises(InputError, match="preview"):
        await preview.events.adopt("A1", user=CARLOS, actor="ana")
    tool = {one.name: one for one in recuerdo.key_event_tools(preview.store, loop)}["create_key_event"]
    scope = {"assistant_id": preview.assistant, "ad_user_id": CARLOS}
    call = {"type": "tool_call", "id": "c", "name": tool.name, "args": {"event_type": LATE, "summary": "x"}}
    refused = await tool.ainvoke(call, {"configurable": scope})
    assert refused.status == "error" and "preview" in refused.text
    assert await all_of(live) == [] and await live.events.extractions("S1") == []
    await preview.store.aput((preview.assistant, "notes"), "k", {"text": "secreto"})
    assert await live.store.aget((preview.assistant, "notes"), "k") is None


async def signed(agent: Agent) -> None:
    """The turns so far were said under a signed revision."""
    async with agent.services.database.operator() as connection:
        await connection.execute(
            "update recuerdo.turns set record = jsonb_set(record, '{draft}', 'false') where record is not null"
        )


async def test_la_26_a_draft_reads_only_what_was_said_under_drafts(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    model = supporting()
    agent = await open_agent(model=model, plan=plan_with())
    await say(agent, SAID)
    await signed(agent)
    await say(agent, SAID, conversation="S2")
    clock.forward(minutes=5)
    assert await work(agent) == 1
    assert [event.session for event in await all_of(agent)] == ["S2"]
    with pytest.raises(InputError, match="signed plan"):
        await agent.events.extract("S1")
    assert await work(agent) == 0 and len(model.asked) == 1


async def test_la_26_the_worker_reads_for_every_assistant_of_its_plan_and_for_no_other_plan(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    named = await open_agent(model=supporting(), plan=plan_with(), assistant="A9")
    await say(named, SAID)
    other = plan_with().model_copy(update={"name": "hotel"})
    hotel = await open_agent(model=supporting(), plan=other)
    await say(hotel, SAID, conversation="H1")
    clock.forward(minutes=5)
    services = (await open_agent(model=supporting(), plan=plan_with())).services
    job = events_job(services)
    worker = Worker(services.database, services.index, services.embedder, services.clock, jobs=[job])
    assert job.name in await worker.run_due(clock())
    assert [event.assistant for event in await all_of(named)] == ["A9"] and await all_of(hotel) == []


@pytest.mark.parametrize("agent_type", ["loop", "agent"])
async def test_la_26_what_waits_is_read_also_once_the_plan_is_of_another_type(
    open_agent: OpenAgent, clock: SettableClock, agent_type: str
) -> None:
    flow = await open_agent(model=supporting(), plan=plan_with("flow"))
    await say(flow, SAID)
    after = await open_agent(model=supporting(), plan=plan_with(agent_type))
    waiting = {one.name: one for one in (await after.diagnose("event_not_found", conversation="S1")).findings}
    assert not waiting["extraction"].ok, "the doctor says that a turn waits"
    clock.forward(minutes=5)
    assert await work(after) == 1 and len(await all_of(after)) == 1


async def test_im_6_by_hand_an_unknown_or_foreign_conversation_is_a_clear_error(
    open_agent: OpenAgent,
) -> None:
    agent = await open_agent(model=supporting(), plan=plan_with())
    with pytest.raises(InputError, match='no conversation "nope"'):
        await agent.events.extract("nope")
    await say(agent, SAID)
    other = await open_agent(model=supporting(), plan=plan_with(), assistant="A9")
    with pytest.raises(InputError, match='assistant="trading"'):
        await other.events.extract("S1")


async def test_la_26_a_long_quote_of_the_models_is_no_obstacle(open_agent: OpenAgent) -> None:
    random = Random(7)
    said = " ".join("".join(random.choices("abcdefghijklmnñop", k=9)) for _ in range(390))
    agent = await open_agent(model=supporting(found({**LATE_ORDER, "quote": said[:3900]})), plan=plan_with())
    await say(agent, said)
    assert len((await agent.events.extract("S1")).created) == 1


async def test_im_6_by_hand_without_key_events_says_what_to_do(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=supporting())
    with pytest.raises(InputError, match=r"key_events\.enabled"):
        await agent.events.extract("S1")


async def test_la_24_the_configuration_is_the_same_for_the_three_types(open_agent: OpenAgent) -> None:
    kept = [
        (await open_agent(model=supporting(), plan=plan_with(kind))).events.settings
        for kind in ("loop", "agent", "flow")
    ]
    assert kept[0] == kept[1] == kept[2] and kept[0].enabled and kept[0].types == TYPES
