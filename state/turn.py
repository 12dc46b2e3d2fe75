"""The state of the turn graph: what the next turn continues from, and the working keys of the present one."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from recuerdo.state.blocks import Block, Step
from recuerdo.state.usage import CallUsage

Mode = Literal["live", "preview"]


class Topic(TypedDict):
    """A subject of the conversation with the symbols that belong to it (RF-44, IM-42).

    ``key`` tells subjects apart whatever the language of their labels: topics of one key mean the same (A-13).
    """

    key: str
    label: str
    symbols: list[str]


TopicChange = Literal["symbols", "subject", "marker", "similarity"]
"""Why a topic counts as changed (A-2): other symbols, another subject by name, words that say so, or a message
unlike the last ones."""


class TopicReading(TypedDict):
    """The topic of a turn beside that of the turn before (RF-6, IM-42).

    ``topic`` is None while nothing was spoken of. ``similarity`` is the cosine to the nearest of the last
    messages, None when it was not needed. ``maybe`` are symbols that the user may mean, to be asked about.
    """

    topic: Topic | None
    changed: bool
    returned_to: bool
    reason: TopicChange | None
    similarity: float | None
    maybe: NotRequired[list[str]]


class Summary(TypedDict):
    """The running summary: how many messages it covers, and how many of them have left the window (C-1)."""

    text: str
    covers: int
    left_window: int


class PendingMemory(TypedDict):
    """A memory that is stored once the user has said yes (IM-34); its text holds nothing sensitive.

    ``supersedes`` names memories, by their ids, whose place it takes; ``updates`` the one that only gets this text
    and stays what it is (ET-12). ``confidence`` 0 to 1, None: inferred.
    """

    kind: str
    text: str
    language: str
    confidence: float | None
    quote: str | None
    message_id: str | None
    metadata: dict[str, Any]
    supersedes: list[str]
    updates: NotRequired[str | None]


class MemoryEdit(TypedDict):
    """A memory that the model changed by its tool in this turn; ``before`` is the text that it had, None: it is new."""

    id: str
    before: str | None


class TurnInfo(TypedDict):
    """Who and when: fixed in ``receive``. ``now`` is the turn's clock, ISO 8601 with offset.

    ``revision`` is the hash of the plan's revision that the whole turn runs under, None for a draft.
    """

    id: str
    number: int
    parent: str | None
    message_id: str
    now: str
    language: str
    mode: Mode
    text: str
    redacted: str
    revision: NotRequired[str | None]


class ApprovalNote(TypedDict):
    """A call that needed a second person: who or which rule of the plan decided, and how."""

    id: str
    tool: str
    status: str
    rule: str | None
    decided_by: str | None


class BuildStep(TypedDict):
    """One step of the context's construction (RF-47, IM-35)."""

    step: str
    status: Literal["ok", "empty", "skipped", "unavailable", "late"]
    ms: float
    size: int
    reason: str


class ProviderCall(TypedDict):
    """One source or store that was asked for the context, with the tokens it brought (IM-35).

    ``age_seconds`` is how long ago the source was asked for the oldest part of it, ``as_of`` the oldest instant
    (ISO 8601) that the data itself bears; None where there are none, and in records older than these.
    """

    name: str
    status: Literal["ok", "empty", "skipped", "unavailable", "late"]
    ms: float
    tokens: int
    reason: str
    age_seconds: NotRequired[float | None]
    as_of: NotRequired[str | None]


class Estimate(TypedDict):
    """Tokens of the request before the call (RF-24), by our own count.

    ``target`` and ``limit`` are kept by the count times ``factor``, learnt from the model's provider (A-8);
    records that are older than factors have none.
    """

    input_tokens: int
    before: int
    overhead: int
    target: int
    limit: int
    at: str
    factor: NotRequired[float]


ToolChoice = Literal["auto", "none"]
"""Whether the model may call tools in its answer."""


class Request(TypedDict):
    """Exactly what goes to the model in one call: messages, tool schemas and limits (RF-51)."""

    messages: list[AnyMessage]
    tools: list[dict[str, Any]]
    tool_choice: ToolChoice
    max_output_tokens: int
    input_tokens: int


class TurnError(TypedDict):
    """Why a turn ended without a reply, in both languages; ``kind`` is the name of the error class."""

    kind: str
    es: str
    en: str


class Work(TypedDict, total=False):
    """Level 1 (OR-3, OR-5): lives while the turn runs, can be inspected, cleared by the last node."""

    turn: TurnInfo
    lasting_language: str
    symbols: list[str]
    resolved_by: str
    intent: str
    intent_confidence: float
    topic: TopicReading
    context: dict[str, Any]
    trace: list[BuildStep]
    providers: list[ProviderCall]
    unavailable: list[str]
    recalled: list[str]
    blocks: list[Block]
    compressed: bool
    steps: list[Step]
    estimate: Estimate
    requests: list[Request]
    tool_rounds: int
    proposed: list[PendingMemory]
    memory_edits: list[MemoryEdit]
    approvals: list[ApprovalNote]
    usage: list[CallUsage]
    partial: str
    record: dict[str, Any]


def merge_work(old: Work | None, new: Work | None) -> Work | None:
    """Reducer of the working keys: given keys replace old ones, None clears all.

    A new turn starts from nothing, whatever a turn that broke off has left.
    """
    if new is None or "turn" in new:
        return new
    return {**(old or {}), **new}


class TurnUpdate(TypedDict, total=False):
    """What a node may change; ``messages`` may hold removals too."""

    messages: Sequence[BaseMessage]
    summary: Summary | None
    topics: list[Topic]
    language: str
    messages_count: int
    last_turn: str | None
    pending_memories: list[PendingMemory]
    error: TurnError | None
    work: Work | None


class TurnState(TypedDict, total=False):
    """One thread. ``work`` is level 1; everything else is what the next turn continues from."""

    messages: Annotated[list[AnyMessage], add_messages]
    summary: Summary | None
    topics: list[Topic]
    language: str
    messages_count: int
    last_turn: str | None
    pending_memories: list[PendingMemory]
    error: TurnError | None
    work: Annotated[Work | None, merge_work]
