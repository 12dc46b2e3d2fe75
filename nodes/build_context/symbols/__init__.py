"""Which symbols and indicators a message speaks of (RF-12, RF-25, RF-27, RF-46, IM-42)."""

from recuerdo.nodes.build_context.symbols.asking import question_about
from recuerdo.nodes.build_context.symbols.indicators import find_indicators
from recuerdo.nodes.build_context.symbols.matcher import Mention, find_symbols
from recuerdo.nodes.build_context.symbols.references import Standings, asks_for_holdings, asks_for_rank
from recuerdo.nodes.build_context.symbols.resolve import Resolution, resolve_symbols
from recuerdo.nodes.build_context.symbols.table import Instrument, instrument

__all__ = [
    "Instrument",
    "Mention",
    "Resolution",
    "Standings",
    "asks_for_holdings",
    "asks_for_rank",
    "find_indicators",
    "find_symbols",
    "instrument",
    "question_about",
    "resolve_symbols",
]
