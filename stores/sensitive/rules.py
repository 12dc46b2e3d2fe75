"""Forms in which sensitive data is written (`rules.yaml`)."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from recuerdo.state.tables import read_table
from recuerdo.stores.sensitive.checks import CHECKS
from recuerdo.stores.sensitive.vocabulary import Kind, kind_named, vocabulary, words

Finding = tuple[int, int, Kind]


@dataclass(frozen=True)
class Rule:
    """One form in which a kind of data is written; ``value`` of the pattern is what is taken out.

    The pattern reads the folded text, or with ``folded=False`` the one that keeps its case. ``check`` takes the value.
    What a rule with a ``name`` finds is a candidate only; what one without finds is sure.
    """

    kind: Kind
    pattern: re.Pattern[str]
    folded: bool
    name: str
    check: Callable[[str], bool] | None

    def found(self, text: str) -> Iterator[Finding]:
        """Each value in the text that the pattern reads."""
        for match in self.pattern.finditer(text):
            if self.check is None or self.check(match.group("value")):
                yield (*match.span("value"), self.kind)


@cache
def seed_label() -> re.Pattern[str]:
    """What a seed phrase is called."""
    return re.compile(rf"(?<!\w){words('seed_label')}(?!\w)")


@cache
def load_rules() -> tuple[Rule, ...]:
    """The table, its patterns built once."""
    return tuple(_rule(row) for row in read_table(__package__, "rules.yaml"))


def _rule(row: Mapping[str, Any]) -> Rule:
    return Rule(
        kind=kind_named(row["kind"]),
        pattern=re.compile(re.sub("«([a-z_]+)»", lambda match: vocabulary()[match.group(1)], row["pattern"])),
        folded=row.get("case") != "kept",
        name=row.get("name", ""),
        check=CHECKS[row["check"]] if "check" in row else None,
    )
