"""What a message speaks of: the symbols in it, those spoken of before, or what the user holds (RF-25, RF-27)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recuerdo.nodes.build_context.symbols.currencies import asked_currency, pairs_of
from recuerdo.nodes.build_context.symbols.matcher import find_symbols
from recuerdo.nodes.build_context.symbols.references import How, Spoken, Standings, is_yes, referred_to
from recuerdo.state.folding import comparable, plain

NOT_KNOWN = Standings()

# The patterns are for questions; a document pasted into one is not read through for them.
_LONGEST_READ = 2000


@dataclass(frozen=True)
class Resolution:
    """The symbols of a turn and how they were found.

    ``unsure`` are symbols that may be plain words or that are one letter away from what was written, to be asked
    about; ``unknown`` are written as symbols but stand in no table. Neither is in ``symbols``.
    """

    symbols: tuple[str, ...]
    how: How
    unsure: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def resolve_symbols(
    text: str,
    recent: Sequence[Sequence[str]],
    held: Sequence[str],
    *,
    standings: Standings = NOT_KNOWN,
    before: Sequence[str] = (),
    home: str = "",
) -> Resolution:
    """The symbols that ``text`` speaks of.

    Symbols in the text come first, then what is to be asked about, then what it refers to.

    Args:
        text: the message as the user wrote it.
        recent: the symbols of the turns before, newest first.
        held: symbols of the user's open positions.
        standings: the same by value and gain, where they are known.
        before: the user's earlier messages, oldest first: a "yes" may answer the question that the last one led
            to, and "and the second one?" go on from it.
        home: the code of the user's own currency, against which another one is asked for; empty when unknown.
    """
    mentions = find_symbols(text, near=True)
    unsure = _once(one.symbol for one in mentions if not one.certain)
    unknown = _once(one.symbol for one in mentions if one.certain and not one.known)
    mentioned = _once(one.symbol for one in mentions if one.certain and one.known)
    if mentioned or unknown:
        return Resolution(mentioned, "mentioned", unsure, unknown)
    folded = comparable(plain(text[:_LONGEST_READ]))
    if confirmed := _confirmed(folded, before[-1] if before else ""):
        return Resolution(confirmed, "mentioned")
    if (currency := asked_currency(folded)) and not unsure:
        pairs = pairs_of(currency, home)
        return Resolution(pairs, "mentioned") if len(pairs) == 1 else Resolution((), "none", pairs)
    symbols, how = referred_to(folded, Spoken.of(recent, held, standings, before))
    # What is to be asked about is no more of what was spoken of before.
    return (
        Resolution((), "none", unsure) if unsure and how != "portfolio" else Resolution(symbols, how, unsure)
    )


def _confirmed(folded: str, last_message: str) -> tuple[str, ...]:
    """The symbol that was asked about after the message before, if this one says yes."""
    if not last_message or not is_yes(folded):
        return ()
    mentions = find_symbols(last_message, near=True)
    asked = _once(one.symbol for one in mentions if not one.certain)
    return asked if len(asked) == 1 and not any(one.certain for one in mentions) else ()


def _once(symbols: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(symbols))
