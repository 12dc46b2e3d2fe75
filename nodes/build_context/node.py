"""Step 2 of the turn: load the context and turn it into blocks (RF-47). One file per step a to h."""

import logging
from collections.abc import Callable, Sequence
from decimal import localcontext
from functools import partial
from typing import Any

from recuerdo.nodes.build_context.alerts import alert_blocks
from recuerdo.nodes.build_context.conflicts import Conflict, find_conflicts, note_conflicts, with_notes
from recuerdo.nodes.build_context.conversation import conversation_blocks
from recuerdo.nodes.build_context.document import context_document
from recuerdo.nodes.build_context.education import education_blocks
from recuerdo.nodes.build_context.figures import EXACT
from recuerdo.nodes.build_context.gather import gather
from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.history import Past, history_blocks, present_blocks, split_present
from recuerdo.nodes.build_context.instructions import instruction_blocks
from recuerdo.nodes.build_context.key_events import key_event_blocks
from recuerdo.nodes.build_context.market import MARKET_PARTS
from recuerdo.nodes.build_context.memories import memory_blocks
from recuerdo.nodes.build_context.packs import load_packs, pack_blocks
from recuerdo.nodes.build_context.portfolio import portfolio_blocks
from recuerdo.nodes.build_context.preferences import preference_blocks
from recuerdo.nodes.build_context.profile import profile_blocks
from recuerdo.nodes.build_context.role import role_blocks
from recuerdo.nodes.build_context.signals import signal_blocks, without_signals
from recuerdo.nodes.call import Call
from recuerdo.nodes.failure import failed
from recuerdo.state.blocks import Block, CountTokens, current
from recuerdo.state.errors import RecuerdoError
from recuerdo.state.turn import BuildStep, ProviderCall, TurnState, TurnUpdate, Work
from recuerdo.stores.packs import Pack

_log = logging.getLogger(__name__)

_PROVIDERS = {
    "market": "calendar",
    "events": "events",
    "distant_events": "events",
    "interests": "interests",
}
"""Providers of the blocks that share a step with others'."""


async def build_context(state: TurnState, call: Call) -> TurnUpdate:
    """Load every source and write the blocks, the context document and the trace of the build.

    A knowledge pack that cannot be used ends the turn: without its rules there is no answer (OR-15).
    """
    try:
        packs = await load_packs(call.services, call.caller.tenant)
    except RecuerdoError as error:
        return failed(error)
    data = await gather(state, call)
    count = call.services.counter.count
    work = state["work"] or Work()
    conflicts = find_conflicts(data.memories, packs)
    await note_conflicts(conflicts, work, call)
    with localcontext(EXACT):
        blocks = _blocks(data, packs, conflicts, state, call, count)
        document = _document(data, state, call)
    shown = {memory_id for block in blocks if block["name"] == "memories" for memory_id in block["ids"]}
    return {
        "work": {
            "lasting_language": data.lasting_language,
            "symbols": list(data.symbols),
            "resolved_by": data.resolved_by,
            "intent": data.intent,
            "intent_confidence": data.intent_confidence,
            "topic": data.topic,
            "context": document,
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


def _blocks(
    data: Gathered,
    packs: Sequence[Pack],
    conflicts: Sequence[Conflict],
    state: TurnState,
    call: Call,
    count: CountTokens,
) -> list[Block]:
    plan = call.services.plan
    work = state["work"]
    assert work is not None, "receive has run"
    past, present = split_present(state["messages"], work["turn"]["message_id"])
    preview = call.caller.mode == "preview"
    shown = past if data.signals_allowed else without_signals(past, data.lasting_language)
    history = Past([] if preview else shown, "" if preview else _left_window(state), data.lasting_language)
    rounds = history_blocks(history, plan, count)
    # What was remembered from a message that stands there word for word would be said twice.
    said = {message.id for block in rounds for message in current(block)["messages"]}
    # With short-term memory off, what was said in this conversation may not come back by this way (LA-5).
    off = None if plan.memory.short_term.enabled else call.caller.conversation
    recalled = [
        m for m in data.memories if m.message_id not in said and (off is None or m.conversation != off)
    ]
    text = work["turn"]["text"]
    memories = with_notes(recalled, conflicts, data.language)
    fixed = (plan.disclaimer.es, plan.disclaimer.en)
    facts: list[tuple[str, Callable[[], list[Block]]]] = [
        ("profile", lambda: profile_blocks(data, count)),
        ("preferences", lambda: preference_blocks(data, count)),
        ("history", lambda: _conversation(data, state, call, count)),
        *((name, partial(build, data, count)) for name, build in MARKET_PARTS.items()),
        ("positions", lambda: portfolio_blocks(data, count)),
        ("alerts", lambda: alert_blocks(data, count)),
        ("signals", lambda: signal_blocks(data, count)),
        ("education", lambda: education_blocks(data, count)),
        (
            "memories",
            lambda: memory_blocks(memories, data.phrasing, plan.memory.recall_tokens, count, fixed=fixed),
        ),
        ("key_events", lambda: key_event_blocks(data.key_events, text, data.phrasing, count)),
    ]
    return [
        *role_blocks(plan, count),
        *pack_blocks(packs, plan, count),
        *rounds,
        *(block for name, build in facts for block in _written(name, build, data)),
        # After all others, for they say which of them are away.
        *instruction_blocks(data, plan, count),
        *present_blocks(present, data.language, count),
    ]


def _written(name: str, build: Callable[[], list[Block]], data: Gathered) -> list[Block]:
    """What ``build`` writes of the facts of one source; a fault in it costs them, never the turn (IM-40, RF-63)."""
    try:
        return build()
    except Exception as error:
        # Only its kind: the text may quote what users wrote.
        _log.error("building the context: writing %s failed: %s", name, type(error).__name__)
        data.unavailable[name] = f"{name}: {type(error).__name__}"
        return []


def _conversation(data: Gathered, state: TurnState, call: Call, count: CountTokens) -> list[Block]:
    """Which conversation this is and, unless short-term memory is off, how far it has come (LA-5, C-28)."""
    blocks = conversation_blocks(
        data,
        call.caller.conversation,
        state.get("messages_count") or 0,
        [topic["label"] for topic in state.get("topics") or []],
        count,
    )
    if call.services.plan.memory.short_term.enabled:
        return blocks
    return [block for block in blocks if block["section"] != "turn"]


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
