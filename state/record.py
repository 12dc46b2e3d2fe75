"""The record of a turn: what went into the prompt and why, what came out and what was learnt (IM-45, IM-46).

It holds names, ids and numbers, and of texts only the user's own quote behind something learnt.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from recuerdo.state.blocks import Block, Tier, current
from recuerdo.state.turn import BuildStep, Estimate, TopicChange


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True)


class BlockRecord(_Entry):
    """A block as it went into the request."""

    name: str
    tier: Tier
    section: str
    rung: str
    rung_index: int
    rungs: int
    tokens: int
    source: str
    ids: list[str]

    @classmethod
    def of(cls, block: Block) -> "BlockRecord":
        """Describe a block on the rung it ended on."""
        rung = current(block)
        return cls(
            name=block["name"],
            tier=block["tier"],
            section=block["section"],
            rung=rung["name"],
            rung_index=block["rung"],
            rungs=len(block["rungs"]),
            tokens=rung["tokens"],
            source=block["source"],
            ids=block["ids"],
        )


class StepRecord(_Entry):
    """One step of compression."""

    block: str
    tier: Tier
    action: Literal["compressed", "removed"]
    from_rung: str
    to_rung: str
    tokens_before: int
    tokens_after: int
    reason: str


class TopicRecord(_Entry):
    """The topic of the turn; ``changed`` and ``returned_to`` compare it with the turn before, ``reason`` says
    what showed the change (A-2), ``similarity`` is the cosine to the last messages where it was needed.
    """

    name: str | None
    changed: bool = False
    returned_to: bool = False
    reason: TopicChange | None = None
    similarity: float | None = None


class Learnt(_Entry):
    """Something that the turn taught, with the user's words that say so."""

    type: Literal["preference", "symbol", "memory"]
    key: str
    value: Any
    quote: str | None
    confidence: float


class TurnRecord(_Entry):
    """What ``turn.record`` gives (design section 9)."""

    turn: str
    number: int
    conversation: str
    at: str
    mode: str
    plan: str
    draft: bool
    language: str
    symbols: list[str]
    resolved_by: str
    intent: str
    intent_confidence: float
    topic: TopicRecord
    blocks: list[BlockRecord]
    steps: list[StepRecord]
    estimate: Estimate
    trace: list[BuildStep]
    memories: list[str]
    events: list[str]
    packs: list[str]
    unavailable: list[str]
    learnt: list[Learnt]
    usage: dict[str, int]
    tool_rounds: int
    summary_covers: int
