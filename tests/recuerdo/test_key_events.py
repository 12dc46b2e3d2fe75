"""Key events through the real agent: tools, prompt, record, operators and their commands (LA-18 to LA-33, IM)."""

import asyncio
import csv
import io
import json
import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from langchain_core.messages import AIMessage, ToolMessage
from typer.testing import CliRunner, Result

from recuerdo.agent import Agent
from recuerdo.cli import app
from recuerdo.nodes.call import Call, Caller
from recuerdo.nodes.run_tools.key_events import KEY_EVENT_TOOLS, RESULT
from recuerdo.nodes.run_tools.tools import CALL
from recuerdo.state.errors import InputError, StoreError
from recuerdo.state.key_events import EventChange, EventFilter, KeyEvent, NewEvent, Origin, Owner
from recuerdo.state.plan import EventType, KeyEventSettings, Limits, Plan
from recuerdo.state.sentences import Sentence
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.key_events import OperatorFilter, PostgresKeyEvents
from recuerdo.stores.worker import Worker
from tests.recuerdo.carlos import CARLOS, FRIDAY, TENANT, SettableClock, prompt
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

ASSISTANT = "trading"
REFUND, ANOMALY = "procesamiento de reembolso", "anomalía de la cuenta"
TYPES = (
    EventType(name=REFUND, description="Espera que se le devuelva dinero."),
    EventType(name=ANOMALY, description="Algo en la cuenta no es suyo."),
)
SUMMARY = "El pedido 4471 no llegó"
DONE = "Hecho."


def plan_with(
    types: tuple[EventType, ...] = TYPES, agent_type: str = "loop", limits: Limits | None = None, **given: Any
) -> Plan:
    settings = KeyEventSettings(types=types, **{"enabled": True, **given})
    changes: dict[str, Any] = {"key_events": settings, "agent_type": agent_type}
    return load_plan("trading").model_copy(update={**changes, **({"limits": limits} if limits else {})})


def asked(name: str, call_id: str = "call-0", **args: Any) -> AIMessage:
    call = {"name": f"{name}_key_event", "args": args, "id": call_id, "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def created(summary: str = SUMMARY, kind: str = REFUND, call_id: str = "call-0", **args: Any) -> AIMessage:
    return asked("create", call_id, event_type=kind, summary=summary, **args)


def store_of(agent: Agent, assistant: str = ASSISTANT, **given: Any) -> PostgresKeyEvents:
    return PostgresKeyEvents(agent.services.database, TENANT, assistant, **given)


def owner(user: str | None = CARLOS, session: str = "S0") -> Owner:
    return Owner(user, session)


async def keep(
    agent: Agent,
    count: int = 1,
    *,
    user: str | None = CARLOS,
    assistant: str = ASSISTANT,
    summary: str = "asunto",
    **fields: Any,
) -> list[KeyEvent]:
    """Events of an earlier session, the newest last."""
    start = datetime.fromisoformat(FRIDAY)
    return [
        await store_of(agent, assistant).create(
            owner(user),
            NewEvent(REFUND, f"{summary} {number}", **fields),
            Origin(start + timedelta(minutes=number), user or "S0", "S0"),
        )
        for number in range(count)
    ]


async def all_of(agent: Agent, user: str | None = CARLOS) -> list[KeyEvent]:
    page = await store_of(agent).query(
        owner(user), EventFilter(closed=True), agent.services.clock(), limit=100
    )
    return list(page.events)


def section(request: Any) -> list[str]:
    """The lines of the section of key events; empty when the request has none."""
    _, opened, rest = prompt(request).partition("<key_events>\n")
    return rest.partition("</key_events>")[0].splitlines()[1:] if opened else []


def results(request: Any) -> list[ToolMessage]:
    return [message for message in request["messages"] if isinstance(message, ToolMessage)]


def names(request: Any) -> set[str]:
    return {tool["function"]["name"] for tool in request["tools"]}


async def test_la_19_la_25_the_tools_work_inside_the_round(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=[created(entities=["pedido 4471"], severity="urgent"), DONE])
    agent = await open_agent(model=model, plan=plan_with())
    seen: list[int] = []
    async for chunk in agent.stream("No me llega el pedido", user=CARLOS, conversation="S1"):
        if chunk.type == "token" and chunk.text:
            seen.append(len(await all_of(agent)))
    assert seen and set(seen) == {1}, "stored before the reply"
    (event,) = await all_of(agent)
    assert (event.type, event.summary, event.priority, event.session) == (REFUND, SUMMARY, "CRITICAL", "S1")
    conversation = await agent.conversations.info("S1", user=CARLOS)
    assert conversation and event.history and event.history[0].turn == conversation.last_turn
    model.replies[:] = [
        *[DONE] * len(model.calls),
        asked("update", event_id=str(event.id), status="IN_PROGRESS"),
        asked("query"),
        DONE,
    ]
    turn = await agent.send("¿Cómo va?", user=CARLOS, conversation="S1")
    updated, queried = (json.loads(str(result.text)) for result in results(turn.request)[-2:])
    assert updated["event"]["status"] == "IN_PROGRESS"
    assert [found["id"] for found in queried["events"]] == [str(event.id)]


async def test_la_18_la_20_im_2_the_event_goes_on_in_the_next_session(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=[created(), DONE, DONE])
    agent = await open_agent(model=model, plan=plan_with())
    await agent.send("No me llega el pedido", user=CARLOS, conversation="S1")
    (event,) = await all_of(agent)
    second = await agent.send("Hola", user=CARLOS, conversation="S2")
    (line,) = section(second.request)
    for part in (str(event.id), REFUND, "PENDING", SUMMARY):
        assert part in line
    assert second.record.events == [str(event.id)]
    model.replies[:] = [
        *[DONE] * len(model.calls),
        asked("update", event_id=str(event.id), status="RESOLVED", summary="Devuelto"),
        DONE,
    ]
    third = await agent.send("Ya me lo devolvieron", user=CARLOS, conversation="S2")
    assert "Devuelto" in section(third.request)[0], "the same round sees what it changed"
    (after,) = await all_of(agent)
    assert (after.summary, after.status) == ("Devuelto", "RESOLVED")
    assert [revision.session for revision in after.history or ()] == ["S1", "S2"]


async def test_la_21_another_user_neither_sees_nor_changes_it(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=[DONE])
    agent = await open_agent(model=model, plan=plan_with())
    (event,) = await keep(agent)
    model.replies[:] = [
        asked("query", event_id=str(event.id)),
        asked("update", event_id=str(event.id), status="CLOSED"),
        DONE,
    ]
    turn = await agent.send("¿Qué hay?", user="otra", conversation="S9")
    assert {result.text for result in results(turn.request)} == {
        f"There is no key event with id '{event.id}'."
    }
    assert section(turn.request) == [] and str(event.id) not in prompt(turn.request)
    assert await all_of(agent) == [event]


@pytest.mark.parametrize(("opened", "shown"), [(7, 5), (3, 3), (0, 0)])
async def test_la_22_up_to_5_that_are_not_closed_in_every_round(
    open_agent: OpenAgent, opened: int, shown: int
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    made = await keep(agent, opened + 2)
    for event in made[opened:]:
        origin = Origin(agent.services.clock(), CARLOS, "S0")
        await store_of(agent).update(owner(), event.id, EventChange(status="CLOSED"), origin)
    newest = [str(event.id) for event in reversed(made[:opened])][:shown]
    for text in ("Hola", "¿Y ahora?"):
        turn = await agent.send(text, user=CARLOS, conversation="S1")
        assert [line.split(" | ")[0].removeprefix("- ") for line in section(turn.request)] == newest
        assert turn.record.events == newest
        assert ("<key_events>" in prompt(turn.request)) is bool(shown)


async def test_la_23_the_model_reaches_all_seven(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=[asked("query", limit=4), asked("query", limit=4, offset=4), DONE])
    agent = await open_agent(model=model, plan=plan_with())
    made = await keep(agent, 7)
    turn = await agent.send("¿Qué tengo abierto?", user=CARLOS, conversation="S1")
    pages = [json.loads(str(result.text)) for result in results(turn.request)]
    assert {event["id"] for page in pages for event in page["events"]} == {str(event.id) for event in made}


@pytest.mark.parametrize(
    ("enabled", "types", "agent_type", "count"),
    [
        (True, TYPES, "loop", 3),
        (True, (), "loop", 0),
        (False, TYPES, "loop", 0),
        (False, (), "loop", 0),
        (True, TYPES, "agent", 0),
        (True, TYPES, "flow", 0),
    ],
)
async def test_la_27_im_4_the_request_has_three_tools_or_none(
    open_agent: OpenAgent, enabled: bool, types: tuple[EventType, ...], agent_type: str, count: int
) -> None:
    plan = plan_with(types, agent_type, enabled=enabled)
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan)
    turn = await agent.send("Hola", user=CARLOS)
    assert len(names(turn.request) & set(KEY_EVENT_TOOLS)) == count
    assert "get_quote" in names(turn.request)


async def test_la_28_la_29_the_switch_without_a_type_is_no_fault(
    open_agent: OpenAgent, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with(()))
    await keep(agent, 3)
    with caplog.at_level(logging.WARNING):
        turn = await agent.send("Hola", user=CARLOS)
    assert turn.reply.startswith(DONE) and "<key_events>" not in prompt(turn.request)
    assert turn.record.events == [] and not names(turn.request) & set(KEY_EVENT_TOOLS)
    assert "key_events" not in turn.record.unavailable and caplog.records == []
    assert len(await all_of(agent)) == 3
    hint = agent.events.hint
    assert hint and "at least one" in hint.en and "al menos uno" in hint.es


@pytest.mark.parametrize("agent_type", ["agent", "flow"])
async def test_la_24_la_26_the_other_types_read_by_injection_and_write_nothing_in_the_round(
    open_agent: OpenAgent, agent_type: str
) -> None:
    agent = await open_agent(
        model=ScriptedModel(replies=[created(), DONE]), plan=plan_with(agent_type=agent_type)
    )
    (event,) = await keep(agent)
    turn = await agent.send("No me llega el pedido", user=CARLOS)
    assert turn.record.events == [str(event.id)]
    assert await all_of(agent) == [event]
    assert agent.events.settings == plan_with().key_events


async def test_c_34_what_a_flow_agent_stored_is_injected_by_a_loop_agent_where_they_share(
    open_agent: OpenAgent,
) -> None:
    alone = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    (event,) = await keep(alone, assistant="flow-1")
    assert (await alone.send("Hola", user=CARLOS)).record.events == []
    together = await open_agent(
        model=ScriptedModel(replies=[DONE]), plan=plan_with(shared_across_assistants=True)
    )
    assert (await together.send("Hola", user=CARLOS)).record.events == [str(event.id)]


async def test_la_30_a_21_a_wrong_type_goes_back_to_the_model_and_the_turn_goes_on(
    open_agent: OpenAgent,
) -> None:
    model = ScriptedModel(replies=[created(kind="Queja"), created(call_id="call-1"), DONE])
    agent = await open_agent(model=model, plan=plan_with())
    turn = await agent.send("Me quejo", user=CARLOS)
    wrong, right = results(turn.request)
    assert wrong.text == f"Invalid event_type 'Queja'. Allowed types: '{REFUND}', '{ANOMALY}'."
    assert (wrong.status, right.status, turn.reply[: len(DONE)]) == ("error", "success", DONE)
    assert [event.type for event in await all_of(agent)] == [REFUND]


async def test_la_25_a_round_that_runs_again_makes_no_second_event(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=[created(), created("Otro pedido"), DONE])
    agent = await open_agent(model=model, plan=plan_with())
    await agent.send("No me llega", user=CARLOS, conversation="S1")
    first = await all_of(agent)
    assert len(first) == 2, "two calls of one id are two events"
    # The process died after the tool ran and before the turn was written: LangGraph runs it again.
    call = Call(Caller(TENANT, ASSISTANT, CARLOS, "S1"), agent.services, lambda chunk: None)
    turn = (first[0].history or ())[0].turn
    for place, reply in enumerate(model.replies[:2]):
        config: Any = {"configurable": {CALL: call, RESULT: f"{turn}-{2 * place + 2}"}}
        tool = agent.services.toolbox.tools["create_key_event"]
        await tool.ainvoke({**reply.tool_calls[0], "type": "tool_call"}, config)
    assert await all_of(agent) == first


async def test_im_13_a_store_that_fails_costs_a_short_error_and_not_the_turn(
    open_agent: OpenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*args: Any, **kwargs: Any) -> Any:
        raise StoreError(Sentence("x" * 2000, "y" * 2000))

    for method in ("create", "open"):
        monkeypatch.setattr(PostgresKeyEvents, method, fails)
    agent = await open_agent(model=ScriptedModel(replies=[created(), DONE]), plan=plan_with())
    turn = await agent.send("No me llega", user=CARLOS)
    (failed,) = results(turn.request)
    assert failed.status == "error" and 0 < len(failed.text) <= 500
    assert turn.reply.startswith(DONE)
    assert any(reason.startswith("key_events") for reason in turn.record.unavailable)


async def test_la_32_la_33_c_29_without_a_user_the_session_has_it_and_another_does_not(
    open_agent: OpenAgent,
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[created(), DONE]), plan=plan_with())
    await agent.send("No me llega", conversation="S1")
    (event,) = await store_of(agent).open(owner(None, "S1"), 5)
    assert (event.user, event.session, event.identity_resolved) == (None, "S1", False)
    assert (await agent.send("¿Y?", conversation="S1")).record.events == [str(event.id)]
    assert (await agent.send("¿Y?", conversation="S2")).record.events == []
    page = await agent.events.list(OperatorFilter(unresolved=True), actor="ana")
    assert [found.id for found in page.events] == [event.id]


async def test_a_22_the_sessions_events_become_the_users(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[created(), DONE]), plan=plan_with())
    await agent.send("No me llega", conversation="S1")
    (moved,) = await agent.events.adopt("S1", user=CARLOS, actor="ana")
    assert (await agent.send("Hola", user=CARLOS, conversation="S2")).record.events == [str(moved)]
    event = await agent.events.show(moved, actor="ana")
    assert event and event.identity_resolved and event.history
    assert [(revision.action, revision.actor) for revision in event.history] == [
        ("created", "S1"),
        ("adopted", "ana"),
    ]


async def test_a_22_what_a_session_had_is_the_users_once_his_turn_runs_in_it(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    made = await keep(agent, user=None)
    turn = await agent.send("Hola", user=CARLOS, conversation="S0")
    assert turn.record.events == [str(made[0].id)]
    assert [event.user for event in await all_of(agent)] == [CARLOS]


async def test_c_14_a_preview_neither_reads_nor_writes_events(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=[created(), asked("query"), DONE])
    agent = await open_agent(model=model, plan=plan_with(), mode="preview")
    (event,) = await keep(agent)
    turn = await agent.send("No me llega", user=CARLOS)
    assert turn.record.events == [] and str(event.id) not in prompt(turn.request)
    assert {result.text for result in results(turn.request)} == {"There are no key events in preview."}
    assert await all_of(agent) == [event]


async def test_c_9_im_17_an_open_event_is_injected_on_day_200_unchanged(
    open_agent: OpenAgent, clock: SettableClock
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    (event,) = await keep(agent)
    services = agent.services
    clock.forward(days=200)
    worker = Worker(services.database, services.index, services.embedder, services.clock, tenant=TENANT)
    assert await worker.run_due(clock())
    assert (await agent.send("Hola", user=CARLOS)).record.events == [str(event.id)]
    assert await all_of(agent) == [event]


async def test_c_16_a_card_number_reaches_neither_event_nor_prompt_of_the_next_session(
    open_agent: OpenAgent,
) -> None:
    card = "4111 1111 1111 1111"
    agent = await open_agent(
        model=ScriptedModel(replies=[created(f"Cargo doble en {card}"), DONE]), plan=plan_with()
    )
    await agent.send("Me cobraron dos veces", user=CARLOS, conversation="S1")
    turn = await agent.send("Hola", user=CARLOS, conversation="S2")
    assert "Cargo doble" in section(turn.request)[0] and "4111" not in prompt(turn.request)
    assert "4111" not in repr(await all_of(agent))


async def test_c_27_c_24_over_budget_five_lines_stay_and_a_mentioned_one_to_the_last(
    open_agent: OpenAgent,
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    long = "El cliente espera el dinero y ha preguntado varias veces por él. " * 8
    await keep(agent, 4, summary=long)
    (mentioned,) = await keep(agent, summary=long, entities=("pedido 4471",))
    turn = await agent.send("¿Y el pedido 4471?" + " hola" * 5700, user=CARLOS)
    lines = section(turn.request)
    assert len(lines) == 5 and all(line.endswith("…") and line.count(" | ") == 3 for line in lines)
    high = [step.block for step in turn.record.steps if step.tier == "high"]
    assert high[:5] == ["key_events"] * 5 and "key_events" not in high[5:]
    turn = await agent.send("¿Y el pedido 4471?" + " hola" * 6490, user=CARLOS, conversation="S3")
    assert turn.record.events == [str(mentioned.id)]
    assert turn.record.estimate["input_tokens"] <= 8000


async def test_a_19_im_7_resolved_ones_and_the_number_are_settings(open_agent: OpenAgent) -> None:
    plan = plan_with(injected_max=2, inject_resolved=False)
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan)
    await keep(agent, 1, status="RESOLVED")
    assert (await agent.send("Hola", user=CARLOS)).record.events == []
    await keep(agent, 3)
    assert len((await agent.send("Hola", user=CARLOS)).record.events) == 2


async def test_the_record_says_what_the_events_cost(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    await keep(agent, 2)
    turn = await agent.send("Hola", user=CARLOS)
    (provider,) = [one for one in turn.record.providers if one["name"] == "key_events"]
    (block,) = [one for one in turn.record.blocks if one.name == "key_events"]
    assert (block.tier, block.section) == ("high", "turn")
    assert provider["status"] == "ok" and provider["tokens"] == block.tokens > 0


async def test_im_16_operators_list_export_and_are_audited(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with(TYPES[:1]))
    await keep(agent, 2, summary="=1+1, «uno»\nasunto")
    other = await store_of(agent).create(
        owner("V"), NewEvent(ANOMALY, "No es suyo"), Origin(agent.services.clock(), "V", "S5")
    )
    page = await agent.events.list(OperatorFilter(type=ANOMALY), actor="ana")
    assert [event.id for event in page.events] == [other.id] and page.total == 1
    exported = json.loads(await agent.events.export(actor="eva"))
    assert {event["id"] for event in exported} >= {str(other.id)} and len(exported) == 3
    (found,) = [event for event in exported if event["type"] == ANOMALY]
    assert found["type_removed"] and found["history"][0]["action"] == "created"
    rows = list(csv.DictReader(io.StringIO(await agent.events.export(actor="eva", form="csv"))))
    assert len(rows) == 3 and {row["user"] for row in rows} == {CARLOS, "V"}
    assert all(not row["summary"].startswith("=") for row in rows)
    assert json.loads(rows[0]["history"])[0]["actor"] in (CARLOS, "V")
    assert await agent.events.export(OperatorFilter(user="nobody"), actor="eva", form="csv") == "id\r\n"
    views = await agent.events.views()
    assert [(view.actor, view.action) for view in views] == [*[("eva", "exported")] * 3, ("ana", "listed")]


async def test_im_18_a_type_in_use_goes_only_after_a_confirmation_and_its_events_stay(
    open_agent: OpenAgent,
) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    made = await keep(agent, 2)
    uses = {use.name: use for use in await agent.events.types(actor="ana")}
    assert (uses[REFUND].events, uses[REFUND].configured, uses[ANOMALY].events) == (2, True, 0)
    with pytest.raises(InputError, match=r"2 event\(s\)"):
        await agent.events.without_type(REFUND, actor="ana")
    with pytest.raises(InputError, match="no type"):
        await agent.events.without_type("Queja", actor="ana")
    assert [k.name for k in (await agent.events.without_type(ANOMALY, actor="ana")).key_events.types] == [
        REFUND
    ]
    draft = await agent.events.without_type(REFUND, actor="ana", confirmed=True)
    assert [kind.name for kind in draft.key_events.types] == [ANOMALY]
    after = await open_agent(model=ScriptedModel(replies=[asked("query"), DONE]), plan=draft)
    turn = await after.send("¿Qué tengo?", user=CARLOS)
    queried = json.loads(str(results(turn.request)[0].text))["events"]
    assert {(event["id"], event["type"], event["type_removed"]) for event in queried} == {
        (str(event.id), REFUND, True) for event in made
    }
    uses = {use.name: use for use in await after.events.types(actor="ana")}
    assert (uses[REFUND].configured, uses[REFUND].events) == (False, 2)


async def test_im_18_events_under_another_assistant_of_the_plan_count_too(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    await keep(agent, 2, assistant="A9")
    with pytest.raises(InputError, match=r"2 event\(s\)"):
        await agent.events.without_type(REFUND, actor="ana")
    removed = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with(TYPES[1:]))
    assert [use.name for use in await removed.events.types(actor="ana")] == [ANOMALY], "another's old type"


async def test_im_18_the_mark_is_by_the_plan_of_the_events_own_assistant(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    hotel = load_plan("hotel").model_copy(update={"key_events": plan_with(TYPES[1:]).key_events})
    (mine,) = await keep(agent)
    (of_hotel,) = await keep(agent, assistant="hotel")
    (unknown,) = await keep(agent, assistant="somebody")
    await agent.governance.roles.appoint_first_owner("olga")
    revision = await agent.governance.plans.compile(hotel.model_copy(update={"packs": ()}), actor="olga")
    await agent.governance.plans.activate(revision.number, actor="olga", name="hotel")
    page = await agent.events.list(actor="ana")
    marks = {data["id"]: data["type_removed"] for data in await agent.events.data(page.events)}
    assert marks == {str(mine.id): False, str(of_hotel.id): True, str(unknown.id): None}


async def test_im_18_the_panel_and_the_governance_say_that_types_go(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=[DONE]), plan=plan_with())
    await keep(agent, 3)
    changed = agent.panel.changed({"key_events.types": []})
    notices = next(group for group in changed.groups if group.name == "key_events").notices
    assert REFUND in notices[0].es and "agent.events.types()" in notices[0].en
    assert not next(group for group in agent.panel.groups if group.name == "key_events").notices
    plans = agent.governance.plans
    await agent.governance.roles.appoint_first_owner("olga")
    first = await plans.compile(plan_with(), actor="olga")
    assert await plans.removed_types(first, actor="olga") == {}
    second = await plans.compile(changed.plan, actor="olga")
    assert await plans.removed_types(second, actor="olga") == {REFUND: 3}


BAD: Any = object()


@pytest.mark.parametrize(
    "ask",
    [
        lambda events: events.list(actor="ana", limit=-1),
        lambda events: events.list(actor="ana", limit="x"),
        lambda events: events.list(actor="ana", limit=10**30),
        lambda events: events.list(actor="ana", offset=-1),
        lambda events: events.list(actor="ana", offset=10**30),
        lambda events: events.list(actor="   "),
        lambda events: events.list(actor="a\0"),
        lambda events: events.list(actor=BAD),
        lambda events: events.show("42", actor="ana"),
        lambda events: events.show("\0", actor="ana"),
        lambda events: events.show(BAD, actor="ana"),
        lambda events: events.show(UUID(int=0), actor="  "),
        lambda events: events.export(actor="ana", form="xml"),
        lambda events: events.export(actor=" "),
        lambda events: events.types(actor=" "),
        lambda events: events.without_type(BAD, actor="ana"),
        lambda events: events.without_type("a\0", actor="ana"),
        lambda events: events.adopt("S1", user=CARLOS, actor=" "),
        lambda events: events.extract("\0"),
        lambda events: events.extract(BAD),
        lambda events: events.extractions("a\ud800"),
        lambda events: events.views(limit=0),
        lambda events: events.views(limit=10**30),
    ],
)
async def test_im_16_what_cannot_be_asked_is_an_input_error(agent: Agent, ask: Any) -> None:
    with pytest.raises(InputError):
        await ask(agent.events)


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "DONE"},
        {"status": "pending"},
        {"type": "a\0"},
        {"user": "\ud800"},
        {"session": 5},
        {"assistant": ""},
        {"since": "ayer"},
        {"until": datetime(2025, 12, 5)},
    ],
)
def test_im_16_a_filter_that_nothing_can_match_is_an_input_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        OperatorFilter(**wrong)


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ("Tengo 50 acciones de TSLA", "50 acciones"),
        ("I hold 50 shares of TSLA", "50 shares"),
        ("Su clave 123456 no funciona", "123456"),
        ("Tarjeta 4111 1111 1111 1111 cobrada dos veces", "4111"),
    ],
)
async def test_c_16_holdings_amounts_and_credentials_are_in_no_event(
    agent: Agent, said: str, gone: str
) -> None:
    events = store_of(agent)
    origin = Origin(agent.services.clock(), CARLOS, "S0")
    made = await events.create(owner(), NewEvent(REFUND, said, entities=(said[:90],)), origin)
    changed = await events.update(owner(), made.id, EventChange(summary=f"{said} hoy"), origin)
    assert gone not in repr(made) and gone not in repr(changed)


# Commands


def command(*args: str) -> Result:
    """What ``recuerdo`` gives for these arguments; an error that a user can cause is its exception."""
    return CliRunner().invoke(app, args)


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    path = tmp_path / "hotel.yaml"
    path.write_text(yaml.safe_dump(plan_with().model_dump(mode="json"), allow_unicode=True), encoding="utf-8")
    return str(path)


@pytest.fixture
def filled(database_url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two events of Carlos in the database that the commands open; their ids."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    async def fill() -> list[str]:
        database = await Database.open(database_url)
        events = PostgresKeyEvents(database, "default", ASSISTANT)
        at = datetime.fromisoformat(FRIDAY)
        made = [
            await events.create(
                owner(), NewEvent(REFUND, f"{SUMMARY} {n}"), Origin(at + timedelta(days=n), CARLOS)
            )
            for n in range(2)
        ]
        await database.close()
        return [str(event.id) for event in made]

    return asyncio.run(fill())


def test_im_16_im_18_the_commands(filled: list[str], plan_file: str, tmp_path: Path) -> None:
    def run(*args: str) -> Result:
        return command("events", *args, "--actor", "ana", "--plan", plan_file)

    listed = json.loads(run("list", "--json").stdout)
    assert [event["id"] for event in listed["events"]] == filled[::-1]
    found = run("list", "--user", CARLOS, "--type", REFUND, "--status", "PENDING", "--limit", "1")
    assert found.exit_code == 0 and "PENDING" in found.stdout and "1 of 2" in found.stderr
    since = json.loads(run("list", "--since", "2025-12-06", "--json").stdout)
    assert [event["id"] for event in since["events"]] == filled[1:]
    assert "no events" in run("list", "--user", "nobody").stdout
    shown = run("show", filled[0])
    assert filled[0] in shown.stdout and "created" in shown.stdout
    target = tmp_path / "events.csv"
    assert run("export", "--format", "csv", "--output", str(target)).exit_code == 0
    assert len(list(csv.DictReader(io.StringIO(target.read_text(encoding="utf-8"))))) == 2
    types = json.loads(run("types", "--json").stdout)
    assert [(use["name"], use["events"]) for use in types] == [(REFUND, 2), (ANOMALY, 0)]
    refused = run("types", "--remove", REFUND)
    assert isinstance(refused.exception, InputError) and refused.stdout == ""
    assert "confirm" in str(refused.exception)
    draft = yaml.safe_load(run("types", "--remove", REFUND, "--confirm").stdout)
    assert [kind["name"] for kind in draft["key_events"]["types"]] == [ANOMALY]


@pytest.mark.parametrize(
    "wrong",
    [
        ["show", "42"],
        ["list", "--status", "DONE"],
        ["list", "--since", "ayer"],
        ["list", "--since", "2025-12-05T10"],
    ],
)
def test_im_16_wrong_arguments_are_one_clear_error(filled: list[str], wrong: list[str]) -> None:
    result = command("events", *wrong)
    assert isinstance(result.exception, InputError) and result.stdout == ""


def test_im_12_a_plan_shows_neither_events_nor_users(filled: list[str], plan_file: str) -> None:
    shown = command("plan", "show", plan_file, "--json").stdout
    assert REFUND in shown
    assert SUMMARY not in shown and CARLOS not in shown and not any(key in shown for key in filled)
