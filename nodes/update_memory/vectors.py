"""The vectors of new memories follow at once when they can; else the worker writes them (design section 5)."""

import logging
from collections.abc import Sequence

from recuerdo.nodes.call import Call
from recuerdo.state.errors import StoreError
from recuerdo.stores.postgres.memories import WaitingVector
from recuerdo.stores.worker import index_vectors

logger = logging.getLogger(__name__)


async def index_memories(call: Call, waiting: Sequence[WaitingVector]) -> None:
    """Bring new memories into the index. One that is away costs nothing: the memories wait for the worker."""
    if not waiting:
        return
    services = call.services
    try:
        await index_vectors(services.database, services.index, services.embedder, waiting)
    except StoreError as error:
        logger.warning("vectors wait for the worker: %s", type(error).__name__)
