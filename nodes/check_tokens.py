"""Step 3 of the turn: estimate the request before the call and choose the way on (RF-24, RF-48)."""

import asyncio
import logging
from collections.abc import Sequence
from math import ceil
from typing import Literal

from recuerdo.nodes.build_context.packs import load_packs, pack_blocks
from recuerdo.nodes.build_context.role import role_blocks
from recuerdo.nodes.build_prompt.layouts import overhead, tool_tokens
from recuerdo.nodes.call import Call
from recuerdo.nodes.failure import failed
from recuerdo.nodes.run_tools.toolbox import bound_tools
from recuerdo.nodes.services import Services
from recuerdo.state.blocks import Block, current, total_tokens
from recuerdo.state.errors import BudgetError, SettingsError
from recuerdo.state.fit import Budget
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import Estimate, TurnState, TurnUpdate, Work

logger = logging.getLogger(__name__)
sentences = load_sentences(__package__)

LARGEST_NAMED = 3
"""How many of the largest parts the error names."""

ADVICE = {
    "last_messages": "advice_conversation",
    "tools": "advice_tools",
    "tool_step": "advice_tool_step",
}
"""What to do about the largest part; of all other parts the user can only shorten his message."""


async def check_tokens(state: TurnState, call: Call) -> TurnUpdate:
    """Count the whole request. Critical content alone above the hard limit ends the turn (RF-34)."""
    if state.get("error"):
        # There is no context to count: what it must hold cannot be used.
        return {}
    work = state["work"] or Work()
    services = call.services
    limits, count = services.plan.limits, services.counter.count
    tools = bound_tools(services)
    fixed = overhead(services.plan, tools, count, services.settings.layout)
    tokens = total_tokens(work["blocks"], fixed)
    estimate = Estimate(
        input_tokens=tokens,
        before=work["estimate"]["before"] if work["compressed"] else tokens,
        overhead=fixed,
        target=limits.compress_above,
        limit=limits.max_input,
        at=services.clock().isoformat(),
        # What was compressed for one factor is judged by the same, though another turn may learn meanwhile.
        factor=work["estimate"]["factor"] if work["compressed"] else services.factor.value,
    )
    logger.info("estimated_input_tokens=%d", tokens)
    if work["compressed"] and tokens > budget_of(estimate).limit:
        error = _too_large(work["blocks"], tool_tokens(tools, count), estimate)
        return {**failed(error), "work": {"estimate": estimate}}
    return {"work": {"estimate": estimate}}


def budget_of(estimate: Estimate) -> Budget:
    """The plan's limits in our own count: the provider counts ``factor`` times as many tokens (A-8)."""
    factor = estimate["factor"]
    return Budget(target=int(estimate["target"] / factor), limit=int(estimate["limit"] / factor))


def after_check(state: TurnState) -> Literal["compress", "build_prompt", "update_memory"]:
    """Fits, must be compressed, or cannot be sent at all."""
    if state.get("error"):
        return "update_memory"
    work = state["work"] or Work()
    over_target = work["estimate"]["input_tokens"] > budget_of(work["estimate"]).target
    return "compress" if over_target and not work["compressed"] else "build_prompt"


def refuse_oversized_head(services: Services, packs: Sequence[Block] = ()) -> None:
    """Refuse to open an agent none of whose requests could be sent: its tools, role, instructions and
    knowledge packs are above the hard limit without a message (RF-34, C-23).

    Raises SettingsError.
    """
    plan, count = services.plan, services.counter.count
    tools = bound_tools(services)
    head = [*role_blocks(plan, count), *packs]
    tokens = total_tokens(head, overhead(plan, tools, count, services.settings.layout))
    if tokens > plan.limits.max_input:
        raise SettingsError(
            sentences(
                "head_over_limit",
                plan=plan.name,
                tokens=tokens,
                limit=plan.limits.max_input,
                number=len(tools),
                tools=tool_tokens(tools, count),
            )
        )


async def refuse_unusable_packs(services: Services, tenant: str) -> None:
    """Refuse to open an agent whose packs cannot be used for ``tenant``, or leave no room for a message.

    Raises SettingsError that names the pack (OR-15, C-23).
    """
    packs = await load_packs(services, tenant)
    blocks = pack_blocks(packs, services.plan, services.counter.count)
    await asyncio.to_thread(refuse_oversized_head, services, blocks)


def _too_large(blocks: list[Block], tools: int, estimate: Estimate) -> BudgetError:
    parts = [(current(block)["tokens"], block["name"]) for block in blocks] + [(tools, "tools")]
    largest = sorted(parts, reverse=True)[:LARGEST_NAMED]
    kind = largest[0][1].partition(":")[0]
    return BudgetError(
        sentences(
            "over_limit",
            limit=estimate["limit"],
            tokens=ceil(estimate["input_tokens"] * estimate["factor"]),
            largest=", ".join(f"{name} {size}" for size, name in largest),
            advice=sentences(ADVICE.get(kind, "advice_message")),
        )
    )
