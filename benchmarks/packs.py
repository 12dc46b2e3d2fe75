"""How long knowledge packs take to verify (governance, what is measured).

``recuerdo bench packs [--json]``. Packs of 3,000 tokens of made rules, each another one; sealed with a key of a
folder of its own, then opened as an agent opens them: hash, signature, contents. No database in it.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from recuerdo.stores.keys import KeyFolder, SigningKey
from recuerdo.stores.packs import Pack, PackFile, seal, unseal
from recuerdo.stores.tokens import TokenCounter

PACKS = 100
TOKENS = 3000
ROUNDS = 20


def measure(data: Path | None) -> dict[str, Any]:
    """Milliseconds to verify all packs, over some rounds, and to compile and sign one."""
    counter = TokenCounter()
    packs = [rules(number, counter) for number in range(PACKS)]
    with tempfile.TemporaryDirectory() as folder:
        keys = KeyFolder(Path(folder) / "keys")
        key = keys.signing_key("bench", datetime.now(UTC))
        sealed = [seal(pack, key) for pack in packs]
        verified = [_ms(lambda: [unseal(pack, keys.trusted()) for pack in sealed]) for _ in range(ROUNDS)]
        built = [_ms(partial(_build, pack, key)) for pack in packs]
    return {
        "packs": PACKS,
        "tokens_each": round(statistics.mean(counter.count(pack.files[0].text) for pack in packs)),
        "bytes_each": round(statistics.mean(len(pack.manifest) for pack in sealed)),
        "verify_all_ms_min": round(min(verified), 2),
        "verify_all_ms_p50": round(statistics.median(verified), 2),
        "verify_all_ms_max": round(max(verified), 2),
        "build_one_ms_p50": round(statistics.median(built), 3),
    }


def rules(number: int, counter: TokenCounter) -> Pack:
    """A pack of rules with exactly so many tokens."""
    lines = (f"- Habitación {number}-{line}: {90 + line} EUR, salida a las 11:00." for line in range(TOKENS))
    text = counter.truncate("\n".join(lines), TOKENS)
    return Pack.of("normas", [PackFile("normas.md", text)])


def _build(pack: Pack, key: SigningKey) -> None:
    seal(Pack.of(pack.name, pack.files), key)


def _ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
