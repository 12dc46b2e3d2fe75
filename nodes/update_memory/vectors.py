"""The vectors of new memories follow at once when they can; else the worker writes them (design section 5)."""

import logging
from collections.abc import Sequence

from recuerdo.nodes.call import Call
from recuerdo.state.errors import StoreError
from recuerdo.stores.chroma import VectorItem
from recuerdo.stores.postgres.memories import WaitingVector, mark_indexed

logger = logging.getLogger(__name__)


async def index_memories(call: Call, waiting: Sequence[WaitingVector]) -> None:
    """Write the vectors and note that they no longer wait. An index that is away costs nothing."""
    items = [w for w in waiting if w.embedding is not None]
    if not items or call.services.index.unavailable:
        return
    vectors = [VectorItem(str(w.id), w.user, w.embedding or []) for w in items]
    try:
        await call.services.index.upsert(call.caller.tenant, call.caller.assistant, vectors)
        await mark_indexed(call.services.database, items)
    except StoreError as error:
        logger.warning("vectors wait for the worker: %s", type(error).__name__)
