"""Rounds: one question and what answers it (LA-3, A-17). Pure functions over a thread's messages.

A round starts with a user message and ends before the next one that follows an answer: several user
messages queued together are one round. Tool traces are carried whole or not at all (LA-14, LA-15).
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from recuerdo.state.plan import Memory

ROUNDS_KEPT_AT_A_CUT = 5
"""When the window is full it is cut in one step to about this many rounds, so the prefix lasts (C-1)."""


def split_rounds(messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
    """Cut a list of messages into rounds; what stands before the first user message is a round too."""
    rounds: list[list[AnyMessage]] = []
    for message in messages:
        starts = isinstance(message, HumanMessage) and not _only_questions(rounds[-1] if rounds else None)
        if starts or not rounds:
            rounds.append([])
        rounds[-1].append(message)
    return rounds


def _only_questions(messages: list[AnyMessage] | None) -> bool:
    return bool(messages) and all(isinstance(message, HumanMessage) for message in messages or ())


def is_chat_text(message: AnyMessage) -> bool:
    """Whether the message counts: user and assistant text, not tool calls and results (A-41)."""
    return isinstance(message, HumanMessage) or (isinstance(message, AIMessage) and bool(str(message.text)))


def chat_count(messages: Sequence[AnyMessage]) -> int:
    """Number of user and assistant text messages."""
    return sum(map(is_chat_text, messages))


def plain(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """What was asked and answered, without tool names, parameters or results (LA-8)."""
    kept: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            kept.append(message)
        elif isinstance(message, AIMessage) and str(message.text):
            kept.append(
                AIMessage(content=str(message.text), id=message.id) if message.tool_calls else message
            )
    return kept


def whole_trace(messages: Sequence[AnyMessage]) -> bool:
    """Whether the results of every tool call stand right behind it, and no others (a crash can lose one).

    Step by step: some models begin to count their calls anew in each answer, so ids come again.
    """
    waiting: list[str | None] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in waiting:
            waiting.remove(message.tool_call_id)
        elif waiting or isinstance(message, ToolMessage):
            return False
        elif isinstance(message, AIMessage):
            waiting = [call["id"] for call in message.tool_calls]
    return not waiting


def visible_history(past: Sequence[AnyMessage], memory: Memory) -> list[list[AnyMessage]]:
    """The rounds before the current message that may enter the prompt, oldest first.

    Rounds choose the candidates and the cap chooses what is verbatim (C-1); older rounds are plain text,
    the newest ``full_context`` ones keep their tool traces. What broke off without an answer is shown and
    counts as no round, whether tools were called or not (LA-3); its trace counts as one: what was done must be
    known. With short-term memory off: nothing (C-28).
    """
    if not memory.short_term.enabled:
        return []
    rounds = split_rounds(past)
    rounds = rounds[_start_of_newest(rounds, memory.short_term.rounds) :]
    waiting = int(_only_questions(rounds[-1] if rounds else None))
    traced_from = len(rounds) - waiting - memory.full_context.rounds
    shown = [
        list(messages) if index >= traced_from and whole_trace(messages) else plain(messages)
        for index, messages in enumerate(rounds)
    ]
    cap = memory.short_term.max_messages
    visible = _newest_within([r for r in shown if r], cap)
    if cap is not None and visible and chat_count(visible[0]) >= cap:
        return [plain(visible[0])[-(cap - 1) :]]
    return visible


def is_answered(messages: Sequence[AnyMessage]) -> bool:
    """Whether a round is finished: it ends with an answer, not with a question, a call or a result (LA-3)."""
    newest = messages[-1] if messages else None
    return isinstance(newest, AIMessage) and not newest.tool_calls


def _start_of_newest(rounds: Sequence[Sequence[AnyMessage]], count: int) -> int:
    """Where the newest ``count`` finished rounds begin, at least one."""
    finished = [place for place, messages in enumerate(rounds) if is_answered(messages)]
    return finished[-count] if len(finished) >= count else 0


def _newest_within(rounds: list[list[AnyMessage]], max_messages: int | None) -> list[list[AnyMessage]]:
    """The newest whole rounds that leave a place for the current message under the cap (A-1).

    The newest round is always among them, also when it is larger than that: what was said last is never
    forgotten (C-4).
    """
    if max_messages is None:
        return rounds
    counts = [chat_count(messages) for messages in rounds]
    start = max(len(rounds) - 1, 0)
    while start > 0 and sum(counts[start - 1 :]) < max_messages:
        start -= 1
    return rounds[start:]


def window_cut(messages: Sequence[AnyMessage], memory: Memory) -> int:
    """How many messages leave the window after a turn, for the summary to cover. Never splits a round.

    When the next message would pass the cap, all but about 5 rounds leave in one step; whatever is older
    than the configured rounds leaves at once, since it will not be shown again (C-1). The newest round stays.
    """
    rounds = split_rounds(messages)
    kept = rounds[_start_of_newest(rounds, memory.short_term.rounds) :]
    cap = memory.short_term.max_messages
    if cap is not None and chat_count([m for r in kept for m in r]) >= cap:
        kept = _newest_within(kept[-ROUNDS_KEPT_AT_A_CUT:], cap)
    return len(messages) - sum(map(len, kept))
