"""The folder of the signing key: made once, closed to others, changed by rotation only (A-28)."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from recuerdo.state.errors import SettingsError
from recuerdo.stores.keys import KeyFolder, find_fault
from recuerdo.stores.keys import folder as keys_folder

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


@pytest.mark.parametrize("begun", [False, True])
def test_a_28_nothing_is_rotated_where_nothing_was_signed(keys: KeyFolder, begun: bool) -> None:
    if begun:
        keys.audit_key()
    with pytest.raises(SettingsError, match="no key to rotate yet"):
        keys.rotate("olga", NOW)
    assert keys.records() == ()


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
    signature = keys.signing_key("olga", NOW).sign("text/plain", b"rules")
    private_file(folder).unlink()
    for ask in (keys.signing_key, keys.rotate):
        with pytest.raises(
            SettingsError, match=r"is missing: what was signed stays valid.*audit\.key above all"
        ):
            ask("olga", NOW)
    assert find_fault("text/plain", b"rules", [signature], keys.trusted()) is None
    assert not list(folder.glob("*.pem"))


@pytest.mark.parametrize("also", ["audit.key", "*.pem", ""])
def test_a_28_a_lost_record_is_said_and_not_made_anew(keys: KeyFolder, folder: Path, also: str) -> None:
    keys.signing_key("olga", NOW)
    for path in (folder / "keys.json", *(folder.glob(also) if also else ())):
        path.unlink()
    asked = (
        lambda: keys.signing_key("rosa", LATER),
        lambda: keys.rotate("rosa", LATER),
        keys.trusted,
        keys.records,
    )
    for ask in asked:
        with pytest.raises(SettingsError, match=r"keys\.json, is missing.*none is made anew"):
            ask()
    assert not (folder / "keys.json").exists()


def test_a_28_a_lost_key_of_the_audit_is_not_made_anew(keys: KeyFolder, folder: Path) -> None:
    keys.signing_key("olga", NOW)
    (folder / "audit.key").unlink()
    for make in (True, False):
        with pytest.raises(SettingsError, match=r"audit\.key, is missing"):
            keys.audit_key(make=make)
    assert not (folder / "audit.key").exists()


def test_a_28_the_audit_may_begin_before_anything_is_signed(keys: KeyFolder, folder: Path) -> None:
    audit = keys.audit_key()
    assert keys.records() == () and keys.trusted() == {}
    key = keys.signing_key("olga", NOW)
    assert (keys.audit_key(make=False), keys.records()[0].key_id) == (audit, key.key_id)
    (folder / "keys.json").unlink()
    with pytest.raises(SettingsError, match="none is made anew"):
        keys.signing_key("olga", NOW)


@pytest.mark.parametrize("first", ["signing_key", "audit_key"])
def test_a_28_a_beginning_that_was_stopped_anywhere_is_gone_on_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """As a kill would leave it: before any of the moves that put a file in its place."""
    moved = keys_folder._move
    for stopped_at in range(1, 5 if first == "signing_key" else 3):
        place, moves = folder / str(stopped_at), iter(range(1, 100))

        def move(written: Path, path: Path, at: int = stopped_at, moves: Iterator[int] = moves) -> None:
            if next(moves) == at:
                raise KeyboardInterrupt
            moved(written, path)

        monkeypatch.setattr(keys_folder, "_move", move)
        begin = {"signing_key": lambda at: at.signing_key("olga", NOW), "audit_key": KeyFolder.audit_key}[
            first
        ]
        with pytest.raises(KeyboardInterrupt):
            begin(KeyFolder(place))
        monkeypatch.setattr(keys_folder, "_move", moved)
        again = KeyFolder(place)
        key = again.signing_key("rosa", LATER)
        assert (len(again.records()), again.records()[-1].key_id) == (1, key.key_id)
        assert again.audit_key(make=False) == KeyFolder(place).audit_key()
        assert private_file(place).stem == key.key_id


def test_a_28_a_rotation_that_was_stopped_has_one_key_in_use(
    keys: KeyFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = keys.signing_key("olga", NOW)
    moved = keys_folder._move

    def stop(written: Path, path: Path) -> None:
        if path.suffix == ".pem":
            raise KeyboardInterrupt
        moved(written, path)

    monkeypatch.setattr(keys_folder, "_move", stop)
    with pytest.raises(KeyboardInterrupt):
        keys.rotate("rosa", LATER)
    monkeypatch.setattr(keys_folder, "_move", moved)
    new = KeyFolder(folder).signing_key("rosa", LATER)
    assert [record.key_id for record in keys.records()] == [old.key_id, new.key_id]


STRANGER = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", ["keys.json", "audit.key", "*.pem", ".", ".."])
def test_a_28_what_another_user_owns_is_refused(keys: KeyFolder, folder: Path, what: str) -> None:
    keys.signing_key("olga", NOW)
    path = next(folder.glob(what)) if "*" in what else (folder / what).resolve()
    os.chown(path, STRANGER, STRANGER)
    refused = []
    for ask in (keys.trusted, keys.audit_key, lambda: keys.signing_key("olga", NOW)):
        try:
            ask()
        except SettingsError as error:
            assert f"{path} belongs to another user" in str(error)
            refused.append(ask)
    assert refused


@pytest.mark.parametrize(("mode", "holds"), [(0o777, False), (0o775, False), (0o1777, True), (0o755, True)])
def test_a_28_the_folder_above_the_keys_is_no_way_in(
    keys: KeyFolder, folder: Path, mode: int, holds: bool
) -> None:
    key = keys.signing_key("olga", NOW)
    folder.parent.chmod(mode)
    if holds:
        assert keys.signing_key("olga", NOW).key_id == key.key_id
        return
    for ask in (keys.trusted, keys.audit_key, lambda: keys.signing_key("olga", NOW)):
        with pytest.raises(SettingsError, match=r"can write to .*data, where the keys are.*chmod go-w"):
            ask()


def test_a_28_the_keys_themselves_stand_in_no_shared_folder(keys: KeyFolder, folder: Path) -> None:
    keys.signing_key("olga", NOW)
    folder.chmod(0o1777)
    with pytest.raises(SettingsError, match="where the keys are"):
        keys.trusted()


def test_a_28_a_folder_made_under_a_loose_umask_is_closed_all_the_same(folder: Path) -> None:
    before = os.umask(0)
    try:
        KeyFolder(folder).signing_key("olga", NOW)
    finally:
        os.umask(before)
    assert KeyFolder(folder).trusted()


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
