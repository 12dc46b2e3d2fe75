"""Three layouts: how blocks become messages in the prompt's order (design section 4).

Role, instructions and what changes rarely always lead as a system message, and the user's own words with the
tool steps of the round always come last. What changes each turn stands

- ``tail_system``: in a system message after the history; OpenAI and most compatible servers;
- ``tail_user``: in front of the user's words, fenced; Anthropic, and templates that take one leading system
  message only;
- ``single``: at the end of the leading system message; simplest, worst for a provider's cache.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from recuerdo.state.blocks import MESSAGE_OVERHEAD, Block, CountTokens, Section, current
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.settings import Layout

sentences = load_sentences(__package__)

REPLY_PRIMING = 3
"""Tokens that a chat template spends on opening the reply."""

SYSTEM_MESSAGES: dict[Layout, int] = {"tail_system": 2, "tail_user": 1, "single": 1}

HEADINGS: tuple[tuple[Section, str], ...] = (("profile", "context"), ("turn", "turn_context"))

# Data cannot open or close this fence: blocks take tags out of what comes from outside.
_FENCE_OPENS, _FENCE_CLOSES = "<turn_context>\n", "\n</turn_context>\n\n"


def heading(key: str, plan: Plan) -> str:
    """A section's heading, in the plan's one language so that the prefix is the same for everybody."""
    return sentences(key).in_language(plan.language)


def overhead(
    plan: Plan, tools: Sequence[dict[str, Any]], count: CountTokens, layout: Layout = "tail_system"
) -> int:
    """Tokens that no block can save: message frames, headings, fence, tool schemas (RF-34)."""
    frames = SYSTEM_MESSAGES[layout] * MESSAGE_OVERHEAD + REPLY_PRIMING
    headings = sum(count(heading(key, plan) + "\n\n") for _, key in HEADINGS)
    fence = count(_FENCE_OPENS) + count(_FENCE_CLOSES) if layout == "tail_user" else 0
    return frames + headings + fence + tool_tokens(tools, count)


def tool_tokens(tools: Sequence[dict[str, Any]], count: CountTokens) -> int:
    """Tokens of the tool schemas as they are sent."""
    return sum(count(json.dumps(tool, ensure_ascii=False)) + MESSAGE_OVERHEAD for tool in tools)


def lay_out(
    blocks: Sequence[Block], thread: Sequence[AnyMessage], plan: Plan, layout: Layout = "tail_system"
) -> list[AnyMessage]:
    """The exact messages of the request. ``thread`` gives the order of history messages."""
    rare = [*_texts(blocks, "profile"), *_texts(blocks, "history")]
    head = [*_texts(blocks, "stable"), *_headed("context", rare, plan)]
    turn = _headed("turn_context", _texts(blocks, "turn"), plan)
    history = _in_thread_order(blocks, "history", thread)
    present = _in_thread_order(blocks, "message", thread)
    if layout == "single":
        return [_system([*head, *turn]), *history, *present]
    if layout == "tail_user":
        return [_system(head), *history, *_before_question(turn, present)]
    return [_system(head), *history, *([_system(turn)] if turn else []), *present]


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


def _system(texts: list[str]) -> SystemMessage:
    return SystemMessage("\n".join(texts))


def _before_question(turn: list[str], present: list[AnyMessage]) -> list[AnyMessage]:
    """The round with the turn's part in front of the user's words, which stay as they are and last."""
    if not turn:
        return present
    fence = _FENCE_OPENS + "\n".join(turn) + _FENCE_CLOSES
    return [
        message.model_copy(update={"content": _prefixed(fence, message.content)})
        if isinstance(message, HumanMessage)
        else message
        for message in present
    ]


def _prefixed(fence: str, content: str | list[str | dict[str, Any]]) -> str | list[str | dict[str, Any]]:
    if isinstance(content, str):
        return fence + content
    return [{"type": "text", "text": fence}, *content]


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
