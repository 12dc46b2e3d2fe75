"""The record shows what went in and what gave way, without the texts (IM-45, IM-46, RF-61)."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from recuerdo.state.blocks import REMOVED, make_block, text_rung
from recuerdo.state.fit import Budget, fit
from recuerdo.state.record import BlockRecord, StepRecord, TopicRecord, TurnRecord
from recuerdo.state.turn import Estimate


def record() -> TurnRecord:
    rungs = [text_rung("best 2", "uno\ndos", len), text_rung("best 1", "uno", len), REMOVED]
    block = make_block("memories", "low", "turn", rungs, source="memories", ids=["m1", "m2"])
    fitted = fit([block], 0, Budget(target=5, limit=8))
    return TurnRecord(
        turn="turn-1",
        number=1,
        conversation="conv",
        at=datetime(2025, 12, 5, 15, tzinfo=UTC).isoformat(),
        mode="live",
        plan="trading",
        draft=True,
        language="es",
        symbols=["AAPL"],
        resolved_by="message",
        intent="price",
        intent_confidence=0.9,
        topic=TopicRecord(name=None),
        blocks=[BlockRecord.of(b) for b in fitted.blocks],
        steps=[StepRecord.model_validate(step) for step in fitted.steps],
        estimate=Estimate(input_tokens=4, before=8, overhead=0, target=5, limit=8, at="2025-12-05T15:00:00Z"),
        trace=[],
        memories=["m1", "m2"],
        events=[],
        packs=[],
        unavailable=[],
        learnt=[],
        usage={},
        tool_rounds=0,
        summary_covers=0,
    )


def test_im_45_a_block_is_described_on_the_rung_it_ended_on() -> None:
    assert record().blocks[0].model_dump() == {
        "name": "memories",
        "tier": "low",
        "section": "turn",
        "rung": "best 1",
        "rung_index": 1,
        "rungs": 3,
        "tokens": 4,
        "source": "memories",
        "ids": ["m1", "m2"],
    }


def test_im_45_a_step_tells_from_where_to_where_and_why() -> None:
    assert record().steps[0].model_dump() == {
        "block": "memories",
        "tier": "low",
        "action": "compressed",
        "from_rung": "best 2",
        "to_rung": "best 1",
        "tokens_before": 8,
        "tokens_after": 4,
        "reason": "8 > 5",
    }


def test_im_46_the_record_survives_json_and_holds_no_text_of_a_block() -> None:
    kept = record().model_dump_json()
    assert TurnRecord.model_validate_json(kept) == record()
    assert "dos" not in kept


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        record().number = 2
