"""Which tools an agent has, and which of them a request carries."""

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from recuerdo.nodes.call import Call
from recuerdo.nodes.run_tools.help import HELP_TOOLS
from recuerdo.nodes.run_tools.hotel import HOTEL_TOOLS
from recuerdo.nodes.run_tools.key_events import agent_scope, make_tools
from recuerdo.nodes.run_tools.memory_tool.in_agent import agent_memory_tool
from recuerdo.nodes.run_tools.tools import SHIPPED_TOOLS
from recuerdo.nodes.services import Services, Toolbox
from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.state.turn import ToolChoice

sentences = load_sentences(__package__)


def make_toolbox(plan: Plan, app_tools: Sequence[BaseTool]) -> Toolbox:
    """The tools that the plan names, those of key events where it has them, and the app's own.

    An app's tool replaces one of ours of the same name. What the plan has deactivated is left out (OR-37).

    Raises SettingsError when the plan names a tool that nobody brings.
    """
    every = _every_tool(plan, app_tools)
    tools = {name: tool for name, tool in every.items() if name not in plan.deactivated_tools}
    return Toolbox(tools, [convert_to_openai_tool(tool) for tool in tools.values()])


def refuse_unknown_tools(plan: Plan, app_tools: Sequence[BaseTool]) -> None:
    """Refuse a plan that names a tool which nobody brings, wherever it does: a slip in ``four_eyes`` would leave the
    tool that was meant unguarded (OR-33).

    Raises SettingsError.
    """
    every = _every_tool(plan, app_tools)
    named = {
        "four_eyes": plan.four_eyes,
        "deactivated_tools": plan.deactivated_tools,
        "auto_approve_rules": tuple(rule.tool for rule in plan.auto_approve_rules),
    }
    for field, tools in named.items():
        for tool in tools:
            if tool not in every:
                known = ", ".join(sorted(every))
                raise SettingsError(
                    sentences("tool_not_there", plan=plan.name, field=field, tool=tool, known=known)
                )


def _every_tool(plan: Plan, app_tools: Sequence[BaseTool]) -> dict[str, BaseTool]:
    """By the name that the model calls it by. Raises SettingsError as :func:`make_toolbox`."""
    own = {tool.name: tool for tool in app_tools}
    events = {tool.name: tool for tool in make_tools(plan, agent_scope)}
    known = {**own_tools(), **own}
    for name in plan.tools:
        if name not in known:
            raise SettingsError(
                sentences("tool_unknown", plan=plan.name, tool=name, known=", ".join(sorted(known)))
            )
    named = {known[name].name: known[name] for name in plan.tools}
    return {**events, **named, **own}


def own_tools() -> dict[str, BaseTool]:
    """The tools that ship and that a plan can name."""
    return {**SHIPPED_TOOLS, **HELP_TOOLS, **HOTEL_TOOLS, "memory": agent_memory_tool()}


def bound_tools(services: Services) -> list[dict[str, Any]]:
    """Tool schemas of every request of a turn.

    They stay when the tool rounds are used up: providers refuse calls and results without the schemas.
    """
    return services.toolbox.schemas if services.plan.limits.tool_rounds else []


def tool_choice(call: Call, tool_rounds: int) -> ToolChoice:
    """Whether the next answer may call tools; "none" once the turn has used up its tool rounds."""
    return "auto" if tool_rounds < call.services.plan.limits.tool_rounds else "none"
