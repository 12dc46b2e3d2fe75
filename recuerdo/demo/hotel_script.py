"""The hotel's scenes as typed data, and the chat model that plays its part in them."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from pydantic import BaseModel, ConfigDict

from recuerdo.nodes.call_llm.local import LocalModel, newest_question
from recuerdo.state.plan import Bilingual
from recuerdo.state.tables import read_table

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
    return HotelScript.model_validate(read_table(__package__, "hotel.yaml"))


class ScriptedReceptionist(LocalModel):
    """Does for each message of the user, step by step, what ``steps`` has for it."""

    steps: Mapping[str, tuple[Step, ...]]
    check_in: str

    @property
    def _llm_type(self) -> str:
        return "recuerdo-scripted-receptionist"

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        """See LocalModel."""
        present = messages[newest_question(messages) :]
        results = [message for message in present if isinstance(message, ToolMessage)]
        step = self.steps[str(present[0].text)][len(results)]
        found = [code for message in messages for code in _RESERVATION.findall(str(message.text))]
        values = {"check_in": self.check_in, "reservation": found[-1] if found else "-"}
        return _message(step, values, len(results))


def _message(step: Step, values: Mapping[str, str], place: int) -> AIMessage:
    if step.call is None:
        return AIMessage(step.say.format(**values))
    args = {
        name: value.format(**values) if isinstance(value, str) else value for name, value in step.args.items()
    }
    return AIMessage("", tool_calls=[ToolCall(name=step.call, args=args, id=f"call-{place}")])
