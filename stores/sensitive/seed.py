"""Seed phrases of wallets: 12 to 24 words of the Spanish or English BIP-39 list in a row."""

import re
from collections.abc import Iterator
from functools import cache

from mnemonic import Mnemonic

from recuerdo.state.folding import folded, plain

_WORD = re.compile(r"[^\W\d_]+")
# What may stand between two words of a phrase: spaces, commas, and the number of each word.
_GAP = re.compile(r"[\s,;.\-|\"']*(?:\d{1,2}[.):\-]?)?[\s\-]*")
_SIZES = (24, 21, 18, 15, 12)
_SHORTEST = 12
# No prose has so many words of the list in a row; and checksums need not be tried on a whole book.
_SURELY = 48
_LABEL_REACH = 120


def seed_phrases(text: str, folded_text: str, label: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Start and end of each seed phrase: right by its checksum, or named as one by ``label`` before it."""
    for language in ("english", "spanish"):
        for run in _runs(folded_text, _word_list(language)):
            start, end = run[0][0], run[-1][1]
            before = folded_text[max(0, start - _LABEL_REACH) : start]
            if len(run) >= _SURELY or label.search(before) or _has_checksum(text, run, language):
                yield start, end


def _runs(text: str, words: frozenset[str]) -> Iterator[list[tuple[int, int]]]:
    """Spans of the words of each row of at least 12 listed words."""
    run: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        listed = match.group() in words
        if run and not (listed and _GAP.fullmatch(text[run[-1][1] : match.start()][:20])):
            if len(run) >= _SHORTEST:
                yield run
            run = []
        if listed:
            run.append(match.span())
    if len(run) >= _SHORTEST:
        yield run


def _has_checksum(text: str, run: list[tuple[int, int]], language: str) -> bool:
    words = [text[start:end].lower() for start, end in run]
    windows = (words[first : first + size] for size in _SIZES for first in range(len(words) - size + 1))
    checker = _mnemonic(language)
    return any(checker.check(checker.normalize_string(" ".join(window))) for window in windows)


@cache
def _mnemonic(language: str) -> Mnemonic:
    return Mnemonic(language)


@cache
def _word_list(language: str) -> frozenset[str]:
    return frozenset(folded(plain(word)) for word in _mnemonic(language).wordlist)
