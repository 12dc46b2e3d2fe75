"""The text of the running summary: by the model where one is configured, else extractive (RF-4, RF-5, C-2).

It is written after the reply and can only succeed: a model that is slow, fails or answers with something else
leaves the extractive summary. What a model's summary lost is added by code.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AnyMessage
from langgraph.constants import TAG_NOSTREAM

from recuerdo.nodes.build_context.history import redacted
from recuerdo.nodes.build_context.known import known_words
from recuerdo.nodes.call import Call
from recuerdo.nodes.call_llm.offline import OfflineResponder
from recuerdo.nodes.call_llm.usage import call_usage
from recuerdo.nodes.turn_log import holding_lease
from recuerdo.nodes.update_memory.summarise.draft import read_draft
from recuerdo.nodes.update_memory.summarise.prompt import summary_prompt
from recuerdo.state.blocks import message_tokens
from recuerdo.state.record import SummaryReason, SummaryRecord
from recuerdo.state.summary import Line, complete_summary, extend_summary
from recuerdo.state.turn import TurnInfo
from recuerdo.state.usage import CallUsage

logger = logging.getLogger(__name__)

SECONDS = 15.0
"""How long the model may take; the turn's row stays open that long."""

JSON_OVERHEAD = 2
"""Output tokens per token of the summary: its keys, quotes and brackets, and what is said twice."""


@dataclass(frozen=True)
class Written:
    """A summary's text, who wrote it and why, and what the model used for it."""

    text: str
    record: SummaryRecord
    usage: list[CallUsage] = field(default_factory=list)


@dataclass(frozen=True)
class _Answer:
    lines: list[Line]
    usage: list[CallUsage]


async def write_summary(
    previous: str, messages: Sequence[AnyMessage], language: str, turn: TurnInfo, call: Call
) -> Written:
    """Extend ``previous`` over ``messages``, without their sensitive data, in ``language``. Never fails.

    ``turn`` is the one that writes it: its lease is held meanwhile.
    """
    clean = redacted(messages)
    max_tokens = call.services.plan.memory.summary.max_tokens
    count = call.services.counter.count
    known = known_words(previous, clean, call.services.plan)

    def extractive(reason: SummaryReason, usage: list[CallUsage]) -> Written:
        text = extend_summary(previous, clean, language, max_tokens, count, known)
        return Written(text, SummaryRecord(by="extractive", reason=reason), usage)

    if why_not := _without_model(call):
        return extractive(why_not, [])
    try:
        async with holding_lease(call, turn), asyncio.timeout(SECONDS):
            answer = await _ask(previous, clean, language, call)
    except TimeoutError:
        return extractive("timed_out", [])
    except Exception as error:
        # Its text may quote the key or the conversation.
        logger.warning("the model wrote no summary: %s", type(error).__name__)
        return extractive("failed", [])
    if not answer.lines:
        return extractive("unreadable", answer.usage)
    text = complete_summary(answer.lines, previous, clean, language, max_tokens, count, known)
    return Written(text, SummaryRecord(by="model"), answer.usage)


def _without_model(call: Call) -> SummaryReason | None:
    if call.services.plan.memory.summary.by == "extractive":
        return "plan"
    return "offline" if isinstance(call.services.model, OfflineResponder) else None


async def _ask(previous: str, messages: Sequence[AnyMessage], language: str, call: Call) -> _Answer:
    """Ask the model, out of the user's stream (known fault 23)."""
    services, limits = call.services, call.services.plan.limits
    count = services.counter.count
    request = summary_prompt(previous, messages, language, limits.compress_above, count)
    longest = min(services.plan.memory.summary.max_tokens * JSON_OVERHEAD, limits.max_output)
    model = services.model.bind(max_tokens=longest)
    reply = await model.ainvoke(request, {"tags": [TAG_NOSTREAM], "run_name": "summary"})
    estimated = sum(message_tokens(message, count) for message in request)
    return _Answer(read_draft(str(reply.text)), [call_usage(reply, estimated, call)])
