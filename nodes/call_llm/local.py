"""What the chat models of ours that ask no provider have in common."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool


class LocalModel(BaseChatModel):
    """A chat model that says by itself what it says: tools make no difference to it."""

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Take tools as any chat model does, and leave them alone."""
        return self

    @abstractmethod
    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """What it says to a request."""

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])


def newest_question(messages: Sequence[BaseMessage]) -> int:
    """The place of the user's last message."""
    return max(place for place, message in enumerate(messages) if isinstance(message, HumanMessage))
