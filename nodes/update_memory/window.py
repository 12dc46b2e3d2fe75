"""The immediate window and the running summary after a turn (RF-3, RF-4, RF-30, RF-31, C-1, C-2).

What leaves the window is in the summary from the same step on: every message is in one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AnyMessage

from recuerdo.nodes.call import Call
from recuerdo.nodes.update_memory.summarise import write_summary
from recuerdo.state.blocks import current
from recuerdo.state.record import SummaryRecord
from recuerdo.state.rounds import chat_count, split_rounds, window_cut
from recuerdo.state.turn import Summary, TurnState, Work
from recuerdo.state.usage import CallUsage


@dataclass(frozen=True)
class Window:
    """What leaves the window, the summary after it, and how many messages the thread has had.

    ``written`` says who wrote the summary, None when this turn wrote none; ``usage`` is what that took.
    """

    leaving: list[AnyMessage]
    summary: Summary | None
    messages_count: int
    written: SummaryRecord | None = None
    usage: list[CallUsage] = field(default_factory=list)


async def move_window(state: TurnState, work: Work, call: Call) -> Window:
    """Decide what leaves and extend the summary over it."""
    messages = state["messages"]
    plan = call.services.plan
    cut = max(window_cut(messages, plan.memory), _cut_by_tokens(messages, work))
    leaving = list(messages[:cut])
    before = state.get("summary")
    unseen = (state.get("messages_count") or 0) + _new_in(messages, work)
    due = unseen > plan.memory.summary.after_messages and before is None
    if not leaving and not due:
        return Window(leaving, before, unseen)
    covering = leaving or _older_half(messages)
    text, written = before["text"] if before else "", None
    if new := _uncovered(covering, before):
        # The labels keep the conversation's language, whatever one message is written in.
        language = work.get("lasting_language", work["turn"]["language"])
        written = await write_summary(text, new, language, work["turn"], call)
        text = written.text
    summary = _summary(text, before, chat_count(covering), chat_count(leaving))
    if written is None:
        return Window(leaving, summary, unseen)
    return Window(leaving, summary, unseen, written.record, written.usage)


def _new_in(messages: Sequence[AnyMessage], work: Work) -> int:
    for index, message in enumerate(messages):
        if message.id == work["turn"]["message_id"]:
            return chat_count(messages[index:])
    return 0


def _cut_by_tokens(messages: Sequence[AnyMessage], work: Work) -> int:
    """Messages that the budget has already left to the summary stay out (C-2)."""
    history = next((block for block in work["blocks"] if block["name"] == "history"), None)
    if history is None or not history["rung"]:
        return 0
    kept = {
        m.id for block in work["blocks"] if block["section"] != "turn" for m in current(block)["messages"]
    }
    cut = 0
    for messages_of_round in split_rounds(messages):
        if any(message.id in kept for message in messages_of_round):
            return cut
        cut += len(messages_of_round)
    return cut


def _summary(text: str, before: Summary | None, covering: int, leaving: int) -> Summary:
    """The text with its counts, in messages."""
    covered, left = (before["covers"], before["left_window"]) if before else (0, 0)
    return Summary(text=text, covers=max(left + covering, covered), left_window=left + leaving)


def _older_half(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """What a first summary covers while all still stands in the window: all but the newest rounds."""
    rounds = split_rounds(messages)
    return [message for part in rounds[: max(len(rounds) - 5, 1)] for message in part]


def _uncovered(messages: Sequence[AnyMessage], before: Summary | None) -> list[AnyMessage]:
    """The messages without the first ones, which the summary has covered while they stood in the window."""
    covered = (before["covers"] - before["left_window"]) if before else 0
    seen = 0
    for index, message in enumerate(messages):
        if seen >= covered:
            return list(messages[index:])
        seen += chat_count([message])
    return []
