"""A folder of rules of a hotel, and keys of its own."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recuerdo.stores.keys import KeyFolder, SigningKey

NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)

RULES = {
    "salidas.md": "# Salidas\nCheck-out: 11:00.\n",
    "tarifas.csv": "habitación,precio\ndoble,90\nsuite,150\n",
    "normas/mascotas.yaml": "perros: sí\nsuplemento: 10\n",
}

WriteFolder = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> WriteFolder:
    """Writes a folder of files; a text is written as UTF-8, bytes as they are."""

    def written(name: str, files: dict[str, str | bytes]) -> Path:
        folder = tmp_path / name / "tarifas"
        folder.mkdir(parents=True)
        for path, content in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    return written


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
def key(keys: KeyFolder) -> SigningKey:
    return keys.signing_key("olga", NOW)
