"""The governance of one tenant, as the commands use it: opened without a plan in force, so that one that is refused
does not stand in the way of mending it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from recuerdo.cli.console import checked_name, quiet_logs

if TYPE_CHECKING:
    from recuerdo.governance import Governance

T = TypeVar("T")


def at_desk(tenant: str | None, work: Callable[["Governance"], Awaitable[T]]) -> T:
    """Open the governance of ``tenant``, None: of the settings', and do ``work`` with it."""
    quiet_logs()
    checked_name("--tenant", tenant)
    return asyncio.run(_at_desk(tenant, work))


async def _at_desk(tenant: str | None, work: Callable[["Governance"], Awaitable[T]]) -> T:
    from recuerdo.demo.clock import clock_of
    from recuerdo.governance import Governance
    from recuerdo.graph.services import Parts, open_services
    from recuerdo.nodes.call_llm.offline import OfflineResponder
    from recuerdo.stores.plans import load_plan
    from recuerdo.stores.settings import Settings

    settings = await asyncio.to_thread(Settings.load)
    tenant = tenant or settings.tenant
    any_plan = await asyncio.to_thread(load_plan, "trading")
    parts = Parts(any_plan, OfflineResponder(), clock=clock_of(tenant), tenant=tenant)
    async with open_services(settings, parts) as services:
        return await work(Governance(services, tenant))
