"""Preferences in the user's own words, by rules for both languages (RF-7, RF-9, RF-11, RF-54).

Each rule reads one key. A rule sees one clause at a time, so "siempre muéstrame el MACD, pero sin disclaimer"
is two statements.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from recuerdo.nodes.build_context.symbols import find_indicators
from recuerdo.stores.postgres.preferences import PreferenceChange

_CLAUSE_END = re.compile(r"[.;!\n]+(?=\s|$)|,?\s+(?:pero|aunque|but|although)\s+", re.IGNORECASE)
_NEGATION = re.compile(
    r"\b(no|nunca|sin|deja de|dejes de|ya no|quita|olvida|don'?t|do not|never|without|stop|no longer|remove)\b",
    re.IGNORECASE,
)
_STANDING = re.compile(
    r"\b(siempre|nunca|prefiero|preferir[ií]a|a partir de ahora|de ahora en adelante|desde ahora|quiero que|mejor usa"
    r"|usa|utiliza|ya no (?:uso|quiero)|mis? (?:indicador(?:es)?|temporalidad|marco temporal)|mu[eé]strame siempre"
    r"|always|never|prefer|from now on|i want you to|use|i no longer|my (?:favou?rite )?(?:indicators?|timeframe))\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"^\s*¿|\?\s*$")

_DISCLAIMER = re.compile(
    r"\b(disclaimers?|avisos? legal(?:es)?|descargos?|advertencias? legal(?:es)?)\b", re.IGNORECASE
)
_TIMEFRAME_CONTEXT = re.compile(
    r"\b(velas?|temporalidad(?:es)?|marcos? temporal(?:es)?|timeframes?|gr[aá]ficos?|candles?|charts?|mejor usa"
    r"|better use)\b",
    re.IGNORECASE,
)
_TIMEFRAME = re.compile(
    r"\b(1|2|3|4|5|6|8|10|12|15|30|45)\s?(m|min|minutos?|minutes?|h|horas?|hours?|d|d[ií]as?|days?|w|semanas?|weeks?)\b",
    re.IGNORECASE,
)
_TIMEFRAME_WORDS = {
    "diari": "1d",
    "daily": "1d",
    "semanal": "1w",
    "weekly": "1w",
    "horari": "1h",
    "hourly": "1h",
}
_UNITS = {"m": "m", "h": "h", "d": "d", "w": "w", "s": "w"}
_STYLE_TARGET = re.compile(
    r"\b(resp[oó]nde(?:me)?|respuestas?|contesta(?:me)?|habla(?:me)?|s[eé]|answers?|repl(?:y|ies)|respond|be|keep)\b",
    re.IGNORECASE,
)
_NOTIFICATION = re.compile(r"\b(notificaci[oó]n(?:es)?|notifications?)\b", re.IGNORECASE)
_BRIEF = re.compile(
    r"\b(breves?|brevemente|concis[oa]s?|cort[oa]s?|resumid[oa]s?|brief(?:ly)?|concise(?:ly)?|short)\b",
    re.IGNORECASE,
)
_DETAILED = re.compile(
    r"\b(detallad[oa]s?|con detalle|en detalle|extens[oa]s?|complet[oa]s?|detailed|in detail|thorough(?:ly)?|long)\b",
    re.IGNORECASE,
)


class _Found(NamedTuple):
    key: str
    value: Any


Rule = Callable[[str, bool, dict[str, Any]], _Found | None]


def find_preferences(
    text: str, known: dict[str, Any], language: str, message_id: str
) -> list[PreferenceChange]:
    """The preferences that ``text`` states, where they differ from the ``known`` values.

    ``text`` is free of sensitive data. The quote of each is the clause that says it.
    """
    values = dict(known)
    changes: dict[str, PreferenceChange] = {}
    for clause in _clauses(text):
        negated = bool(_NEGATION.search(clause))
        for rule in _RULES:
            found = rule(clause, negated, values)
            if found is not None and values.get(found.key) != found.value:
                values[found.key] = found.value
                changes[found.key] = PreferenceChange(found.key, found.value, clause, message_id, language)
    return list(changes.values())


def _clauses(text: str) -> list[str]:
    parts = (part.strip() for part in _CLAUSE_END.split(text))
    return [part for part in parts if part and not _ASKS.search(part)]


def _disclaimers(clause: str, negated: bool, known: dict[str, Any]) -> _Found | None:
    if not _DISCLAIMER.search(clause):
        return None
    return _Found("show_disclaimers", not negated)


def _timeframe(clause: str, negated: bool, known: dict[str, Any]) -> _Found | None:
    if negated or not _TIMEFRAME_CONTEXT.search(clause):
        return None
    match = _TIMEFRAME.search(clause)
    if match:
        return _Found("preferred_timeframe", match.group(1) + _UNITS[match.group(2)[0].lower()])
    folded = clause.casefold()
    word = next((value for stem, value in _TIMEFRAME_WORDS.items() if stem in folded), None)
    return _Found("preferred_timeframe", word) if word else None


def _indicators(clause: str, negated: bool, known: dict[str, Any]) -> _Found | None:
    """Favourites are a list: what is named joins it, what is refused leaves it (RF-54)."""
    named = find_indicators(clause)
    if not named or not _STANDING.search(clause):
        return None
    before: Sequence[str] = known.get("favorite_indicators") or []
    if negated:
        kept = [indicator for indicator in before if indicator not in named]
        return _Found("favorite_indicators", kept) if kept != before else None
    return _Found("favorite_indicators", list(dict.fromkeys([*before, *named])))


def _notification_style(clause: str, negated: bool, known: dict[str, Any]) -> _Found | None:
    return _style("notification_style", clause, negated) if _NOTIFICATION.search(clause) else None


def _communication_style(clause: str, negated: bool, known: dict[str, Any]) -> _Found | None:
    if _NOTIFICATION.search(clause) or not _STYLE_TARGET.search(clause):
        return None
    return _style("communication_style", clause, negated)


def _style(key: str, clause: str, negated: bool) -> _Found | None:
    if negated:
        return None
    if _BRIEF.search(clause):
        return _Found(key, "brief")
    return _Found(key, "detailed") if _DETAILED.search(clause) else None


_RULES: tuple[Rule, ...] = (
    _disclaimers,
    _timeframe,
    _indicators,
    _notification_style,
    _communication_style,
)
