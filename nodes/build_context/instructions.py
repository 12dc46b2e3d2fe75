"""Instructions of the turn (RF-50): language, what the question refers to, a closed market, the disclaimer."""

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import fenced
from recuerdo.nodes.build_context.symbols import instrument
from recuerdo.state.blocks import Block, CountTokens, make_block, text_rung
from recuerdo.state.plan import Plan


def instruction_blocks(data: Gathered, plan: Plan, count: CountTokens) -> list[Block]:
    """One critical block: it is short, and the answer goes wrong without it."""
    say = data.phrasing.say
    lines = [say("answer_in")]
    if data.symbols:
        lines.append(say("turn_symbols", symbols=", ".join(data.symbols)))
    lines += _closed_market(data)
    if wants_disclaimer(data.preferences):
        lines.append(say("show_disclaimer", disclaimer=plan.disclaimer.in_language(data.language)))
    if data.unavailable:
        lines.append(say("unavailable", names=", ".join(sorted(data.unavailable))))
    rungs = [text_rung("full", fenced("instructions", lines), count)]
    return [make_block("instructions", "critical", "turn", rungs, source="plan")]


def wants_disclaimer(preferences: dict[str, object]) -> bool:
    """Whether the user asked for disclaimers (RF-26)."""
    preference = preferences.get("show_disclaimers")
    return bool(getattr(preference, "value", False))


def _closed_market(data: Gathered) -> list[str]:
    """For a question whether to trade: which of its symbols cannot be traded now, and until when (RF-29)."""
    if data.intent != "trade":
        return []
    closed: dict[str, list[str]] = {}
    for symbol in data.symbols:
        status = data.markets.get(exchange_of(symbol))
        if status and status.status == "closed" and status.next_open:
            closed.setdefault(data.phrasing.moment(status.next_open), []).append(symbol)
    say = data.phrasing.say
    return [say("closed_advice", symbols=", ".join(s), open=opening) for opening, s in closed.items()]


def exchange_of(symbol: str) -> str:
    """Calendar code of a symbol's exchange; empty when the symbol is unknown."""
    known = instrument(symbol)
    return known.exchange if known else ""
