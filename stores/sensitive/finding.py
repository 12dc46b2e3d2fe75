"""Finds what is sensitive in a text: what is sure by its form, and the candidates that the weights decide on."""

import re
from collections.abc import Iterable, Iterator

from recuerdo.stores.sensitive.reading import TAKEN, Described, Reading, read
from recuerdo.stores.sensitive.rules import Finding
from recuerdo.stores.sensitive.scorer import is_sensitive
from recuerdo.stores.sensitive.secrets import is_no_secret, names_a_thing, says_secret

_KEPT = re.compile(rf"[^{TAKEN}]*[^{TAKEN}\s]")


def find_spans(text: str) -> list[Finding]:
    """Start, end and kind of every sensitive part of an NFC text, in order, without overlaps.

    A mask stands for what was taken out before: never part of a finding, and no word.
    """
    reading = read(text)
    decided = [
        (one.start, one.end, one.group.kind)
        for one in reading.candidates()
        if is_sensitive(one.features) and not _is_a_name(reading, one)
    ]
    return _merged(_without_masks([*reading.sure, *decided], reading.plain_text))


def _is_a_name(reading: Reading, one: Described) -> bool:
    """An id of a memory, a turn, a commit or a security, whatever its weights say."""
    text, start, end = reading.plain_text, one.start, one.end
    if is_no_secret(text[start:end]):
        return True
    return names_a_thing(text, start, end) and not says_secret(reading.folded_text, start, end)


def _without_masks(found: Iterable[Finding], text: str) -> Iterator[Finding]:
    """Findings up to a mask in them; one that begins with a mask is what was taken out before."""
    for start, end, kind in found:
        kept = _KEPT.match(text, start, end)
        if kept:
            yield (*kept.span(), kind)


def _merged(found: Iterable[Finding]) -> list[Finding]:
    """Overlapping findings as one, of the kind that begins first and is longest."""
    merged: list[Finding] = []
    for start, end, kind in sorted(found, key=lambda one: (one[0], -one[1])):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, kind))
    return merged
