"""Sensitive financial data in a text: found and taken out before anything is remembered (RF-33, C-16, A-10)."""

import unicodedata
from dataclasses import dataclass

from recuerdo.stores.sensitive.rules import Kind, find_spans

__all__ = ["MASK", "Kind", "Redacted", "Span", "find_sensitive", "redact"]

MASK = "[***]"


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
    quantity, price and profit of what is held. Prices, targets, percentages and dates are none. Linear in the
    text's length, a few seconds for 1 MB: long texts belong off the event loop.
    """
    return [Span(start, end, kind) for start, end, kind in find_spans(unicodedata.normalize("NFC", text))]


def redact(text: str) -> Redacted:
    """``text`` with ``[***]`` in place of each sensitive part."""
    spans = find_sensitive(text)
    if not spans:
        return Redacted(text, ())
    whole = unicodedata.normalize("NFC", text)
    parts: list[str] = []
    position = 0
    for span in spans:
        parts += [whole[position : span.start], MASK]
        position = span.end
    return Redacted("".join([*parts, whole[position:]]), tuple(sorted({span.kind for span in spans})))
