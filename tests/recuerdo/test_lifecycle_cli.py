"""On the command line: a proposal left out and taken in again, and a call whose outcome is settled."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from recuerdo.agent import Agent
from recuerdo.state.amendment import EvalCaseAdded, ToolDeactivated
from recuerdo.state.plan import EvalCase, Expectation
from recuerdo.stores.postgres.evidence import Run
from recuerdo.stores.postgres.governance_audit import GovernanceAudit
from recuerdo.stores.postgres.tool_calls import NewToolCall, ToolCalls
from recuerdo.stores.postgres.turns import NewTurn, TurnLog
from tests.recuerdo.approved import approved, propose
from tests.recuerdo.carlos import House
from tests.recuerdo.command import Command
from tests.recuerdo.test_governance_cli import one_line
from tests.recuerdo.test_governance_cli import run as run  # a fixture
from tests.stores.postgres.conftest import AT_ONCE, LEASE

TENANT = "t9"
OFF = ToolDeactivated(tool="get_quote")
CASE = EvalCaseAdded(
    case=EvalCase(id="late", messages=("Soy [persona 1].", "¿Y eso?"), expect=Expectation(says=("11:00",)))
)


async def _proposal(agent: Agent) -> str:
    services = agent.services
    one = await approved(
        services.database, services.keys, TENANT, "trading", OFF, actor="sara", at=services.clock()
    )
    return one.proposal


async def _pending_case(agent: Agent) -> str:
    services = agent.services
    audit = GovernanceAudit(services.database, TENANT, services.keys)
    async with services.database.tenant(TENANT) as connection:
        return await propose(connection, TENANT, "trading", CASE, services.clock(), audit)


async def _lost_call(agent: Agent) -> UUID:
    """A call of a turn that broke off."""
    database, now, turn, key = agent.services.database, agent.services.clock(), uuid4(), uuid4()
    log = TurnLog(database, TENANT)
    new = NewTurn(turn, "c", "trading", "leo", None, "live", now, "es", "m-1", "Hola")
    await log.begin(new, lease=LEASE, wait=AT_ONCE)
    call = NewToolCall(key, Run(turn, "c", "trading", "leo", "trading", 1), "pay", "foreign", now)
    await ToolCalls(database, TENANT).claim(call)
    await log.fail(turn, now, "gone")
    return key


def in_agent(house: House, work: Any) -> str:
    """What ``work`` gives in an agent of the tenant, as a text."""
    with house.open(tenant=TENANT) as agent:
        return str(agent.run_sync(work(agent)))


def test_im_48_what_is_left_out_is_said_and_taken_in_again_by_its_id(run: Command, house: House) -> None:
    key = in_agent(house, _proposal)
    out = run("plan", "compile", "trading", "--without", "get_quote", "--json").document
    assert (out["included"], out["excluded"]) == ([], [key])
    assert f"leaves these proposals out: {key}" in run("plan", "compile", "trading").out
    shown = run("proposals", "show", key)
    assert f"Excluded since {out['revision']}" in shown.out and f"--include {key}" in shown.out
    again = run("plan", "compile", "trading", "--include", key, "--activate")
    assert f"carries these proposals: {key} (get_quote)" in again.out
    standing = run("proposals", "show", key, "--json").document["standing"]
    assert standing["next"] == "carried" and standing["in_force"] == standing["since"]
    assert "In force in r" in run("proposals", "show", key).out


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [("--include", "x", "“x” cannot enter the plan trading"), ("--without", "x", "no proposal called “x”")],
)
def test_or_21_what_cannot_come_in_or_go_out_is_said_in_one_line(
    run: Command, house: House, option: str, name: str, message: str
) -> None:
    key = in_agent(house, _proposal)
    refused = run("plan", "compile", "trading", option, name)
    assert one_line(refused) and message in refused.err and key in refused.err
    both = run("plan", "compile", "trading", "--include", key, "--without", key)
    assert one_line(both) and "at once" in both.err


def test_or_34_who_decides_on_a_case_sees_every_word_that_would_be_kept(run: Command, house: House) -> None:
    shown = run("proposals", "show", in_agent(house, _pending_case)).out
    assert "» Soy [persona 1]." in shown and "» ¿Y eso?" in shown


def test_or_22_an_unknown_outcome_is_settled_once(run: Command, house: House) -> None:
    key = in_agent(house, _lost_call)
    settle = ("approvals", "settle", key, "--outcome", "did_not_happen")
    assert key in run("approvals", "list").out
    refused = run(*settle, "--actor", "leo")
    assert one_line(refused) and "needs the role" in refused.err
    document = run(*settle, "--reason", "no está en el extracto", "--json").document
    assert (document["settled"], document["settled_by"]) == ("did_not_happen", "sara")
    assert key not in run("approvals", "list").out
    assert run("approvals", "list", "--json").document["unknown_outcomes"] == []
    for call, message in ((key, "settled before"), ("nonsense", "recuerdo approvals list shows")):
        again = run("approvals", "settle", call, "--outcome", "happened")
        assert one_line(again) and message in again.err
    entries = run("audit", "list", "--subject", key, "--json").document
    assert [(one["action"], one["after"]) for one in entries] == [("call.settled", "did_not_happen")]
