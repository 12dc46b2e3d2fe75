"""What one call of the model used, and what is learnt from it (A-8)."""

from contextlib import suppress

from langchain_core.messages import AIMessage

from recuerdo.nodes.call import Call
from recuerdo.nodes.call_llm.offline import USAGE_ESTIMATED
from recuerdo.state.counting import model_family
from recuerdo.state.errors import StoreError
from recuerdo.state.usage import CallUsage


def call_usage(reply: AIMessage, estimated: int, call: Call) -> CallUsage:
    """The call's tokens as the provider reports them, beside our own count of the request."""
    services, about, reported = call.services, reply.response_metadata, reply.usage_metadata
    name = about.get("model_name") or services.model._llm_type
    read = reported["input_tokens"] if reported else 0
    cached = (reported.get("input_token_details") or {}).get("cache_read", 0) if reported else 0
    return CallUsage(
        family=services.factor.family or model_family(name),
        estimated=estimated,
        reported=read,
        cached=min(cached, read),
        output=reported["output_tokens"] if reported else 0,
        total=reported["total_tokens"] if reported else 0,
        measured=reported is not None and not about.get(USAGE_ESTIMATED),
    )


async def learn_factor(usage: CallUsage, call: Call) -> None:
    """Correct the factor of the model. A database that is away costs a lesson, never the turn (IM-32)."""
    if usage["measured"]:
        with suppress(StoreError):
            await call.services.factor.learn(usage["estimated"], usage["reported"])
