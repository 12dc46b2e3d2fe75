"""Step c: the conversation so far (RF-2, RF-56, RF-57, C-1, C-4, C-5, C-26) as blocks.

The last messages are critical and verbatim. Older ones stand verbatim while they fit; each rung below keeps
fewer rounds and a summary that covers the rest. Tool traces of earlier rounds and the tool steps of the
present round are blocks of their own, carried whole.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from recuerdo.nodes.build_context.known import known_words
from recuerdo.nodes.build_context.phrasing import as_data, fenced, sentences
from recuerdo.nodes.build_context.signals import lasting_part
from recuerdo.state.blocks import (
    REMOVED,
    Block,
    CountTokens,
    Rung,
    make_block,
    messages_rung,
)
from recuerdo.state.plan import Plan
from recuerdo.state.rounds import plain, visible_history
from recuerdo.state.summary import extend_summary, shorten_summary
from recuerdo.stores.sensitive import redact

ONE_LINE_SUMMARY = 80
"""Tokens of the shortest summary, the floor of the history (C-3)."""

HISTORY_ORDER = 40
TRACE_ORDER = 30
NEWEST_TRACE_ORDER = 39
ROUND_LADDER = (5, 3, 2, 1, 0)

SHORT_RESULT = 80
"""Tokens that stay of a tool result that had to give way, beside the reference to the whole."""

READ_ONLY = "read_only"
"""Key in a tool message's ``additional_kwargs`` that says the tool changes nothing (IM-10)."""


@dataclass(frozen=True)
class Past:
    """The thread before the current message, and what its stored summary says."""

    messages: Sequence[AnyMessage]
    summary: str
    """Empty unless something has left the window."""
    language: str


def split_present(
    messages: Sequence[AnyMessage], message_id: str
) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """The thread before the current message, and the present round from it on."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].id == message_id:
            return list(messages[:index]), list(messages[index:])
    return list(messages), []


def history_blocks(past: Past, plan: Plan, count: CountTokens) -> list[Block]:
    """Blocks of the finished rounds."""
    rounds = visible_history(past.messages, plan.memory)
    texts = [plain(messages) for messages in rounds]
    flat = [message for messages in texts for message in messages]
    critical = flat[-plan.limits.critical_messages :] if plan.limits.critical_messages else []
    critical_ids = {message.id for message in critical}
    older = [[m for m in messages if m.id not in critical_ids] for messages in texts]
    summary = _not_verbatim(past, flat, plan, count)
    return [
        *_older([messages for messages in older if messages], summary, past.language, plan, count),
        *_critical(critical, count),
        *_traces(rounds, plan.memory.full_context.rounds, past.language, count),
    ]


def _not_verbatim(past: Past, shown: Sequence[AnyMessage], plan: Plan, count: CountTokens) -> str:
    """The summary of all that is not shown: what has left the window, and what the cap hides in it (C-1)."""
    if not plan.memory.short_term.enabled:
        return ""
    ids = {message.id for message in shown}
    hidden = [message for message in plain(past.messages) if message.id not in ids]
    if not hidden:
        return past.summary
    return _summarise([redacted(hidden)], past.summary, past.language, plan, count)


def _critical(messages: list[AnyMessage], count: CountTokens) -> list[Block]:
    if not messages:
        return []
    rungs = [messages_rung("verbatim", messages, count)]
    return [make_block("last_messages", "critical", "history", rungs, source="history")]


def _older(
    rounds: list[list[AnyMessage]], summary: str, language: str, plan: Plan, count: CountTokens
) -> list[Block]:
    if not rounds and not summary:
        return []
    rungs = [_history_rung(rounds, 0, summary, language, count, name="verbatim")]
    clean = [redacted(messages) for messages in rounds]
    steps = [keep for keep in ROUND_LADDER if keep < len(rounds)]
    for keep in steps:
        left_out = len(rounds) - keep
        text = _summarise(clean[:left_out], summary, language, plan, count)
        rungs.append(_history_rung(rounds, left_out, text, language, count, name=f"{keep} rounds + summary"))
    everything = _summarise(clean, summary, language, plan, count)
    line = shorten_summary(everything, ONE_LINE_SUMMARY, count)
    rungs.append({**_history_rung([], 0, line, language, count, name="summary line"), "floor": True})
    rungs.append(REMOVED)
    return [make_block("history", "high", "history", rungs, source="history", order=HISTORY_ORDER)]


def _history_rung(
    rounds: list[list[AnyMessage]],
    left_out: int,
    summary: str,
    language: str,
    count: CountTokens,
    *,
    name: str,
) -> Rung:
    messages = [message for messages in rounds[left_out:] for message in messages]
    return messages_rung(name, messages, count, text=summary_text(summary, language))


def summary_text(summary: str, language: str) -> str:
    """The summary as a fenced block; empty without one."""
    if not summary:
        return ""
    label = sentences("summary_label").in_language(language)
    return fenced("summary", [label]).replace("</summary>", f"{summary}\n</summary>")


def _summarise(
    rounds: list[list[AnyMessage]], summary: str, language: str, plan: Plan, count: CountTokens
) -> str:
    """The summary extended over rounds without sensitive data."""
    clean = [message for messages in rounds for message in messages]
    known = known_words(summary, clean, plan)
    return extend_summary(summary, clean, language, plan.memory.summary.max_tokens, count, known)


def redacted(messages: Iterable[AnyMessage]) -> list[AnyMessage]:
    """The messages without sensitive data, fences and signals, fit for a summary (RF-16, RF-33)."""
    return [message.model_copy(update={"content": _clean(lasting_part(message))}) for message in messages]


@lru_cache(maxsize=512)
def _clean(text: str) -> str:
    """A message stays the same for its life in the window, and looking through it takes longest."""
    return "\n".join(as_data(line) for line in redact(text).text.splitlines())


def _traces(rounds: list[list[AnyMessage]], traced: int, language: str, count: CountTokens) -> list[Block]:
    """Tool traces of earlier rounds: all or none, the oldest first to go (C-4, C-5).

    The newest one is cleared, then goes, only beyond the hard limit, last but for the summary (C-3). A
    message with text and calls is counted here and in the history: either may be left without the other.
    """
    with_trace = [(place, r) for place, r in enumerate(rounds) if any(_is_trace(m) for m in r)]
    blocks = []
    for place, messages in with_trace[-traced:] if traced else []:
        trace = [message for message in messages if _is_trace(message)]
        newest = place == with_trace[-1][0]
        rungs = [messages_rung("whole", trace, count, floor=newest)]
        if newest:
            rungs.append(messages_rung("read-only results cleared", cleared(trace, language), count))
        blocks.append(
            make_block(
                f"tool_trace:{len(rounds) - place}",
                "high",
                "history",
                [*rungs, REMOVED],
                source="history",
                order=NEWEST_TRACE_ORDER if newest else TRACE_ORDER,
                relevance=float(place),
            )
        )
    return blocks


def _is_trace(message: AnyMessage) -> bool:
    return isinstance(message, ToolMessage) or (isinstance(message, AIMessage) and bool(message.tool_calls))


def cleared(messages: Sequence[AnyMessage], language: str) -> list[AnyMessage]:
    """Results of read-only tools become a marker that says where the whole is; calls stay (IM-10)."""
    return [
        m.model_copy(update={"content": _marker(m, language)})
        if isinstance(m, ToolMessage) and m.additional_kwargs.get(READ_ONLY)
        else m
        for m in messages
    ]


def _marker(message: ToolMessage, language: str) -> str:
    return sentences("tool_result_cleared", reference=message.id).in_language(language)


def shortened(messages: Sequence[AnyMessage], language: str, count: CountTokens) -> list[AnyMessage]:
    """Every call stays; long results become their beginning and a line that says where the whole is."""
    return [
        m.model_copy(update={"content": _short(m, language, count)})
        if isinstance(m, ToolMessage) and count(str(m.text)) > SHORT_RESULT
        else m
        for m in messages
    ]


def _short(message: ToolMessage, language: str, count: CountTokens) -> str:
    note = sentences("tool_result_shortened", reference=message.id).in_language(language)
    kept = str(message.text)
    while (tokens := count(kept)) > SHORT_RESULT:
        # Nearly proportional, so few rounds; always at least one character less.
        kept = kept[: min(len(kept) * SHORT_RESULT // tokens, len(kept) - 1)]
    return f"{kept}\n{note}"


def present_blocks(present: list[AnyMessage], language: str, count: CountTokens) -> list[Block]:
    """The user's message, untouched, then the tool steps of this round (C-26).

    An earlier step gives its read-only results first, and beyond the hard limit the length of all of them;
    its calls always stay (IM-10).
    """
    if not present:
        return []
    question = [messages_rung("verbatim", present[:1], count)]
    blocks = [make_block("message", "critical", "message", question, source="user")]
    steps = _tool_steps(present[1:])
    for place, step in enumerate(steps, start=1):
        newest = place == len(steps)
        rungs = [messages_rung("whole", step, count)]
        if not newest:
            rest = cleared(step, language)
            rungs.append(messages_rung("cleared", rest, count, floor=True))
            rungs.append(messages_rung("shortened", shortened(rest, language, count), count))
        blocks.append(
            make_block(
                f"tool_step:{place}",
                "critical" if newest else "high",
                "message",
                rungs,
                source="tools",
                order=TRACE_ORDER,
                relevance=float(place),
            )
        )
    return blocks


def _tool_steps(messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
    """Each call of the model with its results."""
    steps: list[list[AnyMessage]] = []
    for message in messages:
        if not isinstance(message, ToolMessage) or not steps:
            steps.append([])
        steps[-1].append(message)
    return steps
