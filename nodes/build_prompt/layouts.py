"""The layout ``tail_system``: how blocks become messages in the prompt's order (design section 4).

First system message: role, instructions, then what changes rarely. Then the history. A second system
message says what changes each turn; the user's own words and the tool steps of the round come last.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, SystemMessage

from recuerdo.state.blocks import MESSAGE_OVERHEAD, Block, CountTokens, Section, current
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)

REPLY_PRIMING = 3
"""Tokens that a chat template spends on opening the reply."""

HEADINGS: tuple[tuple[Section, str], ...] = (("profile", "context"), ("turn", "turn_context"))


def heading(key: str, plan: Plan) -> str:
    """A section's heading, in the plan's one language so that the prefix is the same for everybody."""
    return sentences(key).in_language(plan.language)


def overhead(plan: Plan, tools: Sequence[dict[str, Any]], count: CountTokens) -> int:
    """Tokens that no block can save: message frames, headings, tool schemas (RF-34)."""
    frames = 2 * MESSAGE_OVERHEAD + REPLY_PRIMING
    headings = sum(count(heading(key, plan) + "\n\n") for _, key in HEADINGS)
    return frames + headings + tool_tokens(tools, count)


def tool_tokens(tools: Sequence[dict[str, Any]], count: CountTokens) -> int:
    """Tokens of the tool schemas as they are sent."""
    return sum(count(json.dumps(tool, ensure_ascii=False)) + MESSAGE_OVERHEAD for tool in tools)


def lay_out(blocks: Sequence[Block], thread: Sequence[AnyMessage], plan: Plan) -> list[AnyMessage]:
    """The exact messages of the request. ``thread`` gives the order of history messages."""
    rare = [*_texts(blocks, "profile"), *_texts(blocks, "history")]
    head = "\n".join([*_texts(blocks, "stable"), *_headed("context", rare, plan)])
    turn = "\n".join(_headed("turn_context", _texts(blocks, "turn"), plan))
    return [
        SystemMessage(head),
        *_in_thread_order(blocks, "history", thread),
        *([SystemMessage(turn)] if turn else []),
        *_in_thread_order(blocks, "message", thread),
    ]


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
