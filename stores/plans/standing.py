"""Where an approved proposal stands: in the revision in force, and in the one that the next goes on from (OR-29)."""

from dataclasses import dataclass
from typing import Literal

from recuerdo.stores.plans.office import PlanOffice
from recuerdo.stores.plans.revision import Revision
from recuerdo.stores.plans.shelf import PlanShelf

Next = Literal["carried", "taken_in", "excluded", "left_behind"]
"""What the next compilation does with it by itself: it carries it on, takes it in for the first time, keeps it out, or
does not have it because the revision that had it was rolled back."""


@dataclass(frozen=True)
class Standing:
    """``in_force`` is the number of the revision in force when that has it. ``since`` is that of the revision which
    first had it, or first left it out.
    """

    in_force: int | None
    next: Next
    since: int | None


async def read_standing(
    office: PlanOffice, shelf: PlanShelf, tenant: str, plan: str, proposal: str, first: int | None
) -> Standing:
    """Where the proposal of that id stands; ``first`` is the revision that first had it, if any had.

    Raises SettingsError when one of the revisions is refused.
    """
    active, parent = await shelf.active(tenant, plan), await office.next_parent(plan)
    in_force = active.number if active and _has(active, proposal) else None
    if parent is not None and proposal in parent.excluded:
        return Standing(in_force, "excluded", await _out_since(shelf, parent, proposal))
    if parent is not None and _has(parent, proposal):
        return Standing(in_force, "carried", first)
    return Standing(in_force, "left_behind" if first else "taken_in", first)


def _has(revision: Revision, proposal: str) -> bool:
    return any(one.proposal == proposal for one in revision.included)


async def _out_since(shelf: PlanShelf, revision: Revision, proposal: str) -> int:
    """The oldest of the revisions in a row, up to this one, that left it out."""
    while revision.parent is not None:
        before = await shelf.load(revision.tenant, revision.plan.name, revision.parent)
        if proposal not in before.excluded:
            break
        revision = before
    return revision.number
