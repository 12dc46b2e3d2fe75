"""The folder of the signing key: made once, closed to others, changed by rotation only (A-28)."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from recuerdo.state.errors import SettingsError
from recuerdo.stores.keys import KeyFolder, find_fault

NOW = datetime(2025, 12, 5, 16, 30, tzinfo=UTC)
LATER = NOW + timedelta(days=30)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "keys"


@pytest.fixture
def keys(folder: Path) -> KeyFolder:
    return KeyFolder(folder)


def private_file(folder: Path) -> Path:
    (path,) = folder.glob("*.pem")
    return path


def edit(folder: Path, change: Any) -> None:
    path = folder / "keys.json"
    records = json.loads(path.read_text())
    change(records["keys"])
    path.write_text(json.dumps(records))


def test_a_28_the_key_is_made_at_first_use_for_its_owner_only(keys: KeyFolder, folder: Path) -> None:
    assert keys.records() == () and not folder.exists()
    key = keys.signing_key("olga", NOW)
    assert private_file(folder).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    (record,) = keys.records()
    assert (record.key_id, record.actor, record.since, record.retires) == (key.key_id, "olga", NOW, None)
    assert KeyFolder(folder).signing_key("rosa", LATER).key_id == key.key_id
    assert keys.trusted()[key.key_id] == key.public


def test_a_28_many_at_once_make_one_key(folder: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: KeyFolder(folder).signing_key(f"u{n}", NOW).key_id, range(8)))
    assert len(set(made)) == 1
    assert private_file(folder).stem == made[0]


def test_a_28_rotation_keeps_what_the_old_key_signed(keys: KeyFolder, folder: Path) -> None:
    old = keys.signing_key("olga", NOW)
    signature = old.sign("text/plain", b"rules")
    record = keys.rotate("rosa", LATER)
    new = keys.signing_key("rosa", LATER)
    assert (record.retires, record.key_id, record.actor) == (old.key_id, new.key_id, "rosa")
    assert new.key_id != old.key_id == keys.records()[0].key_id
    assert find_fault("text/plain", b"rules", [signature], keys.trusted()) is None
    assert private_file(folder).stem == new.key_id
    assert keys.rotate("rosa", LATER).retires == new.key_id
    assert len(keys.trusted()) == 3


def test_a_28_a_key_that_was_put_in_by_hand_is_refused(keys: KeyFolder, folder: Path) -> None:
    keys.signing_key("olga", NOW)
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    private_file(folder).write_bytes(pem)
    with pytest.raises(SettingsError, match="only by rotation"):
        keys.signing_key("olga", NOW)


@pytest.mark.parametrize(
    "content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_28_a_damaged_key_is_refused(keys: KeyFolder, folder: Path, content: bytes) -> None:
    keys.signing_key("olga", NOW)
    private_file(folder).write_bytes(content)
    with pytest.raises(SettingsError, match="restore the file"):
        keys.signing_key("olga", NOW)


def test_a_28_a_key_that_others_can_read_is_refused(keys: KeyFolder, folder: Path) -> None:
    keys.signing_key("olga", NOW)
    private_file(folder).chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        keys.signing_key("olga", NOW)


def test_a_28_a_lost_key_is_said_and_not_made_anew(keys: KeyFolder, folder: Path) -> None:
    keys.signing_key("olga", NOW)
    private_file(folder).unlink()
    with pytest.raises(SettingsError, match="is missing"):
        keys.signing_key("olga", NOW)


BROKEN = {
    "another actor": lambda keys: keys[1].update(actor="mallory"),
    "another date": lambda keys: keys[0].update(since="2020-01-01T00:00:00Z"),
    "a key of somebody else": lambda keys: keys[1].update(public="00" * 32),
    "the first one gone": lambda keys: keys.pop(0),
    "two in another order": lambda keys: keys.reverse(),
    "a signature forged": lambda keys: keys[1].update(signature="00" * 64),
    "all gone": lambda keys: keys.clear(),
    "a field that is no key": lambda keys: keys[0].update(public="x"),
    "not told what it retires": lambda keys: keys[1].update(retires=None),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_28_a_record_that_was_changed_is_refused(keys: KeyFolder, folder: Path, how: str) -> None:
    keys.signing_key("olga", NOW)
    keys.rotate("olga", LATER)
    edit(folder, BROKEN[how])
    with pytest.raises(SettingsError, match=r"keys\.json is damaged or was changed"):
        keys.trusted()


def test_a_28_a_record_that_is_no_json_is_refused(keys: KeyFolder, folder: Path) -> None:
    keys.signing_key("olga", NOW)
    (folder / "keys.json").write_bytes(b"\xff{")
    with pytest.raises(SettingsError, match="damaged"):
        keys.records()


def test_a_28_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SettingsError, match="cannot be used"):
        KeyFolder(tmp_path / "file" / "keys").signing_key("olga", NOW)


def test_a_28_the_private_key_never_shows(keys: KeyFolder, folder: Path) -> None:
    key = keys.signing_key("olga", NOW)
    secret = key._private.private_bytes_raw().hex()
    assert secret not in repr(key) + str(vars(key)) + (folder / "keys.json").read_text()
