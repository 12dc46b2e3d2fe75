"""Whether a candidate is sensitive: a logistic model over the features of its words, its weights in `weights.json`."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from itertools import repeat

_NOTHING = repeat(0)


def is_sensitive(features: Iterable[str]) -> bool:
    """Whether what holds for a candidate, each thing once, makes it sensitive."""
    return sum(map(load_weights().get, set(features), _NOTHING)) > 0


@cache
def load_weights() -> Mapping[str, int]:
    """The weight of each feature in thousandths: whole numbers add up to the same in any order."""
    loaded: Mapping[str, int] = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    return loaded
