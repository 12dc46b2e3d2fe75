"""Plans of a tenant with an owner, a supervisor, an agent and an ordinary user."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recuerdo.state.amendment import Amendment, ApprovedProposal
from recuerdo.state.plan import Plan, read_plan
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.plans import PlanOffice
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.roles import Roles
from tests.recuerdo.approved import approved

NOW = datetime(2025, 12, 5, 10, 0, tzinfo=UTC)
TENANT = "t1"

Approve = Callable[[Amendment], Awaitable[ApprovedProposal]]


@pytest.fixture
def draft() -> Plan:
    return read_plan(
        "name: hotel\nlanguage: es\nrole: Recepción.\ninstructions: [Sé breve.]\n"
        "disclaimer: {es: x, en: x}\ntools: [get_quote]\n",
        "hotel",
    )


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
async def office(database: Database, keys: KeyFolder) -> PlanOffice:
    roles = Roles(database, TENANT, keys)
    await roles.appoint_first_owner("olga", NOW)
    await roles.grant("sara", "supervisor", actor="olga", at=NOW)
    await roles.grant("bot", "agent", actor="olga", at=NOW)
    return PlanOffice(database, TENANT, keys)


@pytest.fixture
def approve(office: PlanOffice, database: Database, keys: KeyFolder) -> Approve:
    """Has a proposal for the hotel made, and approved by the supervisor."""

    async def of(change: Amendment) -> ApprovedProposal:
        return await approved(database, keys, TENANT, "hotel", change, actor="sara", at=NOW)

    return of
