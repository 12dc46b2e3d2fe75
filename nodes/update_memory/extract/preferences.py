"""Preferences in the user's own words, by rules for both languages (RF-7, RF-9, RF-11, RF-54, A-11).

Each reader looks at one clause for one key. The clause is the quote, and is the user's own: see
:mod:`recuerdo.nodes.update_memory.extract.clauses`.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

from recuerdo.nodes.build_context.symbols import find_indicators, find_symbols
from recuerdo.nodes.update_memory.extract.clauses import Clause
from recuerdo.nodes.update_memory.extract.grammar import states_of_self
from recuerdo.nodes.update_memory.extract.patterns import load_patterns
from recuerdo.nodes.update_memory.extract.protocol import Item, Said
from recuerdo.state.folding import folded, plain

Verdict = tuple[Literal["learn", "forget"], Item]

INDICATORS = "favorite_indicators"
FOLLOWED = "followed_symbols"
TIMEFRAME = "preferred_timeframe"
NOTIFICATION_STYLES = ("brief", "detailed")
"""Values of ``notification_style``."""

STYLES = (*NOTIFICATION_STYLES, "simple", "technical", "informal", "formal")
"""Values of ``communication_style``."""

_NUMBERS = {
    "un": 1, "una": 1, "one": 1, "cuatro": 4, "four": 4, "cinco": 5, "five": 5, "quince": 15, "fifteen": 15,
    "treinta": 30, "thirty": 30, "dos": 2, "two": 2, "ocho": 8, "eight": 8, "diez": 10, "ten": 10, "doce": 12,
    "tres": 3, "three": 3, "media": 30,
}  # fmt: skip
_TIMEFRAME = re.compile(
    r"\b(?P<number>\d{1,2}|" + "|".join(_NUMBERS) + r")[ -]?"
    r"(?P<unit>m|min|mins|minutos?|minutes?|h|hs|hrs?|horas?|hours?|hourly|d|dias?|days?|w|wk|semanas?"
    r"|weeks?)\b"
    r"|\b(?P<letter>[mhdw])(?P<count>[1-9]\d?)\b"
)
_TIMEFRAME_WORDS = re.compile(
    r"\b(?:(?P<day>diari[oa]s?|daily|dailies)|(?P<week>semanal(?:es)?|weekly|weeklies)"
    r"|(?P<hour>horari[oa]s?|hourly))\b"
)
_COMPACT = re.compile(r"^(?:\d{1,2}[mhdw]|[mhdw]\d{1,2}|\d{1,2}[ -]?(?:horas?|hours?|min\w*))$")
_THE_TIMEFRAME = re.compile(r"\b(?:las? de|el de|los de|en|the|on|a|to|al|con) (?:la |el |las |los )?$")
_BARE = re.compile(r"^\d{1,2}[mhdw]$")
_CHOSEN = re.compile(
    r"\b(?:works?|stick|prefer|prefiero|default|switch\w*|cambia\w*|me quedo|quiero todo|set)\b"
)
LANGUAGES = {"es": r"\b(?:espanol|castellano|spanish)\b", "en": r"\b(?:ingles|english)\b"}
_CURRENCIES = {
    "USD": r"\b(?:dolares|usd|dollars)\b",
    "EUR": r"\b(?:euros|eur)\b",
    "MXN": r"\b(?:pesos mexicanos|pesos|mxn)\b",
    "GBP": r"\b(?:libras|pounds|gbp|sterling)\b",
    "ARS": r"\b(?:pesos argentinos|ars)\b",
    "COP": r"\b(?:pesos colombianos|cop)\b",
    "CAD": r"\b(?:dolares canadienses|canadian dollars|cad)\b",
    "AUD": r"\b(?:dolares australianos|australian dollars|aud)\b",
    "CHF": r"\b(?:francos(?: suizos)?|swiss francs|francs|chf)\b",
    "JPY": r"\b(?:yenes|yen|jpy)\b",
    "BRL": r"\b(?:reales|reais|brl)\b",
    "CLP": r"\b(?:pesos chilenos|clp)\b",
    "PEN": r"\b(?:soles(?: peruanos)?|pen)\b",
}
_NOT = re.compile(r"[,;]?\s+(?:y )?(?:no|not|nunca|never) .*$")
_NAME_END = re.compile(
    r"\s*(?:[,;!?(]|\.$|\b(?:no|not|y no|please|por favor|from now on|siempre|always|instead|en vez"
    r"|de ahora)\b).*$",
    re.IGNORECASE,
)
_LONGEST_NAME = 4
_SHORT_REQUEST = 6
_BARE_WISH = 5


def read_preferences(clause: Clause, said: Said) -> list[Verdict]:
    """What a clause says of preferences: values to learn or to forget; nothing for most clauses."""
    # Asked for once, in passing: "could you use the 1h chart?"
    readers = _READERS if not clause.asked or clause.for_good else _LASTING_BY_NATURE
    if clause.asked and _YOUR_ANSWERS.search(clause.folded):
        readers = (*_LASTING_BY_NATURE, _communication)
    found = [verdict for reader in readers for verdict in reader(clause, said)]
    return found or ([] if clause.asked and not clause.for_good else _settings(clause, said))


def mentioned_preferences(text: str, said: Said) -> Iterator[Item]:
    """The values in force that a description such as "the 4h candles" means; ``text`` is folded."""
    value = timeframe_in(text)
    if value and said.preferences.get(TIMEFRAME) == value:
        yield Item("preference", TIMEFRAME, value, "")
    for name in find_indicators(text.upper()):
        if name in (said.preferences.get(INDICATORS) or ()):
            yield Item("preference", INDICATORS, name, "")
    for key, words in (("communication_style", ""), ("notification_style", "notification")):
        style = said.preferences.get(key)
        if style in STYLES and has(str(style), text) and (not words or has(words, text)):
            yield Item("preference", key, style, "")


def timeframe_in(text: str) -> str | None:
    """The timeframe that a folded text names, such as 4h, 15m, 1d; None for none."""
    match = _TIMEFRAME.search(text)
    if match and match["letter"]:
        return match["count"] + match["letter"]
    if match:
        number = _NUMBERS.get(match["number"], match["number"])
        unit = {"s": "w"}.get(match["unit"][0], match["unit"][0])
        return "30m" if match["number"] == "media" else f"{number}{unit}"
    word = _TIMEFRAME_WORDS.search(text)
    if word is None:
        return None
    return {"day": "1d", "week": "1w", "hour": "1h"}[str(word.lastgroup)]


def style_in(text: str) -> str | None:
    """The style that a folded text asks for; the most particular one first."""
    order = ("simple", "informal", "formal", "technical", "brief", "detailed")
    return next((style for style in order if has(style, text)), None)


def has(cue: str, text: str) -> bool:
    """Whether a folded ``text`` has one of the cues of ``preferences.yaml``."""
    return pattern(cue).search(text) is not None


@cache
def pattern(cue: str) -> re.Pattern[str]:
    """The cues of one name."""
    return re.compile("|".join(f"(?:{one})" for one in load_patterns("preferences.yaml")[cue]))


def _learn(clause: Clause, key: str, value: object) -> list[Verdict]:
    return [("learn", Item("preference", key, value, clause.text, clause.confidence))]


def _disclaimers(clause: Clause, said: Said) -> list[Verdict]:
    text = clause.folded
    if not has("disclaimer", text):
        return []
    if has("keeps_on", text):
        return _learn(clause, "show_disclaimers", True)
    if has("hides", pattern("disclaimer").sub(" ", text)):
        return _learn(clause, "show_disclaimers", False)
    return _learn(clause, "show_disclaimers", True) if has("shows", text) else []


def _timeframe(clause: Clause, said: Said) -> list[Verdict]:
    text = _NOT.sub(" ", pattern("instead").sub(" ", clause.folded))
    if not (has("lasting", text) or clause.restated or clause.for_good) or has("notification", text):
        return []
    if has("removes", text) and not re.search(r"\b(?:nunca mas|never again)\b", text):
        return []
    if value := _stated_timeframe(text):
        return _learn(clause, TIMEFRAME, value)
    if value := _timeframe_before(text, said):
        return _learn(clause, TIMEFRAME, value)
    return []


def _stated_timeframe(text: str) -> str | None:
    value = timeframe_in(text)
    if value is None:
        return None
    match = _TIMEFRAME.search(text) or _TIMEFRAME_WORDS.search(text)
    assert match is not None, "timeframe_in found one"
    named = _COMPACT.match(match.group()) and _THE_TIMEFRAME.search(text[: match.start()])
    trading_word = match.group() in ("diario", "semanal", "daily", "weekly", "hourly")
    default = trading_word and re.search(
        r"\b(?:en|the|to|my|as|a|al)\s+(?:el |the )?$", text[: match.start()]
    )
    bare = _BARE.match(match.group()) and _CHOSEN.search(text)
    return value if has("candle", text) or named or default or bare else None


def _timeframe_before(text: str, said: Said) -> str | None:
    """ "Leave it like that, always": the timeframe is in the user's own last message."""
    if not said.before or not has("timeframe_before", text) or style_in(text):
        return None
    return timeframe_in(folded(plain(said.before[-1])))


def _indicators(clause: Clause, said: Said) -> list[Verdict]:
    """Favourites are a list: what is named joins it, what is refused leaves it (RF-54)."""
    dropped, kept = _swapped(clause.text)
    text = clause.folded
    # "My stop is always 2 ATR" is a rule of his trading.
    if not (dropped or kept) or _STOP.search(text) or _ONLY_HERE.search(text):
        return []
    verdicts: list[Verdict] = []
    if kept and dropped:
        return [
            *(("forget", _indicator(clause, name)) for name in dropped),
            ("learn", Item("preference", INDICATORS, kept, clause.text, clause.confidence)),
        ]
    names = kept or dropped
    if has("removes", text):
        verdicts += [("forget", _indicator(clause, name)) for name in names]
    elif has("adds", text) or has("lasting", text):
        verdicts += _learn(clause, INDICATORS, names)
    return verdicts


def _indicator(clause: Clause, name: str) -> Item:
    return Item("preference", INDICATORS, name, clause.text, clause.confidence)


_ONLY_HERE = re.compile(r"\b(?:aqui|here|en est[ea]|on th(?:is|at))\b")
_STOP = re.compile(r"\b(?:my|mi|el|the|a|un) (?:stops?|trailing|target|objetivo)\b")
_SWAP = re.compile(
    r"\b(?:cambi[aeéó]\w*|reemplaz\w+|sustitu\w+|swap(?:ped)?|replaced?|switch(?:ed)?"
    r"|traded?)\b(?P<old>.*?)\b(?:por|for|with|to|a)\b(?P<new>.*)$"
    r"|(?P<new2>.*)\b(?:en vez de|en lugar de|instead of|rather than|y no|, not|over)\b(?P<old2>.*)$",
    re.IGNORECASE,
)


def _swapped(text: str) -> tuple[list[str], list[str]]:
    """What goes and what comes, when a clause names both; else what it names comes."""
    match = _SWAP.search(text)
    if match:
        old = find_indicators(match["old"] or match["old2"] or "")
        new = find_indicators(match["new"] or match["new2"] or "")
        if old and new:
            return old, new
    return [], find_indicators(text)


def _notifications(clause: Clause, said: Said) -> list[Verdict]:
    if not has("notification", clause.folded):
        return []
    style = _brief_or_detailed(clause.folded) or ("brief" if _ONLY.search(clause.folded) else None)
    return _learn(clause, "notification_style", style) if style else []


_ONLY = re.compile(
    r"\b(?:only with|just (?:the|with)|only the|solo (?:con|el|la)|nomas (?:con|el|la)|nothing else"
    r"|nada mas)\b"
)


def _brief_or_detailed(text: str) -> str | None:
    brief, detailed = _affirmed("brief", text), _affirmed("detailed", text)
    if brief == detailed:
        return None
    return "brief" if brief else "detailed"


_NEGATED = re.compile(
    r"\b(?:no|not|too|tan|tanto|demasiado|so|menos|less|stop|dejes? de|deja de|don'?t|do not|nada de"
    r"|sin|never|nunca|odio|detesto|harto|harta|cans\w+|hate|dislike|can'?t stand|tired|sick)\b"
    r"(?:\s[\w']+){0,4}\s*$"
)


def _affirmed(style: str, text: str) -> bool:
    """Whether the style is asked for; "not so long" asks for the other one."""
    other = {"brief": "detailed", "detailed": "brief"}[style]
    asked = any(not _NEGATED.search(text[: match.start()]) for match in pattern(style).finditer(text))
    refused = any(_NEGATED.search(text[: match.start()]) for match in pattern(other).finditer(text))
    return asked or (refused and not any(pattern(style).finditer(text)))


def _communication(clause: Clause, said: Said) -> list[Verdict]:
    text = clause.folded
    if has("notification", text) or has("disclaimer", text):
        return []
    if not (has("answering", text) or clause.for_good or _is_bare_wish(text)):
        return []
    style = style_in(text)
    if style in ("brief", "detailed", None):
        style = _brief_or_detailed(text)
    elif style == "technical" and _NEGATED.search(text[: _at("technical", text)]):
        style = "simple"
    elif style in ("formal", "informal") and _NEGATED.search(text[: _at(style, text)]):
        style = {"formal": "informal", "informal": "formal"}[style]
    if style is None or _LAST_ANSWER.search(text) or not _is_lasting_style(text, style):
        return []
    return _learn(clause, "communication_style", style)


_SAID_OF_ONESELF = re.compile(
    r"\b(?:i|i'?m|we|we're|you|my|our|was|were|had|he|hemos|ha|han|estoy|estamos|voy|vamos|fue|estuvo|era|mi|mis|me|nos|is|are)\b"
)


def _is_bare_wish(text: str) -> bool:
    """ "Plain words, please": the style and hardly a word beside it."""
    return len(text.split()) <= _BARE_WISH and not (_SAID_OF_ONESELF.search(text) or states_of_self(text))


def _at(cue: str, text: str) -> int:
    match = pattern(cue).search(text)
    return match.start() if match else 0


_LAST_ANSWER = re.compile(r"\b(?:was|last|fue|ultim[oa]|anterior|estuvo)\b")
_YOUR_ANSWERS = re.compile(
    r"\b(?:tus? (?:respuestas?|mensajes?|explicacion(?:es)?|textos?|tono|estilo)|sus respuestas"
    r"|las respuestas|respuestas|your (?:answers?"
    r"|replies|responses|messages|explanations?|tone)|answers|replies|responses|conmigo|with me"
    r"|me (?:hables|trates|trate"
    r"|hable|expliques)|a mi explica\w*|explanations|explicaciones|messages)\b"
)
_PERSONAL = ("formal", "informal", "technical", "simple")


def _is_lasting_style(text: str, style: str) -> bool:
    """A style for one answer ("a detailed analysis of AAPL") is none for all."""
    if has("this_one", text) and not _strong(text):
        return False
    if has("lasting", text) or _YOUR_ANSWERS.search(text):
        return not (find_symbols(text.upper()) and not _YOUR_ANSWERS.search(text) and not _strong(text))
    if find_indicators(text.upper()) or has("one_answer", text):
        return False
    if style in _PERSONAL:
        return True
    return len(text.split()) <= _SHORT_REQUEST and not re.search(
        r"\b(?:resumen|summary|analisis|analysis|idea|tour|lista|list|vista|overview|informe|report"
        r"|dame|give|tell|dime)\b",
        text,
    )


def _strong(text: str) -> bool:
    return bool(
        re.search(r"\b(?:siempre|always|from now on|a partir de|en adelante|every time|por defecto)\b", text)
    )


def _language(clause: Clause, said: Said) -> list[Verdict]:
    text = _NOT.sub(" ", pattern("instead").sub(" ", clause.folded))
    asked = [code for code, name in LANGUAGES.items() if re.search(name, text)]
    alone = re.fullmatch(r"(?:in |en |mejor )?\w+", text)
    if len(asked) != 1 or not (has("language_asked", text) or alone):
        return []
    if re.search(
        r"\b(?:traduce\w*|translate|como se dice|how do you say|no hablo|i don'?t speak|no entiendo)\b", text
    ):
        return []
    return _learn(clause, "response_language", asked[0])


def _currency(clause: Clause, said: Said) -> list[Verdict]:
    text = _NOT.sub(" ", pattern("instead").sub(" ", clause.folded))
    named = [code for code, name in _CURRENCIES.items() if re.search(rf"\b(?:en|in|to|a) {name[2:]}", text)]
    asked = has("currency_asked", text) or (clause.for_good and not states_of_self(text))
    if not named or not asked or not (has("lasting", text) or _strong(text)):
        return []
    return _learn(clause, "report_currency", named[-1])


def _address(clause: Clause, said: Said) -> list[Verdict]:
    match = pattern("address").search(clause.folded)
    if match is None or _in_negation(clause.folded, match):
        return []
    group = next(name for name in match.re.groupindex if match[name])
    name = _NAME_END.sub("", clause.text[match.start(group) :]).strip()
    if not name or len(name.split()) > _LONGEST_NAME:
        return []
    return _learn(clause, "form_of_address", name)


def _emojis(clause: Clause, said: Said) -> list[Verdict]:
    if not has("emoji", clause.folded):
        return []
    if has("hides", clause.folded):
        return _learn(clause, "use_emojis", False)
    return _learn(clause, "use_emojis", True) if has("shows", clause.folded) else []


_ANSWER_SO = re.compile(
    r"^(?:answer|reply|respond|write|use|contesta\w*|responde\w*|usa|escribe\w*|utiliza)\b(?!.*\b(?:this"
    r"|that|esto|eso)\b)"
)


def _format(clause: Clause, said: Said) -> list[Verdict]:
    text = clause.folded
    asked = [match.group() for match in pattern("format").finditer(text) if not _in_negation(text, match)]
    if not asked or not has("answering", text):
        return []
    if not (has("lasting", text) or _strong(text) or _ANSWER_SO.match(text)):
        return []
    return _learn(clause, "answer_format", clause.text[_span(text, asked[0])])


def _settings(clause: Clause, said: Said) -> list[Verdict]:
    """Free keys: a value that is named in a wish for good (A-11)."""
    text = pattern("instead").sub(" ", clause.folded)
    wished = clause.for_good or clause.restated or has("lasting", text) or has("asks", text)
    if not (wished or _is_bare_wish(text)):
        return []
    verdicts: list[Verdict] = []
    for key, (value, around) in _known_settings().items():
        match = value.search(text)
        if match and around.search(text) and (key in _REFUSES or not _in_negation(text, match)):
            verdicts += _learn(clause, key, clause.text[match.start() : match.end()].strip())
    return verdicts[:1]


_REFUSES = ("quiet_hours", "number_format")
"""Settings whose wish is a refusal."""


@cache
def _known_settings() -> dict[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    settings = load_patterns("preferences.yaml")["settings"]
    return {key: (re.compile(one["value"]), re.compile(one["around"])) for key, one in settings.items()}


def _in_negation(text: str, match: re.Match[str]) -> bool:
    return bool(_NEGATED.search(text[: match.start()]))


def _span(text: str, word: str) -> slice:
    start = text.index(word)
    return slice(start, start + len(word))


Reader = Callable[[Clause, Said], list[Verdict]]

_LASTING_BY_NATURE: tuple[Reader, ...] = (_disclaimers, _notifications, _address, _emojis)

_READERS: tuple[Reader, ...] = (
    _disclaimers,
    _timeframe,
    _indicators,
    _notifications,
    _communication,
    _language,
    _currency,
    _address,
    _emojis,
    _format,
)
"""Readers of keys that are known; what none of them reads may yet be a free one."""
