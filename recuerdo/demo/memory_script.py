"""The memory demo's scenes as typed data, and the chat model that plays its part in them."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from recuerdo.nodes.call_llm.local import LocalModel, newest_question
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.state.plan import Bilingual
from recuerdo.state.sentences import load_sentences
from recuerdo.state.tables import read_table

TOOL = "MemoryTool"

_PLACE = "{memory_id}"
_ADDED = re.compile(r"Memory added .*\(memory_id: (?P<id>[0-9a-f-]{36})\)")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Say(_Part):
    """The user says something; the model makes these calls of the memory tool, one after the other, and replies.

    ``{memory_id}`` in a call stands for the id of the memory that the tool added last.
    """

    do: Literal["say"]
    text: str
    reply: str
    calls: tuple[dict[str, Any], ...] = ()
    user: str | None = None


class Ask(_Part):
    """The user asks something: the reply quotes the prompt, and the memories are ranked for the question."""

    do: Literal["ask"]
    text: str


class Look(_Part):
    """What is kept of the user is read."""

    do: Literal["look"]
    user: str | None = None


class Why(_Part):
    """Why a memory is kept; ``of`` is a part of its text, as everywhere below."""

    do: Literal["why"]
    of: str


class Publish(_Part):
    """Somebody wants to make a memory permanent."""

    do: Literal["publish"]
    of: str
    actor: str
    reason: str


class Audit(_Part):
    """What the audit says of a memory, also of one that is gone."""

    do: Literal["audit"]
    of: str


class Export(_Part):
    """The user takes everything of his with him."""

    do: Literal["export"]


class ForgetAll(_Part):
    """Everything of the user's goes."""

    do: Literal["forget_all"]
    user: str | None = None


Step = Annotated[Say | Ask | Look | Why | Publish | Audit | Export | ForgetAll, Field(discriminator="do")]


class MemoryVisit(_Part):
    """One opening of the application, with new conversations: when, and what is done."""

    at: AwareDatetime
    steps: tuple[Step, ...]


class MemoryScene(_Part):
    """What a scene shows; ``watch`` says what to look at."""

    requirement: str
    title: Bilingual
    watch: Bilingual
    visits: tuple[MemoryVisit, ...]


class MemoryScript(_Part):
    """The plan, the people, and all scenes; steps that name no user are ``user``'s."""

    plan: dict[str, Any]
    user: str
    other: str
    owner: str
    supervisor: str
    scenes: tuple[MemoryScene, ...]

    def said(self) -> dict[str, Say]:
        """Everything that is said, by its text."""
        steps = [step for scene in self.scenes for visit in scene.visits for step in visit.steps]
        return {step.text: step for step in steps if isinstance(step, Say)}


def load_memory_script() -> MemoryScript:
    """The memory demo."""
    return MemoryScript.model_validate(read_table(__package__, "memory.yaml"))


class AssistantModel(LocalModel):
    """Calls the tool and replies as it is written for the user's message; any other is answered out of the prompt."""

    said: dict[str, Say]
    memory_id: str = ""

    @property
    def _llm_type(self) -> str:
        return "recuerdo-written-assistant"

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """See LocalModel."""
        present = messages[newest_question(messages) :]
        # A layout may put the turn's context in front of the user's words.
        asked = str(present[0].text)
        written = next((one for text, one in self.said.items() if asked.endswith(text)), None)
        return _quoted(messages) if written is None else self._written(written, present)

    def _written(self, written: Say, present: Sequence[BaseMessage]) -> AIMessage:
        results = [message for message in present if isinstance(message, ToolMessage)]
        if results and (added := _ADDED.search(str(results[-1].text))):
            self.memory_id = added["id"]
        if len(results) == len(written.calls):
            return AIMessage(written.reply)
        given = written.calls[len(results)].items()
        args = {name: self.memory_id if value == _PLACE else value for name, value in given}
        return AIMessage("", tool_calls=[ToolCall(name=TOOL, args=args, id=f"call-{len(results)}")])


def _quoted(messages: list[BaseMessage]) -> AIMessage:
    """What the offline responder quotes, without its standing notice."""
    # Not by invoke: its stream would be this turn's, notice and all.
    reply = OfflineResponder().answer(messages)
    notice = load_sentences("recuerdo.nodes.call_llm")("no_model")
    text = str(reply.text).replace(notice.es, "").replace(notice.en, "").strip()
    return reply.model_copy(update={"content": text})
