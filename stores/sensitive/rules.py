"""Finds what is sensitive in a text: by its form (`rules.yaml`), by its check digits, and by the words around it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from recuerdo.state.folding import folded, plain, unaccented
from recuerdo.stores.sensitive.amounts import amounts
from recuerdo.stores.sensitive.checks import CHECKS
from recuerdo.stores.sensitive.cues import Decider, Finding
from recuerdo.stores.sensitive.identifiers import identifiers
from recuerdo.stores.sensitive.numbers import card_and_bank_numbers, spoken_numbers
from recuerdo.stores.sensitive.seed import seed_phrases
from recuerdo.stores.sensitive.vocabulary import Kind, kind_named, read_table, vocabulary, words

MASK = "[***]"
# One character of a mask while a text is read: no letter, no digit, no space.
_TAKEN = "\ue000"
_KEPT = re.compile(rf"[^{_TAKEN}]*[^{_TAKEN}\s]")


@dataclass(frozen=True)
class Rule:
    """One form in which a kind of data is written; ``value`` of the pattern is what is taken out.

    The pattern reads the folded text, or with ``folded=False`` the one that keeps its case. ``check`` takes the value.
    """

    kind: Kind
    pattern: re.Pattern[str]
    folded: bool = True
    check: Callable[[str], bool] | None = None


def find_spans(text: str) -> list[Finding]:
    """Start, end and kind of every sensitive part of an NFC text, in order, without overlaps.

    ``MASK`` stands for what was taken out before: never part of a finding, and no word.
    """
    plain_text = plain(text.replace(MASK, _TAKEN * len(MASK)))
    folded_text = folded(plain_text)
    cased_text = unaccented(plain_text)
    found: list[Finding] = [
        (start, end, kind_named(kind)) for start, end, kind in card_and_bank_numbers(plain_text)
    ]
    found += [
        (start, end, "seed_phrase") for start, end in seed_phrases(plain_text, folded_text, _seed_label())
    ]
    found += [(start, end, "card") for start, end in spoken_numbers(folded_text)]
    for rule in load_rules():
        found += _found_by(rule, folded_text if rule.folded else cased_text)
    candidates = [*identifiers(folded_text), *amounts(folded_text, cased_text)]
    if candidates:
        found += Decider(folded_text, plain_text).decide(candidates)
    return _merged(list(_without_masks(found, plain_text)))


def _without_masks(found: list[Finding], text: str) -> Iterator[Finding]:
    """Findings up to a mask in them; one that begins with a mask is what was taken out before."""
    for start, end, kind in found:
        kept = _KEPT.match(text, start, end)
        if kept:
            yield (*kept.span(), kind)


def _found_by(rule: Rule, text: str) -> Iterator[Finding]:
    for match in rule.pattern.finditer(text):
        if rule.check is None or rule.check(match.group("value")):
            yield (*match.span("value"), rule.kind)


def _merged(found: list[Finding]) -> list[Finding]:
    """Overlapping findings as one, of the kind that begins first and is longest."""
    merged: list[Finding] = []
    for start, end, kind in sorted(found, key=lambda one: (one[0], -one[1])):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, kind))
    return merged


@cache
def _seed_label() -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){words('seed_label')}(?!\w)")


@cache
def load_rules() -> tuple[Rule, ...]:
    """The table, its patterns built once."""
    return tuple(_rule(row) for row in read_table("rules.yaml"))


def _rule(row: Mapping[str, Any]) -> Rule:
    return Rule(
        kind=kind_named(row["kind"]),
        pattern=re.compile(re.sub("«([a-z_]+)»", lambda match: vocabulary()[match.group(1)], row["pattern"])),
        folded=row.get("case") != "kept",
        check=CHECKS[row["check"]] if "check" in row else None,
    )
