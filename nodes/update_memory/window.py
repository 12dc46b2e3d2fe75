"""The immediate window and the running summary after a turn (RF-3, RF-4, RF-30, RF-31, C-1, C-2).

What leaves the window is in the summary from the same step on: every message is in one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AnyMessage

from recuerdo.nodes.build_context.history import redacted
from recuerdo.nodes.call import Call
from recuerdo.state.blocks import current
from recuerdo.state.rounds import chat_count, split_rounds, window_cut
from recuerdo.state.summary import extend_summary
from recuerdo.state.turn import Summary, TurnState, Work


@dataclass(frozen=True)
class Window:
    """What leaves the window, the summary after it, and how many messages the thread has had."""

    leaving: list[AnyMessage]
    summary: Summary | None
    messages_count: int


async def move_window(state: TurnState, work: Work, call: Call) -> Window:
    """Decide what leaves and extend the summary over it."""
    messages = state["messages"]
    plan = call.services.plan
    cut = max(window_cut(messages, plan.memory), _cut_by_tokens(messages, work))
    leaving = list(messages[:cut])
    before = state.get("summary")
    unseen = (state.get("messages_count") or 0) + _new_in(messages, work)
    return Window(leaving, _summary(before, messages, leaving, unseen, work, call), unseen)


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


def _summary(
    before: Summary | None,
    messages: Sequence[AnyMessage],
    leaving: list[AnyMessage],
    messages_count: int,
    work: Work,
    call: Call,
) -> Summary | None:
    """Written when something leaves, and first when the count says so, over all but what is newest."""
    memory = call.services.plan.memory
    due = messages_count > memory.summary.after_messages and before is None
    if not leaving and not due:
        return before
    left_before = before["left_window"] if before else 0
    covered_in_window = (before["covers"] - left_before) if before else 0
    covering = leaving or _older_half(messages)
    text = extend_summary(
        before["text"] if before else "",
        redacted(_uncovered(covering, covered_in_window)),
        work["turn"]["language"],
        memory.summary.max_tokens,
        call.services.counter.count,
    )
    left = left_before + chat_count(leaving)
    covers = max(left_before + chat_count(covering), before["covers"] if before else 0)
    return Summary(text=text, covers=covers, left_window=left)


def _older_half(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """What a first summary covers while all still stands in the window: all but the newest rounds."""
    rounds = split_rounds(messages)
    return [message for part in rounds[: max(len(rounds) - 5, 1)] for message in part]


def _uncovered(messages: Sequence[AnyMessage], covered: int) -> list[AnyMessage]:
    """The messages without the first ``covered`` ones that the summary has already."""
    seen = 0
    for index, message in enumerate(messages):
        if seen >= covered:
            return list(messages[index:])
        seen += chat_count([message])
    return []
