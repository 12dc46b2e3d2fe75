"""What it costs to count, compress and write a request (issue of the context engine, "Cost").

``recuerdo bench compress [--json]``. First ``check_tokens`` + ``compress`` + ``build_prompt`` alone, over a
history of 20 messages and 60 further blocks that do not fit; then the same steps within one conversation of
1,000 turns, where they must not grow.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

import recuerdo
from benchmarks._same_answer import SameAnswer
from recuerdo.demo import SAMPLE_USER
from recuerdo.demo.sample import load_sample
from recuerdo.graph.turn import TurnContext
from recuerdo.nodes.build_context.history import Past, history_blocks, present_blocks
from recuerdo.nodes.build_context.role import role_blocks
from recuerdo.nodes.build_prompt.node import build_prompt
from recuerdo.nodes.call import Call, Caller
from recuerdo.nodes.check_tokens import check_tokens
from recuerdo.nodes.compress import compress
from recuerdo.nodes.services import Services
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung
from recuerdo.state.turn import TurnState, TurnUpdate, Work, merge_work
from recuerdo.stores.postgres.checkpoints import thread_of

RUNS, WARM_UP = 200, 20
MESSAGES, BLOCKS = 20, 60
LINES = 8
TURNS, EARLY, WINDOW = 1_000, 10, 9
STEPS = ("check_tokens", "compress", "build_prompt")
QUESTIONS = ("¿Cómo va mi inversión?", "¿Qué opinas de AAPL?", "¿Y el volumen?", "Explícame qué es el RSI")

ANSWER = "El precio está en su rango y el volumen es algo mayor que ayer; conviene esperar."


def measure(data: Path | None) -> dict[str, Any]:
    """Milliseconds: of the three steps at 20 messages and 60 blocks, and around turns 10 and 1,000."""
    with tempfile.TemporaryDirectory(prefix="recuerdo-bench-") as folder:
        os.environ["RECUERDO_DATA"] = folder
        return asyncio.run(_figures())


async def _figures() -> dict[str, Any]:
    async with recuerdo.open_agent(model=SameAnswer(responses=[ANSWER])) as agent:
        await load_sample(agent.services, agent.services.settings.tenant, datetime.now(UTC))
        spent, steps = await _compressing(agent.services)
        turns = [await _turn(agent, place) for place in range(TURNS)]
    return {
        "messages": MESSAGES,
        "blocks": BLOCKS,
        "steps_down": steps,
        "compress_ms_p50": round(statistics.median(spent), 3),
        "compress_ms_p95": round(statistics.quantiles(spent, n=20)[-1], 3),
        "turn_10": _around(turns[EARLY - WINDOW // 2 :][:WINDOW]),
        "turn_1000": _around(turns[-WINDOW:]),
    }


async def _compressing(services: Services) -> tuple[list[float], int]:
    """Times of the three steps in milliseconds, and how many steps down the ladders it took."""
    call = Call(Caller("bench", "trading", SAMPLE_USER, "bench"), services, lambda _: None)
    thread: list[AnyMessage] = list(_thread())
    question = HumanMessage("¿Qué opinas de AAPL?", id="question")
    blocks = _blocks(thread, question, call)
    spent, steps = [], 0
    for _ in range(WARM_UP + RUNS):
        state = TurnState(messages=[*thread, question], work=Work(blocks=blocks, compressed=False, steps=[]))
        started = time.perf_counter()
        for node in (check_tokens, compress, check_tokens, build_prompt):
            _merge(state, await node(state, call))
        spent.append((time.perf_counter() - started) * 1000)
        steps = len((state["work"] or Work())["steps"])
    return spent[WARM_UP:], steps


def _merge(state: TurnState, update: TurnUpdate) -> None:
    state["work"] = merge_work(state["work"], update["work"])


def _thread() -> Iterator[AnyMessage]:
    for place in range(MESSAGES // 2):
        yield HumanMessage(
            f"¿Cómo ves el precio número {place}? " + "Quiero entenderlo bien. " * 5, id=f"q{place}"
        )
        yield AIMessage(
            f"El precio número {place} está en su rango. " + "Conviene esperar. " * 20, id=f"a{place}"
        )


def _blocks(thread: list[AnyMessage], question: HumanMessage, call: Call) -> list[Block]:
    plan, count = call.services.plan, call.services.counter.count
    return [
        *role_blocks(plan, count),
        *history_blocks(Past(thread, "", "es"), plan, count),
        *(_filler(place, count) for place in range(BLOCKS)),
        *present_blocks([question], "es", count),
    ]


def _filler(place: int, count: CountTokens) -> Block:
    """A block of eight lines that can be halved three times; Low, Medium and High in turn."""
    lines = [
        f"- dato {place}.{line}: precio {100 + place}, variación {line} %, volumen {line}000"
        for line in range(LINES)
    ]
    sizes = (LINES, LINES // 2, LINES // 4, 1)
    rungs = [text_rung(f"best {size}", "\n".join(lines[:size]), count) for size in sizes]
    tier = ("low", "medium", "high")[place % 3]
    return make_block(f"block{place}", tier, "turn", [*rungs, REMOVED], source="bench", relevance=place)  # type: ignore[arg-type]


async def _turn(agent: recuerdo.Agent, place: int) -> tuple[float, float]:
    """One turn of one long conversation: milliseconds of the three steps, and of the whole turn."""
    tenant = agent.services.settings.tenant
    started = before = time.perf_counter()
    steps = 0.0
    async for update in agent.graph.astream(
        {"messages": [HumanMessage(QUESTIONS[place % len(QUESTIONS)])]},
        {"configurable": {"thread_id": thread_of(tenant, "bench")}},
        context=TurnContext(user=SAMPLE_USER, conversation="bench", tenant=tenant),
        stream_mode="updates",
        durability="exit",
    ):
        now = time.perf_counter()
        steps += (now - before) * 1000 if next(iter(update)) in STEPS else 0.0
        before = now
        assert not any((part or {}).get("error") for part in update.values()), "the turn failed"
    return steps, (time.perf_counter() - started) * 1000


def _around(turns: list[tuple[float, float]]) -> dict[str, float]:
    """Medians over some turns."""
    steps, whole = zip(*turns, strict=True)
    return {"steps_ms": round(statistics.median(steps), 2), "turn_ms": round(statistics.median(whole), 2)}
