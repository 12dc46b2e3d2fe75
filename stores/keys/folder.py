"""The folder of the signing key: made at first use, readable by its owner only, rotated with a record (A-28).

``keys.json`` says which keys were ever in use and is checked whenever it is read; ``<key id>.pem`` is the private
key in use; ``audit.key`` is what the audit's chain is hashed with. Several machines of one deployment share a copy
of the folder.

The record is written before every key that stands beside it, and is begun together with ``audit.key``. So a file
that is missing beside the others was lost: it is said, and none is made anew.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import ValidationError

from recuerdo.state.errors import SettingsError
from recuerdo.state.os_errors import system_reason
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys.dsse import SigningKey, Trusted
from recuerdo.stores.keys.record import KeyRecord, KeyRecords, is_unbroken, new_record

sentences = load_sentences(__package__)

_RECORDS = "keys.json"
_AUDIT = "audit.key"
_AUDIT_KEY_BYTES = 32
_OWNER_ONLY = 0o600


class KeyFolder:
    """The keys in ``folder``. Every method reads files, and so blocks.

    Each raises SettingsError when the folder cannot be read or written, or what is in it cannot be believed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def records(self) -> tuple[KeyRecord, ...]:
        """Every key that was ever in use, the present one last; empty before the first use."""
        # Before the record, which is there before them: while a first key is being made nothing looks lost.
        signed, begun = self._has_private(), self._exists(self._folder / _AUDIT)
        path = self._folder / _RECORDS
        keys = self._kept(path)
        if keys is None and (signed or begun):
            raise SettingsError(sentences("key_record_missing", file=path))
        if not keys and not signed:
            return ()
        if not keys or not is_unbroken(keys):
            raise SettingsError(sentences("keys_broken", file=path))
        return keys

    def trusted(self) -> Trusted:
        """The public keys that signatures are believed of: the present one and those it followed."""
        return {record.key_id: record.public_key for record in self.records()}

    def signing_key(self, actor: str, at: datetime) -> SigningKey:
        """The private key in use, made if there was none: ``actor`` and ``at`` are then kept in its record."""
        if records := self.records():
            return self._private(records[-1])
        with self._alone():
            self._begin()
            # Another process may have been first.
            records = self.records() or (self._put_in_place((), actor, at),)
            return self._private(records[-1])

    def audit_key(self, *, make: bool = True) -> bytes:
        """The 32 bytes that the chains of the audit are hashed with; never rotated.

        With ``make`` they are made if there were none: for a chain that begins. One that has begun needs its own.
        """
        path = self._folder / _AUDIT
        if not self._exists(path):
            if not make:
                raise SettingsError(sentences("audit_key_missing", file=path))
            with self._alone():
                self._begin()
        key = self._secret(path)
        if len(key) != _AUDIT_KEY_BYTES:
            raise SettingsError(sentences("audit_key_changed", file=path))
        return key

    def rotate(self, actor: str, at: datetime) -> KeyRecord:
        """Put a new key in the place of the present one, whose private part is deleted.

        What the old one signed stays valid. The record that is returned is signed by the old key; whoever
        calls writes it to the audit. Raises SettingsError, too, where nothing was signed yet.
        """
        if not self.records():
            raise SettingsError(sentences("no_key_yet"))
        with self._alone():
            return self._put_in_place(self.records(), actor, at)

    def _begin(self) -> None:
        """See to it that the record and the key of the audit are there: both are made, or neither."""
        audit, records = self._folder / _AUDIT, self.records()
        if self._exists(audit):
            return
        if records:
            raise SettingsError(sentences("audit_key_missing", file=audit))
        self._write(self._folder / _RECORDS, KeyRecords().model_dump_json(indent=1).encode())
        self._write(audit, secrets.token_bytes(_AUDIT_KEY_BYTES))

    def _kept(self, path: Path) -> tuple[KeyRecord, ...] | None:
        """What the record says, as it stands; None: there is no record."""
        try:
            _require_own(path)
            return KeyRecords.model_validate_json(path.read_bytes()).keys
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error) from None
        except ValidationError:
            raise SettingsError(sentences("keys_broken", file=path)) from None

    def _has_private(self) -> bool:
        return any(self._folder.glob("*.pem"))

    def _exists(self, path: Path) -> bool:
        try:
            return path.exists()
        except OSError as error:
            raise _unreadable(path, error) from None

    def _put_in_place(self, records: tuple[KeyRecord, ...], actor: str, at: datetime) -> KeyRecord:
        retired = self._private(records[-1]) if records else None
        private = Ed25519PrivateKey.generate()
        record = new_record(SigningKey(private), retired, actor, at)
        pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        written = self._write_beside(self._pem(record), pem)
        # From here on the new key is the one in use.
        self._write(
            self._folder / _RECORDS, KeyRecords(keys=(*records, record)).model_dump_json(indent=1).encode()
        )
        _move(written, self._pem(record))
        for old in records:
            self._pem(old).unlink(missing_ok=True)
        return record

    def _private(self, record: KeyRecord) -> SigningKey:
        path = self._pem(record)
        if not self._exists(path):
            # It was stopped between the record and the key's own name; nothing to do where the key is lost.
            _move(_beside(path), path)
        try:
            private = load_pem_private_key(self._secret(path), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise SettingsError(sentences("key_changed", file=path)) from None
        if not isinstance(private, Ed25519PrivateKey) or SigningKey(private).key_id != record.key_id:
            raise SettingsError(sentences("key_changed", file=path))
        return SigningKey(private)

    def _secret(self, path: Path) -> bytes:
        """What stands in a file that nobody else may read."""
        try:
            if path.stat().st_mode & 0o077:
                raise SettingsError(sentences("key_open_to_others", file=path))
            _require_own(path)
            return path.read_bytes()
        except FileNotFoundError:
            raise SettingsError(sentences("key_missing", file=path)) from None
        except OSError as error:
            raise _unreadable(path, error) from None

    def _pem(self, record: KeyRecord) -> Path:
        return self._folder / f"{record.key_id}.pem"

    def _write(self, path: Path, content: bytes) -> None:
        """Whole or not at all, whatever stops us."""
        _move(self._write_beside(path, content), path)

    def _write_beside(self, path: Path, content: bytes) -> Path:
        """Write what is to stand in ``path`` under another name; never through a link that somebody planted."""
        new = _beside(path)
        try:
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(descriptor)
        except OSError as error:
            raise _unreadable(path, error) from None
        return new

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time changes the folder."""
        path = self._folder / "lock"
        try:
            # Whatever the umask: in a folder that others may write to the keys would be refused.
            self._folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _OWNER_ONLY)
        except OSError as error:
            raise _unreadable(path, error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _require_own(path: Path) -> None:
    """Who owns the file, its folder or the one above, or may write to it, could put another key in its place."""
    folder = path.parent
    for each in (path, folder, folder.parent):
        found = each.stat()
        if found.st_uid not in (0, os.geteuid()):
            raise SettingsError(sentences("key_of_others", file=each))
        # Of a shared folder such as /tmp others may not take away what is not theirs.
        shared = each == folder.parent and found.st_mode & stat.S_ISVTX
        if found.st_mode & 0o022 and not shared:
            raise SettingsError(sentences("key_writable_by_others", file=each))


def _beside(path: Path) -> Path:
    return path.with_suffix(".new")


def _move(written: Path, path: Path) -> None:
    """Give what was written its own name; nothing when another process was first."""
    try:
        with suppress(FileNotFoundError):
            written.replace(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> SettingsError:
    return SettingsError(sentences("key_unreadable", file=path, reason=system_reason(error)))
