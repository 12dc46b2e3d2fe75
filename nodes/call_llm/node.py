"""Step 5 of the turn: call the model, stream its answer, process it (RF-51)."""

import re
from functools import reduce
from operator import add
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, ToolCall
from langchain_core.runnables import Runnable

from recuerdo.nodes.build_context.gather import ML_SIGNALS
from recuerdo.nodes.build_context.history import split_present
from recuerdo.nodes.build_context.signals import SIGNALS_SHOWN
from recuerdo.nodes.call import Call, Chunk
from recuerdo.nodes.call_llm.disclaimer import missing_disclaimer
from recuerdo.nodes.call_llm.failures import EmptyReplyError, model_failure
from recuerdo.nodes.call_llm.usage import call_usage, learn_factor
from recuerdo.nodes.failure import failed
from recuerdo.nodes.run_tools.requested import read_arguments
from recuerdo.nodes.turn_log import holding_lease
from recuerdo.state.turn import Request, TurnState, TurnUpdate, Work
from recuerdo.stores.postgres.text import storable


async def call_llm(state: TurnState, call: Call) -> TurnUpdate:
    """Send the newest request. A model that fails ends the turn with one sentence and what was said so far."""
    work = state["work"] or Work()
    request = work["requests"][-1]
    said: list[AIMessageChunk] = []
    try:
        async with holding_lease(call, work["turn"]):
            await _stream(call, request, said)
        whole = _whole(said, request)
    except Exception as error:
        partial = "".join(str(chunk.text) for chunk in said)
        return {**failed(model_failure(error)), "work": {"partial": partial}}
    _, present = split_present(state["messages"], work["turn"]["message_id"])
    reply = _reply(whole, f"{work['turn']['id']}-{len(present)}", work, call)
    usage = call_usage(reply, request["input_tokens"], call)
    await learn_factor(usage, call)
    return {"messages": [reply], "work": {"usage": [*work.get("usage", []), usage]}}


def after_model(state: TurnState) -> Literal["run_tools", "update_memory"]:
    """Tool calls lead into the loop; an answer or a failure ends the turn."""
    newest = state["messages"][-1]
    wants_tools = isinstance(newest, AIMessage) and bool(newest.tool_calls)
    return "run_tools" if wants_tools and not state.get("error") else "update_memory"


async def _stream(call: Call, request: Request, said: list[AIMessageChunk]) -> None:
    """Collect the chunks in ``said``, so that a break in mid-stream leaves what came before it."""
    async for chunk in _bound(call.services.model, request).astream(request["messages"]):
        if not isinstance(chunk, AIMessageChunk):
            chunk = AIMessageChunk(**chunk.model_dump(exclude={"type"}))
        said.append(chunk)
        if text := str(chunk.text):
            call.emit(Chunk(type="token", text=text, data={}))


def _whole(said: list[AIMessageChunk], request: Request) -> AIMessageChunk:
    """The chunks as one answer. Calls of tools that the request did not offer are left out: nothing runs them.

    Raises EmptyReplyError when nothing is left.
    """
    whole = reduce(add, said) if said else AIMessageChunk(content="")
    offered = bool(request["tools"]) and request["tool_choice"] == "auto"
    whole = whole.model_copy(update={"tool_calls": _calls(whole) if offered else []})
    if not whole.tool_calls and not str(whole.text).strip():
        raise EmptyReplyError
    return whole


def _calls(whole: AIMessageChunk) -> list[ToolCall]:
    """The calls to answer, read strictly: LangChain completes half-written JSON, so a call that was cut off
    would run with half its arguments. One that is not JSON is answered with that, and the model can mend it.
    """
    return [
        ToolCall(
            name=_tool_name(chunk["name"] or "-"),
            args=read_arguments(chunk["args"] or "{}"),
            id=storable(chunk["id"]),
        )
        for chunk in whole.tool_call_chunks
        if chunk["id"]
    ]


def _tool_name(name: str) -> str:
    """A name that may go back: providers refuse a history with any other. One that was not sound is marked,
    so that mending it never makes it the name of a tool.
    """
    if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        return name
    return ("invalid_" + re.sub(r"[^a-zA-Z0-9_-]", "_", name))[:64]


def _bound(model: BaseChatModel, request: Request) -> Runnable[LanguageModelInput, Any]:
    limit = request["max_output_tokens"]
    if not request["tools"]:
        return model.bind(max_tokens=limit)
    choice = {"tool_choice": "none"} if request["tool_choice"] == "none" else {}
    return model.bind_tools(request["tools"], **choice).bind(max_tokens=limit)


def _reply(whole: AIMessageChunk, message_id: str, work: Work, call: Call) -> AIMessage:
    """The answer, with the disclaimer where the user wants one and the model left it out (IM-44)."""
    text = storable(str(whole.text))
    if not whole.tool_calls and (notice := missing_disclaimer(text, work, call)):
        call.emit(Chunk(type="token", text=notice, data={}))
        text += notice
    return AIMessage(
        content=text,
        id=message_id,
        tool_calls=whole.tool_calls,
        additional_kwargs={SIGNALS_SHOWN: True} if ML_SIGNALS in work.get("context", {}) else {},
        usage_metadata=whole.usage_metadata,
        response_metadata=whole.response_metadata,
    )
