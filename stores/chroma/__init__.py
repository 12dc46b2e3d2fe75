"""The vector index: Chroma in a folder, one writer; can always be rebuilt from PostgreSQL (C-17, ET-24)."""

from recuerdo.stores.chroma.embedded import ChromaIndex, open_index
from recuerdo.stores.chroma.index import EmbedderChanged, Hit, NoIndex, VectorIndex, VectorItem
from recuerdo.stores.chroma.memory import MemoryIndex

__all__ = [
    "ChromaIndex",
    "EmbedderChanged",
    "Hit",
    "MemoryIndex",
    "NoIndex",
    "VectorIndex",
    "VectorItem",
    "open_index",
]
