"""Technical indicators in a text, by their usual names (favourite indicators, topics)."""

import re
from functools import cache

from recuerdo.state.folding import comparable, plain
from recuerdo.state.tables import read_table


def find_indicators(text: str) -> list[str]:
    """Usual names (RSI, MACD, Bollinger ...) of the indicators in ``text``, each once, in order of mention."""
    in_capitals = plain(text)
    in_any_case = comparable(in_capitals)
    found = [
        *((match.start(), name) for match, name in _matches(_any_case(), in_any_case)),
        *((match.start(), name) for match, name in _matches(_capitals(), in_capitals)),
    ]
    return list(dict.fromkeys(name for _, name in sorted(found)))


def _matches(finder: tuple[re.Pattern[str], dict[str, str]], text: str) -> list[tuple[re.Match[str], str]]:
    pattern, names = finder
    return [
        (match, names[(match.group("name") or match.group("low")).upper()])
        for match in pattern.finditer(text)
    ]


@cache
def _any_case() -> tuple[re.Pattern[str], dict[str, str]]:
    names = {form: name for name, forms in _load().items() for form in forms["names"]}
    return _finder(names, r"(?<!\w)(?P<name>{0})(?!\w)(?P<low>)")


@cache
def _capitals() -> tuple[re.Pattern[str], dict[str, str]]:
    """Short names that are also words: in capitals, or in any case with their period ("ema 200", "EMA200")."""
    names = {form: name for name, forms in _load().items() for form in forms.get("capitals", ())}
    return _finder(names, r"(?<!\w)(?:(?P<name>{0})(?=\d|\b)|(?i:(?P<low>{0}))(?= ?(?:de )?\d))")


def _finder(names: dict[str, str], shape: str) -> tuple[re.Pattern[str], dict[str, str]]:
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile(shape.format("|".join(map(re.escape, longest_first))))
    return pattern, {form.upper(): name for form, name in names.items()}


@cache
def _load() -> dict[str, dict[str, list[str]]]:
    loaded: dict[str, dict[str, list[str]]] = read_table(__package__, "indicators.yaml")
    return loaded
