"""Step 3 of the turn: estimate the request before the call and choose the way on (RF-24, RF-48)."""

import logging
from typing import Literal

from recuerdo.nodes.build_prompt.layouts import overhead
from recuerdo.nodes.call import Call
from recuerdo.nodes.failure import failed
from recuerdo.nodes.run_tools.toolbox import bound_tools
from recuerdo.state.blocks import Block, current, total_tokens
from recuerdo.state.errors import BudgetError
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import Estimate, TurnState, TurnUpdate, Work

logger = logging.getLogger(__name__)
sentences = load_sentences(__package__)

LARGEST_NAMED = 3
"""How many of the largest critical blocks the error names."""


async def check_tokens(state: TurnState, call: Call) -> TurnUpdate:
    """Count the whole request. Critical content alone above the hard limit ends the turn (RF-34)."""
    work = state["work"] or Work()
    plan, count = call.services.plan, call.services.counter.count
    tools = bound_tools(call, work.get("tool_rounds", 0))
    fixed = overhead(plan, tools, count)
    tokens = total_tokens(work["blocks"], fixed)
    estimate = Estimate(
        input_tokens=tokens,
        before=work["estimate"]["before"] if work["compressed"] else tokens,
        overhead=fixed,
        target=plan.limits.compress_above,
        limit=plan.limits.max_input,
        at=call.services.clock().isoformat(),
    )
    logger.info("estimated_input_tokens=%d", tokens)
    if work["compressed"] and tokens > plan.limits.max_input:
        return {
            **failed(_too_large(work["blocks"], tokens, plan.limits.max_input)),
            "work": {"estimate": estimate},
        }
    return {"work": {"estimate": estimate}}


def after_check(state: TurnState) -> Literal["compress", "build_prompt", "update_memory"]:
    """Fits, must be compressed, or cannot be sent at all."""
    if state.get("error"):
        return "update_memory"
    work = state["work"] or Work()
    over_target = work["estimate"]["input_tokens"] > work["estimate"]["target"]
    return "compress" if over_target and not work["compressed"] else "build_prompt"


def _too_large(blocks: list[Block], tokens: int, limit: int) -> BudgetError:
    sizes = sorted(((current(b)["tokens"], b["name"]) for b in blocks), reverse=True)[:LARGEST_NAMED]
    largest = ", ".join(f"{name} {size}" for size, name in sizes)
    return BudgetError(sentences("over_limit", limit=limit, tokens=tokens, largest=largest))
