"""Who may look at what governs an agent, and under which names people act (OR-11, OR-12, OR-28, A-35, IM-49)."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import psycopg
import pytest
import typer

from recuerdo.agent import Agent
from recuerdo.cli import app
from recuerdo.governance import Governance
from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.approvals import Approvals, NewApproval
from recuerdo.stores.postgres.evidence import EvidenceFilter, EvidenceKind, EvidenceLog, NewEvidence, Run
from recuerdo.stores.postgres.roles import Role, Roles, same_person
from tests.recuerdo.carlos import TENANT, House
from tests.recuerdo.command import Command
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

OLGA, SARA, BOT, ANA = "olga", "sara", "bot", "ana"
"""An owner, a supervisor, an agent, and somebody without a role."""

Look = Callable[[Governance, str], Awaitable[object]]

OF_STAFF: dict[str, Look] = {
    "plans.all": lambda desk, who: desk.plans.all(actor=who),
    "plans.show": lambda desk, who: desk.plans.show(actor=who),
    "plans.diff": lambda desk, who: desk.plans.diff("r1", load_plan("trading"), actor=who),
    "plans.stopped": lambda desk, who: desk.plans.stopped(actor=who),
    "plans.stops": lambda desk, who: desk.plans.stops(actor=who),
    "packs.all": lambda desk, who: desk.packs.all(actor=who),
    "roles.all": lambda desk, who: desk.roles.all(actor=who),
    "roles.of": lambda desk, who: desk.roles.of(SARA, actor=who),
}
OF_SUPERVISORS: dict[str, Look] = {
    "audit.entries": lambda desk, who: desk.audit.entries(actor=who),
    "evidence.list": lambda desk, who: desk.evidence.list(actor=who),
    "approvals.list": lambda desk, who: desk.approvals.list(actor=who),
    "approvals.not_gone_on": lambda desk, who: desk.approvals.not_gone_on(actor=who),
    "approvals.unknown_outcomes": lambda desk, who: desk.approvals.unknown_outcomes(actor=who),
    "proposals.list": lambda desk, who: desk.proposals.list(actor=who),
    "proposals.sweeps": lambda desk, who: desk.proposals.sweeps(actor=who),
}
NO_ACTOR = {"roles.appoint_first_owner", "audit.verify"}
"""Acts of whoever runs the deployment."""


@pytest.fixture
async def governed(open_agent: OpenAgent) -> AsyncIterator[Agent]:
    agent = await open_agent(model=ScriptedModel(replies=["Bien."]))
    await agent.governance.roles.appoint_first_owner(OLGA)
    await agent.governance.roles.grant(SARA, "supervisor", actor=OLGA)
    await agent.governance.roles.grant(BOT, "agent", actor=OLGA)
    yield agent


def calls_of_governance() -> Iterator[tuple[str, inspect.Signature]]:
    """Every public method of every part of ``agent.governance``."""
    for name, part in inspect.getmembers(Governance, lambda one: isinstance(one, property)):
        desk = inspect.signature(part.fget).return_annotation
        for method, function in inspect.getmembers(desk, inspect.isfunction):
            if not method.startswith("_"):
                yield f"{name}.{method}", inspect.signature(function)


def test_or_11_every_call_of_governance_names_its_actor_but_two() -> None:
    found = dict(calls_of_governance())
    assert set(found) >= {*OF_STAFF, *OF_SUPERVISORS, *NO_ACTOR}
    without = {
        name
        for name, signature in found.items()
        if "actor" not in signature.parameters
        or signature.parameters["actor"].default is not inspect.Parameter.empty
    }
    assert without == NO_ACTOR


@pytest.mark.parametrize(("who", "may"), [(ANA, []), (BOT, OF_STAFF), (SARA, [*OF_STAFF, *OF_SUPERVISORS])])
async def test_or_11_a_35_looking_takes_a_role(governed: Agent, who: str, may: list[str]) -> None:
    allowed = []
    for name, look in {**OF_STAFF, **OF_SUPERVISORS}.items():
        try:
            await look(governed.governance, who)
        except ScopeError as error:
            needed = "agent / supervisor / owner" if name in OF_STAFF else "supervisor / owner"
            assert f'"{who}" may not' in str(error) and f"the role {needed}. An owner gives it" in str(error)
        else:
            allowed.append(name)
    assert allowed == list(may)


async def test_or_11_a_35_what_a_revision_and_a_pack_hold_takes_a_role(
    governed: Agent, tmp_path: Path
) -> None:
    desk = governed.governance
    folder = tmp_path / "tarifas"
    folder.mkdir()
    (folder / "reglas.md").write_text("El check-out es a las 11:00.\n", encoding="utf-8")
    pack = await desk.packs.build(folder, actor=SARA)
    revision = (await desk.plans.show(actor=BOT)).revision
    assert (await desk.packs.show(pack.reference, actor=BOT)).pin == pack.pin
    assert await desk.plans.removed_types(revision, actor=BOT) == {}
    assert await desk.evaluations.newest(revision, actor=SARA) is None
    assert await desk.evaluations.before_activation(revision, actor=OLGA) is None
    for refused in (
        desk.packs.show(pack.reference, actor=ANA),
        desk.packs.show("tarifas@aaaaaaaaaaaa", actor=ANA),
        desk.plans.show("r99", actor=ANA),
        desk.plans.removed_types(revision, actor=ANA),
        desk.evaluations.newest(revision, actor=BOT),
        desk.evaluations.before_activation(revision, actor=BOT),
        desk.evaluations.run(number=99, actor=BOT),
        desk.plans.compile("nothing", actor=BOT),
        desk.packs.build(tmp_path / "nothing", actor=BOT),
    ):
        with pytest.raises(ScopeError, match="needs the role"):
            await refused


@pytest.mark.parametrize("who", ["", " sara", "Sara", "sa\u200bra"])
async def test_a_35_a_role_is_its_name_to_the_letter(governed: Agent, who: str) -> None:
    with pytest.raises(ScopeError):
        await governed.governance.plans.all(actor=who)


async def test_or_11_where_nobody_has_a_role_it_says_how_the_first_owner_is_made(agent: Agent) -> None:
    for look in (*OF_STAFF.values(), *OF_SUPERVISORS.values()):
        with pytest.raises(ScopeError, match=r"no owner yet\. Appoint one with recuerdo roles appoint NAME"):
            await look(agent.governance, ANA)
    await agent.governance.roles.appoint_first_owner(OLGA)
    assert await agent.governance.roles.all(actor=OLGA) == {OLGA: "owner"}


async def test_or_12_the_audit_is_verified_where_the_roles_themselves_were_tampered_with(
    governed: Agent,
) -> None:
    assert (await governed.governance.audit.verify()).fault is None
    async with governed.services.database.connection() as connection:
        await connection.execute("delete from recuerdo.roles where user_id <> %s", (BOT,))
    for who in (OLGA, SARA):
        with pytest.raises(ScopeError, match="no owner yet"):
            await governed.governance.audit.entries(actor=who)
    found = await governed.governance.audit.verify()
    assert (found.fault, found.subject in {OLGA, SARA}) == ("unaudited", True)


# One person


SOFIA = {
    "to the letter": "sofia",
    "a blank before it": " sofia",
    "a blank after it": "sofia ",
    "a capital": "Sofia",
    "capitals": "SOFIA",
    "a zero-width blank": "so\u200bfia",
    "a mark of direction": "so\u202efia",
    "a soft hyphen": "so\u00adfia",
    "a variation selector": "sofia\ufe0f",
    "a filler": "sofia\u3164",
    "full-width letters": "\uff53\uff4f\uff46\uff49\uff41",
    "a ligature": "so\ufb01a",
    "a hard blank": "so\u00a0fia",
    "a place kept for a mark of direction": "so\u2065fia",
    "a place kept for a special character": "sofia\ufff0",
    "another of these": "sofia\ufff8",
    "a note without a head": "so\U0001d159fia",
    "a filler of Khitan": "sofia\U00016fe4",
}


@pytest.mark.parametrize("form", SOFIA)
def test_im_49_a_name_in_another_form_is_the_same_person(form: str) -> None:
    assert same_person(SOFIA[form], "sofia") and same_person("sofia", SOFIA[form])


@pytest.mark.parametrize(
    ("one", "other"),
    [("sofía", "sofi\u0301a"), ("Straße", "STRASSE"), ("ΑΣ", "ας"), ("Ana María", "anamaría")],
)
def test_im_49_accents_and_cases_of_any_script_are_told_as_unicode_does(one: str, other: str) -> None:
    assert same_person(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sofia", "sofía"),
        ("ana", "ann"),
        ("user-1", "user-12"),
        ("nino", "niño"),
        (None, "ana"),
        (None, None),
    ],
)
def test_im_49_two_people_stay_two(one: str | None, other: str | None) -> None:
    assert not same_person(one, other)


async def requested(agent: Agent, user: str) -> NewApproval:
    run = Run(uuid4(), f"conv-{uuid4()}", "trading", user, "trading", 1)
    new = NewApproval(uuid4(), run, "apply_discount", {"discount_pct": 10}, agent.services.clock())
    services = agent.services
    await Approvals(services.database, TENANT, services.keys).request([new])
    return new


async def test_or_28_im_49_who_asked_in_another_form_of_his_name_does_not_approve(governed: Agent) -> None:
    desk = governed.governance
    await desk.roles.grant("sofia", "supervisor", actor=OLGA)
    await desk.roles.grant("sofía", "supervisor", actor=OLGA)
    for form, user in {**SOFIA, "decomposed": "sofi\u0301a"}.items():
        new = await requested(governed, user)
        approver = "sofía" if form == "decomposed" else "sofia"
        with pytest.raises(ScopeError, match="another person"):
            await desk.approvals.decide(new.id, "approve", actor=approver)
        assert (await desk.approvals.show(new.id, actor=SARA)).status == "pending", form
        taken = await desk.approvals.decide(new.id, "reject", actor=approver)
        assert taken.status == "withdrawn", form
    other = await requested(governed, "sofía")
    assert (await desk.approvals.decide(other.id, "approve", actor="sofia")).status == "approved"


async def test_im_49_taking_back_without_a_role_takes_the_very_name(governed: Agent) -> None:
    desk = governed.governance
    new = await requested(governed, ANA)
    for who in ("Ana", " ana", "nobody"):
        with pytest.raises(ScopeError, match="needs the role"):
            await desk.approvals.decide(new.id, "reject", actor=who)
    assert (await desk.approvals.decide(new.id, "reject", actor=ANA)).status == "withdrawn"
    with pytest.raises(ScopeError, match="needs the role"):
        await desk.approvals.decide(new.id, "approve", actor=BOT)
    with pytest.raises(InputError, match="decided"):
        await desk.approvals.decide(new.id, "approve", actor=SARA)


@pytest.mark.parametrize(
    "name",
    [
        "re\u2065cuerdo",
        "so\U0001d159fia",
        "re\u3164cuerdo",
        "\uff32ecuerdo",
        "AUTO-APPROVE",
        "auto -approve",
        "sofia\ufe0f",
        "sofia\u2800",
    ],
)
async def test_or_11_no_role_for_a_name_that_passes_for_another(governed: Agent, name: str) -> None:
    with pytest.raises(InputError):
        await governed.governance.roles.grant(name, "supervisor", actor=OLGA)
    assert set(await governed.governance.roles.all(actor=OLGA)) == {OLGA, SARA, BOT}


# On the command line


@pytest.fixture
def bare(run_recuerdo: Command, monkeypatch: pytest.MonkeyPatch, house: House) -> Command:
    """``recuerdo`` in TENANT, where nobody has a role."""
    monkeypatch.setenv("DATABASE_URL", house.database_url)
    monkeypatch.setenv("RECUERDO_TENANT", TENANT)
    monkeypatch.setenv("RECUERDO_DATA", str(house.data))
    return run_recuerdo


@pytest.fixture
def run(bare: Command) -> Command:
    """``recuerdo`` with an owner, a supervisor and an agent."""
    assert bare("roles", "appoint", OLGA).code == 0
    for name, role in ((SARA, "supervisor"), (BOT, "agent")):
        assert bare("roles", "grant", name, role, "--actor", OLGA).code == 0
    return bare


GROUPS = ("plan", "pack", "roles", "audit", "approvals", "proposals", "evidence")


def commands() -> Iterator[tuple[str, Any]]:
    whole: Any = typer.main.get_command(app)
    yield "eval", whole.commands["eval"]
    for group in GROUPS:
        for name, command in whole.commands[group].commands.items():
            yield f"{group} {name}", command


def test_or_11_every_command_of_governance_takes_the_actor_or_its_variable() -> None:
    variables: dict[str, Any] = {}
    for name, command in commands():
        taken = [one.envvar for one in command.params if "--actor" in one.opts]
        variables[name] = taken
    assert {name for name, taken in variables.items() if not taken} == {"roles appoint", "audit verify"}
    assert all(taken in ([], ["RECUERDO_ACTOR"]) for taken in variables.values())


UNNAMED = [
    ("plan", "list"),
    ("plan", "show", "trading", "--revision", "active"),
    ("plan", "diff", "trading", "r1"),
    ("plan", "compile", "trading"),
    ("pack", "list"),
    ("pack", "show", "tarifas@aaaaaaaaaaaa"),
    ("pack", "verify"),
    ("pack", "diff", "tarifas@aaaaaaaaaaaa", "."),
    ("roles", "list"),
    ("roles", "grant", "ana", "agent"),
    ("audit", "list"),
    ("approvals", "list"),
    ("approvals", "resume", "x"),
    ("proposals", "list"),
    ("evidence", "list"),
    ("eval",),
    ("memory", "publish", "x", "--reason", "y"),
]


@pytest.mark.parametrize("arguments", UNNAMED, ids=" ".join)
def test_or_11_a_command_without_an_actor_says_both_ways_in_one_line(
    bare: Command, arguments: tuple[str, ...]
) -> None:
    result = bare(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err == "Say who acts: --actor NAME, or the environment variable RECUERDO_ACTOR.\n"


def test_or_11_the_variable_names_the_actor_and_the_option_goes_before_it(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECUERDO_ACTOR", BOT)
    assert run("roles", "list", "--json").document == {BOT: "agent", OLGA: "owner", SARA: "supervisor"}
    refused = run("audit", "list")
    assert refused.code == 1 and '"bot" may not do that: it needs the role supervisor / owner' in refused.err
    entries = run("audit", "list", "--actor", SARA, "--json").document
    assert [one["action"] for one in entries] == ["role.granted"] * 3
    assert run("roles", "list", "--actor", " ").code == 1
    assert run("roles", "list", "--actor", ANA).err.startswith('"ana" may not do that')


def test_or_12_who_runs_the_deployment_appoints_and_verifies_without_an_actor(
    bare: Command, house: House
) -> None:
    nobody = bare("plan", "list", "--actor", OLGA)
    assert nobody.code == 1 and "recuerdo roles appoint NAME" in nobody.err and nobody.err.count("\n") == 1
    assert bare("roles", "appoint", OLGA).code == 0
    assert bare("audit", "verify").code == 0
    with psycopg.connect(house.database_url, autocommit=True) as connection:
        connection.execute("delete from recuerdo.roles")
    assert bare("audit", "list", "--actor", OLGA).code == 1
    found = bare("audit", "verify")
    assert found.code == 1 and "was written, changed or deleted without it" in found.err


def test_a_35_two_drafts_or_folders_are_compared_without_tenant_or_actor(
    bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    found = bare("plan", "diff", "trading", "trading", "hotel", "--json")
    assert found.code == 0, found.err
    assert "four_eyes[apply_discount]" in {one["field"] for one in found.document}
    for name, time in (("old", "11:00"), ("new", "10:00")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "reglas.md").write_text(f"El check-out es a las {time}.\n", encoding="utf-8")
    files = bare("pack", "diff", str(tmp_path / "old"), str(tmp_path / "new"), "--json").document["files"]
    assert "+El check-out es a las 10:00." in files["reglas.md"]
    assert bare("plan", "show", "hotel").code == 0


# Evidence on the command line


PIECES: tuple[tuple[EvidenceKind, str, int | None, str | None, dict[str, Any]], ...] = (
    ("run_failed", "c-1", 3, None, {"error": "the model cannot be reached"}),
    ("tool_used", "c-2", None, "get_rates", {"status": "done"}),
    (
        "approval_decided",
        "c-1",
        3,
        "apply_discount",
        {"status": "rejected", "actor": SARA, "arguments": {"discount_pct": 12}, "reason": "demasiado"},
    ),
    ("reversal", "c-3", 3, "apply_discount", {"status": "approved", "actor": OLGA}),
    (
        "pack_conflict",
        "c-3",
        3,
        None,
        {"pack": "tarifas@0123456789ab", "rule": "salida", "rule_says": "11:00", "memory_says": "13:00"},
    ),
)


@pytest.fixture
def kept(house: House, run: Command) -> Command:
    """Five pieces of evidence, one every minute."""

    async def write(agent: Agent) -> None:
        log = EvidenceLog(agent.services.database, TENANT)
        for number, (kind, conversation, revision, tool, data) in enumerate(PIECES):
            house.clock.forward(minutes=1)
            of = Run(uuid4(), conversation, "hotel", "leo", "hotel", revision)
            await log.write(NewEvidence(kind, house.clock(), of, str(number), tool, data))

    with house.open() as agent:
        agent.run_sync(write(agent))
    return run


@pytest.fixture
def at_their_time(monkeypatch: pytest.MonkeyPatch, house: House) -> None:
    """The evidence is of 2025: by this machine's clock it would have expired."""
    monkeypatch.setattr("recuerdo.demo.clock.clock_of", lambda tenant: house.clock)


@pytest.mark.usefixtures("at_their_time")
def test_or_28_evidence_is_listed_by_kind_and_conversation(
    kept: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECUERDO_ACTOR", SARA)
    monkeypatch.setenv("COLUMNS", "300")
    every = kept("evidence", "list", "--json").document
    assert [one["kind"] for one in every] == [kind for kind, *_ in reversed(PIECES)]
    assert (every[2]["tool"], every[2]["data"]["actor"], every[2]["revision"]) == ("apply_discount", SARA, 3)
    of_kinds = kept("evidence", "list", "--kind", "tool_used", "--kind", "reversal", "--json").document
    assert [one["kind"] for one in of_kinds] == ["reversal", "tool_used"]
    in_one = kept("evidence", "list", "--conversation", "c-1", "--limit", "1", "--json").document
    assert [one["kind"] for one in in_one] == ["approval_decided"]
    lines = kept("evidence", "list").out.splitlines()
    assert lines[0].split() == ["when", "kind", "level", "plan", "and", "revision", "conversation", "what"]
    assert "hotel r3" in lines[3] and "c-1" in lines[3]
    assert "apply_discount(discount_pct=12) · rejected by sara · demasiado" in lines[3]
    assert "apply_discount · reversed by olga" in lines[2]
    assert 'the rule "salida" says 11:00; a memory says 13:00' in lines[1]
    assert "hotel draft" in lines[4] and "get_rates · done" in lines[4]
    assert "the model cannot be reached" in lines[5]
    monkeypatch.setenv("LC_ALL", "es_ES.UTF-8")
    spanish = kept("evidence", "list").out
    assert "plan y revisión" in spanish and "rechazada por sara" in spanish and "borrador" in spanish
    assert kept("evidence", "list", "--conversation", "c-9").out == "No hay evidencia así.\n"


def test_a_35_evidence_is_for_supervisors_and_a_kind_must_be_one(run: Command) -> None:
    for who in (ANA, BOT):
        refused = run("evidence", "list", "--actor", who)
        assert refused.code == 1 and "supervisor / owner" in refused.err and refused.out == ""
    unknown = run("evidence", "list", "--actor", SARA, "--kind", "nothing")
    assert unknown.code == 1 and unknown.err.count("\n") == 1
    assert all(kind in unknown.err for kind in get_args(EvidenceKind))
    assert run("evidence", "list", "--actor", SARA).out == "There is no such evidence.\n"


async def test_or_6_evidence_of_a_conversation_is_that_of_one_tenant(governed: Agent) -> None:
    of = Run(uuid4(), "c-1", "hotel", "leo", "hotel", 3)
    now = governed.services.clock()
    await EvidenceLog(governed.services.database, TENANT).write(NewEvidence("tool_used", now, of, "x", "pay"))
    which = EvidenceFilter(conversation="c-1")
    assert len(await governed.governance.evidence.list(which, actor=SARA)) == 1
    roles = Roles(governed.services.database, "t2", governed.services.keys)
    await roles.appoint_first_owner(OLGA, now)
    assert not await Governance(governed.services, "t2").evidence.list(which, actor=OLGA)


def test_or_28_going_on_with_a_request_takes_a_role(run: Command, house: House) -> None:
    with house.open() as agent:
        new = agent.run_sync(requested(agent, ANA))
    for who in (ANA, BOT):
        refused = run("approvals", "resume", str(new.id), "--actor", who)
        assert refused.code == 1 and "supervisor / owner" in refused.err and refused.out == ""
    undecided = run("approvals", "resume", str(new.id), "--actor", SARA)
    assert undecided.code == 1 and "not decided yet" in undecided.err


def test_a_35_the_roles_are_the_four() -> None:
    assert set(get_args(Role)) == {"owner", "supervisor", "agent", "user"}
