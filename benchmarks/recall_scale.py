"""Recall over 1,000, 10,000 and 100,000 memories of 1,000 users: ``recuerdo bench recall_scale [--json]``."""

from pathlib import Path
from typing import Any

from benchmarks.recall import measure_scale


def measure(data: Path | None) -> dict[str, Any]:
    """Time of a search and of adding, exactness under the user filter, memory and disk; synthetic text."""
    return measure_scale()
