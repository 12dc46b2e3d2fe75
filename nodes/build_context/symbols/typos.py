"""Symbols and names one letter away from what was written: to be asked about, never assumed."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

from recuerdo.nodes.build_context.symbols.cues import load_cues
from recuerdo.nodes.build_context.symbols.table import load_table
from recuerdo.state.folding import comparable, plain

SHORTEST: Final = 4
LONGEST: Final = 16
_SHORTEST_NAME = 5
_MOST_CANDIDATES = 2
_REMEMBERED_WORDS = 8192


@dataclass(frozen=True)
class Near:
    """Symbols that a word is one letter away from; ``likely``: letters are swapped or doubled, the likeliest slips."""

    symbols: tuple[str, ...] = ()
    likely: bool = False


@lru_cache(maxsize=_REMEMBERED_WORDS)
def near_names(word: str) -> Near:
    """Symbols whose one-word name is one letter away from ``word``, folded; none for a word of the languages."""
    return _near(word, _names())


@lru_cache(maxsize=_REMEMBERED_WORDS)
def near_tickers(word: str) -> Near:
    """Symbols that are one letter away from ``word``, folded; none for a word or for another listed share."""
    return Near() if is_listed(word) else _near(word, _tickers())


def is_listed(word: str) -> bool:
    """Whether ``word``, folded, is the symbol of a listed company that the table does not have."""
    return word.upper() in _words()


@lru_cache(maxsize=_REMEMBERED_WORDS)
def plural_of(word: str) -> str | None:
    """The symbol of the name that ``word``, folded, is the plural of ("mis teslas"), None if it is none."""
    if not word.endswith("s") or word in _words():
        return None
    return _names().symbols.get(word[:-1])


@dataclass(frozen=True)
class _Index:
    """Keys by themselves and by each form that lacks one letter: two words that share one are close."""

    symbols: dict[str, str]
    by_form: dict[str, list[str]]

    @classmethod
    def of(cls, symbols: dict[str, str]) -> "_Index":
        by_form: defaultdict[str, list[str]] = defaultdict(list)
        for key in symbols:
            for form in _forms(key):
                by_form[form].append(key)
        return cls(symbols, dict(by_form))


def _near(word: str, index: _Index) -> Near:
    if word in _words() or word in index.symbols:
        return Near()
    keys = {key for form in _forms(word) for key in index.by_form.get(form, ())}
    ranked = sorted((rank, index.symbols[key]) for key in keys if (rank := _slip(word, key)) is not None)
    best = tuple(dict.fromkeys(symbol for rank, symbol in ranked if rank == ranked[0][0]))
    return Near(best, ranked[0][0] == 0) if 0 < len(best) <= _MOST_CANDIDATES else Near()


def _forms(word: str) -> Iterator[str]:
    yield word
    for gap in range(len(word)):
        yield word[:gap] + word[gap + 1 :]


def _slip(word: str, key: str) -> int | None:
    """How ``word`` is one slip away from ``key``; None: it is not.

    0: two letters swapped, or one doubled or halved; 1: one more or less; 2: another one.

    The first letter is hardly ever another one.
    """
    if len(word) == len(key):
        differing = [at for at, (one, other) in enumerate(zip(word, key, strict=True)) if one != other]
        if len(differing) == 1:
            return 2 if differing[0] else None
        return 0 if _is_swap(word, key, differing) else None
    longer, shorter = sorted((word, key), key=len, reverse=True)
    if len(longer) != len(shorter) + 1 or longer[0] != shorter[0] or shorter not in _forms(longer):
        return None
    gap = next((at for at, letter in enumerate(shorter) if letter != longer[at]), len(shorter))
    return 0 if longer[gap] == longer[gap - 1] else 1


def _is_swap(word: str, key: str, differing: list[int]) -> bool:
    if len(differing) != 2 or differing[1] != differing[0] + 1:
        return False
    ((one, other),) = pairwise(differing)
    return word[one] == key[other] and word[other] == key[one]


@cache
def _names() -> _Index:
    """Names of one word, those that are everyday words left out, and symbols that are spoken as names (WALMEX)."""
    companies = load_cues().mostly_companies
    symbols: dict[str, str] = {}
    for found in load_table().instruments:
        spoken = (found.symbol, *found.codes) if found.ticker == "any_case" else ()
        words = (name for name in found.word_aliases if comparable(plain(name)) in companies)
        for name in (*found.aliases, *words, *spoken):
            key = comparable(plain(name)).replace("'", "")
            if key.isalpha() and len(key) >= _SHORTEST_NAME:
                symbols.setdefault(key, found.symbol)
    return _Index.of(symbols)


@cache
def _tickers() -> _Index:
    known = [found for found in load_table().instruments if found.ticker in ("any_case", "capitals")]
    codes = ((code, found.symbol) for found in known for code in (found.symbol, *found.codes))
    return _Index.of(
        {code.lower(): symbol for code, symbol in codes if code.isalpha() and len(code) >= SHORTEST}
    )


@cache
def _words() -> frozenset[str]:
    """Words of both languages, and in capitals symbols of other companies, that are one letter away from ours."""
    return frozenset((files(__package__) / "not_typos.txt").read_text(encoding="utf-8").split())
