"""Symbols in a Spanish or English text: tickers, $tickers, pairs and company names, with the words around them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Final, Literal

import ahocorasick

from recuerdo.nodes.build_context.symbols.cues import load_cues
from recuerdo.nodes.build_context.symbols.currencies import named_pairs
from recuerdo.nodes.build_context.symbols.table import Instrument, known_code, load_table
from recuerdo.nodes.build_context.symbols.typos import (
    LONGEST,
    SHORTEST,
    is_listed,
    near_names,
    near_tickers,
    plural_of,
)
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
    is_name: bool = False


_CHUNK: Final = re.compile(r"[^\W_]+(?:[.&/-][^\W_]+)*")
# What stands in a link or an address of mail is not said of anything.
_ADDRESS: Final = re.compile(
    r"(?:https?://|\bwww\.)\S+"
    r"|(?<![\w.-])(?:[\w-]{1,40}\.){1,4}(?:com|org|net|io|app|dev|es|mx|ar|cl|co|pe|uk)/\S*"
    r"|(?<![^\s<(])[\w.+-]{1,64}@(?:[\w-]{1,40}\.){1,4}[a-z]{2,}",
    re.IGNORECASE,
)
_PART: Final = re.compile(r"[^\W_]+")
_SPACED_PAIR: Final = re.compile(r"\b([A-Za-z]{2,5}) ?[/-] ?([A-Za-z]{3,4})\b")
_LISTED: Final = re.compile(r"([A-Z]{1,8})\.([A-Z]{2,3})")
_WORD: Final = re.compile(r"[a-z0-9]+")
_LETTERS: Final = re.compile(rf"(?<![\w@.#/_])[^\W\d_]{{{SHORTEST},{LONGEST}}}(?![\w@_])")
_WORD_OF_TWO: Final = re.compile(r"[^\W\d_]{2,}")
_SENTENCE_END: Final = re.compile(r"[.!?;:¿¡\n](?:\s|$)|[¿¡]")
_PREFIX: Final = re.compile(r"([a-z]+): ?$")
_SERIES: Final = re.compile(r" ([A-Z]{1,3})\b")
_UNKNOWN: Final = re.compile(r"[A-Z]{3,5}")
_BEFORE, _AFTER = 60, 30
_FILLERS_AT_MOST = 4
_LONGEST_CODE = 16
_LONGEST_JOINER = 16
_LANGUAGE_SAMPLE = 500


def find_symbols(text: str, *, near: bool = False) -> list[Mention]:
    """Every mention of a symbol in ``text``, in order and without overlaps; linear in the text's length.

    ``near``: with words that are one letter away from a symbol or a name, never as certain.
    """
    view = _View(text)
    found = _without_overlaps([*_pairs(view), *_names(view), *_tickers(view), *_plurals(view)])
    read = _sure_by_neighbours(view, found)
    return [
        Mention(
            _listing(view, one), one.start, one.end, _words_of(view, one), one.standing == "sure", one.known
        )
        for one in (_with_near(view, read) if near else read)
        if one.standing != "listed"
    ]


def _words_of(view: "_View", one: _Candidate) -> str:
    return view.plain[one.start : one.end]


class _View:
    """A text, its plain and folded forms, and what is known of it as a whole."""

    def __init__(self, text: str) -> None:
        self.plain = _ADDRESS.sub(lambda match: " " * len(match.group()), plain(text))
        self.folded = comparable(self.plain)

    @cached_property
    def language(self) -> str | None:
        """The language that the words are of, None when they do not tell."""
        return word_votes(self.plain[:_LANGUAGE_SAMPLE]).winner

    @cached_property
    def shouting(self) -> bool:
        """Whether capitals say nothing here."""
        return _is_shouting(self.plain)

    @cached_property
    def speaks_of_abroad(self) -> bool:
        """Whether listings in the United States are meant."""
        return bool(load_cues().abroad.search(self.folded[:_LANGUAGE_SAMPLE]))

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


# --- what stands beside a mention -------------------------------------------------------------------------------


def _nearest_cue(view: _View, start: int, end: int) -> str | None:
    """ "stock" where the words beside can only mean a security, "market" where they probably do."""
    cues = load_cues()
    after = view.after(end)
    if after and after[0] in cues.stock_after:
        return "stock"
    if cues.priced.search(view.folded[max(0, start - _BEFORE) : start]):
        return "stock"
    for word in view.before(start)[:_FILLERS_AT_MOST]:
        if word in cues.stock_before:
            return "stock"
        if word in cues.market_before:
            return "market"
        if word not in cues.fillers and not word.isdigit():
            return None
    return None


def _is_market_talk(view: _View, start: int, end: int) -> bool:
    """Whether the sentence around has a word that only markets have."""
    return not load_cues().market_talk.isdisjoint([*view.before(start), *view.after(end)])


def _is_called(view: _View, start: int) -> bool:
    """ "Ticker is ON"."""
    return load_cues().called.search(view.folded, max(0, start - _BEFORE), start) is not None


def _is_all(view: _View, start: int, end: int) -> bool:
    """ "¿Y SOL?": the message names nothing else."""
    rest = view.folded[end : end + _BEFORE]
    return (
        start <= _BEFORE
        and not _WORD.search(rest)
        and load_cues().opening.match(view.folded[:start]) is not None
    )


def _is_used(view: _View, start: int, end: int) -> bool:
    """ "Pagué con PayPal", "google it": a shop, a card, a service."""
    cues = load_cues()
    before = view.folded[max(0, start - _BEFORE) : start]
    return bool(cues.used_before.search(before) or cues.used_after.match(view.folded, end))


def _is_elsewhere(view: _View, name: str, start: int, end: int) -> bool:
    """Whether the words around say that ``name`` is something else; only where they are around this one."""
    patterns = load_cues().elsewhere.get(name, ())
    first = max(0, start - _BEFORE)
    window = view.folded[first : end + _AFTER]
    found = (match.span() for pattern in patterns for match in pattern.finditer(window))
    return any(first + opens <= start and end <= first + closes for opens, closes in found)


def _is_shouting(text: str) -> bool:
    words = [word for word in _WORD_OF_TWO.findall(text[:2000]) if not _is_plain_ticker(word)]
    return len(words) >= 2 and sum(word.isupper() for word in words) > 0.7 * len(words)


def _is_plain_ticker(word: str) -> bool:
    found = load_table().by_code.get(word)
    return found is not None and found.ticker in ("any_case", "capitals")


def _listing(view: _View, one: _Candidate) -> str:
    """The symbol of the listing that is meant: at home, but where the text speaks of that in the United States."""
    home = load_table().home.get(one.symbol)
    if home and _has_home_mark(view, one):
        return home
    return load_table().abroad.get(one.symbol, one.symbol) if view.speaks_of_abroad else one.symbol


def _has_home_mark(view: _View, one: _Candidate) -> bool:
    """ "AMX.MX", "BMV: AMX"."""
    behind = (
        _PART.match(view.folded, one.end + 1) if view.folded[one.end : one.end + 1] in (".", " ") else None
    )
    marks = load_cues().home_marks
    return bool(behind and behind.group() in marks) or _market_prefix(view, one.start) in marks


# --- names ------------------------------------------------------------------------------------------------------


def _names(view: _View) -> Iterator[_Candidate]:
    for last, (length, found, languages) in _name_automaton().iter(view.folded):
        start, end = last + 1 - length, last + 1
        if not _stands_alone(view.folded, start, end):
            continue
        standing = _name_standing(view, found.symbol, view.folded[start:end], languages, start, end)
        if standing is not None:
            yield _Candidate(found.symbol, start, end, standing, is_name=True)


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
    if _is_elsewhere(view, name, start, end) or (not cue and _is_used(view, start, end)):
        return None
    if _is_one_of_its_products(view, symbol, start, end) or (not cue and _is_amount(view, name, start)):
        return None
    if cue or not languages or _is_all(view, start, end) or _is_owner(view, name, start, end):
        return "sure"
    foreign = view.language is not None and view.language not in languages
    if foreign:
        return "sure"
    if name in load_cues().mostly_companies and _is_market_talk(view, start, end):
        return "sure"
    if view.shouting or not view.plain[start].isupper():
        return "sure" if _acts(view, end, capital=False) else "listed"
    # A capital that opens a sentence says nothing.
    if view.before(start) or _acts(view, end, capital=True):
        return "sure"
    return "ask" if _is_market_talk(view, start, end) else "listed"


def _is_one_of_its_products(view: _View, symbol: str, start: int, end: int) -> bool:
    """ "Un Ford", "a Coke": what a company makes; "a Tesla investor" speaks of the company."""
    cues, before, after = load_cues(), view.before(start)[:1], view.after(end)[:1]
    article = bool(before) and (before[0] in cues.one_of or (before[0] == "a" and view.language == "en"))
    is_company = load_table().by_code[symbol].kind == "stock"
    return article and is_company and not (after and after[0] in cues.of_company)


def _is_amount(view: _View, name: str, start: int) -> bool:
    """ "3m de pesos": a number with a unit in a small letter."""
    return name[0].isdigit() and not view.plain[start : start + len(name)].isupper()


def _is_owner(view: _View, name: str, start: int, end: int) -> bool:
    """ "Visa's buyback": who owns something is a company, if the name or what it owns says so."""
    if not view.folded.startswith("'s ", end):
        return False
    is_written_as_name = view.plain[start].isupper() and not view.shouting
    return is_written_as_name or name in load_cues().mostly_companies or _is_market_talk(view, start, end)


def _acts(view: _View, end: int, *, capital: bool) -> bool:
    """Whether the word behind says what a company or a price does."""
    cues = load_cues()
    after = view.after(end)[:1]
    return bool(after) and (
        after[0] in cues.market_after or (capital and after[0] in cues.market_after_capital)
    )


def _plurals(view: _View) -> Iterator[_Candidate]:
    """ "Mis teslas"."""
    for match in _LETTERS.finditer(view.folded):
        symbol = plural_of(match.group()) if match.group().endswith("s") else None
        if symbol is not None:
            yield _Candidate(symbol, match.start(), match.end(), "sure", is_name=True)


# --- tickers ----------------------------------------------------------------------------------------------------


def _tickers(view: _View) -> Iterator[_Candidate]:
    for chunk in _CHUNK.finditer(view.plain):
        yield from _in_chunk(view, chunk.group(), chunk.start())


def _in_chunk(view: _View, chunk: str, start: int) -> Iterator[_Candidate]:
    whole = known_code(chunk.upper()) if len(chunk) <= _LONGEST_CODE else None
    if whole is not None:
        yield from _as_ticker(view, whole, start, _series_end(view, whole, start, start + len(chunk)))
    elif _is_dollar_unknown(view, chunk, start):
        yield _Candidate(chunk.upper(), start - 1, start + len(chunk), "sure", known=False)
    elif chunk.isalnum():
        yield from _unknown_beside_stock(view, chunk, start)
    elif listed := _LISTED.fullmatch(chunk):
        yield from _with_market(view, listed, start)
    elif chunk.upper() not in load_cues().not_symbols:
        yield from _in_parts(view, chunk, start)


def _with_market(view: _View, listed: re.Match[str], start: int) -> Iterator[_Candidate]:
    """ "SAN.MC": with its market behind it even a word is a symbol."""
    found = load_table().by_code.get(listed.group(1))
    if found is not None and listed.group(2).lower() in load_cues().market_suffixes:
        yield _Candidate(found.symbol, start, start + len(listed.group(1)), "sure")
    else:
        yield from _in_parts(view, listed.group(), start)


def _series_end(view: _View, found: Instrument, start: int, end: int) -> int:
    """Where the symbol ends when its series stands apart: BIMBO A."""
    series = _SERIES.match(view.plain, end)
    code = view.plain[start:end].upper()
    return series.end() if series and load_table().by_code.get(code + series.group(1)) is found else end


def _in_parts(view: _View, chunk: str, start: int) -> Iterator[_Candidate]:
    """The symbols in what is joined by a dot, dash or slash: AAPL/TSLA, WALMEX.MX."""
    for part in _PART.finditer(chunk):
        found = load_table().by_code.get(part.group().upper())
        is_suffix = part.start() > 0 and part.group().lower() in load_cues().market_suffixes
        if found is not None and not is_suffix:
            yield from _as_ticker(view, found, start + part.start(), start + part.end())


def _as_ticker(view: _View, found: Instrument, start: int, end: int) -> Iterator[_Candidate]:
    if _after_dollar(view, start):
        yield _Candidate(found.symbol, start - 1, end, "sure")
        return
    standing = _ticker_standing(view, found, start, end)
    if standing is not None and not _is_no_ticker(view, found, start, end):
        yield _Candidate(found.symbol, start, end, standing)


def _is_no_ticker(view: _View, found: Instrument, start: int, end: int) -> bool:
    """A word of another meaning, or one that is spoken as a name: "un bimbo"."""
    if _nearest_cue(view, start, end) == "stock":
        return False
    spoken = not view.plain[start:end].isupper()
    is_product = spoken and _is_one_of_its_products(view, found.symbol, start, end)
    return is_product or _is_elsewhere(view, view.folded[start:end], start, end)


def _ticker_standing(view: _View, found: Instrument, start: int, end: int) -> _Standing | None:
    if found.ticker == "any_case" or _has_market_prefix(view, start):
        return "sure"
    cue = _nearest_cue(view, start, end)
    if not view.plain[start:end].isupper():
        return _small_standing(found, cue is not None or _is_all(view, start, end))
    if found.ticker == "capitals" or cue == "stock" or _is_called(view, start) or _is_all(view, start, end):
        return "sure"
    if view.shouting:
        return "listed"
    if found.ticker != "cue":
        return "ask" if cue == "market" else "listed"
    if cue == "market":
        return "sure"
    if end - start <= 2:
        return "ask" if end - start == 2 else "listed"
    return "sure" if _is_market_talk(view, start, end) else "ask"


def _small_standing(found: Instrument, is_cued: bool) -> _Standing | None:
    """A ticker in small letters: those that are no words, beside a word of the market or in a list."""
    if found.ticker == "capitals":
        return "sure" if is_cued else "listed"
    # "eth y sol": coins are written in small letters, beside others of their kind.
    return "listed" if found.kind == "crypto" else None


def _after_dollar(view: _View, start: int) -> bool:
    return start > 0 and view.plain[start - 1] == "$"


def _has_market_prefix(view: _View, start: int) -> bool:
    return _market_prefix(view, start) in load_cues().market_prefixes


def _market_prefix(view: _View, start: int) -> str:
    prefix = _PREFIX.search(view.folded, max(0, start - 10), start)
    return prefix.group(1) if prefix else ""


def _is_dollar_unknown(view: _View, chunk: str, start: int) -> bool:
    is_symbol = chunk.isascii() and chunk.isalpha() and len(chunk) <= 6
    return is_symbol and _after_dollar(view, start) and chunk.upper() not in load_cues().not_symbols


def _unknown_beside_stock(view: _View, chunk: str, start: int) -> Iterator[_Candidate]:
    if not _UNKNOWN.fullmatch(chunk) or chunk in load_cues().not_symbols or view.shouting:
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
    for named in named_pairs(view.folded):
        yield _Candidate(named.symbol, named.start, named.end, "sure")


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
    """What stands in a list with a sure symbol is a symbol too ("AAPL, F y T"), and a list that is all there is."""
    if _are_all(view, found):
        return [replace(one, standing="sure") for one in found]
    forward = _sure_after_sure(view, found)
    return _sure_after_sure(view, forward[::-1])[::-1]


def _are_all(view: _View, found: list[_Candidate]) -> bool:
    """ "V o MA?": the message is a list of tickers in capitals; "T o F?" may be true or false."""
    if len(found) < 2 or max(one.end - one.start for one in found) < 2:
        return False
    in_capitals = all(view.plain[one.start : one.end].isupper() for one in found)
    joined = all(_is_joined(view, one, other) for one, other in pairwise(found))
    opened = found[0].start <= _BEFORE and load_cues().opening.match(view.folded[: found[0].start])
    return bool(in_capitals and joined and opened) and not _WORD.search(view.folded, found[-1].end)


def _sure_after_sure(view: _View, found: list[_Candidate]) -> list[_Candidate]:
    result: list[_Candidate] = []
    for one in found:
        joined = bool(result) and _backs(result[-1], one) and _is_joined(view, result[-1], one)
        result.append(replace(one, standing="sure") if joined else one)
    return result


def _backs(neighbour: _Candidate, one: _Candidate) -> bool:
    """Whether what stands beside makes ``one`` sure: a symbol, or a name beside a name ("visa o amazon")."""
    return neighbour.standing == "sure" or (neighbour.is_name and one.is_name)


def _is_joined(view: _View, one: _Candidate, other: _Candidate) -> bool:
    gap = view.folded[min(one.end, other.end) : max(one.start, other.start)]
    return len(gap) <= _LONGEST_JOINER and load_cues().joiner.fullmatch(gap) is not None


# --- one letter away --------------------------------------------------------------------------------------------


def _with_near(view: _View, found: list[_Candidate]) -> list[_Candidate]:
    """With the words that look like a slip for a symbol; they also stand for what was taken for an unknown one."""
    taken = {place for one in found if one.known for place in range(one.start, one.end)}
    near = [one for one in _near(view) if one.start not in taken]
    starts = {one.start for one in near}
    return sorted(
        [*(one for one in found if one.known or _letters_start(view, one) not in starts), *near],
        key=lambda one: one.start,
    )


def _letters_start(view: _View, one: _Candidate) -> int:
    return one.start + (view.plain[one.start] == "$")


def _near(view: _View) -> Iterator[_Candidate]:
    for match in _LETTERS.finditer(view.folded):
        start, end = match.span()
        for symbol in _near_symbols(view, match.group(), start, end):
            yield _Candidate(symbol, start, end, "ask")


def _near_symbols(view: _View, word: str, start: int, end: int) -> tuple[str, ...]:
    """A name in any case; a ticker in capitals, in small letters only a likely slip beside a cue."""
    in_capitals = view.plain[start:end].isupper()
    if in_capitals and is_listed(word):
        return ()
    if names := near_names(word).symbols:
        return names
    tickers = near_tickers(word)
    if in_capitals:
        return () if view.shouting else tickers.symbols
    return tickers.symbols if tickers.likely and _nearest_cue(view, start, end) else ()


# --- loaded once ------------------------------------------------------------------------------------------------


@cache
def _name_automaton() -> Any:
    automaton = ahocorasick.Automaton()
    for found in load_table().instruments:
        for name in found.aliases:
            for spelling in _spellings(name):
                automaton.add_word(spelling, (len(spelling), found, ()))
        for name, languages in found.word_aliases.items():
            automaton.add_word(comparable(plain(name)), (len(name), found, languages))
    automaton.make_automaton()
    return automaton


def _spellings(name: str) -> set[str]:
    """A name as it is written, without its apostrophe or accent of it, and with "and" or "y" for "&"."""
    spelled = comparable(plain(name))
    joined = {spelled.replace(" & ", f" {word} ") for word in ("&", "and", "y")}
    return joined | {one.replace("'", "") for one in joined}
