"""What a preference may be when its user sets it himself: known keys have known values (RF-7, RF-54, IM-43)."""

import json
import re
from collections.abc import Callable
from typing import Any

from recuerdo.nodes.build_context.symbols import find_indicators, instrument
from recuerdo.nodes.update_memory.extract.preferences import (
    FOLLOWED,
    INDICATORS,
    LANGUAGES,
    NOTIFICATION_STYLES,
    STYLES,
    TIMEFRAME,
    timeframe_in,
)
from recuerdo.state.errors import InputError
from recuerdo.state.folding import folded, plain
from recuerdo.state.sentences import load_sentences

sentences = load_sentences(__package__, "preference_sentences.yaml")

LONGEST_VALUE = 300
"""Characters of a text, and of each text of a list."""

MOST_VALUES = 50
"""Texts of a list."""

LARGEST_VALUE = 2_000
"""JSON characters of a value of any other form."""

_YES = ("si", "yes", "true", "1", "on")
_NO = ("no", "false", "0", "off")
_ONE_TIMEFRAME = re.compile(r"\d{1,2}[ -]?[a-z]+|[mhdw]\d{1,2}|[a-z]+")
_TIMEFRAME = re.compile(r"[1-9]\d?[mhdw]")
_CURRENCY = re.compile("[A-Z]{3}")


def preference_value(key: str, value: Any) -> Any:
    """``value`` as it is kept under ``key``: of a known key the usual form, of any other one what JSON has.

    A text is read as what the key holds: "sí" as true, "RSI, MACD" as a list. Raises InputError that says what the
    key takes.
    """
    _check_size(key, value)
    read = _KNOWN.get(key)
    return value if read is None else read(key, value)


def like(before: Any, key: str, text: str) -> Any:
    """``text`` as a value of the kind that ``before`` is: a list by commas, a yes or a no. Raises InputError."""
    if isinstance(before, bool):
        return _boolean(key, text)
    return _split(text) if isinstance(before, list) else text


def _check_size(key: str, value: Any) -> None:
    if value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip()):
        raise InputError(sentences("missing", key=key))
    texts = value if isinstance(value, list) else [value]
    too_long = any(isinstance(one, str) and len(one) > LONGEST_VALUE for one in texts)
    if too_long or len(texts) > MOST_VALUES or len(json.dumps(value, ensure_ascii=False)) > LARGEST_VALUE:
        raise InputError(sentences("too_long", key=key, longest=LONGEST_VALUE, most=MOST_VALUES))


def _boolean(key: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    said = folded(plain(value)).strip() if isinstance(value, str) else ""
    if said not in (*_YES, *_NO):
        raise InputError(sentences("boolean", key=key))
    return said in _YES


def _timeframe(key: str, value: Any) -> str:
    said = folded(plain(value)).strip() if isinstance(value, str) else ""
    read = timeframe_in(said) if _ONE_TIMEFRAME.fullmatch(said) else None
    if read is None or not _TIMEFRAME.fullmatch(read):
        raise InputError(sentences("timeframe", key=key))
    return read


def _one_of(*allowed: str) -> Callable[[str, Any], str]:
    def read(key: str, value: Any) -> str:
        said = value.strip().lower() if isinstance(value, str) else ""
        if said not in allowed:
            raise InputError(sentences("one_of", key=key, allowed=", ".join(allowed)))
        return said

    return read


def _currency(key: str, value: Any) -> str:
    said = value.strip().upper() if isinstance(value, str) else ""
    if not _CURRENCY.fullmatch(said):
        raise InputError(sentences("currency", key=key))
    return said


def _indicators(key: str, value: Any) -> list[str]:
    return _all(key, value, lambda text: find_indicators(text) or find_indicators(text.upper()), "indicators")


def _symbols(key: str, value: Any) -> list[str]:
    def known(text: str) -> list[str]:
        found = instrument(text)
        return [found.symbol] if found else []

    return _all(key, value, known, "symbols")


def _all(key: str, value: Any, read: Callable[[str], list[str]], fault: str) -> list[str]:
    """Each text of a list as what it names, each thing once."""
    texts = _split(value) if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(sentences(fault, key=key, unknown=""))
    named: list[str] = []
    for text in texts:
        names = read(text)
        if len(names) != 1:
            raise InputError(sentences(fault, key=key, unknown=f" ({text[:40]})"))
        named += names
    return list(dict.fromkeys(named))


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(sentences("text", key=key))
    return value.strip()


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


_KNOWN: dict[str, Callable[[str, Any], Any]] = {
    TIMEFRAME: _timeframe,
    "show_disclaimers": _boolean,
    "use_emojis": _boolean,
    INDICATORS: _indicators,
    FOLLOWED: _symbols,
    "notification_style": _one_of(*NOTIFICATION_STYLES),
    "communication_style": _one_of(*STYLES),
    "response_language": _one_of(*LANGUAGES),
    "report_currency": _currency,
    "form_of_address": _text,
    "answer_format": _text,
}
