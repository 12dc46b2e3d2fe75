"""The disclaimer preference acts by code, also when the model forgets it (RF-26, IM-44, C-25)."""

from recuerdo.nodes.call import Call
from recuerdo.state.turn import Work


def missing_disclaimer(reply: str, work: Work, call: Call) -> str:
    """What must be appended to the reply: the plan's disclaimer, or nothing if it is there or not wanted."""
    wanted = work["context"].get("preferences", {}).get("show_disclaimers") is True
    text = call.services.plan.disclaimer.in_language(work["turn"]["language"])
    if not wanted or not reply.strip() or text.casefold() in reply.casefold():
        return ""
    return f"\n\n{text}"
