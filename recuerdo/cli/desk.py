"""The governance of one tenant, as the commands use it: opened without a plan in force, so that one that is refused
does not stand in the way of mending it, and nothing is signed for somebody who has no role."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from recuerdo.cli.console import checked_name, quiet_logs

if TYPE_CHECKING:
    from recuerdo.governance import Governance
    from recuerdo.nodes.services import Services

T = TypeVar("T")


def at_desk(tenant: str | None, work: Callable[["Governance"], Awaitable[T]], *, model: bool = False) -> T:
    """Open the governance of ``tenant``, None: of the settings', and do ``work`` with it.

    With ``model`` the one of the settings answers; else none is needed.
    """

    async def at_governance() -> T:
        from recuerdo.governance import Governance

        async with open_desk(tenant, model=model) as (services, name):
            return await work(Governance(services, name))

    return asyncio.run(at_governance())


@asynccontextmanager
async def open_desk(tenant: str | None, *, model: bool = False) -> AsyncIterator[tuple["Services", str]]:
    """The services as :func:`at_desk` opens them, and the tenant's name."""
    from recuerdo.demo.clock import clock_of
    from recuerdo.graph.services import Parts, open_services
    from recuerdo.nodes.call_llm.offline import OfflineResponder
    from recuerdo.stores.plans import load_plan
    from recuerdo.stores.settings import Settings

    quiet_logs()
    checked_name("--tenant", tenant)
    settings = await asyncio.to_thread(Settings.load)
    tenant = tenant or settings.tenant
    any_plan = await asyncio.to_thread(load_plan, "trading")
    answers = None if model else OfflineResponder()
    parts = Parts(any_plan, answers, clock=clock_of(tenant), tenant=tenant)
    async with open_services(settings, parts) as services:
        yield services, tenant
