"""The question about a symbol that a message may mean: what the model is told to ask (RF-12, RF-46)."""

from collections.abc import Sequence

from recuerdo.nodes.build_context.symbols.table import instrument
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__)


def question_about(symbols: Sequence[str], language: str) -> str:
    """The instruction to ask which of ``symbols`` is meant, in "es" or "en"; one at least is given."""
    key = "maybe_one" if len(symbols) == 1 else "maybe_several"
    return sentences(key, name=", ".join(map(_named, symbols))).in_language(language)


def _named(symbol: str) -> str:
    known = instrument(symbol)
    return f"{known.name} ({symbol})" if known else symbol
