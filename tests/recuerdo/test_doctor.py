"""The doctor: five symptoms in the order of the seed, and the health of the house (LA-6, LA-16, LA-33, IM-11)."""

import json
import shutil
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import pytest
import yaml
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from recuerdo.agent import Agent
from recuerdo.cli import app
from recuerdo.doctor import Diagnosis, Finding
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.state.errors import InputError
from recuerdo.state.key_events import EventChange, NewEvent, Origin, Owner
from recuerdo.state.plan import EventType, Plan
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.key_events import PostgresKeyEvents
from tests.recuerdo.carlos import CARLOS, TENANT, House
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

TYPE = "Reembolso"


def plan_with(**changes: Any) -> Plan:
    """The trading plan with other settings, by their paths."""
    raw = load_plan("trading").model_dump(mode="python")
    for path, value in changes.items():
        *groups, name = path.split("__")
        place = raw
        for group in groups:
            place = place[group]
        place[name] = value
    return Plan.model_validate(raw)


def events_on(**changes: Any) -> Plan:
    types = (EventType(name=TYPE, description="Pide su dinero.").model_dump(),)
    return plan_with(key_events__enabled=True, key_events__types=types, **changes)


def named(diagnosis: Diagnosis) -> dict[str, Finding]:
    return {found.name: found for found in diagnosis.findings}


async def event_of(
    agent: Agent, user: str | None, session: str, *, assistant: str | None = None, kind: str = TYPE
) -> str:
    events = PostgresKeyEvents(agent.services.database, TENANT, assistant or agent.assistant)
    origin = Origin(agent.services.clock(), user or session, session)
    return str((await events.create(Owner(user, session), NewEvent(kind, "Espera su dinero"), origin)).id)


def created(kind: str, **args: Any) -> AIMessage:
    call = {
        "name": "create_key_event",
        "args": {"event_type": kind, "summary": "x", **args},
        "id": "c0",
        "type": "tool_call",
    }
    return AIMessage("", tool_calls=[call])


async def test_la_6_the_first_finding_says_that_short_term_memory_is_off(open_agent: OpenAgent) -> None:
    agent = await open_agent(plan=plan_with(memory__short_term__enabled=False))
    found = await agent.diagnose("no_last_round")
    first = found.findings[0]
    assert (first.name, first.ok, first.value) == ("short_term", False, False)
    assert first.title.es == "Habilitar las últimas N rondas del historial de chat"
    assert "memory.short_term.enabled: true" in first.change.es and "enabled: true" in first.change.en
    assert "olvida" in first.why.es and "forgets" in first.why.en
    assert found.suspects == [first]


async def test_la_6_with_it_on_the_conversation_is_looked_at(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Hola.", ConnectionError("down")]))
    await agent.send("Hola", user=CARLOS, conversation="S1")
    good = await agent.diagnose("no_last_round", conversation="S1", user=CARLOS)
    assert good.suspects == []
    assert [one.name for one in good.findings] == [
        "short_term",
        "rounds",
        "preview",
        "conversation",
        "last_turn",
    ]
    other = await agent.diagnose("no_last_round", conversation="S1", user="otra")
    assert [one.name for one in other.suspects] == ["conversation"]
    with pytest.raises(Exception, match=r".+"):
        await agent.send("¿Y?", user=CARLOS, conversation="S1")
    failed = await agent.diagnose("no_last_round", conversation="S1", user=CARLOS)
    assert [(one.name, one.value) for one in failed.suspects] == [("last_turn", "failed")]
    await agent.conversations.clear("S1", user=CARLOS)
    cleared = await agent.diagnose("no_last_round", conversation="S1", user=CARLOS)
    assert [one.name for one in cleared.suspects] == ["conversation"]


@pytest.mark.parametrize(("rounds", "ok"), [(0, False), (1, True)])
async def test_la_16_the_first_finding_names_full_context_and_proposes_1_or_2(
    open_agent: OpenAgent, rounds: int, ok: bool
) -> None:
    agent = await open_agent(plan=plan_with(memory__full_context__rounds=rounds))
    first = (await agent.diagnose("tool_forgotten")).findings[0]
    assert (first.name, first.value, first.ok) == ("full_context", rounds, ok)
    assert "1 o 2" in first.change.es and "1 or 2" in first.change.en


@pytest.mark.parametrize(("rounds", "ok"), [(1, False), (2, True)])
async def test_la_16_a_value_that_does_not_reach_the_call_is_too_small(
    open_agent: OpenAgent, rounds: int, ok: bool
) -> None:
    quote = AIMessage(
        "", tool_calls=[{"name": "get_quote", "args": {"symbol": "AAPL"}, "id": "q", "type": "tool_call"}]
    )
    model = ScriptedModel(replies=[quote, "185.50", "De nada."])
    agent = await open_agent(model=model, plan=plan_with(memory__full_context__rounds=rounds))
    for said in ("¿Cuánto vale AAPL?", "Gracias"):
        await agent.send(said, user=CARLOS, conversation="S1")
    found = await agent.diagnose("tool_forgotten", conversation="S1")
    assert (found.findings[0].name, found.findings[0].ok) == ("full_context", ok)
    called = named(found)["tools_called"]
    assert (called.value, called.ok) == ([2], ok)
    assert "demasiado pequeño" in called.change.es and "too small" in called.change.en


async def test_la_6_la_16_la_33_without_a_symptom_every_question_about_the_conversation_is_answered(
    open_agent: OpenAgent,
) -> None:
    agent = await open_agent(
        model=ScriptedModel(replies=["Hola."]), plan=events_on(memory__short_term__enabled=False)
    )
    await agent.send("Hola", user=CARLOS, conversation="S1")
    found = await agent.diagnose(conversation="S1")
    assert [answer.symptom for answer in found.answers] == [
        "no_last_round",
        "tool_forgotten",
        "event_not_found",
        "event_tools_missing",
        "event_parameter_error",
    ]
    assert [one.name for one in found.suspects] == ["short_term"]
    assert len(named(found)) == len(found.findings)
    assert found.as_data()["answers"][0]["symptom"] == "no_last_round"
    with pytest.raises(InputError, match="no conversation"):
        await agent.diagnose(conversation="missing")


async def test_la_16_c_28_short_term_off_hides_the_traces_too(open_agent: OpenAgent) -> None:
    agent = await open_agent(plan=plan_with(memory__short_term__enabled=False))
    assert [one.name for one in (await agent.diagnose("tool_forgotten")).suspects] == ["short_term"]


async def test_la_33_unresolved_identity_stands_first_with_the_ids(open_agent: OpenAgent) -> None:
    model = ScriptedModel(replies=[created(TYPE), "Hecho."])
    agent = await open_agent(model=model, plan=events_on())
    await agent.send("Quiero mi dinero", conversation="S1")
    assert (await agent.send("¿Y mi dinero?", conversation="S2")).record.events == []
    found = await agent.diagnose("event_not_found", actor="ana")
    first = found.findings[0]
    assert (first.name, first.ok, first.value["total"]) == ("identity", False, 1)
    ((scoped),) = first.value["session_scoped"]
    assert scoped["session"] == "S1"
    assert (await agent.events.show(scoped["id"], actor="ana")) is not None
    assert (await agent.events.views())[-1].actor == "ana", "each look at events is audited (IM-16)"
    await agent.send("Soy Carlos", user=CARLOS, conversation="S1")
    assert named(await agent.diagnose("event_not_found"))["identity"].ok


async def test_la_33_asked_in_the_new_session_the_events_of_other_sessions_are_told(
    open_agent: OpenAgent,
) -> None:
    model = ScriptedModel(replies=[created(TYPE), "Hecho."])
    agent = await open_agent(model=model, plan=events_on())
    await agent.send("Quiero mi dinero", conversation="S1")
    await agent.send("¿Y mi dinero?", conversation="S2")
    first = (await agent.diagnose("event_not_found", conversation="S2")).findings[0]
    assert (first.name, first.ok) == ("identity", False)
    assert [one["session"] for one in first.value["session_scoped"]] == ["S1"]


async def test_la_33_what_else_hides_an_event_is_told_with_its_value(open_agent: OpenAgent) -> None:
    agent = await open_agent(plan=events_on())
    ids = [await event_of(agent, CARLOS, "S1") for _ in range(7)]
    await event_of(agent, CARLOS, "S1", assistant="otro")
    await event_of(agent, CARLOS, "S1", kind="Queja")
    now = agent.services.clock()
    events = PostgresKeyEvents(agent.services.database, TENANT, agent.assistant)
    for age, event in ((100, ids[0]), (1, ids[1])):
        origin = Origin(now - timedelta(days=age), CARLOS, "S1")
        await events.update(Owner(CARLOS, "S1"), UUID(event), EventChange(status="CLOSED"), origin)
    found = named(await agent.diagnose("event_not_found", user=CARLOS))
    assert found["events_elsewhere"].value == {"otro": 1}
    assert (
        found["events_closed"].value == {"closed": 1, "archived": 1} and "90" in found["events_closed"].why.es
    )
    assert found["events_many"].value == 6 and not found["events_many"].ok
    assert found["events_type_removed"].value == ["Queja"]
    assert found["identity"].ok and found["preview"].ok and found["extraction"].ok


async def test_la_26_la_33_turns_that_were_not_read_yet_are_told(open_agent: OpenAgent) -> None:
    agent = await open_agent(model=ScriptedModel(replies=["Sí."]), plan=events_on(agent_type="flow"))
    await agent.send("Quiero mi dinero", user=CARLOS, conversation="S1")
    found = named(await agent.diagnose("event_not_found", conversation="S1"))["extraction"]
    assert not found.ok and found.value == {"agent_type": "flow", "unread_turns": 1} and "5" in found.why.es


@pytest.mark.parametrize(
    ("changes", "met"),
    [
        ({"key_events__enabled": True, "key_events__types": ()}, [True, False, True]),
        ({"key_events__enabled": False}, [False, True, True]),
        ({"agent_type": "flow"}, [True, True, False]),
        ({}, [True, True, True]),
    ],
)
async def test_im_11_la_29_each_precondition_is_told_as_met_or_not(
    open_agent: OpenAgent, changes: dict[str, Any], met: list[bool]
) -> None:
    raw: dict[str, Any] = {
        "key_events__enabled": True,
        "key_events__types": ({"name": TYPE},),
        **changes,
    }
    agent = await open_agent(plan=plan_with(**raw))
    found = (await agent.diagnose("event_tools_missing")).findings
    assert [one.name for one in found[:3]] == ["events_enabled", "events_types", "events_agent_type"]
    assert [one.ok for one in found[:3]] == met


async def test_la_7_preview_is_told_for_every_symptom_of_memory(open_agent: OpenAgent) -> None:
    agent = await open_agent(plan=events_on(), mode="preview")
    for symptom in ("no_last_round", "tool_forgotten", "event_not_found", "event_tools_missing"):
        found = named(await agent.diagnose(symptom))["preview"]
        assert not found.ok and "normal" in found.why.es


@pytest.mark.parametrize("used", ["reembolso", "Reembolso ", "REEMBOLSO", "Reem\u00a0bolso"])
async def test_la_30_la_31_a_parameter_error_names_the_type_used_and_the_nearest(
    open_agent: OpenAgent, used: str
) -> None:
    model = ScriptedModel(replies=[created(used, severity="alta"), "No pude."])
    agent = await open_agent(model=model, plan=events_on())
    await agent.send("Quiero mi dinero", user=CARLOS, conversation="S1")
    found = await agent.diagnose("event_parameter_error", conversation="S1")
    first = found.findings[0]
    assert first.name == "type_used" and not first.ok
    assert first.value == [{"used": used, "nearest": TYPE}]
    assert f"'{TYPE}'" in first.why.es
    assert named(found)["severity_used"].value == ["alta"]
    assert named(found)["dictionary"].value == [TYPE]


@pytest.mark.parametrize(
    ("tool", "args", "says"),
    [
        ("create", {"event_type": TYPE, "summary": "x" * 1001}, "summary must have 1 to 1000"),
        ("create", {"event_type": TYPE}, "Invalid summary: Field required"),
        ("create", {"event_type": TYPE, "summary": "x", "confidence": 3}, "confidence must be"),
        ("create", {"event_type": TYPE, "summary": "x", "confidence": float("nan")}, "cannot be kept"),
        ("create", {"event_type": TYPE, "summary": "x", "entities": ["e"] * 21}, "20 texts at most"),
        ("update", {"event_id": "1", "status": "DONE"}, "Invalid status 'DONE'"),
        ("query", {"limit": 1000}, "Invalid limit"),
    ],
)
async def test_la_30_im_13_every_refused_argument_is_told(
    open_agent: OpenAgent, tool: str, args: dict[str, Any], says: str
) -> None:
    call = {"name": f"{tool}_key_event", "args": args, "id": "c0", "type": "tool_call"}
    model = ScriptedModel(replies=[AIMessage("", tool_calls=[call]), "No pude."])
    agent = await open_agent(model=model, plan=events_on())
    await agent.send("Quiero mi dinero", user=CARLOS, conversation="S1")
    found = named(await agent.diagnose("event_parameter_error", conversation="S1"))["arguments_refused"]
    assert not found.ok
    (told,) = found.value
    assert told["tool"] == f"{tool}_key_event" and says in told["error"]


async def test_a_wrong_symptom_or_conversation_says_what_there_is(open_agent: OpenAgent) -> None:
    agent = await open_agent()
    with pytest.raises(InputError, match="no_last_round"):
        await agent.diagnose("headache")
    with pytest.raises(InputError, match="no conversation"):
        await agent.diagnose("no_last_round", conversation="missing")


async def test_without_a_symptom_the_health_of_the_house(
    open_agent: OpenAgent, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await open_agent()
    found = named(await agent.diagnose())
    assert list(found) == [
        "database",
        "isolation",
        "pooler",
        "index",
        "embedder",
        "model",
        "worker",
        "vectors",
        "unread",
        "preview",
        "disk",
    ]
    assert found["database"].ok and found["database"].value["migration"] == found["database"].value["newest"]
    assert not found["isolation"].ok, "the embedded server's own role is a superuser"
    assert not found["model"].ok and found["model"].value is None
    assert found["embedder"].value["dimensions"] == 512 and found["index"].ok and found["disk"].ok
    json.dumps((await agent.diagnose()).as_data())
    usage = shutil._ntuple_diskusage(100, 99, 1)  # type: ignore[attr-defined]
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    assert not named(await agent.diagnose())["disk"].ok
    house.clock.forward(hours=13)
    late = named(await agent.diagnose())["worker"]
    assert not late.ok and late.value["late"]


async def test_the_model_is_what_answers_and_a_wrong_setting_is_a_finding(house: House) -> None:
    settings = {"model": "gpt-x"}
    async with house.open(model=OfflineResponder(), settings=settings) as agent:
        found = named(await agent.diagnose())["model"]
        assert not found.ok and "gpt-x" in found.value
    async with house.open(model=ScriptedModel(replies=["x"])) as agent:
        assert named(await agent.diagnose())["model"].ok


class Run(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: str) -> Run:
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return Run(1, result.stdout, str(result.exception))
    return Run(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("RECUERDO_DRAFTS", "1")


@pytest.fixture
def plan_file(tmp_path: Any) -> str:
    raw = events_on(memory__short_term__enabled=False, agent_type="flow").model_dump(mode="json")
    file = tmp_path / "support.yaml"
    file.write_text(yaml.safe_dump(raw, allow_unicode=True), encoding="utf-8")
    return str(file)


def test_la_6_the_command_says_it_in_order_and_ends_with_0(stored: None, plan_file: str) -> None:
    seen = run("doctor", "--symptom", "no_last_round", "--plan", plan_file, "--json")
    assert seen.code == 0
    findings: Sequence[dict[str, Any]] = json.loads(seen.out)["findings"]
    assert (findings[0]["name"], findings[0]["ok"], findings[0]["value"]) == ("short_term", False, False)
    assert set(findings[0]["change"]) == {"es", "en"}
    text = run("doctor", "--symptom", "no_last_round", "--plan", plan_file)
    assert text.code == 0 and "[check] Enable the last N rounds of the chat history" in text.out
    assert run("doctor", "--symptom", "headache").code == 2
    missing = run("doctor", "--symptom", "no_last_round", "--conversation", "zzz", "--plan", plan_file)
    assert missing.code == 1 and "no conversation" in missing.err


def test_la_6_the_command_answers_every_question_about_a_conversation(stored: None, plan_file: str) -> None:
    said = ("--user", "ana", "--conversation", "S1", "--plan", plan_file)
    run("chat", "--message", "Quiero que me devuelvan el dinero del pedido 4471", *said)
    seen = run("doctor", "--conversation", "S1", "--plan", plan_file, "--json")
    assert seen.code == 0 and len(json.loads(seen.out)["answers"]) == 5
    text = run("doctor", "--conversation", "S1", "--plan", plan_file)
    assert "It does not remember the last round" in text.out and "Parameter error" in text.out
    missing = run("doctor", "--conversation", "zzz", "--plan", plan_file)
    assert missing.code == 1 and "no conversation" in missing.err
    unread = run("events", "extract", "--conversation", "zzz", "--plan", plan_file)
    assert unread.code == 1 and "no conversation" in unread.err
    assert "key events" in run("worker", "--help").out


def test_the_command_looks_at_the_house(stored: None) -> None:
    seen = run("doctor", "--json")
    assert seen.code == 0
    assert {found["name"] for found in json.loads(seen.out)["findings"]} >= {
        "database",
        "isolation",
        "worker",
    }


def test_im_6_the_command_reads_a_conversation_by_hand(stored: None, plan_file: str) -> None:
    said = ("--user", "ana", "--conversation", "S1", "--plan", plan_file)
    run("chat", "--message", "Quiero que me devuelvan el dinero del pedido 4471", *said)
    seen = run("events", "extract", "--conversation", "S1", "--plan", plan_file, "--json")
    made = json.loads(seen.out)
    assert (len(made["created"]), made["turns"]) == (1, 1)
    again = run("events", "extract", "--conversation", "S1", "--plan", plan_file)
    assert again.code == 0 and "Turns read: 0" in again.out
