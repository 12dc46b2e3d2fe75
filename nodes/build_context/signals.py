"""Step h: machine-learning signals, only for users with access (RF-16, RF-45)."""

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import as_data, fenced
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung


def signal_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Signals of the turn's symbols."""
    shown = [signal for signal in data.signals if signal.symbol in data.symbols]
    if not shown:
        return []
    phrasing = data.phrasing
    lines = [
        phrasing.say(
            "signal",
            symbol=signal.symbol,
            prediction=as_data(signal.prediction),
            confidence=phrasing.number(signal.confidence),
            time=phrasing.moment(signal.updated_at),
        )
        for signal in shown
    ]
    rungs = [text_rung("full", fenced("ml_signals", lines), count, floor=True), REMOVED]
    return [make_block("ml_signals", "high", "turn", rungs, source="signals", order=20, relevance=0.5)]
