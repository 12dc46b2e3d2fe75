"""The stable head of the prompt: role and instructions of the plan, the same bytes for every user (OR-18)."""

from recuerdo.nodes.build_prompt.layouts import heading
from recuerdo.state.blocks import Block, CountTokens, make_block, text_rung
from recuerdo.state.plan import Plan


def role_blocks(plan: Plan, count: CountTokens) -> list[Block]:
    """Role and stable instructions, both critical; no clock, no name, no counter before their end (C-22)."""
    role = f"{heading('role', plan)}\n{plan.role}"
    instructions = "\n".join([heading("instructions", plan), *(f"- {line}" for line in plan.instructions)])
    return [
        make_block("role", "critical", "stable", [text_rung("full", role, count)], source="plan"),
        make_block(
            "plan_instructions", "critical", "stable", [text_rung("full", instructions, count)], source="plan"
        ),
    ]
