"""What the domain knows of a conversation's words, for its summary (RF-5)."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from langchain_core.messages import AnyMessage

from recuerdo.nodes.build_context.symbols import find_symbols
from recuerdo.state.folding import comparable, plain
from recuerdo.state.plan import Plan
from recuerdo.state.summary import Known


def known_words(summary: str, messages: Sequence[AnyMessage], plan: Plan) -> Known:
    """Companies that the summary and the messages name, by their symbols, and the plan's fixed sentences."""
    texts = (summary, *(str(message.text) for message in messages))
    tickers = dict(pair for text in texts for pair in _companies(text))
    return Known(tickers, (plan.disclaimer.es, plan.disclaimer.en))


@lru_cache(maxsize=512)
def _companies(text: str) -> Iterable[tuple[str, str]]:
    """A message stays the same for its life in the window."""
    named = ((comparable(plain(one.text)), one.symbol.lower()) for one in find_symbols(text) if one.certain)
    return tuple((name, symbol) for name, symbol in named if name != symbol)
