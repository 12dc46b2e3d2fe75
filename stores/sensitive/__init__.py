"""Sensitive financial data in a text: found and taken out before anything is remembered (RF-33, C-16, A-10)."""

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from recuerdo.stores.sensitive.finding import find_spans
from recuerdo.stores.sensitive.reading import MASK
from recuerdo.stores.sensitive.vocabulary import Kind

__all__ = ["MASK", "Kind", "Redacted", "Span", "find_sensitive", "redact"]

# What is taken out may bring together what stood apart, so a text is read again until nothing more is found. Two
# readings do for what people write; a text made for it may need one for each number.
_READINGS = 12


@dataclass(frozen=True)
class Span:
    """A sensitive part of a text. Offsets count in the NFC form of the text."""

    start: int
    end: int
    kind: Kind


@dataclass(frozen=True)
class Redacted:
    """A text (in NFC when something was taken out) with a mask for each sensitive part, and their kinds, sorted."""

    text: str
    kinds: tuple[Kind, ...]


def find_sensitive(text: str) -> list[Span]:
    """The sensitive parts of a Spanish or English ``text``, in order and without overlaps.

    Card, account, tax and identity numbers, credentials, keys, seed phrases, balances, income, debts, and the
    quantity, price and profit of what is held. Prices, targets, stops and dates are none. Linear in the text's
    length, seconds for 1 MB: long texts belong off the event loop.
    """
    whole = unicodedata.normalize("NFC", text)
    spans: list[Span] = []
    for _ in range(_READINGS):
        found = find_spans(_masked(whole, spans))
        if not found:
            break
        kept = _kept_parts(whole, spans)
        added = [Span(_place(kept, start), _place(kept, end - 1) + 1, kind) for start, end, kind in found]
        spans = sorted([*spans, *added], key=lambda span: span.start)
    return spans


def redact(text: str) -> Redacted:
    """``text`` with ``[***]`` in place of each sensitive part; doing it again changes nothing."""
    spans = find_sensitive(text)
    if not spans:
        return Redacted(text, ())
    masked = _masked(unicodedata.normalize("NFC", text), spans)
    return Redacted(masked, tuple(sorted({span.kind for span in spans})))


def _kept_parts(whole: str, spans: Sequence[Span]) -> list[tuple[int, int, int]]:
    """Of each part between the spans: where it begins in the masked text, where in the whole one, and its length."""
    parts, position, masked = [], 0, 0
    for start, end in [*((span.start, span.end) for span in spans), (len(whole), len(whole))]:
        parts.append((masked, position, start - position))
        masked += start - position + len(MASK)
        position = end
    return parts


def _place(parts: Sequence[tuple[int, int, int]], masked: int) -> int:
    """The offset in the whole text of an offset in the masked one."""
    in_masked, in_whole, _ = parts[bisect_right(parts, masked, key=lambda part: part[0]) - 1]
    return in_whole + masked - in_masked


def _masked(whole: str, spans: Sequence[Span]) -> str:
    return MASK.join(whole[start : start + length] for _, start, length in _kept_parts(whole, spans))
