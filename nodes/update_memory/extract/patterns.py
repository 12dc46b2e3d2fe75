"""The patterns of this package, which stand in YAML beside the code that reads with them."""

from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@cache
def load_patterns(name: str) -> dict[str, Any]:
    """The patterns in a YAML file of this package, by name."""
    loaded: dict[str, Any] = yaml.safe_load((files(__package__) / name).read_text(encoding="utf-8"))
    return loaded
