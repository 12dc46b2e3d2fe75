"""A chat model that says what was written for it: it builds a long conversation without a model."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from recuerdo.nodes.call_llm.local import LocalModel


class WrittenReplies(LocalModel):
    """Gives to each message of the user the reply that ``replies`` has for it. It calls no tools."""

    replies: dict[str, str]

    @property
    def _llm_type(self) -> str:
        return "recuerdo-written-replies"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked = next(m.text for m in reversed(messages) if isinstance(m, HumanMessage))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.replies[asked]))])
