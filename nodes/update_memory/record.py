"""Puts the turn's record together (IM-45, IM-46)."""

from recuerdo.nodes.call import Call
from recuerdo.nodes.update_memory.learn import Lesson
from recuerdo.state.record import BlockRecord, StepRecord, TopicRecord, TurnRecord
from recuerdo.state.turn import Summary, Work


def build_record(
    work: Work, call: Call, topic: TopicRecord, lesson: Lesson, summary: Summary | None
) -> TurnRecord:
    """Everything that happened in the turn, by names, ids and numbers."""
    turn, plan = work["turn"], call.services.plan
    return TurnRecord(
        turn=turn["id"],
        number=turn["number"],
        conversation=call.caller.conversation,
        at=turn["now"],
        mode=turn["mode"],
        plan=plan.name,
        draft=plan.draft,
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
        memories=_ids(work, "memories"),
        events=[],
        packs=[],
        unavailable=work["unavailable"],
        learnt=lesson.learnt(),
        usage=work.get("usage", {}),
        tool_rounds=work.get("tool_rounds", 0),
        summary_covers=summary["covers"] if summary else 0,
    )


def _ids(work: Work, block_name: str) -> list[str]:
    """Ids inside a block that is still in the prompt."""
    return [
        item
        for block in work["blocks"]
        if block["name"] == block_name and block["rungs"][block["rung"]]["tokens"]
        for item in block["ids"]
    ]
