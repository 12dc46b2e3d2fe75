"""Tokens of a request, counted anew from what goes over the wire: a check on our own count, apart from it."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

FRAME = 4
OPENING = 3


def wire_tokens(
    messages: Sequence[AnyMessage], count: Callable[[str], int], tools: Sequence[dict[str, Any]] = ()
) -> int:
    """Tokens of messages and tool schemas in the form of the chat completions API."""
    schemas = sum(count(json.dumps(tool, ensure_ascii=False)) for tool in tools)
    return schemas + OPENING + sum(FRAME + _message_tokens(message, count) for message in messages)


def _message_tokens(message: AnyMessage, count: Callable[[str], int]) -> int:
    tokens = count(str(message.text))
    if isinstance(message, ToolMessage):
        tokens += count(message.tool_call_id)
    if isinstance(message, AIMessage) and message.tool_calls:
        tokens += count(json.dumps([_wire_call(call) for call in message.tool_calls], ensure_ascii=False))
    return tokens


def _wire_call(call: Any) -> dict[str, Any]:
    arguments = json.dumps(call["args"], ensure_ascii=False)
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}
