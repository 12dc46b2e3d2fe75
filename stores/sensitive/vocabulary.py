"""The words of both languages that give sensitive data away (`words.yaml`), and what they are said of."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

import yaml

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

# A line of a list ends after a bar.
_BREAK = re.compile("[|] +")


@dataclass(frozen=True)
class Candidate:
    """A part of the text that may be sensitive, and what it looks like; ``at``: as a price stands, after "at"."""

    start: int
    end: int
    shape: str
    at: bool = False


def kind_named(name: str) -> Kind:
    """The kind of that name, for a table that names one."""
    return next(kind for kind in KINDS if kind == name)


def read_table(name: str) -> Any:
    """The content of a YAML file beside this one."""
    return yaml.safe_load((files(__package__) / name).read_text(encoding="utf-8"))


@cache
def vocabulary() -> dict[str, str]:
    """Each list of `words.yaml` as one group of alternatives of a regular expression."""
    return {name: alternatives(value) for name, value in read_table("words.yaml").items()}


def words(name: str) -> str:
    """One list of the vocabulary."""
    return vocabulary()[name]


def alternatives(listed: str) -> str:
    """Alternatives with bars between them, on one line or several, as one group."""
    return f"(?:{_BREAK.sub('|', listed.strip())})"
