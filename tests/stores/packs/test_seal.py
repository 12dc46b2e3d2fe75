"""Tampering, signatures and keys."""

import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from recuerdo.state.errors import SettingsError
from recuerdo.stores.keys import KeyFolder, Signature, SigningKey
from recuerdo.stores.packs import Pack, PackFile, SealedPack, seal, unseal
from recuerdo.stores.packs.pack import manifest_of, pin_of
from recuerdo.stores.packs.seal import PACK_TYPE

PACK = Pack.of("tarifas", [PackFile("salidas.md", "Check-out: 11:00.\n")])


@pytest.fixture
def sealed(key: SigningKey) -> SealedPack:
    return seal(PACK, key)


def refusal(sealed: SealedPack, keys: KeyFolder) -> str:
    """Why it is refused; it names the pack and its pin."""
    with pytest.raises(SettingsError) as refused:
        unseal(sealed, keys.trusted())
    assert sealed.reference in str(refused.value)
    return str(refused.value)


def test_or_15_a_signed_pack_comes_out_as_it_went_in(sealed: SealedPack, keys: KeyFolder) -> None:
    assert unseal(sealed, keys.trusted()) == PACK
    assert sealed.manifest == manifest_of("tarifas", PACK.files)


@pytest.mark.parametrize("place", [0, 20, -1])
def test_or_14_one_changed_byte_is_refused(sealed: SealedPack, keys: KeyFolder, place: int) -> None:
    altered = bytearray(sealed.manifest)
    altered[place] ^= 1
    assert "hash mismatch" in refusal(replace(sealed, manifest=bytes(altered)), keys)


def test_or_14_the_full_hash_is_checked_not_what_is_shown(sealed: SealedPack, keys: KeyFolder) -> None:
    almost = sealed.pin[:12] + "0" * 52
    assert replace(sealed, pin=almost).reference == sealed.reference
    assert "hash mismatch" in refusal(replace(sealed, pin=almost), keys)


def test_or_15_an_altered_pack_with_its_own_new_pin_lacks_the_signature(
    sealed: SealedPack, keys: KeyFolder
) -> None:
    manifest = sealed.manifest.replace(b"11:00", b"12:00")
    forged = replace(sealed, manifest=manifest, pin=pin_of(manifest))
    assert "signature is wrong" in refusal(forged, keys)


def test_or_15_no_signature(sealed: SealedPack, keys: KeyFolder) -> None:
    assert "not signed" in refusal(replace(sealed, signatures=()), keys)


@pytest.mark.parametrize("value", [b"", b"\0" * 64, b"\1" * 63])
def test_or_15_a_wrong_signature(sealed: SealedPack, keys: KeyFolder, key: SigningKey, value: bytes) -> None:
    wrong = replace(sealed, signatures=(Signature(key.key_id, value),))
    assert "signature is wrong" in refusal(wrong, keys)


def test_or_15_a_key_that_is_not_trusted(keys: KeyFolder, key: SigningKey) -> None:
    stranger = SigningKey(Ed25519PrivateKey.generate())
    assert "key that is not trusted" in refusal(seal(PACK, stranger), keys)
    signed = seal(PACK, stranger).signatures[0]
    pretended = replace(seal(PACK, key), signatures=(Signature(key.key_id, signed.value),))
    assert "signature is wrong" in refusal(pretended, keys)


def test_or_15_a_signature_of_another_kind_of_document(
    sealed: SealedPack, keys: KeyFolder, key: SigningKey
) -> None:
    other = key.sign("application/vnd.recuerdo.plan+json", sealed.manifest)
    assert "signature is wrong" in refusal(replace(sealed, signatures=(other,)), keys)


def test_or_15_one_right_signature_among_others_is_enough(sealed: SealedPack, keys: KeyFolder) -> None:
    stranger = seal(PACK, SigningKey(Ed25519PrivateKey.generate())).signatures
    assert unseal(replace(sealed, signatures=(*stranger, *sealed.signatures)), keys.trusted()) == PACK


def test_or_14_a_pack_under_another_name_is_refused(sealed: SealedPack, keys: KeyFolder) -> None:
    assert "hash mismatch" in refusal(replace(sealed, name="horarios"), keys)


def test_or_15_a_form_of_the_future_is_refused(keys: KeyFolder, key: SigningKey) -> None:
    manifest = json.dumps({"format": 2, "name": "tarifas"}).encode()
    future = SealedPack("tarifas", pin_of(manifest), manifest, (key.sign(PACK_TYPE, manifest),))
    assert "newer version" in refusal(future, keys)


def test_a_28_the_envelope_is_dsse(sealed: SealedPack, key: SigningKey) -> None:
    envelope = sealed.envelope()
    payload, kind = b64decode(envelope["payload"]), envelope["payloadType"].encode()
    assert json.loads(payload)["files"] == [{"path": "salidas.md", "text": "Check-out: 11:00.\n"}]
    said = f"DSSEv1 {len(kind)} {kind.decode()} {len(payload)} ".encode() + payload
    (signature,) = envelope["signatures"]
    assert signature["keyid"] == key.key_id
    key.public.verify(b64decode(signature["sig"]), said)


def test_a_27_the_pin_is_sha_256_over_the_canonical_form() -> None:
    manifest = '{"files":[{"path":"salidas.md","text":"Check-out: 11:00.\\n"}],"format":1,"name":"tarifas"}'
    assert manifest_of("tarifas", PACK.files) == manifest.encode()
    assert PACK.pin == pin_of(manifest.encode())
    assert PACK.reference == f"tarifas@{PACK.pin[:12]}"


def test_or_15_without_any_key_nothing_is_believed(sealed: SealedPack, tmp_path: Path) -> None:
    assert "key that is not trusted" in refusal(sealed, KeyFolder(tmp_path / "elsewhere"))
