"""Evidence as an agent leaves it: requests of four eyes that people decided, uses of tools, ambiguous runs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from langchain_core.tools import StructuredTool

from recuerdo.agent import Agent
from recuerdo.nodes.services import Services
from recuerdo.state.plan import Plan
from recuerdo.stores.plans import load_plan
from recuerdo.stores.postgres.approvals import Approval, Approvals, Decision, NewApproval
from recuerdo.stores.postgres.evidence import EvidenceLog, NewEvidence, Run
from recuerdo.stores.postgres.roles import Roles
from tests.recuerdo.carlos import TENANT

OWNER, CLERK, GUEST = "olga", "sofia", "user-123"
IDLE = "order_taxi"
TOOL = "apply_discount"


async def apply_discount(discount_pct: float, nights: int, reservation: str = "") -> str:
    """Give a discount on a stay."""
    return "done"


async def get_rates(room: str) -> str:
    """Say what a room costs."""
    return "90 EUR"


async def order_taxi(address: str, minutes: int = 10) -> str:
    """Order a taxi to an address, in so many minutes."""
    return "ordered"


def tools() -> list[StructuredTool]:
    reads = StructuredTool.from_function(coroutine=get_rates, metadata={"read_only": True})
    return [
        StructuredTool.from_function(coroutine=order_taxi),
        StructuredTool.from_function(coroutine=apply_discount),
        reads,
    ]


def plan_of_house(**changes: Any) -> Plan:
    return load_plan("trading").model_copy(update={"four_eyes": (TOOL,), **changes})


async def appoint(services: Services, tenant: str = TENANT) -> None:
    """An owner and a supervisor."""
    now = services.clock()
    roles = Roles(services.database, tenant, services.keys)
    await roles.appoint_first_owner(OWNER, now)
    await roles.grant(CLERK, "supervisor", actor=OWNER, at=now)


def run_of(plan: str = "trading", turn: UUID | None = None, conversation: str = "conv-456") -> Run:
    return Run(turn or uuid4(), conversation, plan, GUEST, plan, 1)


def minor(number: int) -> dict[str, Any]:
    """At most 10 %, at least 5 nights."""
    return {"discount_pct": 10 - number % 4, "nights": 5 + number % 5, "reservation": f"R-{number}"}


async def decide(
    services: Services,
    arguments: Mapping[str, Any],
    decision: Decision = "approve",
    *,
    at: datetime | None = None,
    run: Run | None = None,
    tenant: str = TENANT,
) -> Approval:
    """One request, and what the supervisor said."""
    now = at or services.clock()
    approvals = Approvals(services.database, tenant, services.keys)
    key = uuid4()
    await approvals.request([NewApproval(key, run or run_of(), TOOL, arguments, now)])
    return await approvals.decide(key, decision, actor=CLERK, at=now)


async def approve_minor(services: Services, count: int, *, tenant: str = TENANT) -> list[UUID]:
    return [(await decide(services, minor(number), tenant=tenant)).id for number in range(count)]


async def use(services: Services, tool: str, at: datetime, count: int = 1, plan: str = "trading") -> None:
    log = EvidenceLog(services.database, TENANT)
    pieces = [
        NewEvidence("tool_used", at, run_of(plan), f"{tool} {at} {number} {uuid4()}", tool)
        for number in range(count)
    ]
    await log.write(*pieces)


async def flag(services: Services, run: Run, message: str = "¿Y eso?") -> None:
    """The run's intent was not clear."""
    data = {"intent": "other", "confidence": 0.2, "message": message}
    piece = NewEvidence("ambiguity", services.clock(), run, str(run.turn), data=data)
    await EvidenceLog(services.database, TENANT).write(piece)


async def sweep(agent: Agent) -> list[Any]:
    """What a sweep proposes now."""
    return list(await agent.governance.proposals.sweep(actor=CLERK))
