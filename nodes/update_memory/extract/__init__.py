"""What a user's message teaches of its user: two extractors behind one protocol (issue 4, point 2)."""

from recuerdo.nodes.update_memory.extract.model import ModelExtractor, extractor_for
from recuerdo.nodes.update_memory.extract.protocol import Extracted, Extractor, Item, Said
from recuerdo.nodes.update_memory.extract.rules import RulesExtractor

__all__ = [
    "Extracted",
    "Extractor",
    "Item",
    "ModelExtractor",
    "RulesExtractor",
    "Said",
    "extractor_for",
]
