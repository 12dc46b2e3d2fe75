"""Step 4 of the turn: the exact messages that go to the model (RF-50)."""

from recuerdo.nodes.build_prompt.layouts import lay_out
from recuerdo.nodes.call import Call
from recuerdo.nodes.run_tools.toolbox import bound_tools, tool_choice
from recuerdo.state.turn import Request, TurnState, TurnUpdate, Work


async def build_prompt(state: TurnState, call: Call) -> TurnUpdate:
    """Add the next request to the turn's list."""
    work = state["work"] or Work()
    plan = call.services.plan
    request = Request(
        messages=lay_out(work["blocks"], state["messages"], plan, call.services.settings.layout),
        tools=bound_tools(call.services),
        tool_choice=tool_choice(call, work.get("tool_rounds", 0)),
        max_output_tokens=plan.limits.max_output,
        input_tokens=work["estimate"]["input_tokens"],
    )
    return {"work": {"requests": [*work.get("requests", []), request]}}
