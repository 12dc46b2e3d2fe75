"""Step h: machine-learning signals, only for users with access (RF-16, RF-45, A-6)."""

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung


def signal_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Signals of the turn's symbols; of what the user holds, where he asks for signals and names no symbol."""
    if not data.signals:
        return []
    phrasing = data.phrasing
    lines = [
        phrasing.say(
            "signal",
            symbol=signal.symbol,
            prediction=phrasing.value(signal.prediction),
            confidence=phrasing.number(signal.confidence),
            time=phrasing.when(signal.updated_at),
        )
        for signal in data.signals
    ]
    rungs = [text_rung("full", fenced("ml_signals", lines), count, floor=True), REMOVED]
    return [make_block("ml_signals", "high", "turn", rungs, source="signals", order=20, relevance=0.5)]
