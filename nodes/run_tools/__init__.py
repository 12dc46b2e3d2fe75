"""The tool loop: run what the model asked for and lead back to ``build_context`` (design section 1)."""

import asyncio
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools.base import ToolException

from recuerdo.nodes.build_context.history import READ_ONLY, split_present
from recuerdo.nodes.call import Call, Chunk
from recuerdo.nodes.run_tools.capping import cap_results
from recuerdo.nodes.run_tools.tools import CALL
from recuerdo.nodes.turn_log import holding_lease, log_messages
from recuerdo.state.turn import TurnState, TurnUpdate, Work

TOOL_SECONDS = 30.0
"""How long one tool may run."""

ERROR_CHARACTERS = 500
"""Longest text of a failed tool that goes back to the model (IM-13)."""


UNREADABLE = "unreadable_arguments"
"""Key in the arguments of a call that holds what the model wrote in place of JSON."""


async def run_tools(state: TurnState, call: Call) -> TurnUpdate:
    """Run the calls of the newest message side by side; a failure is a result, never the end of the turn.

    The whole results go to the log at once; what goes to the model is capped, with a reference to the whole.
    """
    work = state["work"] or Work()
    asked = state["messages"][-1]
    assert isinstance(asked, AIMessage), "the router sends only tool calls here"
    _, present = split_present(state["messages"], work["turn"]["message_id"])
    first = len(present)
    async with holding_lease(call, work["turn"]):
        results = await asyncio.gather(
            *(
                _run(call, requested, f"{work['turn']['id']}-{first + place}")
                for place, requested in enumerate(asked.tool_calls)
            )
        )
    await log_messages(call, work["turn"], [asked, *results], position=first - 1)
    for result in results:
        call.emit(Chunk(type="tool", text=str(result.name), data={"status": result.status}))
    capped = await asyncio.to_thread(cap_results, results, present, work, call)
    return {"messages": capped, "work": {"tool_rounds": work.get("tool_rounds", 0) + 1}}


async def _run(call: Call, requested: Any, message_id: str) -> ToolMessage:
    name, tools = requested["name"], call.services.toolbox.tools
    tool = tools.get(name)
    if tool is None:
        known = ", ".join(sorted(tools)) or "-"
        return _result(requested, message_id, f"There is no tool named {name}. Tools: {known}.", failed=True)
    if UNREADABLE in requested["args"]:
        return _result(requested, message_id, f"The arguments of {name} are not valid JSON.", failed=True)
    config: RunnableConfig = {"configurable": {CALL: call}}
    try:
        output = await asyncio.wait_for(
            tool.ainvoke({**requested, "type": "tool_call"}, config), TOOL_SECONDS
        )
    except TimeoutError:
        return _result(
            requested, message_id, f"{name} did not answer within {TOOL_SECONDS:g} s.", failed=True
        )
    except Exception as error:
        text = str(error) if isinstance(error, ToolException | ValueError) else type(error).__name__
        return _result(requested, message_id, f"{name} failed: {text}", failed=True)
    if not isinstance(output, ToolMessage):
        return _result(requested, message_id, str(output))
    read_only = bool((tool.metadata or {}).get(READ_ONLY))
    failed = output.status == "error"
    return _result(requested, message_id, str(output.text), failed=failed, read_only=read_only)


def _result(
    requested: Any, message_id: str, text: str, *, failed: bool = False, read_only: bool = False
) -> ToolMessage:
    return ToolMessage(
        content=text[:ERROR_CHARACTERS] if failed else text,
        name=requested["name"],
        tool_call_id=requested["id"],
        id=message_id,
        status="error" if failed else "success",
        additional_kwargs={READ_ONLY: True} if read_only else {},
    )
