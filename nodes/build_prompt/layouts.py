"""Three layouts: how blocks become messages in the prompt's order (design section 4).

Role, instructions, knowledge packs and what changes rarely always lead as a system message, and the user's own
words with the tool steps of the round always come last. What changes each turn stands

- ``tail_system``: in a system message after the history; OpenAI and most compatible servers;
- ``tail_user``: in front of the user's words, fenced; Anthropic, and templates that take one leading system
  message only;
- ``single``: at the end of the leading system message; simplest, worst for a provider's cache.

Templates that take one system message also want user and assistant by turns, so the last two layouts join
neighbours of one role and never begin with the assistant.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from recuerdo.state.blocks import MESSAGE_OVERHEAD, Block, CountTokens, Section, current
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.settings import Layout

sentences = load_sentences(__package__)

REPLY_PRIMING = 3
"""Tokens that a chat template spends on opening the reply."""

SYSTEM_MESSAGES: dict[Layout, int] = {"tail_system": 2, "tail_user": 1, "single": 1}

HEADINGS: tuple[tuple[Section, str], ...] = (("profile", "context"), ("turn", "turn_context"))

Content = str | list[str | dict[str, Any]]
"""A message's content: its text, or its parts."""

# Data cannot open or close this fence: blocks take tags out of what comes from outside.
_FENCE_OPENS, _FENCE_CLOSES = "<turn_context>\n", "\n</turn_context>\n\n"


def heading(key: str, plan: Plan) -> str:
    """A section's heading, in the plan's one language so that the prefix is the same for everybody."""
    return sentences(key).in_language(plan.language)


def overhead(
    plan: Plan, tools: Sequence[dict[str, Any]], count: CountTokens, layout: Layout = "tail_system"
) -> int:
    """Tokens that no block can save: message frames, headings, fence, opening, tool schemas (RF-34)."""
    frames = SYSTEM_MESSAGES[layout] * MESSAGE_OVERHEAD + REPLY_PRIMING
    headings = sum(count(heading(key, plan) + "\n\n") for _, key in HEADINGS)
    fence = count(_FENCE_OPENS) + count(_FENCE_CLOSES) if layout == "tail_user" else 0
    opening = 0 if layout == "tail_system" else count(heading("continued", plan)) + MESSAGE_OVERHEAD
    return frames + headings + fence + opening + tool_tokens(tools, count)


def tool_tokens(tools: Sequence[dict[str, Any]], count: CountTokens) -> int:
    """Tokens of the tool schemas as they are sent."""
    return sum(count(json.dumps(tool, ensure_ascii=False)) + MESSAGE_OVERHEAD for tool in tools)


def lay_out(
    blocks: Sequence[Block], thread: Sequence[AnyMessage], plan: Plan, layout: Layout = "tail_system"
) -> list[AnyMessage]:
    """The exact messages of the request. ``thread`` gives the order of history messages."""
    rare = [*_texts(blocks, "profile"), *_texts(blocks, "history")]
    # Up to the end of the packs everything is the plan's, so it is the same for every user (OR-17, OR-18).
    head = [*_texts(blocks, "stable"), *_texts(blocks, "packs"), *_headed("context", rare, plan)]
    turn = _headed("turn_context", _texts(blocks, "turn"), plan)
    history = _in_thread_order(blocks, "history", thread)
    present = _in_thread_order(blocks, "message", thread)
    if layout == "tail_system":
        return [_system(head), *history, *([_system(turn)] if turn else []), *present]
    talk = _in_turns([*history, *present], plan)
    if layout == "single":
        return [_system([*head, *turn]), *talk]
    question = str(present[0].id) if present else ""
    return [_system(head), *_before_question(turn, talk, question)]


def split_turn_part(text: str, systems: Sequence[str]) -> tuple[str, str]:
    """What ``tail_user`` has put in front of the user's newest message, and the user's own words.

    ``systems`` are the request's system messages: where they hold the turn's part, all of ``text`` is the
    user's, whatever fences it has.
    """
    title = sentences("turn_context")
    elsewhere = any(line in (title.es, title.en) for system in systems for line in system.splitlines())
    if elsewhere or not text.startswith(_FENCE_OPENS):
        return "", text
    part, _, words = text.removeprefix(_FENCE_OPENS).partition(_FENCE_CLOSES)
    return part, words


def is_opening(text: str) -> bool:
    """Whether ``text`` is the line that stands before an answer whose question was cut: nobody's words."""
    opening = sentences("continued")
    return text in (opening.es, opening.en)


def _system(texts: list[str]) -> SystemMessage:
    return SystemMessage("\n".join(texts))


def _in_turns(messages: Sequence[AnyMessage], plan: Plan) -> list[AnyMessage]:
    """The messages as strict templates take them: the user's first, and no two of one role in a row.

    Turns that failed leave questions without an answer, and a cut may leave an answer without its question.
    """
    talk: list[AnyMessage] = []
    for message in messages:
        if talk and _can_join(talk[-1], message):
            talk[-1] = message.model_copy(update={"content": _joined(talk[-1].content, message.content)})
        else:
            talk.append(message)
    if talk and not isinstance(talk[0], HumanMessage):
        talk.insert(0, HumanMessage(heading("continued", plan)))
    return talk


def _can_join(first: AnyMessage, second: AnyMessage) -> bool:
    if isinstance(first, HumanMessage):
        return isinstance(second, HumanMessage)
    both = isinstance(first, AIMessage) and isinstance(second, AIMessage)
    return both and not (getattr(first, "tool_calls", None) or getattr(second, "tool_calls", None))


def _before_question(turn: list[str], talk: list[AnyMessage], question: str) -> list[AnyMessage]:
    """The turn's part in front of the user's newest message, whose words stay as they are and last."""
    if not turn:
        return talk
    fence = _FENCE_OPENS + "\n".join(turn) + _FENCE_CLOSES
    return [
        message.model_copy(update={"content": _joined(fence, message.content, between="")})
        if message.id == question
        else message
        for message in talk
    ]


def _joined(first: Content, second: Content, between: str = "\n\n") -> Content:
    if isinstance(first, str) and isinstance(second, str):
        return first + between + second
    return [*_parts(first), *_parts(between), *_parts(second)]


def _parts(content: Content) -> list[str | dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def _texts(blocks: Iterable[Block], section: Section) -> list[str]:
    return [current(b)["text"] for b in blocks if b["section"] == section and current(b)["text"]]


def _headed(key: str, texts: list[str], plan: Plan) -> list[str]:
    return [heading(key, plan), *texts] if texts else []


def _in_thread_order(
    blocks: Iterable[Block], section: Section, thread: Sequence[AnyMessage]
) -> list[AnyMessage]:
    """The section's messages as they stood in the thread; a whole message wins over its plain text."""
    chosen: dict[str, AnyMessage] = {}
    for block in blocks:
        if block["section"] == section:
            chosen |= {str(message.id): message for message in current(block)["messages"]}
    return [chosen[str(message.id)] for message in thread if str(message.id) in chosen]
