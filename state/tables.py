"""Tables of words and sentences that stand as YAML in a package, beside the code that reads them."""

from importlib.resources import files
from typing import Any

import yaml

# libyaml is five times as fast, and a start reads many of them.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_table(package: str, name: str) -> Any:
    """What ``name`` in ``package`` holds, as plain data."""
    return yaml.load((files(package) / name).read_text(encoding="utf-8"), _Loader)
