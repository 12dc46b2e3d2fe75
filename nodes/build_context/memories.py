"""Recall: what was remembered of the user and may help now (RF-10); Low, within the plan's recall budget."""

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import as_data, fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung


def memory_blocks(data: Gathered, recall_tokens: int, count: CountTokens) -> list[Block]:
    """The best memories that fit into the recall budget, best first; halved, then removed."""
    lines, kept = _within(data, recall_tokens, count)
    if not lines:
        return []
    rungs = [text_rung(f"best {len(lines)}", fenced("memories", lines), count)]
    size = len(lines) // 2
    while size:
        rungs.append(text_rung(f"best {size}", fenced("memories", lines[:size]), count))
        size //= 2
    return [make_block("memories", "low", "turn", [*rungs, REMOVED], source="memories", order=0, ids=kept)]


def _within(data: Gathered, budget: int, count: CountTokens) -> tuple[list[str], list[str]]:
    phrasing = data.phrasing
    lines: list[str] = []
    ids: list[str] = []
    left = budget - count(fenced("memories", [""]))
    for memory in data.memories:
        day = phrasing.day(phrasing.local(memory.updated_at).date())
        line = phrasing.say("memory", day=day, text=as_data(memory.text))
        cost = count(f"- {line}\n")
        if cost <= left:
            lines.append(line)
            ids.append(str(memory.id))
            left -= cost
    return lines, ids
