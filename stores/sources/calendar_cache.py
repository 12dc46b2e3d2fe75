"""Trading intervals kept on disk, so that a warm start does not import pandas to know whether a market is open."""

import hashlib
import json
import tempfile
from datetime import datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

from recuerdo.stores.sources.sessions import Sessions


def _edition() -> str:
    """Changes with the library, which may know other holidays, and with our corrections to it."""
    ours = files("recuerdo.stores.sources.exchanges")
    texts = b"".join((ours / name).read_bytes() for name in ("corrections.py", "library.py"))
    return f"{version('exchange-calendars')}-{hashlib.sha256(texts).hexdigest()[:12]}"


_EDITION = _edition()


class CalendarCache:
    """One small JSON file per exchange and year. What cannot be read or written is simply not cached."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, code: str, year: int) -> Sessions | None:
        """The sessions kept for that exchange and year."""
        try:
            kept = json.loads(self._path(code, year).read_text(encoding="utf-8"))
            return Sessions(
                zone=ZoneInfo(kept["zone"]),
                opens=tuple(map(datetime.fromisoformat, kept["opens"])),
                closes=tuple(map(datetime.fromisoformat, kept["closes"])),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, code: str, year: int, sessions: Sessions) -> None:
        """Keep the sessions; readers see the whole file or none."""
        text = json.dumps(
            {
                "zone": sessions.zone.key,
                "opens": [instant.isoformat() for instant in sessions.opens],
                "closes": [instant.isoformat() for instant in sessions.closes],
            }
        )
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._folder, delete=False, encoding="utf-8") as file:
                file.write(text)
            Path(file.name).replace(self._path(code, year))
        except OSError:
            return

    def _path(self, code: str, year: int) -> Path:
        return self._folder / f"{code}-{year}-{_EDITION}.json"
