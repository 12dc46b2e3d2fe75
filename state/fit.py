"""``fit``: the one place where context is cut, so that the token limit is a property of one pure function.

The steps that a context can give way by are put in one fixed line that does not depend on the budget: Low
before Medium before High, inside a tier by order and relevance (C-24), floors of High only at the very end
(C-3). ``fit`` walks down that line just as far as it must. Hence the same input gives the same output, a
smaller budget never keeps more, and critical blocks are never touched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recuerdo.state.blocks import TIERS_CHEAPEST_FIRST, Block, Step, current, total_tokens


@dataclass(frozen=True)
class Budget:
    """Token limits of one request: ``target`` is aimed at (RF-48), ``limit`` is never passed (RF-34)."""

    target: int
    limit: int


class Fitted(NamedTuple):
    """Blocks on the rungs they ended on, the steps taken, and the tokens of the whole request."""

    blocks: list[Block]
    steps: list[Step]
    tokens: int


def fit(blocks: Sequence[Block], overhead: int, budget: Budget) -> Fitted:
    """Take blocks down their ladders until the request fits.

    ``overhead`` is what no block can save (message frames, tool schemas). The target counts until only
    critical blocks and the floors of High are left; from there on the limit does. The result may be above
    the limit only when critical content is, with the last rungs of what may not vanish: the caller must then
    not send it.
    """
    fitted = [Block(**block) for block in blocks]
    tokens = total_tokens(fitted, overhead)
    steps: list[Step] = []
    for descent in _descents(fitted):
        bound = budget.limit if descent.below_floor else budget.target
        if tokens <= bound:
            break
        step = _take(fitted[descent.block], tokens, bound)
        steps.append(step)
        tokens = step["tokens_after"]
    return Fitted(fitted, steps, tokens)


class _Descent(NamedTuple):
    block: int
    below_floor: bool


def _descents(blocks: Sequence[Block]) -> Iterator[_Descent]:
    """Every single step down, in the order in which steps are taken."""
    floors = [_floor_index(block) for block in blocks]
    for tier in TIERS_CHEAPEST_FIRST:
        for index in _cutting_order(blocks, tier):
            yield from (_Descent(index, False) for _ in range(blocks[index]["rung"], floors[index]))
    for index in _cutting_order(blocks, "high"):
        yield from (_Descent(index, True) for _ in range(floors[index], len(blocks[index]["rungs"]) - 1))


def _floor_index(block: Block) -> int:
    """The rung down to which the target counts: the floor of a High block, else the last one."""
    marked = [index for index, rung in enumerate(block["rungs"]) if rung["floor"]]
    return max(marked[0], block["rung"]) if marked and block["tier"] == "high" else len(block["rungs"]) - 1


def _cutting_order(blocks: Sequence[Block], tier: str) -> list[int]:
    members = [index for index, block in enumerate(blocks) if block["tier"] == tier]
    return sorted(members, key=lambda i: (blocks[i]["order"], blocks[i]["relevance"], blocks[i]["name"], i))


def _take(block: Block, tokens: int, bound: int) -> Step:
    before = current(block)
    block["rung"] += 1
    after = current(block)
    return Step(
        block=block["name"],
        tier=block["tier"],
        action="compressed" if after["tokens"] else "removed",
        from_rung=before["name"],
        to_rung=after["name"],
        tokens_before=tokens,
        tokens_after=tokens - before["tokens"] + after["tokens"],
        reason=f"{tokens} > {bound}",
    )
