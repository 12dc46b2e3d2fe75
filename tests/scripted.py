"""A chat model that says what a test wrote for it, and keeps the exact requests it was given."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field

Reply = str | AIMessage | Exception


class ScriptedModel(BaseChatModel):
    """Gives the replies in order; a string is a text, an exception is raised; the last one repeats."""

    replies: list[Any]
    calls: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        choice = {"tool_choice": tool_choice} if tool_choice else {}
        return self.bind(tools=list(tools), **choice, **kwargs)

    def _next(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        reply = self.replies[min(len(self.calls), len(self.replies) - 1)]
        self.calls.append({"messages": messages, **kwargs})
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            usage = {"input_tokens": 1200, "output_tokens": 300, "total_tokens": 1500}
            return AIMessage(reply, usage_metadata=usage)
        return reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages, kwargs))])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = self._next(messages, kwargs)
        text = str(reply.text)
        pieces = [text[i : i + 12] for i in range(0, len(text), 12)] or [""]
        for piece in pieces[:-1]:
            yield ChatGenerationChunk(message=AIMessageChunk(piece))
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                pieces[-1],
                tool_call_chunks=_streamed_calls(reply),
                usage_metadata=reply.usage_metadata,
                response_metadata=reply.response_metadata,
            )
        )


def _streamed_calls(reply: AIMessage) -> list[Any]:
    """The reply's calls as a provider streams them: arguments as text, which need not be whole JSON."""
    readable = [(call["name"], json.dumps(call["args"]), call["id"]) for call in reply.tool_calls]
    unreadable = [(call["name"], call["args"], call["id"]) for call in reply.invalid_tool_calls]
    calls = enumerate([*readable, *unreadable])
    return [tool_call_chunk(name=name, args=args, id=key, index=index) for index, (name, args, key) in calls]
