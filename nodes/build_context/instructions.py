"""Instructions beside the plan's: what holds for the conversation, and what holds for this turn only (RF-50)."""

from collections.abc import Iterable

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import Phrasing, fenced
from recuerdo.nodes.build_context.symbols import instrument, question_about
from recuerdo.state.blocks import Block, CountTokens, make_block, text_rung
from recuerdo.state.plan import Plan
from recuerdo.stores.sources.rows import is_symbol

MOST_NAMED = 15
"""Symbols that are named one by one; of more the question is about the whole portfolio."""


def instruction_blocks(data: Gathered, plan: Plan, count: CountTokens) -> list[Block]:
    """Critical blocks: they are short, and the answer goes wrong without them.

    The language of the reply and the disclaimer hold for the conversation, so they stand before the history; a
    turn in another language says both anew (C-22).
    """
    standing = _wording("answer_in", data.lasting_phrasing, data, plan)
    turn = [
        *_deviation(data, plan),
        *_symbols(data),
        *_asked_about(data),
        *_closed_market(data),
        *_no_signals(data),
        *_unavailable(data),
    ]
    blocks = [
        make_block(
            "standing_instructions",
            "critical",
            "profile",
            [text_rung("full", fenced("instructions", standing), count)],
            source="plan",
        )
    ]
    if turn:
        rungs = [text_rung("full", fenced("instructions", turn), count)]
        blocks.append(make_block("instructions", "critical", "turn", rungs, source="plan"))
    return blocks


def wants_disclaimer(preferences: dict[str, object]) -> bool:
    """Whether the user asked for disclaimers (RF-26)."""
    preference = preferences.get("show_disclaimers")
    return bool(getattr(preference, "value", False))


def exchange_of(symbol: str) -> str:
    """Calendar code of a symbol's exchange; empty when the symbol is unknown."""
    known = instrument(symbol)
    return known.exchange if known else ""


def _wording(key: str, phrasing: Phrasing, data: Gathered, plan: Plan) -> list[str]:
    """How to answer in the language of ``phrasing``."""
    lines = [phrasing.say(key)]
    if wants_disclaimer(data.preferences):
        notice = plan.disclaimer.in_language(phrasing.language)
        lines.append(phrasing.say("show_disclaimer", disclaimer=notice))
    return lines


def _deviation(data: Gathered, plan: Plan) -> list[str]:
    if data.wanted_language or data.language == data.lasting_language:
        return []
    return _wording("answer_in_now", data.phrasing, data, plan)


def _symbols(data: Gathered) -> list[str]:
    names = _named(data.symbols, data.phrasing)
    if data.resolved_by == "portfolio" and len(data.symbols) > MOST_NAMED:
        return [data.phrasing.say("turn_portfolio", count=len(data.symbols))]
    return [data.phrasing.say("turn_symbols", symbols=names)] if names else []


def _named(symbols: Iterable[str], phrasing: Phrasing) -> str:
    """The symbols as a list that cannot grow without end; empty without any.

    What is not written as a symbol is not said here: it comes from a source, and instructions are no place for
    text from outside (design, section 4).
    """
    written = [symbol for symbol in symbols if _is_named(symbol)]
    return phrasing.listed(written, MOST_NAMED)


def _asked_about(data: Gathered) -> list[str]:
    """A symbol that the user may mean is a question to him, never an assumption (RF-12)."""
    maybe = data.topic.get("maybe") or []
    return [question_about(maybe, data.language)] if maybe else []


def _closed_market(data: Gathered) -> list[str]:
    """For a question whether to trade: which of its symbols cannot be traded now, and until when (RF-29)."""
    if data.intent != "trade":
        return []
    closed: dict[str, list[str]] = {}
    for symbol in data.symbols:
        status = data.markets.get(exchange_of(symbol))
        if _is_named(symbol) and status and status.status == "closed":
            opening = data.phrasing.when(status.next_open) if status.next_open else ""
            closed.setdefault(opening, []).append(symbol)
    return [_closed_line(data.phrasing, symbols, opening) for opening, symbols in closed.items()]


def _closed_line(phrasing: Phrasing, symbols: list[str], opening: str) -> str:
    names = _named(symbols, phrasing)
    if not opening:
        return phrasing.say("closed_advice_undated", symbols=names)
    return phrasing.say("closed_advice", symbols=names, open=opening)


def _no_signals(data: Gathered) -> list[str]:
    """Who asks for signals and has no access is told so; of the signals themselves nothing is sent (RF-16)."""
    if "signals" not in data.asked or data.signals_allowed:
        return []
    return [data.phrasing.say("signals_unconfirmed" if "profile" in data.unavailable else "signals_denied")]


def _unavailable(data: Gathered) -> list[str]:
    """What is away, by its name in the user's language, with the symbols where only some are (IM-40)."""
    if not data.unavailable:
        return []
    phrasing, say = data.phrasing, data.phrasing.say
    symbols: dict[str, list[str]] = {}
    for key in sorted(data.unavailable):
        name, _, symbol = key.partition(" ")
        symbols.setdefault(name, []).extend([symbol] if symbol else [])
    names = [
        say("name_of_symbols", name=say(f"name_{name}"), symbols=named)
        if (named := _named(of, phrasing))
        else say(f"name_{name}")
        for name, of in symbols.items()
    ]
    return [say("unavailable", names="; ".join(names))]


def _is_named(symbol: str) -> bool:
    """Whether the symbol may stand in an instruction: in capitals, so that no sentence passes for one."""
    return symbol.isupper() and is_symbol(symbol)
