"""The vector index: Chroma in a folder (one writer) or on a server; can be rebuilt from PostgreSQL (C-17, ET-24)."""

from recuerdo.stores.chroma.index import EmbedderChanged, Hit, NoIndex, VectorIndex, VectorItem
from recuerdo.stores.chroma.memory import MemoryIndex
from recuerdo.stores.chroma.vectors import ChromaIndex, open_index

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
