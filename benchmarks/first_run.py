"""How long a new user waits: from ``make run`` in a fresh copy of the tracked files to the first reply.

``recuerdo bench first_run [--json]``. The package cache of pip is whatever this machine has.
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
# The demo draws each reply in a frame.
FIRST_REPLY = "╭"


def measure(data: Path | None) -> dict[str, Any]:
    """Seconds to the first reply and to the end, of the first ``make run`` and of the second."""
    with tempfile.TemporaryDirectory(prefix="recuerdo-first-run-") as folder:
        copy = Path(folder) / "checkout"
        subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(copy)], check=True)
        first, whole = _make_run(copy, Path(folder) / "data")
        again, whole_again = _make_run(copy, Path(folder) / "data")
    return {
        "make_run_to_first_reply_s": first,
        "make_run_s": whole,
        "second_make_run_to_first_reply_s": again,
        "second_make_run_s": whole_again,
    }


def _make_run(checkout: Path, data: Path) -> tuple[float, float]:
    started = time.perf_counter()
    first = None
    environment = {**os.environ, "RECUERDO_DATA": str(data), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        ["make", "run"],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if first is None and FIRST_REPLY in line:
                first = time.perf_counter() - started
    if process.returncode or first is None:
        raise RuntimeError(f"make run ended with {process.returncode}")
    return round(first, 1), round(time.perf_counter() - started, 1)
