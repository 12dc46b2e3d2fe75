"""Whatever is given to ``agent.governance`` gets a short error of ours, and changes nothing (OR-11, IM-52)."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from recuerdo.agent import Agent
from recuerdo.governance import Governance
from recuerdo.state.amendment import ToolDeactivated
from recuerdo.state.errors import InputError, RecuerdoError, SettingsError
from recuerdo.state.plan import Plan
from recuerdo.stores.plans import Revision, load_plan
from recuerdo.stores.postgres.approvals import Approval, Approvals, NewApproval
from recuerdo.stores.postgres.evidence import EvidenceFilter, Run
from recuerdo.stores.postgres.governance_audit import GovernanceAudit
from tests.recuerdo.approved import propose
from tests.recuerdo.carlos import TENANT, House
from tests.recuerdo.conftest import OpenAgent
from tests.scripted import ScriptedModel

OLGA, SARA, LEO = "olga", "sara", "leo"

ODD: Mapping[str, Any] = {
    "None": None,
    "5": 5,
    "1.5": 1.5,
    "nothing": "",
    "NUL": "tra\0ding",
    "half a character": "tra\ud800ding",
    "5,000 letters": "x" * 5000,
    "-1": -1,
    "10**30": 10**30,
    "10**5000": 10**5000,
    "bytes": b"trading",
    "True": True,
    "a list": [5],
    "a map": {},
}

TEXTS = {"nothing", "NUL", "half a character", "5,000 letters"}
TAKEN = {
    "limit": {"5"},
    "offset": {"5"},
    "before": {"5"},
    "archived": {"True"},
    "all_tools": {"True"},
    # What cannot be kept of a reason is taken out, and it is cut.
    "reason": TEXTS,
}
"""Odd values that an argument takes all the same, by its name."""


@dataclass
class Desk:
    """What can be asked of in a tenant: each method of ``governance`` can be called with these."""

    agent: Agent
    revision: Revision
    request: Approval
    proposal: str
    pack: str
    folder: Path

    @property
    def governance(self) -> Governance:
        return self.agent.governance

    def given(self, part: str, method: str) -> dict[str, Any]:
        """Sound arguments of what has no default."""
        every = {
            "actor": SARA,
            "approval_id": self.request.id,
            "decision": "reject",
            "call": uuid4(),
            "outcome": "happened",
            "proposal": self.proposal,
            "revision": self.revision if (part, method) in OF_REVISIONS else "r1",
            "draft": self.revision.plan,
            "before": "r1",
            "reference": self.pack,
            "folder": self.folder,
            "user": LEO,
            "role": "agent",
        }
        needed = {name for name, one in parameters(part, method).items() if one.default is one.empty}
        return {name: every[name] for name in needed}


OF_REVISIONS = {
    ("plans", "removed_types"),
    ("evaluations", "newest"),
    ("evaluations", "before_activation"),
}


def parts() -> dict[str, type]:
    found = inspect.getmembers(Governance, lambda one: isinstance(one, property))
    return {name: inspect.signature(part.fget).return_annotation for name, part in found}


def methods(part: str) -> list[str]:
    found = inspect.getmembers(parts()[part], inspect.isfunction)
    return [name for name, _ in found if not name.startswith("_")]


def parameters(part: str, method: str) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(getattr(parts()[part], method)).parameters)
    del found["self"]
    return found


def odd_values(name: str, parameter: inspect.Parameter) -> dict[str, Any]:
    """What the argument must refuse."""
    taken = TAKEN.get(name, set())
    if parameter.annotation in (int, int | None):
        taken = {"5"}
    if parameter.default is None:
        taken = taken | {"None"}
    return {label: value for label, value in ODD.items() if label not in taken}


async def pending(agent: Agent) -> Approval:
    run = Run(uuid4(), f"conv-{uuid4()}", "trading", "user-123", "trading", 1)
    new = NewApproval(uuid4(), run, "get_quote", {"symbol": "AAPL"}, agent.services.clock())
    approvals = Approvals(agent.services.database, TENANT, agent.services.keys)
    await approvals.request([new])
    return await approvals.get(new.id)


@pytest.fixture
async def desk(open_agent: OpenAgent, tmp_path: Path) -> Desk:
    agent = await open_agent(model=ScriptedModel(replies=["Bien."]))
    governance, services = agent.governance, agent.services
    await governance.roles.appoint_first_owner(OLGA)
    await governance.roles.grant(SARA, "owner", actor=OLGA)
    folder = tmp_path / "tarifas"
    folder.mkdir()
    (folder / "reglas.md").write_text("El check-out es a las 11:00.\n", encoding="utf-8")
    pack = await governance.packs.build(folder, actor=SARA)
    change = ToolDeactivated(tool="get_quote")
    audit = GovernanceAudit(services.database, TENANT, services.keys)
    async with services.database.tenant(TENANT) as connection:
        proposal = await propose(connection, TENANT, "trading", change, services.clock(), audit)
    revision = (await governance.plans.show(actor=SARA)).revision
    return Desk(agent, revision, await pending(agent), proposal, pack.reference, folder)


@pytest.mark.parametrize("part", parts())
async def test_or_11_no_odd_argument_of_governance_gets_further_than_a_short_error(
    desk: Desk, part: str
) -> None:
    before = await desk.governance.audit.entries(actor=SARA, limit=1)
    taken = []
    for method in methods(part):
        call, given = getattr(getattr(desk.governance, part), method), desk.given(part, method)
        for name, parameter in parameters(part, method).items():
            for label, value in odd_values(name, parameter).items():
                try:
                    await call(**{**given, name: value})
                except RecuerdoError as error:
                    assert 0 < len(str(error)) < 600, (method, name, label)
                else:
                    taken.append((method, name, label))
    assert taken == []
    assert await desk.governance.audit.entries(actor=SARA, limit=1) == before
    assert (await desk.governance.approvals.show(desk.request.id, actor=SARA)).status == "pending"
    assert (await desk.governance.proposals.show(desk.proposal, actor=SARA)).status == "pending"


async def test_or_11_sound_arguments_of_the_same_calls_are_taken(desk: Desk) -> None:
    """So that what is refused above is refused for the odd argument alone."""
    refused = {
        ("plans", "activate"): "active already",
        ("plans", "rollback"): "no revision before",
        ("plans", "lift"): "not under an emergency stop",
        ("approvals", "reverse"): "not approved",
        ("approvals", "settle"): "unknown",
        ("evaluations", "run"): "no eval case",
        ("evaluations", "run_draft"): "no eval case",
        ("roles", "appoint_first_owner"): "owner",
    }
    for part in parts():
        for method in methods(part):
            call = getattr(getattr(desk.governance, part), method)(**desk.given(part, method))
            if (part, method) in refused:
                with pytest.raises(RecuerdoError, match=refused[part, method]):
                    await call
            else:
                await call


@pytest.mark.parametrize("label", sorted(TEXTS))
async def test_or_22_an_odd_reason_is_kept_as_far_as_it_can_be(desk: Desk, label: str) -> None:
    governance = desk.governance
    decided = await governance.approvals.decide(desk.request.id, "approve", actor=SARA, reason=ODD[label])
    proposed = await governance.proposals.decide(desk.proposal, "reject", actor=SARA, reason=ODD[label])
    for kept in (decided.reason, proposed.reason):
        assert kept is None if label == "nothing" else kept and len(kept) <= 1000 and "\0" not in kept
    await governance.approvals.reverse(desk.request.id, actor=SARA, reason=ODD[label])
    assert (await governance.audit.verify()).fault is None


@pytest.mark.parametrize(
    "change",
    [
        {"kinds": ("nothing",)},
        {"kinds": (5,)},
        {"kinds": "run_failed"},
        {"tool": "a\0b"},
        {"tool": 5},
        {"conversation": ""},
        {"turn": "x"},
        {"since": "2025-12-05"},
        {"until": datetime(2025, 12, 5)},
    ],
    ids=str,
)
async def test_or_22_an_odd_filter_of_evidence_is_refused(desk: Desk, change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        await desk.governance.evidence.list(replace(EvidenceFilter(), **change), actor=SARA)


async def test_ids_are_taken_as_texts_too(desk: Desk) -> None:
    shown = await desk.governance.approvals.show(str(desk.request.id), actor=SARA)
    assert shown == desk.request
    with pytest.raises(InputError, match="There is no request"):
        await desk.governance.approvals.show(uuid4(), actor=SARA)


# The emergency stop


async def test_im_52_a_stop_of_a_plan_that_is_not_there_stops_nothing_and_says_so(desk: Desk) -> None:
    plans = desk.governance.plans
    for slip in ("hotell", "trading2"):
        with pytest.raises(SettingsError, match=f"no plan named {slip}. Use one of these: hotel, trading"):
            await plans.stop(actor=SARA, name=slip, all_tools=True)
        assert await plans.stopped(slip, actor=SARA) is None
    with pytest.raises(InputError, match="is no name of a plan"):
        await plans.stop(actor=SARA, name="")
    assert await plans.stopped(actor=SARA) is None
    assert (await desk.governance.audit.verify()).fault is None


async def test_im_52_every_plan_that_is_known_here_can_be_stopped(desk: Desk, open_agent: OpenAgent) -> None:
    plans, services = desk.governance.plans, desk.agent.services
    own = load_plan("trading").model_copy(update={"name": "mine"})
    await plans.compile(own, actor=SARA)
    # The draft of another process, whose call waits here.
    run = Run(uuid4(), "conv-1", "draft", "user-123", "draft", None)
    new = NewApproval(uuid4(), run, "get_quote", {"symbol": "AAPL"}, services.clock())
    await Approvals(services.database, TENANT, services.keys).request([new])
    for name in ("trading", "hotel", "mine", "draft"):
        stop = await plans.stop(actor=SARA, name=name)
        assert await plans.stopped(name, actor=SARA) == stop
    # An agent's own plan, a draft that nothing is known of yet.
    draft: Plan = load_plan("trading").model_copy(update={"name": "unheard_of"})
    agent = await open_agent(plan=draft, model=ScriptedModel(replies=["Bien."]))
    for name in (None, "unheard_of"):
        await agent.governance.plans.stop(actor=SARA, name=name)
    assert await agent.governance.plans.stopped("unheard_of", actor=SARA)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "", "Trading", "\ud800"])
async def test_or_20_no_agent_opens_under_what_is_no_name_of_a_plan(house: House, name: str) -> None:
    with pytest.raises(RecuerdoError) as refused:
        async with house.open(plan=name):
            pass
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "", "Tarifas", 5])
async def test_or_14_a_pack_has_a_name_or_is_refused(desk: Desk, name: Any) -> None:
    with pytest.raises(SettingsError) as refused:
        await desk.governance.packs.build(desk.folder, actor=SARA, name=name)
    assert len(str(refused.value)) < 300 and "name of a pack" in str(refused.value)
    with pytest.raises(SettingsError, match="has no pack"):
        await desk.governance.packs.show(f"{name}@aaaaaaaaaaaa", actor=SARA)
