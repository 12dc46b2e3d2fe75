"""Which tools an agent has, and which of them a request carries."""

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from recuerdo.nodes.call import Call
from recuerdo.nodes.run_tools.tools import SHIPPED_TOOLS
from recuerdo.nodes.services import Services, Toolbox
from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import ToolChoice

sentences = load_sentences(__package__)


def make_toolbox(plan: Plan, app_tools: Sequence[BaseTool]) -> Toolbox:
    """The tools that the plan names and the app's own; an app's tool replaces one of ours of the same name.

    Raises SettingsError when the plan names a tool that nobody brings.
    """
    own = {tool.name: tool for tool in app_tools}
    known = {**SHIPPED_TOOLS, **own}
    for name in plan.tools:
        if name not in known:
            raise SettingsError(
                sentences("tool_unknown", plan=plan.name, tool=name, known=", ".join(sorted(known)))
            )
    tools = {name: known[name] for name in dict.fromkeys([*plan.tools, *own])}
    return Toolbox(tools, [convert_to_openai_tool(tool) for tool in tools.values()])


def bound_tools(services: Services) -> list[dict[str, Any]]:
    """Tool schemas of every request of a turn.

    They stay when the tool rounds are used up: providers refuse calls and results without the schemas.
    """
    return services.toolbox.schemas if services.plan.limits.tool_rounds else []


def tool_choice(call: Call, tool_rounds: int) -> ToolChoice:
    """Whether the next answer may call tools; "none" once the turn has used up its tool rounds."""
    return "auto" if tool_rounds < call.services.plan.limits.tool_rounds else "none"
