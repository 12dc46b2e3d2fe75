"""Puts the turn's record together (IM-45, IM-46)."""

from recuerdo.nodes.call import Call
from recuerdo.nodes.update_memory.learn import Lesson
from recuerdo.nodes.update_memory.topics import topic_record
from recuerdo.nodes.update_memory.window import Window
from recuerdo.state.blocks import shown_ids
from recuerdo.state.record import BlockRecord, CostRecord, StepRecord, TopicRecord, TurnRecord
from recuerdo.state.turn import Work
from recuerdo.state.usage import Usage, usage_of


def build_record(work: Work, call: Call, topic: TopicRecord, lesson: Lesson, window: Window) -> TurnRecord:
    """Everything that happened in the turn, by names, ids and numbers."""
    turn, plan, revision = work["turn"], call.services.plan, call.services.revision
    calls = work.get("usage", [])
    usage = usage_of(calls, plan.prices)
    return TurnRecord(
        turn=turn["id"],
        number=turn["number"],
        conversation=call.caller.conversation,
        at=turn["now"],
        mode=turn["mode"],
        plan=plan.name,
        draft=revision is None,
        revision=revision.label if revision else None,
        revision_sha256=revision.sha256 if revision else None,
        language=turn["language"],
        symbols=work["symbols"],
        resolved_by=work["resolved_by"],
        intent=work["intent"],
        intent_confidence=work["intent_confidence"],
        topic=topic,
        blocks=[BlockRecord.of(block) for block in work["blocks"]],
        steps=[StepRecord.model_validate(step) for step in work["steps"]],
        estimate=work["estimate"],
        trace=work["trace"],
        providers=work["providers"],
        memories=_ids(work, "memories"),
        events=_ids(work, "key_events"),
        packs=_ids(work, "packs"),
        unavailable=work["unavailable"],
        learnt=lesson.learnt(),
        confirmed=lesson.confirmed,
        forgotten=lesson.forgotten,
        usage=_tokens(usage),
        tool_rounds=work.get("tool_rounds", 0),
        approvals=work.get("approvals", []),
        summary_covers=window.summary["covers"] if window.summary else 0,
        summary=window.written,
        calls=calls,
        cost=CostRecord.of(usage),
    )


def waiting_record(work: Work, messages_count: int, call: Call) -> TurnRecord:
    """The record so far of a turn that waits for a person: nothing was learnt yet."""
    topic = topic_record(work["topic"])
    record = build_record(work, call, topic, Lesson(), Window([], None, messages_count))
    return record.model_copy(update={"status": "waiting"})


def _tokens(usage: Usage) -> dict[str, int]:
    """Tokens of all calls of the turn, cached and uncached input apart (RF-21, OR-19)."""
    names = ("input", "cached", "uncached", "output", "total")
    return {name: getattr(usage, name) for name in names}


def _ids(work: Work, block_name: str) -> list[str]:
    """Ids that a block shows in the prompt."""
    return [item for block in work["blocks"] if block["name"] == block_name for item in shown_ids(block)]
