"""What one turn costs beside the model, how fast a warm installation starts, and what stays in memory.

A turn is measured as the graph runs it, node by node, and as an app sends it.

``recuerdo bench turn [--json]``. Everything runs on this machine in a data folder of its own.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from langchain_core.messages import HumanMessage

import recuerdo
from benchmarks._same_answer import SameAnswer
from recuerdo.demo import SAMPLE_USER
from recuerdo.demo.sample import load_sample
from recuerdo.graph.turn import TurnContext
from recuerdo.stores.postgres.checkpoints import thread_of

MESSAGES = (
    "¿Cómo va mi inversión?",
    "¿Qué opinas de AAPL?",
    "¿Y qué opinas del volumen?",
    "¿Debería comprar TSLA ahora?",
    "Explícame qué es el RSI",
)
WARM_UP, TURNS, STARTS = 10, 100, 5


def measure(data: Path | None) -> dict[str, Any]:
    """All figures under plain names; times in milliseconds or seconds as the name says, memory in MB."""
    with tempfile.TemporaryDirectory(prefix="recuerdo-bench-") as folder:
        os.environ["RECUERDO_DATA"] = folder
        figures = asyncio.run(_turns())
        figures["warm_start_to_reply_s"] = _starts()
    return figures


async def _turns() -> dict[str, Any]:
    model = SameAnswer(responses=["De acuerdo."])
    async with recuerdo.open_agent(model=model) as agent:
        await load_sample(agent.services, agent.services.settings.tenant, datetime.now(UTC))
        for place in range(WARM_UP):
            await _timed_turn(agent, place)
        totals, sent, nodes = [], [], defaultdict(list)
        for place in range(TURNS):
            # Alternating, so that a busy moment of the machine falls on both.
            sent.append(await _timed_send(agent, place))
            total, per_node = await _timed_turn(agent, place)
            totals.append(total)
            for name, spent in per_node.items():
                nodes[name].append(spent)
        return {
            "turns": TURNS,
            "turn_ms_p50": _percentile(totals, 50),
            "turn_ms_p95": _percentile(totals, 95),
            "send_ms_p50": _percentile(sent, 50),
            "send_ms_p95": _percentile(sent, 95),
            "node_ms_p50": {name: _percentile(spent, 50) for name, spent in nodes.items()},
            "node_ms_p95": {name: _percentile(spent, 95) for name, spent in nodes.items()},
            "python_resident_mb": round(psutil.Process().memory_info().rss / 1e6, 1),
            "postgres_resident_mb": _postgres_mb(),
        }


async def _timed_turn(agent: recuerdo.Agent, place: int) -> tuple[float, dict[str, float]]:
    """One turn of a conversation of 20: its time, and each node's with the graph's own share."""
    conversation = f"bench-{place // 20}"
    services = agent.services
    tenant = services.settings.tenant
    message = HumanMessage(MESSAGES[place % len(MESSAGES)])
    context = TurnContext(user=SAMPLE_USER, conversation=conversation, tenant=tenant)
    started = before = time.perf_counter()
    per_node: dict[str, float] = {}
    async for update in agent.graph.astream(
        {"messages": [message]},
        {"configurable": {"thread_id": thread_of(tenant, conversation)}},
        context=context,
        stream_mode="updates",
        durability="exit",
    ):
        now = time.perf_counter()
        per_node[next(iter(update))] = (now - before) * 1000
        before = now
    ended = time.perf_counter()
    per_node["checkpoint"] = (ended - before) * 1000
    return (ended - started) * 1000, per_node


async def _timed_send(agent: recuerdo.Agent, place: int) -> float:
    """One turn as an app sees it: with the reservation of its conversation, and the Turn put together."""
    started = time.perf_counter()
    await agent.send(MESSAGES[place % len(MESSAGES)], user=SAMPLE_USER, conversation=f"sent-{place // 20}")
    return (time.perf_counter() - started) * 1000


def _starts() -> float:
    """Median seconds from starting ``recuerdo chat --message`` to the end of its reply."""
    command = [sys.executable, "-m", "recuerdo", "chat", "--message", MESSAGES[0]]
    spent = []
    for _ in range(STARTS):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        spent.append(time.perf_counter() - started)
    return round(statistics.median(spent), 2)


def _postgres_mb() -> float:
    """Proportional memory of every server process under this one's data folder."""
    folder = os.environ["RECUERDO_DATA"]
    servers = [p for p in psutil.process_iter(["name"]) if "postgres" in (p.info["name"] or "")]
    ours = [p for p in servers if _cwd(p).startswith(folder)]
    return round(sum(p.memory_full_info().pss for p in ours) / 1e6, 1)


def _cwd(process: psutil.Process) -> str:
    try:
        return str(process.cwd())
    except psutil.Error:
        return ""


def _percentile(values: list[float], percent: int) -> float:
    return round(statistics.quantiles(values, n=100, method="inclusive")[percent - 1], 2)
