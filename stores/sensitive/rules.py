"""Reads the table of rules (`rules.yaml`, vocabulary in `words.yaml`) and runs it over a text."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

import yaml

from recuerdo.state.folding import folded, plain, unaccented
from recuerdo.stores.sensitive.checks import CHECKS
from recuerdo.stores.sensitive.numbers import card_and_bank_numbers
from recuerdo.stores.sensitive.seed import seed_phrases

Kind = Literal[
    "account",
    "amount_held",
    "balance",
    "card",
    "clabe",
    "credential",
    "holding",
    "iban",
    "identity",
    "key",
    "seed_phrase",
    "tax_id",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

Finding = tuple[int, int, Kind]

# "ganó 5 dólares" is said of a share, "gano" of oneself.
_THIRD_PERSON = re.compile(r"\w+ó\b", re.IGNORECASE)


@dataclass(frozen=True)
class Rule:
    """One way in which a kind of data is written.

    The pattern reads the folded text, or with ``folded=False`` the one that keeps its case. ``check`` takes the
    value; ``unless`` is looked for in the accented text from the match on, where only an accent tells.
    """

    kind: Kind
    pattern: re.Pattern[str]
    folded: bool = True
    check: Callable[[str], bool] | None = None
    unless: re.Pattern[str] | None = None


def find_spans(text: str) -> list[Finding]:
    """Start, end and kind of every sensitive part of an NFC text, in order, without overlaps."""
    plain_text = plain(text)
    folded_text = folded(plain_text)
    found: list[Finding] = [
        (start, end, _kind(kind)) for start, end, kind in card_and_bank_numbers(plain_text)
    ]
    found += [
        (start, end, "seed_phrase") for start, end in seed_phrases(plain_text, folded_text, _seed_label())
    ]
    cased_text = unaccented(plain_text)
    for rule in load_rules():
        found += _found_by(rule, folded_text if rule.folded else cased_text, plain_text)
    return _merged(found)


def _found_by(rule: Rule, text: str, plain_text: str) -> Iterator[Finding]:
    for match in rule.pattern.finditer(text):
        excluded = rule.unless is not None and rule.unless.match(plain_text, match.start())
        if not excluded and (rule.check is None or rule.check(match.group("value"))):
            for part in ("value", "price"):
                if part in rule.pattern.groupindex and match.group(part):
                    yield (*match.span(part), rule.kind)


def _merged(found: list[Finding]) -> list[Finding]:
    """Overlapping findings as one, of the kind that begins first and is longest."""
    merged: list[Finding] = []
    for start, end, kind in sorted(found, key=lambda one: (one[0], -one[1])):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, kind))
    return merged


def _kind(name: str) -> Kind:
    return next(kind for kind in KINDS if kind == name)


@cache
def _words() -> dict[str, str]:
    return {
        name: f"(?:{re.sub(r'[|] +', '|', value.strip())})" for name, value in _read("words.yaml").items()
    }


@cache
def _parts() -> dict[str, str]:
    """Patterns that rules share, by the name that stands for them between « and »."""
    words = _words()
    grouped = r"\d{1,3}(?:[ ']\d{3}){1,4}(?:[.,]\d{1,2})?"
    digits = rf"(?:{grouped}|\d{{1,15}}(?:[.,]\d{{1,9}}){{0,4}})"
    # Not the beginning of a longer number, a percentage, an age or a factor.
    whole = r"(?![\d%]|[.,]\d| ?%| por ciento| percent| anos?\b| years?\b| ?x\b)"
    sign = f"(?:{words['currency_sign']} ?)"
    times = rf"(?: ?{words['multiplier']}\b)"
    unit = rf"(?: ?(?:de )?{words['currency_word']}(?!\w))"
    spoken = rf"(?:{words['number_word']} ){{1,8}}(?:de )?{words['currency_word']}(?!\w)"
    # Three digits or more, or a multiplier: what an amount looks like without its currency.
    thousands = r"\d{1,3}(?:[ '.,]\d{3}){1,4}(?:[.,]\d{1,2})?|\d{3,15}(?:[.,]\d{1,2})?"
    multiplied = rf"\d{{1,6}}(?:[.,]\d{{1,3}})?{times}"
    return {
        **words,
        "num": f"[-+]?{sign}?[-+]?{digits}{whole}{times}?{unit}?",
        "money": f"(?:[-+]?{sign}[-+]?{digits}{whole}{times}?{unit}?|[-+]?{digits}{whole}{times}?{unit}|{spoken})",
        "large": f"[-+]?(?:{thousands}|{multiplied}){whole}{times}?",
        "gap": r"[^\d\n.;?!$€£+-]{0,40}?",
        "near": r"[^\d\n.;?!$€£]{0,20}?",
        "ap": rf"(?:[ ,]*{words['about']}(?!\w)){{0,4}}[ ,]*",
        "ticker": r"[A-Z]{1,6}(?:[.-][A-Z]{1,2})?",
    }


def _pattern(shape: str) -> re.Pattern[str]:
    parts = _parts()
    return re.compile(re.sub("«([a-z_]+)»", lambda match: parts[match.group(1)], shape))


@cache
def _seed_label() -> re.Pattern[str]:
    return _pattern(r"(?<!\w)«seed_label»(?!\w)")


@cache
def load_rules() -> tuple[Rule, ...]:
    """The table, its patterns built once."""
    return tuple(_rule(row) for row in _read("rules.yaml"))


def _rule(row: dict[str, Any]) -> Rule:
    return Rule(
        kind=_kind(row["kind"]),
        pattern=_pattern(row["pattern"]),
        folded=row.get("case") != "kept",
        check=CHECKS[row["check"]] if "check" in row else None,
        unless=_THIRD_PERSON if row.get("first_person") else None,
    )


def _read(name: str) -> Any:
    return yaml.safe_load((files(__package__) / name).read_text(encoding="utf-8"))
