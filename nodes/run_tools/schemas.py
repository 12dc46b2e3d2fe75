"""Which tools a request carries, and their schemas as they are sent."""

from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from recuerdo.nodes.call import Call
from recuerdo.nodes.run_tools.tools import shipped_tools


def tools_of(call: Call) -> dict[str, BaseTool]:
    """The plan's tools and the app's own, by name; an app's tool replaces one of ours of the same name."""
    shipped = shipped_tools(call)
    named = {name: shipped[name] for name in call.services.plan.tools if name in shipped}
    return {**named, **{tool.name: tool for tool in call.services.tools}}


def bound_tools(call: Call, tool_rounds: int) -> list[dict[str, Any]]:
    """Tool schemas for the next call of the model; none once the turn has used up its tool rounds."""
    if tool_rounds >= call.services.plan.limits.tool_rounds:
        return []
    return [convert_to_openai_tool(tool) for tool in tools_of(call).values()]
