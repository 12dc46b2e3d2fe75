"""The state of the learning graph: one sweep over the evidence of one tenant. Plain data, never a piece of evidence."""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class ApprovedTool(TypedDict):
    """A tool whose calls people approved often enough that a rule may be found."""

    plan: str
    tool: str
    approved: int


class IdleTool(TypedDict):
    """A tool that was not used in the period: ``last_used`` before it, or never, and then in force since that day."""

    plan: str
    tool: str
    uses: int
    last_used: str | None
    in_force_since: str | None
    revision: int | None
    tokens: int


class AmbiguousTurn(TypedDict):
    """A run that was flagged as ambiguous and that a person ended: the user's messages, and what came of it."""

    plan: str
    revision: int | None
    evidence: str
    turn: str
    approval: str
    at: str
    user: str | None
    messages: list[str]
    called: list[str]
    refused: list[str]


class Finding(TypedDict):
    """What the evidence says, as a proposal is made of it. ``change`` is an amendment of the plan as JSON."""

    kind: Literal["rule_suggestion", "eval_case_suggestion", "skill_lifecycle"]
    plan: str
    revision: int | None
    subject: str
    change: dict[str, Any]
    es: str
    en: str
    effect: dict[str, float]
    user: str | None
    idle: NotRequired[IdleTool]
    ambiguous: NotRequired[list[AmbiguousTurn]]


class LearningState(TypedDict, total=False):
    """One sweep. ``tenant`` and ``now`` (ISO 8601 with offset) come with the run, else from settings and clock."""

    tenant: str
    now: str
    evidence: int
    approved: list[ApprovedTool]
    idle: list[IdleTool]
    ambiguous: list[AmbiguousTurn]
    findings: list[Finding]
    proposals: list[str]
