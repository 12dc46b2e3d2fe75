"""A chat model that costs nothing and always says the same, so that what is measured is all but the model."""

from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel


class SameAnswer(FakeListChatModel):
    """Takes tools and calls none."""

    def bind_tools(self, tools: Any, *, tool_choice: str | None = None, **kwargs: Any) -> Any:
        return self
