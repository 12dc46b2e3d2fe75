"""``recuerdo approvals list``: what a person reads before he decides (IM-49, OR-33)."""

from uuid import uuid4

from recuerdo.agent import Agent
from recuerdo.stores.postgres.approvals import Approvals, NewApproval
from recuerdo.stores.postgres.evidence import Run
from tests.recuerdo.carlos import House
from tests.recuerdo.command import Command
from tests.recuerdo.test_governance_cli import one_line
from tests.recuerdo.test_governance_cli import run as run  # a fixture

TENANT = "t9"


async def _ask(agent: Agent) -> str:
    services = agent.services
    approvals = Approvals(services.database, TENANT, services.keys)
    turn = Run(uuid4(), "c", "trading", "leo", "trading", 1)
    arguments = {"symbol": "A, quantity=5", "quantity": 500}
    new = NewApproval(uuid4(), turn, "pay", arguments, services.clock())
    await approvals.request([new])
    return str(new.id)


def test_im_49_a_text_does_not_pass_for_other_arguments(run: Command, house: House) -> None:
    with house.open(tenant=TENANT) as agent:
        key = agent.run_sync(_ask(agent))
    listed = "".join(run("approvals", "list").out.split())
    assert key[:8] in listed and 'symbol="A,' in listed and 'quantity=5",quantity=500' in listed


def test_or_33_an_empty_list_is_no_error(run: Command) -> None:
    waiting, approved = run("approvals", "list"), run("approvals", "list", "--status", "approved")
    assert (waiting.code, waiting.out) == (0, "No call waits for a decision.\n")
    assert (approved.code, approved.out) == (0, "No request is in that state.\n")


def test_im_49_who_has_no_role_does_not_learn_which_requests_there_are(run: Command, house: House) -> None:
    with house.open(tenant=TENANT) as agent:
        key = agent.run_sync(_ask(agent))
    for request in (key, str(uuid4())):
        for command in ("approve", "reject", "resume", "show", "reverse"):
            refused = run("approvals", command, request, "--actor", "eve")
            assert one_line(refused) and "needs the role" in refused.err
