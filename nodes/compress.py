"""Between steps 3 and 4: take blocks down their ladders until the request fits (RF-22, RF-56 to RF-62)."""

from recuerdo.nodes.call import Call
from recuerdo.nodes.check_tokens import budget_of
from recuerdo.state.fit import fit
from recuerdo.state.turn import TurnState, TurnUpdate, Work


async def compress(state: TurnState, call: Call) -> TurnUpdate:
    """Fit the blocks into the plan's budget. Pure work on what is loaded: never waits for a model."""
    work = state["work"] or Work()
    estimate = work["estimate"]
    fitted = fit(work["blocks"], estimate["overhead"], budget_of(estimate))
    return {"work": {"blocks": fitted.blocks, "steps": fitted.steps, "compressed": True}}
