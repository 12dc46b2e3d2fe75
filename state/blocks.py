"""Blocks: everything that may enter a prompt, each with a tier and a ladder of renderings.

A block is plain data (it may lie in a LangGraph checkpoint while a turn waits), so it is a TypedDict that
the functions here build and read. Sources: design section 3, RF-56 to RF-62, C-24.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NotRequired

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from typing_extensions import TypedDict

Tier = Literal["critical", "high", "medium", "low"]

TIERS_CHEAPEST_FIRST: tuple[Tier, ...] = ("low", "medium", "high")
"""The order in which tiers give way; critical never does (RF-62)."""

Section = Literal["stable", "packs", "profile", "history", "turn", "message"]
"""Where a block stands in the prompt, in this order (design section 4)."""

CountTokens = Callable[[str], int]
"""Tokens of a text in the encoding of the model in use."""


class Rung(TypedDict):
    """One rendering of a block.

    ``text`` goes into the block's section; ``messages`` (history, tool steps) go in verbatim.
    ``floor`` marks the poorest rendering that may stay above the soft target (C-3). ``items`` says how many
    of the block's ids this rendering shows, where it is not all of them.
    """

    name: str
    text: str
    messages: list[AnyMessage]
    tokens: int
    floor: bool
    items: NotRequired[int]


class Block(TypedDict):
    """A part of the context: where it stands, what it is worth, and how it can be said shorter.

    ``order`` ranks blocks inside one tier (lower gives way first), ``relevance`` ranks blocks of one order.
    ``source`` names the step or store it came from, ``ids`` the memories, events or packs inside it.
    """

    name: str
    tier: Tier
    section: Section
    order: int
    relevance: float
    source: str
    ids: list[str]
    rungs: list[Rung]
    rung: int


class Step(TypedDict):
    """One step of compression, with the tokens of the whole request before and after it."""

    block: str
    tier: Tier
    action: Literal["compressed", "removed"]
    from_rung: str
    to_rung: str
    tokens_before: int
    tokens_after: int
    reason: str


MESSAGE_OVERHEAD = 4
"""Tokens that a chat template spends on one message beside its text (role and separators)."""


def message_text(message: AnyMessage) -> str:
    """Everything of a message that is sent, as text: its words, its calls, or the call that it answers."""
    return "\n".join(_sent_parts(message))


def message_tokens(message: AnyMessage, count: CountTokens) -> int:
    """Tokens of one message as it is sent, with its overhead (RF-34)."""
    # Part by part: joined, two parts could share a token that they do not share in the request.
    return sum(count(part) for part in _sent_parts(message)) + MESSAGE_OVERHEAD


def _sent_parts(message: AnyMessage) -> list[str]:
    parts = [str(message.text)]
    if isinstance(message, AIMessage) and message.tool_calls:
        parts.append(_sent_calls(message))
    if isinstance(message, ToolMessage):
        parts.append(message.tool_call_id)
    return [part for part in parts if part]


def _sent_calls(message: AIMessage) -> str:
    """The calls in the form of the chat completions API: the arguments are JSON in a JSON string."""
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"], ensure_ascii=False)},
        }
        for call in message.tool_calls
    ]
    return json.dumps(calls, ensure_ascii=False)


def text_rung(name: str, text: str, count: CountTokens, *, floor: bool = False) -> Rung:
    """A rung that is a text; the newline that will join it to the next block is counted with it."""
    return Rung(name=name, text=text, messages=[], tokens=count(text + "\n") if text else 0, floor=floor)


def messages_rung(
    name: str,
    messages: Sequence[AnyMessage],
    count: CountTokens,
    *,
    text: str = "",
    floor: bool = False,
) -> Rung:
    """A rung of verbatim messages, with an optional text (the summary of those left out)."""
    tokens = sum(message_tokens(message, count) for message in messages)
    return Rung(
        name=name,
        text=text,
        messages=list(messages),
        tokens=tokens + (count(text + "\n") if text else 0),
        floor=floor,
    )


REMOVED = Rung(name="removed", text="", messages=[], tokens=0, floor=False)
"""The last rung of every ladder that may vanish."""


def make_block(
    name: str,
    tier: Tier,
    section: Section,
    rungs: Sequence[Rung],
    *,
    source: str,
    order: int = 0,
    relevance: float = 0.0,
    ids: Iterable[str] = (),
) -> Block:
    """Build a block whose ladder only goes down: a rung that saves nothing is left out.

    A floor that is left out because it saves nothing passes its mark to the rung above it.
    """
    return Block(
        name=name,
        tier=tier,
        section=section,
        order=order,
        relevance=relevance,
        source=source,
        ids=list(ids),
        rungs=_descending(rungs if tier != "critical" else rungs[:1]),
        rung=0,
    )


def _descending(rungs: Sequence[Rung]) -> list[Rung]:
    kept: list[Rung] = [rungs[0]]
    for rung in rungs[1:]:
        if rung["tokens"] < kept[-1]["tokens"]:
            kept.append(rung)
        elif rung["floor"]:
            kept[-1] = {**kept[-1], "floor": True}
    return kept


def current(block: Block) -> Rung:
    """The rendering in use."""
    return block["rungs"][block["rung"]]


def shown_ids(block: Block) -> list[str]:
    """Ids of the memories, events or packs that the rendering in use shows (IM-46)."""
    rung = current(block)
    return block["ids"][: rung.get("items")] if rung["tokens"] else []


def total_tokens(blocks: Iterable[Block], overhead: int) -> int:
    """Tokens of the whole request: every block as it stands, and the fixed overhead."""
    return overhead + sum(current(block)["tokens"] for block in blocks)
