"""The learning graph: a sweep over a tenant's evidence in three steps, and the worker's job that runs it (OR-23)."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from recuerdo.graph.turn import Provide
from recuerdo.nodes.learning import collect, distil, propose
from recuerdo.nodes.services import Services
from recuerdo.state.errors import BusyError
from recuerdo.state.learning import LearningState
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.sweeps import SweepClaim, Sweeps, tenants_with_evidence
from recuerdo.stores.worker import Job

_log = logging.getLogger(__name__)
sentences = load_sentences(__package__, "learning_sentences.yaml")

LearningGraph = CompiledStateGraph[LearningState, Any, LearningState, LearningState]

LOOKS_EVERY = timedelta(minutes=1)
"""How often a worker looks whether a sweep is due."""

Step = Callable[[LearningState, Services], Awaitable[LearningState]]


def build_learning_graph(provide: Provide) -> LearningGraph:
    """Compile the sweep over services that ``provide`` gives. It holds counts and findings, no piece of evidence."""
    graph = StateGraph(LearningState)
    for step in (collect, distil, propose):
        graph.add_node(step.__name__, _bound(step, provide))
    graph.add_edge(START, "collect")
    graph.add_edge("collect", "distil")
    graph.add_edge("distil", "propose")
    graph.add_edge("propose", END)
    return graph.compile(name="recuerdo_learning")


def _bound(step: Step, provide: Provide) -> Callable[..., Awaitable[LearningState]]:
    async def run(state: LearningState) -> LearningState:
        return await step(state, await provide())

    run.__name__ = step.__name__
    return run


class LearningHub:
    """Runs the sweeps that are due, each in one of however many workers there are."""

    def __init__(self, services: Services) -> None:
        async def provide() -> Services:
            return services

        self._services = services
        self._graph = build_learning_graph(provide)

    async def run_due(self, now: datetime, *, tenant: str | None = None, spared: Sequence[str] = ()) -> int:
        """Run what is due at ``now``, of one tenant or (None) of every one but the spared; returns how many ran.

        A sweep that fails is recorded and does not stop those of others.
        """
        return sum([await self._run_tenant(one, now) for one in await self._tenants(tenant, spared)])

    async def sweep(self, tenant: str, now: datetime) -> Sequence[str]:
        """Run a sweep at once; returns the ids of new proposals. The one that is due next stays due.

        Raises BusyError while another one runs.
        """
        sweeps = Sweeps(self._services.database, tenant)
        await sweeps.prepare(now)
        claim = await sweeps.claim(now, early=True)
        if claim is None:
            raise BusyError(sentences("sweep_runs"))
        return await self._run(sweeps, claim, tenant, now)

    async def _tenants(self, tenant: str | None, spared: Sequence[str]) -> list[str]:
        if tenant is not None:
            return [tenant]
        known = {*await tenants_with_evidence(self._services.database), self._services.settings.tenant}
        return sorted(known - set(spared))

    async def _run_tenant(self, tenant: str, now: datetime) -> bool:
        sweeps = Sweeps(self._services.database, tenant)
        await sweeps.prepare(now)
        claim = await sweeps.claim(now)
        if claim is None:
            return False
        try:
            await self._run(sweeps, claim, tenant, now)
        except Exception as error:
            # Only the kind of error: its text may quote what users wrote.
            _log.warning("learning: a sweep failed: %s", type(error).__name__)
        return True

    async def _run(self, sweeps: Sweeps, claim: SweepClaim, tenant: str, now: datetime) -> Sequence[str]:
        try:
            found = await self._graph.ainvoke(LearningState(tenant=tenant, now=now.isoformat()))
        except Exception as error:
            await sweeps.fail(claim, now, type(error).__name__)
            raise
        made: list[str] = found["proposals"]
        await sweeps.complete(claim, now, evidence=found["evidence"], proposals=len(made))
        return made


def learning_job(services: Services, *, tenant: str | None = None, spared: Sequence[str] = ()) -> Job:
    """The sweeps of one tenant, or of all: looked for every minute, run when they are due."""
    hub = LearningHub(services)
    return Job(
        f"learning:{tenant or ''}", LOOKS_EVERY, lambda now: hub.run_due(now, tenant=tenant, spared=spared)
    )
