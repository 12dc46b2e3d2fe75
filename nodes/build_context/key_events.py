"""What is open between the user and this assistant: up to the plan's number of key events, High (LA-22, C-27)."""

from collections.abc import Sequence

from recuerdo.nodes.build_context.phrasing import Phrasing, as_data, fenced, shortened
from recuerdo.state.blocks import REMOVED, Block, CountTokens, Rung, make_block, text_rung
from recuerdo.state.folding import comparable, plain
from recuerdo.state.key_events import KeyEvent

ONE_LINE_SUMMARY = 30
"""Tokens of a summary in an event's short line."""

CUT_ORDER = 5
"""Inside High events give way first (C-24)."""


def key_event_blocks(
    events: Sequence[KeyEvent], message: str, phrasing: Phrasing, count: CountTokens
) -> list[Block]:
    """One block of ``events`` (first of A-18 first): in full, then one line each, the last of them first.

    One line each is the floor (C-3). Below it events go, the last first, but those that ``message`` mentions.
    """
    if not events:
        return []
    mentioned = [event for event in events if is_mentioned(event, message)]
    ranked = [*mentioned, *(event for event in events if event not in mentioned)]
    rungs = [_rung(ranked, full, len(ranked), phrasing, count) for full in range(len(ranked), -1, -1)]
    rungs[-1]["floor"] = True
    rungs += [
        _rung(ranked, 0, kept, phrasing, count) for kept in range(len(ranked) - 1, len(mentioned) - 1, -1)
    ]
    if not mentioned:
        rungs[-1] = REMOVED
    ids = [str(event.id) for event in ranked]
    return [make_block("key_events", "high", "turn", rungs, source="key_events", order=CUT_ORDER, ids=ids)]


def is_mentioned(event: KeyEvent, message: str) -> bool:
    """Whether the message names the event: its id, its type, or something that it is about."""
    said = f" {_words(message)} "
    names = (str(event.id), event.type, *event.entities)
    return any(f" {_words(name)} " in said for name in names if _words(name))


def _words(text: str) -> str:
    """The letters and digits of a text, folded, single spaces between."""
    folded = comparable(plain(text))
    return " ".join("".join(char if char.isalnum() else " " for char in folded).split())


def _rung(events: Sequence[KeyEvent], full: int, kept: int, phrasing: Phrasing, count: CountTokens) -> Rung:
    """The first ``kept`` events, the first ``full`` of them in full."""
    lines = [phrasing.say("key_events_label")]
    lines += [_full(event, phrasing) for event in events[:full]]
    lines += [_line(event, count) for event in events[full:kept]]
    name = f"{full} full, {kept - full} one line" if full else f"{kept} one line"
    return {**text_rung(name, fenced("key_events", lines), count), "items": kept}


def _full(event: KeyEvent, phrasing: Phrasing) -> str:
    about = "; ".join(as_data(entity) for entity in event.entities)
    created, updated = (phrasing.moment(instant) for instant in (event.created_at, event.updated_at))
    times = phrasing.say("key_event_times", created=created, updated=updated)
    return " | ".join(
        [_head(event), event.priority, as_data(event.summary), *([about] if about else []), times]
    )


def _head(event: KeyEvent) -> str:
    # The type as it is, blanks included: the tools take it to the letter (LA-31).
    return f"{event.id} | {event.type} | {event.status}"


def _line(event: KeyEvent, count: CountTokens) -> str:
    return f"{_head(event)} | {shortened(as_data(event.summary), ONE_LINE_SUMMARY, count)}"
