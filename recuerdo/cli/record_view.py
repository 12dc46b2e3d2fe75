"""A turn's record as tables: what went into the prompt, and what gave way (IM-45)."""

from rich.console import Group, RenderableType
from rich.table import Table

from recuerdo.cli.console import plain_text, say
from recuerdo.state.record import BlockRecord, CostRecord, Learnt, StepRecord, TurnRecord
from recuerdo.state.usage import Usage

_LONGEST_LESSON = 60


def record_view(record: TurnRecord, conversation: Usage | None = None) -> RenderableType:
    """Blocks with tier, tokens and rung that sum to the estimated total, the steps of compression, then what the
    calls used and cost (RF-21, OR-19); with ``conversation`` also what the whole conversation did.
    """
    parts: list[RenderableType] = [plain_text(_headline(record), "dim"), _blocks(record)]
    if record.steps:
        parts.append(_steps(record))
    parts.append(plain_text("\n".join(_used(record, conversation)), "dim"))
    return Group(*parts)


def _used(record: TurnRecord, conversation: Usage | None) -> list[str]:
    lines = [say("call_used", **call) for call in record.calls if call["measured"]]
    factor = record.estimate.get("factor", 1.0)
    if factor > 1:
        lines.append(say("used_factor", factor=f"{factor:.3f}"))
    lines += [say("used_turn", **record.usage), *_cost(record.cost)] if record.calls else []
    if silent := sum(not call["total"] for call in record.calls):
        lines.append(say("used_unreported", calls=silent))
    if conversation is not None:
        tokens = {name: getattr(conversation, name) for name in record.usage}
        lines += [say("used_conversation", **tokens), *_cost(CostRecord.of(conversation))]
    return lines


def _cost(cost: CostRecord) -> list[str]:
    lines = []
    if cost.units is not None and cost.units_without_cache is not None:
        units = {"units": f"{cost.units:f}", "without": f"{cost.units_without_cache:f}"}
        lines.append(say("used_cost", **units, saved=f"{(cost.saved_share or 0) * 100:.1f}"))
    if cost.unpriced:
        lines.append(say("used_unpriced", families=", ".join(cost.unpriced)))
    return lines


def _headline(record: TurnRecord) -> str:
    values = {
        "language": record.language,
        "symbols": ", ".join(record.symbols) or "-",
        "resolved_by": record.resolved_by,
        "topic": record.topic.name or "-",
        "learnt": ", ".join(map(_lesson, record.learnt)) or "-",
        "summary": record.summary_covers,
    }
    lines = [say("record_turn", **values)]
    if record.unavailable:
        lines.append(say("record_unavailable", names=", ".join(record.unavailable)))
    if record.mode == "preview":
        lines.append(say("record_preview"))
    return "\n".join(lines)


def _lesson(learnt: Learnt) -> str:
    if learnt.type == "symbol":
        return learnt.key
    text = str(learnt.value)
    return f"{learnt.key} = {text if len(text) <= _LONGEST_LESSON else text[:_LONGEST_LESSON] + '…'}"


def _blocks(record: TurnRecord) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True)
    estimate = record.estimate
    limits = say("record_limits", target=estimate["target"], limit=estimate["limit"])
    table.add_column(say("column_block"), footer=say("record_total"), overflow="fold")
    table.add_column(say("column_tier"))
    table.add_column(say("column_tokens"), justify="right", footer=str(estimate["input_tokens"]))
    table.add_column(say("column_rung"), footer=limits, overflow="fold")
    for block in record.blocks:
        style = "" if block.tokens else "dim"
        name, tokens = plain_text(block.name), str(block.tokens)
        table.add_row(name, say(f"tier_{block.tier}"), tokens, _rung(block), style=style)
    table.add_row(say("record_overhead"), "", str(estimate["overhead"]), "", end_section=True)
    return table


def _rung(block: BlockRecord) -> str:
    if block.rungs == 1:
        return block.rung
    return f"{block.rung} ({block.rung_index + 1}/{block.rungs})"


def _steps(record: TurnRecord) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    before, after = record.estimate["before"], record.estimate["input_tokens"]
    table.title = say("record_steps", before=before, after=after)
    for key in ("column_block", "column_step", "column_total"):
        table.add_column(say(key), overflow="fold")
    for step in record.steps:
        totals = f"{step.tokens_before} → {step.tokens_after}"
        table.add_row(plain_text(step.block), _action(step), totals)
    return table


def _action(step: StepRecord) -> str:
    if step.action == "removed":
        return say("step_removed", rung=step.from_rung)
    return f"{step.from_rung} → {step.to_rung}"
