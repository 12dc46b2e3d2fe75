"""Long-term memory of users: texts with their embeddings; the vector index can be rebuilt from here."""

from recuerdo.stores.postgres.memories.rows import (
    FLOAT,
    Alike,
    MemoryBatch,
    MemoryChanges,
    Nearest,
    NewMemory,
    NewText,
    SearchRow,
    StoredMemory,
    VectorDeletion,
    WaitingVector,
)
from recuerdo.stores.postgres.memories.store import Memories
from recuerdo.stores.postgres.memories.vectors import (
    deleted_from_index,
    mark_all_waiting,
    mark_indexed,
    mark_others_waiting,
    store_embeddings,
    usable_embedding,
    waiting_deletions,
    waiting_vectors,
)
from recuerdo.stores.postgres.memories.writing import MemoryWriter, change_memories, write_memories

__all__ = [
    "FLOAT",
    "Alike",
    "Memories",
    "MemoryBatch",
    "MemoryChanges",
    "MemoryWriter",
    "Nearest",
    "NewMemory",
    "NewText",
    "SearchRow",
    "StoredMemory",
    "VectorDeletion",
    "WaitingVector",
    "change_memories",
    "deleted_from_index",
    "mark_all_waiting",
    "mark_indexed",
    "mark_others_waiting",
    "store_embeddings",
    "usable_embedding",
    "waiting_deletions",
    "waiting_vectors",
    "write_memories",
]
