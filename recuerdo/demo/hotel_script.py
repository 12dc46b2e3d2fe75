"""The hotel's scenes as typed data, and the chat model that plays its part in them."""

import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, Literal

import yaml
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import BaseModel, ConfigDict

from recuerdo.nodes.call_llm.local import LocalModel
from recuerdo.state.plan import Bilingual

_RESERVATION = re.compile(r"\bR-[0-9A-F]{8}\b")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Step(_Part):
    """What the model does: it calls a tool, or says something and is done."""

    call: str | None = None
    args: dict[str, Any] = {}
    say: str = ""


class Decides(_Part):
    """A decision that somebody tries to take."""

    actor: str
    decision: Literal["approve", "reject"]
    reason: str | None = None


class HotelScene(_Part):
    """One message, what the model makes of it, and who decides; ``watch`` says what to look at."""

    requirement: str
    title: Bilingual
    watch: Bilingual
    says: str
    steps: tuple[Step, ...]
    decides: tuple[Decides, ...]


class LearningTitle(_Part):
    """What a part of the learning shows, and what to look at."""

    requirement: str
    title: Bilingual
    watch: Bilingual


class LearningTitles(_Part):
    """The parts of the learning, in the order in which they are played."""

    approvals: LearningTitle
    proposal: LearningTitle
    revision: LearningTitle
    stop: LearningTitle
    rollback: LearningTitle


class Learns(_Part):
    """Discounts that are asked for time and again: what is said, and the per cent of each."""

    says: str
    replies: str
    nights: int
    discounts: tuple[int, ...]
    scenes: LearningTitles

    def asked(self, number: int, pct: int, reservation: str) -> tuple[str, tuple[Step, ...]]:
        """The message of a request for a discount, and what the model does for it."""
        words = {"n": number, "pct": pct, "reservation": reservation}
        args = {"reservation": reservation, "discount_pct": pct, "nights": self.nights}
        done = Step(say=self.replies.format(**words))
        return self.says.format(**words), (Step(call="apply_discount", args=args), done)


class HotelScript(_Part):
    """All scenes, who plays in them, the rooms, and what is remembered at the beginning."""

    user: str
    owner: str
    supervisor: str
    rooms: tuple[dict[str, Any], ...]
    remembers: str
    scenes: tuple[HotelScene, ...]
    learns: Learns


def load_hotel_script() -> HotelScript:
    """The hotel's demo."""
    raw = yaml.safe_load((files(__package__) / "hotel.yaml").read_text(encoding="utf-8"))
    return HotelScript.model_validate(raw)


class ScriptedReceptionist(LocalModel):
    """Does for each message of the user, step by step, what ``steps`` has for it."""

    steps: Mapping[str, tuple[Step, ...]]
    check_in: str

    @property
    def _llm_type(self) -> str:
        return "recuerdo-scripted-receptionist"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        (chunk,) = self._stream(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(str(chunk.message.text)))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        place = max(index for index, message in enumerate(messages) if isinstance(message, HumanMessage))
        results = [message for message in messages[place:] if isinstance(message, ToolMessage)]
        step = self.steps[str(messages[place].text)][len(results)]
        found = [code for message in messages for code in _RESERVATION.findall(str(message.text))]
        values = {"check_in": self.check_in, "reservation": found[-1] if found else "-"}
        yield ChatGenerationChunk(message=_message(step, values, len(results)))


def _message(step: Step, values: Mapping[str, str], place: int) -> AIMessageChunk:
    if step.call is None:
        return AIMessageChunk(content=step.say.format(**values))
    args = {
        name: value.format(**values) if isinstance(value, str) else value for name, value in step.args.items()
    }
    call = tool_call_chunk(name=step.call, args=json.dumps(args), id=f"call-{place}", index=0)
    return AIMessageChunk(content="", tool_call_chunks=[call])
