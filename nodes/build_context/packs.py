"""The knowledge packs of the plan: right after role and instructions, the same bytes for every user (OR-17, OR-18).

They are critical, so they are never compressed, and they count for the limit of the request (C-23).
"""

import asyncio
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from recuerdo.nodes.services import Services
from recuerdo.state.blocks import Block, CountTokens, make_block, text_rung
from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.packs import Pack, PackShelf
from recuerdo.stores.postgres.database import Database

sentences = load_sentences(__package__, "packs_sentences.yaml")

# A pool lives as long as the services on it: what was verified for one is known to all their turns.
_shelves: WeakKeyDictionary[Database, PackShelf] = WeakKeyDictionary()


async def load_packs(services: Services, tenant: str) -> tuple[Pack, ...]:
    """The packs that the plan names, verified and within its budget.

    Raises SettingsError that names the pack which is missing or refused, or the tokens that are too many.
    """
    plan = services.plan
    if not plan.packs:
        return ()
    shelf = _shelves.get(services.database)
    if shelf is None:
        keys = KeyFolder(services.settings.data / "keys")
        shelf = _shelves.setdefault(services.database, PackShelf(services.database, keys))
    packs = await shelf.load(tenant, plan.packs)
    await asyncio.to_thread(check_packs, plan, packs, services.counter.count)
    return packs


def check_packs(plan: Plan, packs: Sequence[Pack], count: CountTokens) -> None:
    """Refuse a plan whose packs have more tokens than ``limits.packs`` (C-23). Raises SettingsError."""
    sizes = {pack.reference: pack_tokens(pack, count) for pack in packs}
    tokens = sum(sizes.values())
    if tokens > plan.limits.packs:
        largest = sorted(sizes.items(), key=lambda size: (-size[1], size[0]))
        raise SettingsError(
            sentences(
                "packs_over_budget",
                plan=plan.name,
                tokens=tokens,
                limit=plan.limits.packs,
                largest=", ".join(f"{reference} {size}" for reference, size in largest),
            )
        )


def pack_tokens(pack: Pack, count: CountTokens) -> int:
    """Tokens of the rules of a pack."""
    return sum(count(file.text) for file in pack.files)


def pack_blocks(packs: Sequence[Pack], plan: Plan, count: CountTokens) -> list[Block]:
    """One critical block, in the plan's language, whose ids are the pins (IM-46)."""
    if not packs:
        return []
    head = [sentences(key).in_language(plan.language) for key in ("packs", "packs_prevail")]
    rungs = [text_rung("full", "\n".join([*head, *map(_fenced, packs)]), count)]
    ids = [pack.reference for pack in packs]
    return [make_block("packs", "critical", "packs", rungs, source="packs", ids=ids)]


def _fenced(pack: Pack) -> str:
    """A pack between marks that its own text cannot hold: they name the hash of that text."""
    files = "".join(f"## {file.path}\n{_with_line_end(file.text)}" for file in pack.files)
    return f"<pack {pack.reference}>\n{files}</pack {pack.reference}>"


def _with_line_end(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
