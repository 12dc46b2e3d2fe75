"""Step b: what the user prefers (RF-37) and follows often (RF-8) as blocks."""

from typing import Any

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import Phrasing, as_data, fenced, shortened
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung

MOST_FREQUENT = 20
"""Symbols of interest that are named."""

SHORT_VALUE = 20
"""Tokens of a value beyond the hard limit: one endless value may not take the short ones with it (C-25)."""


def preference_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Preferences, with the sentence that set them or as keys and values only (C-25); frequent symbols."""
    return [*_preferences(data, count), *_frequent(data, count)]


def _preferences(data: Gathered, count: CountTokens) -> list[Block]:
    if not data.preferences:
        return []
    phrasing = data.lasting_phrasing
    full, short, cut = [], [], []
    for key, preference in sorted(data.preferences.items()):
        value = value_text(preference.value, phrasing)
        day = phrasing.day(phrasing.local(preference.updated_at).date())
        quote = as_data(preference.quote or "")
        short.append(phrasing.say("preference_short", key=key, value=value))
        cut.append(phrasing.say("preference_short", key=key, value=shortened(value, SHORT_VALUE, count)))
        full.append(
            phrasing.say("preference", key=key, value=value, day=day, quote=quote) if quote else short[-1]
        )
    rungs = [
        text_rung("full", fenced("preferences", full), count),
        text_rung("keys and values", fenced("preferences", short), count, floor=True),
        text_rung("keys and short values", fenced("preferences", cut), count),
        REMOVED,
    ]
    return [make_block("preferences", "high", "profile", rungs, source="preferences", order=10)]


def _frequent(data: Gathered, count: CountTokens) -> list[Block]:
    """They change as the user speaks of symbols, so they stand after the history (C-22)."""
    if not data.frequent:
        return []
    line = data.phrasing.say("frequent_symbols", symbols=data.phrasing.listed(data.frequent, MOST_FREQUENT))
    rungs = [text_rung("full", fenced("interests", [line]), count), REMOVED]
    return [make_block("interests", "low", "turn", rungs, source="preferences", order=10)]


def value_text(value: Any, phrasing: Phrasing) -> str:
    """A preference's value as the user would write it."""
    if isinstance(value, bool):
        return phrasing.say("value_true" if value else "value_false")
    if isinstance(value, list):
        return ", ".join(as_data(str(item)) for item in value)
    return as_data(str(value))
