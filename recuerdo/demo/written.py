"""A chat model that says what was written for it: it builds a long conversation without a model."""

from langchain_core.messages import AIMessage, BaseMessage

from recuerdo.nodes.call_llm.local import LocalModel, newest_question


class WrittenReplies(LocalModel):
    """Gives to each message of the user the reply that ``replies`` has for it. It calls no tools."""

    replies: dict[str, str]

    @property
    def _llm_type(self) -> str:
        return "recuerdo-written-replies"

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """See LocalModel."""
        return AIMessage(self.replies[str(messages[newest_question(messages)].text)])
