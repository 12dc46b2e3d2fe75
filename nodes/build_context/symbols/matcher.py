"""Symbols in a Spanish or English text: tickers, $tickers, pairs and company names, with the words around them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

import ahocorasick
import yaml

from recuerdo.nodes.build_context.symbols.table import Instrument, known_code, load_table
from recuerdo.nodes.receive.language import word_votes
from recuerdo.state.folding import comparable, plain


@dataclass(frozen=True)
class Mention:
    """A symbol in a text. Offsets count in the NFC form of the text.

    ``certain`` is False where it may be a plain word: to be asked about, not assumed. ``known`` is False for what
    is written as a symbol but stands in no table of ours.
    """

    symbol: str
    start: int
    end: int
    text: str
    certain: bool
    known: bool = True


# How a candidate stands: a symbol; perhaps one, to be asked about; one only where it stands in a list of symbols.
_Standing = Literal["sure", "ask", "listed"]


@dataclass(frozen=True)
class _Candidate:
    symbol: str
    start: int
    end: int
    standing: _Standing
    known: bool = True


_CHUNK: Final = re.compile(r"[^\W_]+(?:[.&/-][^\W_]+)*")
_PART: Final = re.compile(r"[^\W_]+")
_SPACED_PAIR: Final = re.compile(r"\b([A-Za-z]{2,5}) ?[/-] ?([A-Za-z]{3,4})\b")
_WORD: Final = re.compile(r"[a-z0-9]+")
_WORD_OF_TWO: Final = re.compile(r"[^\W\d_]{2,}")
_SENTENCE_END: Final = re.compile(r"[.!?;:¿¡\n](?:\s|$)|[¿¡]")
_UNKNOWN: Final = re.compile(r"[A-Z]{3,5}")
_BEFORE, _AFTER = 60, 30
_FILLERS_AT_MOST = 4
_LONGEST_CODE = 16
_LONGEST_JOINER = 12
_LANGUAGE_SAMPLE = 500


def find_symbols(text: str) -> list[Mention]:
    """Every mention of a symbol in ``text``, in order and without overlaps; linear in the text's length."""
    view = _View(text)
    found = _without_overlaps([*_pairs(view), *_names(view), *_tickers(view)])
    return [
        Mention(
            one.symbol, one.start, one.end, view.plain[one.start : one.end], one.standing == "sure", one.known
        )
        for one in _sure_by_neighbours(view, found)
        if one.standing != "listed"
    ]


class _View:
    """A text, its plain and folded forms, and what is known of it as a whole."""

    def __init__(self, text: str) -> None:
        self.plain = plain(text)
        self.folded = comparable(self.plain)
        self.language = word_votes(self.plain[:_LANGUAGE_SAMPLE]).winner
        self.shouting = _is_shouting(self.plain)
        self.whole = self.folded.strip(" .,!?¿¡")

    def before(self, start: int) -> list[str]:
        """Folded words of the same sentence before ``start``, the nearest first."""
        window = self.folded[max(0, start - _BEFORE) : start]
        ends = [match.end() for match in _SENTENCE_END.finditer(window)]
        return _WORD.findall(window[ends[-1] if ends else 0 :])[::-1]

    def after(self, end: int) -> list[str]:
        """Folded words of the same sentence after ``end``, the nearest first."""
        window = self.folded[end : end + _AFTER]
        stop = _SENTENCE_END.search(window)
        return _WORD.findall(window[: stop.start()] if stop else window)


@dataclass(frozen=True)
class _Cues:
    stock_before: frozenset[str]
    stock_after: frozenset[str]
    market_before: frozenset[str]
    market_after: frozenset[str]
    fillers: frozenset[str]
    joiner: re.Pattern[str]
    market_prefixes: frozenset[str]
    market_suffixes: frozenset[str]
    not_symbols: frozenset[str]
    elsewhere: dict[str, list[re.Pattern[str]]]


# --- what stands beside a mention -------------------------------------------------------------------------------


def _nearest_cue(view: _View, start: int, end: int) -> str | None:
    """ "stock" where the words beside can only mean a security, "market" where they probably do."""
    cues = _load_cues()
    after = view.after(end)
    if after and after[0] in cues.stock_after:
        return "stock"
    for word in view.before(start)[:_FILLERS_AT_MOST]:
        if word in cues.stock_before:
            return "stock"
        if word in cues.market_before:
            return "market"
        if word not in cues.fillers and not word.isdigit():
            return None
    return None


def _is_elsewhere(view: _View, name: str, start: int, end: int) -> bool:
    patterns = _load_cues().elsewhere.get(name, ())
    window = view.folded[max(0, start - _BEFORE) : end + _AFTER]
    return any(pattern.search(window) for pattern in patterns)


def _is_shouting(text: str) -> bool:
    words = [word for word in _WORD_OF_TWO.findall(text[:2000]) if not _is_plain_ticker(word)]
    return len(words) >= 2 and sum(word.isupper() for word in words) > 0.7 * len(words)


def _is_plain_ticker(word: str) -> bool:
    found = load_table().by_code.get(word)
    return found is not None and found.ticker in ("any_case", "capitals")


# --- names ------------------------------------------------------------------------------------------------------


def _names(view: _View) -> Iterator[_Candidate]:
    for last, (length, found, languages) in _name_automaton().iter(view.folded):
        start, end = last + 1 - length, last + 1
        if not _stands_alone(view.folded, start, end):
            continue
        standing = _name_standing(view, found.symbol, view.folded[start:end], languages, start, end)
        if standing is not None:
            yield _Candidate(found.symbol, start, end, standing)


def _before_own_symbol(view: _View, symbol: str, end: int) -> bool:
    """ "Ford (F)": a name explained by its symbol."""
    return view.plain[end : end + len(symbol) + 3].strip().startswith(f"({symbol})")


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum()


def _name_standing(
    view: _View, symbol: str, name: str, languages: Sequence[str], start: int, end: int
) -> _Standing | None:
    """Whether a name means its company; ``languages`` are those in which it is an everyday word too."""
    cue = _nearest_cue(view, start, end)
    if cue == "stock" or _before_own_symbol(view, symbol, end):
        return "sure"
    if _is_elsewhere(view, name, start, end):
        return None
    if cue or not languages or view.whole == name:
        return "sure"
    foreign = view.language is not None and view.language not in languages
    if view.shouting or not view.plain[start].isupper():
        return "sure" if foreign else None
    if foreign or view.before(start):
        return "sure"
    # A capital that opens a sentence says nothing.
    after = view.after(end)
    return "sure" if after and after[0] in _load_cues().market_after else "ask"


# --- tickers ----------------------------------------------------------------------------------------------------


def _tickers(view: _View) -> Iterator[_Candidate]:
    for chunk in _CHUNK.finditer(view.plain):
        yield from _in_chunk(view, chunk.group(), chunk.start())


def _in_chunk(view: _View, chunk: str, start: int) -> Iterator[_Candidate]:
    whole = known_code(chunk.upper()) if len(chunk) <= _LONGEST_CODE else None
    if whole is not None:
        yield from _as_ticker(view, whole, start, start + len(chunk))
    elif _is_dollar_unknown(view, chunk, start):
        yield _Candidate(chunk.upper(), start - 1, start + len(chunk), "sure", known=False)
    elif chunk.isalnum():
        yield from _unknown_beside_stock(view, chunk, start)
    else:
        yield from _in_parts(view, chunk, start)


def _in_parts(view: _View, chunk: str, start: int) -> Iterator[_Candidate]:
    """The symbols in what is joined by a dot, dash or slash: AAPL/TSLA, WALMEX.MX."""
    for part in _PART.finditer(chunk):
        found = load_table().by_code.get(part.group().upper())
        is_suffix = part.start() > 0 and part.group().lower() in _load_cues().market_suffixes
        if found is not None and not is_suffix:
            yield from _as_ticker(view, found, start + part.start(), start + part.end())


def _as_ticker(view: _View, found: Instrument, start: int, end: int) -> Iterator[_Candidate]:
    if _after_dollar(view, start):
        yield _Candidate(found.symbol, start - 1, end, "sure")
        return
    standing = _ticker_standing(view, found, start, end)
    if standing is not None:
        yield _Candidate(found.symbol, start, end, standing)


def _ticker_standing(view: _View, found: Instrument, start: int, end: int) -> _Standing | None:
    if found.ticker == "any_case" or _has_market_prefix(view, start):
        return "sure"
    cue = _nearest_cue(view, start, end)
    if not view.plain[start:end].isupper():
        if cue == "stock" and found.ticker == "capitals":
            return "sure"
        # "eth y sol": coins are written in small letters, beside others of their kind.
        return "listed" if found.kind == "crypto" else None
    if found.ticker == "capitals" or cue == "stock":
        return "sure"
    if view.shouting:
        return "listed"
    if cue == "market":
        return "sure" if found.ticker == "cue" else "ask"
    return "ask" if found.ticker == "cue" and end - start > 1 else "listed"


def _after_dollar(view: _View, start: int) -> bool:
    return start > 0 and view.plain[start - 1] == "$"


def _has_market_prefix(view: _View, start: int) -> bool:
    prefix = re.search(r"([a-z]+): ?$", view.folded[max(0, start - 10) : start])
    return prefix is not None and prefix.group(1) in _load_cues().market_prefixes


def _is_dollar_unknown(view: _View, chunk: str, start: int) -> bool:
    is_symbol = chunk.isascii() and chunk.isalpha() and len(chunk) <= 6
    return is_symbol and _after_dollar(view, start) and chunk.upper() not in _load_cues().not_symbols


def _unknown_beside_stock(view: _View, chunk: str, start: int) -> Iterator[_Candidate]:
    if view.shouting or not _UNKNOWN.fullmatch(chunk) or chunk in _load_cues().not_symbols:
        return
    if _nearest_cue(view, start, start + len(chunk)) == "stock":
        yield _Candidate(chunk, start, start + len(chunk), "sure", known=False)


# --- pairs and lists --------------------------------------------------------------------------------------------


def _pairs(view: _View) -> Iterator[_Candidate]:
    table = load_table()
    for match in _SPACED_PAIR.finditer(view.plain):
        found = table.pair(match.group(1).upper(), match.group(2).upper())
        if found is not None:
            yield _Candidate(found.symbol, match.start(), match.end(), "sure")


def _without_overlaps(found: list[_Candidate]) -> list[_Candidate]:
    """The longest candidate where some overlap; in text order."""
    kept: list[_Candidate] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end, one.standing != "sure")):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
        elif one.end - one.start > kept[-1].end - kept[-1].start:
            kept[-1] = one
    return kept


def _sure_by_neighbours(view: _View, found: list[_Candidate]) -> list[_Candidate]:
    """What stands in a list with a sure symbol is a symbol too ("AAPL, F y T")."""
    forward = _sure_after_sure(view, found)
    return _sure_after_sure(view, forward[::-1])[::-1]


def _sure_after_sure(view: _View, found: list[_Candidate]) -> list[_Candidate]:
    result: list[_Candidate] = []
    for one in found:
        joined = bool(result) and result[-1].standing == "sure" and _is_joined(view, result[-1], one)
        result.append(replace(one, standing="sure") if joined else one)
    return result


def _is_joined(view: _View, one: _Candidate, other: _Candidate) -> bool:
    gap = view.folded[min(one.end, other.end) : max(one.start, other.start)]
    return len(gap) <= _LONGEST_JOINER and _load_cues().joiner.fullmatch(gap) is not None


# --- loaded once ------------------------------------------------------------------------------------------------


@cache
def _name_automaton() -> Any:
    automaton = ahocorasick.Automaton()
    for found in load_table().instruments:
        for name in found.aliases:
            automaton.add_word(comparable(plain(name)), (len(name), found, ()))
        for name, languages in found.word_aliases.items():
            automaton.add_word(comparable(plain(name)), (len(name), found, languages))
    automaton.make_automaton()
    return automaton


@cache
def _load_cues() -> _Cues:
    raw = yaml.safe_load((files(__package__) / "cues.yaml").read_text(encoding="utf-8"))
    joiners = "|".join(map(re.escape, raw["joiners"]))
    return _Cues(
        stock_before=frozenset(raw["stock_before"].split()),
        stock_after=frozenset(raw["stock_after"].split()),
        market_before=frozenset(raw["market_before"].split()),
        market_after=frozenset(raw["market_after"].split()),
        fillers=frozenset(raw["fillers"].split()),
        not_symbols=frozenset(raw["not_symbols"].split()),
        joiner=re.compile(rf" ?[,;/&+(] ?(?:(?:{joiners}) )?| (?:{joiners}) "),
        market_prefixes=frozenset(raw["market_prefixes"]),
        market_suffixes=frozenset(raw["market_suffixes"]),
        elsewhere={
            name: [re.compile(pattern) for pattern in patterns] for name, patterns in raw["elsewhere"].items()
        },
    )
