"""Recall: what was remembered of the user and may help now (RF-10); Low, within the plan's recall budget."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import groupby

from recuerdo.nodes.build_context.phrasing import Phrasing, as_data, fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, Rung, make_block, text_rung
from recuerdo.stores.postgres.memories import StoredMemory

SHORT_MEMORY = 20
"""Tokens of a memory that is shorter than most."""


def recalled_at_most(recall_tokens: int) -> int:
    """How many memories to search for: about as many as fill a budget of so many tokens, were all short."""
    return recall_tokens // SHORT_MEMORY


def memory_blocks(
    memories: Sequence[StoredMemory],
    phrasing: Phrasing,
    recall_tokens: int,
    count: CountTokens,
    fixed: Sequence[str] = (),
) -> list[Block]:
    """The best of ``memories`` (best first) that fit into ``recall_tokens``, under their days (RF-10, A-4).

    Each rung has the better half of the one before; the last has none. ``fixed`` are sentences that answers end
    with by rule: in what is remembered of them they say nothing.
    """
    kept = _within(_without(fixed, memories), phrasing, recall_tokens, count)
    if not kept:
        return []
    rungs: list[Rung] = []
    size = len(kept)
    while size:
        rungs.append({**text_rung(f"best {size}", _written(kept[:size], phrasing), count), "items": size})
        size //= 2
    ids = [str(memory.id) for memory in kept]
    return [make_block("memories", "low", "turn", [*rungs, REMOVED], source="memories", order=0, ids=ids)]


def _without(fixed: Sequence[str], memories: Sequence[StoredMemory]) -> list[StoredMemory]:
    if not fixed:
        return list(memories)
    pattern = re.compile(r"\s*(?:" + "|".join(map(re.escape, fixed)) + ")", re.IGNORECASE)
    return [replace(memory, text=pattern.sub("", memory.text)) for memory in memories]


def _within(
    memories: Sequence[StoredMemory], phrasing: Phrasing, budget: int, count: CountTokens
) -> list[StoredMemory]:
    kept: list[StoredMemory] = []
    days: set[date] = set()
    left = budget - count(fenced("memories", [""]))
    for memory in memories:
        day = _day(memory, phrasing)
        lines = [_line(memory)] if day in days else [_heading(day, phrasing), _line(memory)]
        cost = sum(count(line + "\n") for line in lines)
        if cost <= left:
            kept.append(memory)
            days.add(day)
            left -= cost
    return kept


def _written(memories: Sequence[StoredMemory], phrasing: Phrasing) -> str:
    """In the order of time, each day named once: a date on every line would take the place of memories."""
    lines = []
    in_time = sorted(memories, key=lambda memory: memory.updated_at)
    for day, of_day in groupby(in_time, key=lambda memory: _day(memory, phrasing)):
        lines += [_heading(day, phrasing), *map(_line, of_day)]
    return "\n".join(["<memories>", *lines, "</memories>"])


def _day(memory: StoredMemory, phrasing: Phrasing) -> date:
    return phrasing.local(memory.updated_at).date()


def _heading(day: date, phrasing: Phrasing) -> str:
    return phrasing.near_day(day) + ":"


def _line(memory: StoredMemory) -> str:
    return f"- {as_data(memory.text)}"
