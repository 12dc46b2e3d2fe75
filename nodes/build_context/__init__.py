"""Step 2 of the turn: load the context and turn it into blocks (RF-47). One file per step a to h."""

from typing import Any

from recuerdo.nodes.build_context.alerts import alert_blocks
from recuerdo.nodes.build_context.conversation import conversation_blocks
from recuerdo.nodes.build_context.document import context_document
from recuerdo.nodes.build_context.gather import gather
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.history import Past, history_blocks, present_blocks, split_present
from recuerdo.nodes.build_context.instructions import instruction_blocks
from recuerdo.nodes.build_context.market import market_blocks
from recuerdo.nodes.build_context.memories import memory_blocks
from recuerdo.nodes.build_context.portfolio import portfolio_blocks
from recuerdo.nodes.build_context.preferences import preference_blocks
from recuerdo.nodes.build_context.profile import profile_blocks
from recuerdo.nodes.build_context.role import role_blocks
from recuerdo.nodes.build_context.signals import signal_blocks
from recuerdo.nodes.call import Call
from recuerdo.state.blocks import Block, CountTokens, current
from recuerdo.state.turn import BuildStep, ProviderCall, TurnState, TurnUpdate, Work

_PROVIDERS = {
    "market": "calendar",
    "events": "events",
    "distant_events": "events",
    "interests": "interests",
}
"""Providers of the blocks that share a step with others'."""


async def build_context(state: TurnState, call: Call) -> TurnUpdate:
    """Load every source and write the blocks, the context document and the trace of the build."""
    data = await gather(state, call)
    count = call.services.counter.count
    blocks = _blocks(data, state, call, count)
    work = state["work"] or Work()
    shown = {memory_id for block in blocks if block["name"] == "memories" for memory_id in block["ids"]}
    return {
        "work": {
            "lasting_language": data.lasting_language,
            "symbols": list(data.symbols),
            "resolved_by": data.resolved_by,
            "intent": data.intent,
            "intent_confidence": data.intent_confidence,
            "topic": data.topic,
            "context": _document(data, state, call),
            "trace": [_sized(step, blocks) for step in data.trace],
            "providers": [_counted(provider, blocks) for provider in data.providers],
            "unavailable": _unavailable(data),
            "recalled": work.get("recalled", [str(m.id) for m in data.memories if str(m.id) in shown]),
            "blocks": blocks,
            "compressed": False,
            "steps": [],
        }
    }


def _unavailable(data: Gathered) -> list[str]:
    """What was away in this turn, for the record."""
    away = {**data.unavailable, **({"index": data.index_away} if data.index_away else {})}
    return [f"{name}: {reason}" for name, reason in sorted(away.items())]


def _blocks(data: Gathered, state: TurnState, call: Call, count: CountTokens) -> list[Block]:
    plan = call.services.plan
    work = state["work"]
    assert work is not None, "receive has run"
    past, present = split_present(state["messages"], work["turn"]["message_id"])
    preview = call.caller.mode == "preview"
    history = Past([] if preview else past, "" if preview else _left_window(state), data.lasting_language)
    rounds = history_blocks(history, plan, count)
    # What was remembered from a message that stands there word for word would be said twice.
    verbatim = {message.id for block in rounds for message in current(block)["messages"]}
    recalled = [memory for memory in data.memories if memory.message_id not in verbatim]
    return [
        *role_blocks(plan, count),
        *profile_blocks(data, count),
        *preference_blocks(data, count),
        *rounds,
        *conversation_blocks(
            data,
            call.caller.conversation,
            state.get("messages_count") or 0,
            [topic["label"] for topic in state.get("topics") or []],
            count,
        ),
        *market_blocks(data, count),
        *portfolio_blocks(data, count),
        *alert_blocks(data, count),
        *signal_blocks(data, count),
        *memory_blocks(recalled, data.phrasing, plan.memory.recall_tokens, count),
        *instruction_blocks(data, plan, count),
        *present_blocks(present, data.language, count),
    ]


def _left_window(state: TurnState) -> str:
    """The stored summary, if something that it covers is no longer in the window."""
    summary = state.get("summary")
    return summary["text"] if summary and summary["left_window"] else ""


def _document(data: Gathered, state: TurnState, call: Call) -> dict[str, Any]:
    summary = state.get("summary")
    return context_document(
        data,
        call.caller.user,
        call.caller.conversation,
        state.get("messages_count") or 0,
        summary["text"] if summary else None,
        state.get("topics") or [],
    )


def _sized(step: BuildStep, blocks: list[Block]) -> BuildStep:
    size = sum(current(block)["tokens"] for block in blocks if block["source"] == step["step"])
    return {**step, "size": size}


def _counted(provider: ProviderCall, blocks: list[Block]) -> ProviderCall:
    tokens = sum(current(block)["tokens"] for block in blocks if _provider(block) == provider["name"])
    return {**provider, "tokens": tokens}


def _provider(block: Block) -> str:
    """Who brought the block's data: the steps of RF-47 join providers that IM-35 tells apart."""
    if block["name"].startswith(("quotes:", "other_quotes")):
        return "quotes"
    return _PROVIDERS.get(block["name"], block["source"])
