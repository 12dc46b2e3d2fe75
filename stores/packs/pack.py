"""A pack and its canonical form: the same files give the same bytes, and so the same pin, on every machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

import rfc8785

FORMAT = 1
"""Number of the manifest's form."""

SHOWN_DIGITS = 12
"""Hex digits of a pin in ``name@pin`` (A-27); the full 64 are stored and checked."""


@dataclass(frozen=True)
class PackFile:
    """One file: its path below the folder, with slashes, in NFC, and its text with plain line feeds."""

    path: str
    text: str


@dataclass(frozen=True)
class Pack:
    """The rules of one folder. ``pin`` is the SHA-256 of the manifest, 64 hex digits (OR-14)."""

    name: str
    pin: str
    files: tuple[PackFile, ...]

    @classmethod
    def of(cls, name: str, files: Iterable[PackFile]) -> Self:
        """The pack of these files, in whatever order they come."""
        ordered = tuple(sorted(files, key=lambda file: file.path))
        return cls(name, pin_of(manifest_of(name, ordered)), ordered)

    @property
    def reference(self) -> str:
        """``name@pin`` as plans, prompts and records say it."""
        return f"{self.name}@{self.pin[:SHOWN_DIGITS]}"


def manifest_of(name: str, files: Iterable[PackFile]) -> bytes:
    """The canonical JSON (RFC 8785) of a pack: name, and path and text of each file."""
    listed = [{"path": file.path, "text": file.text} for file in files]
    return rfc8785.dumps({"format": FORMAT, "name": name, "files": listed})


def pin_of(manifest: bytes) -> str:
    """The full pin of a manifest."""
    return sha256(manifest).hexdigest()
