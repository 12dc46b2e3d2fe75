"""The patterns of this package, which stand in YAML beside the code that reads with them."""

from functools import cache
from typing import Any

from recuerdo.state.tables import read_table


@cache
def load_patterns(name: str) -> dict[str, Any]:
    """The patterns in a YAML file of this package, by name."""
    loaded: dict[str, Any] = read_table(__package__, name)
    return loaded
