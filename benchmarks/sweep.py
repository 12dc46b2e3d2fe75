"""How long a sweep of the Learning Hub takes, and what memory (governance, what is measured).

``recuerdo bench sweep [--json]``. 100,000 made pieces of evidence of 80 days in one tenant: decisions on four tools, a
third of them of types that separate, uses of tools, failures. Then one sweep over all, one over nothing new, and
beside it the memory of Python at its highest while 10,000 and 100,000 pieces are swept.
"""

import asyncio
import resource
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import recuerdo
from recuerdo.agent import Agent
from recuerdo.graph.learning import LearningHub
from recuerdo.stores.plans import load_plan

PIECES = 100_000
SMALL = 10_000

# Numbers as a hotel's people would give them; half of the pieces are decisions.
_FILL = """
insert into recuerdo.evidence (tenant, id, kind, at, turn_id, conversation, assistant, user_id, plan, revision, tool,
    data, expires_at)
select %(tenant)s, gen_random_uuid(),
    case when n %% 2 = 0 then 'approval_decided' when n %% 4 = 1 then 'tool_used' else 'run_failed' end,
    now() - n * (interval '80 days' / %(pieces)s), gen_random_uuid(), 'c' || n %% 1000, 'bench', 'u' || n %% 100,
    'bench', null, (array['apply_discount', 'create_reservation', 'refund', 'upgrade'])[1 + (n / 2) %% 4],
    jsonb_build_object('approval', gen_random_uuid()::text, 'status',
        case when (n / 8) %% 3 = 0 then 'rejected' else 'approved' end,
        'arguments', jsonb_build_object('reservation', 'R-' || n, 'kind', 'k' || (n / 8) %% 3,
            'discount_pct', n %% 11, 'nights', 5 + n %% 9)),
    now() + interval '90 days'
from generate_series(1, %(pieces)s::int) as n
"""


def measure(data: Path | None) -> dict[str, Any]:
    """Seconds of the sweeps, pieces and proposals; megabytes at most on top of what stood before."""
    return asyncio.run(_measure())


async def _measure() -> dict[str, Any]:
    async with _agent() as agent:
        await _fill(agent, "warm", 2000)
        await _sweep(agent, "warm")
        small = await _peak(agent, "small", SMALL)
        large = await _peak(agent, "large", PIECES)
        await _fill(agent, "bench", PIECES)
        seconds, proposals = await _sweep(agent, "bench")
        again, none = await _sweep(agent, "bench")
        linked = await _linked(agent)
    return {
        "pieces": PIECES,
        "sweep_s": round(seconds, 2),
        "proposals": proposals,
        "pieces_linked": linked,
        "sweep_again_s": round(again, 2),
        "proposals_again": none,
        "python_peak_mb_10000": small,
        "python_peak_mb_100000": large,
        "process_peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


@asynccontextmanager
async def _agent() -> AsyncIterator[Agent]:
    with tempfile.TemporaryDirectory(prefix="recuerdo-bench-") as folder:
        settings = recuerdo.Settings(_env_file=None, data=Path(folder), database_url=None)  # type: ignore[call-arg]
        plan = load_plan("trading").model_copy(update={"name": "bench"})
        async with recuerdo.open_agent(settings, plan=plan) as agent:
            yield agent


async def _fill(agent: Agent, tenant: str, pieces: int) -> None:
    async with agent.services.database.tenant(tenant) as connection:
        await connection.execute(_FILL, {"tenant": tenant, "pieces": pieces})
    async with agent.services.database.connection() as connection:
        await connection.execute("analyze recuerdo.evidence")


async def _sweep(agent: Agent, tenant: str) -> tuple[float, int]:
    hub = LearningHub(agent.services)
    started = time.perf_counter()
    made = await hub.sweep(tenant, agent.services.clock())
    return time.perf_counter() - started, len(made)


async def _peak(agent: Agent, tenant: str, pieces: int) -> float:
    """Megabytes that Python holds at most during a sweep, on top of what it held before."""
    await _fill(agent, tenant, pieces)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await _sweep(agent, tenant)
        return round((tracemalloc.get_traced_memory()[1] - before) / 2**20, 1)
    finally:
        tracemalloc.stop()


async def _linked(agent: Agent) -> int:
    async with agent.services.database.tenant("bench") as connection:
        cursor = await connection.execute("select count(*) as pieces from recuerdo.proposal_evidence")
        row = await cursor.fetchone()
    return int(row["pieces"]) if row else 0
