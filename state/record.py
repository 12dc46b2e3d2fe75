"""The record of a turn: what went into the prompt and why, what came out and what was learnt (IM-45, IM-46).

It holds names, ids and numbers, and of texts only the user's own quote behind something learnt.
"""

from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from recuerdo.state.blocks import Block, Tier, current, shown_ids
from recuerdo.state.turn import ApprovalNote, BuildStep, Estimate, ProviderCall, TopicChange
from recuerdo.state.usage import CallUsage, Usage


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
            ids=shown_ids(block),
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
    ``maybe`` are symbols that the user may mean: he is asked, nothing is assumed.
    """

    name: str | None
    changed: bool = False
    returned_to: bool = False
    reason: TopicChange | None = None
    similarity: float | None = None
    maybe: list[str] = []


class Learnt(_Entry):
    """Something that the turn taught, with the user's words that say so.

    Of a memory that was confirmed or forgotten the value is its id: what is forgotten is quoted nowhere.
    """

    type: Literal["preference", "symbol", "memory"]
    key: str
    value: Any
    quote: str | None
    confidence: float


class CostRecord(_Entry):
    """The turn's cost in usage units with what the provider's cache saved, and as it would be without (OR-19).

    ``saved_share`` is measured, 0 to 1. ``unpriced`` names model families that the plan has no price for
    (A-29); the units are None when it has none at all.
    """

    units: Decimal | None = None
    units_without_cache: Decimal | None = None
    saved_share: Decimal | None = None
    unpriced: list[str] = []

    @classmethod
    def of(cls, usage: Usage) -> "CostRecord":
        """The cost in ``usage``."""
        return cls(
            units=usage.units,
            units_without_cache=usage.units_without_cache,
            saved_share=usage.saved_share,
            unpriced=list(usage.unpriced),
        )


SummaryReason = Literal["plan", "offline", "timed_out", "failed", "unreadable"]
"""Why the model did not write the summary: the plan says so, there is none, or it could not."""


class SummaryRecord(_Entry):
    """Who wrote the summary in this turn, and why it was not the model."""

    by: Literal["model", "extractive"]
    reason: SummaryReason | None = None


class TurnRecord(_Entry):
    """What ``turn.record`` gives (design section 9)."""

    turn: str
    number: int
    conversation: str
    at: str
    mode: str
    plan: str
    draft: bool
    status: Literal["done", "waiting"] = "done"
    revision: str | None = None
    revision_sha256: str | None = None
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
    providers: list[ProviderCall] = []
    memories: list[str]
    events: list[str]
    packs: list[str]
    unavailable: list[str]
    learnt: list[Learnt]
    confirmed: list[Learnt] = []
    forgotten: list[Learnt] = []
    usage: dict[str, int]
    tool_rounds: int
    approvals: list[ApprovalNote] = []
    summary_covers: int
    summary: SummaryRecord | None = None
    calls: list[CallUsage] = []
    cost: CostRecord = CostRecord()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def memory(self) -> str:
        """What the turn had of memory: a preview begins with none each time, and that is normal (LA-7)."""
        return "empty (preview)" if self.mode == "preview" else "in use"
