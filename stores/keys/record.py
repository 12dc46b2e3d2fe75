"""The record of the keys: each one is put in place by the key that it retires (A-28)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints

from recuerdo.stores.keys.dsse import Signature, SigningKey, find_fault, key_id

KEY_TYPE = "application/vnd.recuerdo.key+json"

Hex32 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Hex64 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{128}$")]


class KeyStatement(BaseModel):
    """What is signed of a key: since when it signs, who put it there, which key it retires (None: the first).

    ``public`` is its 32 public bytes in hex.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key_id: str
    public: Hex32
    since: AwareDatetime
    actor: str
    retires: str | None

    @property
    def public_key(self) -> Ed25519PublicKey:
        """The key to check signatures with."""
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public))


class KeyRecord(KeyStatement):
    """A statement with its signature in hex, by the retired key; the first key signs its own."""

    signature: Hex64


class KeyRecords(BaseModel):
    """Every key that was ever in use, the present one last."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[KeyRecord, ...] = ()


def new_record(key: SigningKey, retired: SigningKey | None, actor: str, at: datetime) -> KeyRecord:
    """The record of ``key`` in the place of ``retired``."""
    statement = KeyStatement(
        key_id=key.key_id,
        public=key.public.public_bytes_raw().hex(),
        since=at,
        actor=actor,
        retires=retired.key_id if retired else None,
    )
    signature = (retired or key).sign(KEY_TYPE, _signed_part(statement))
    return KeyRecord(**statement.model_dump(), signature=signature.value.hex())


def is_unbroken(records: Sequence[KeyRecord]) -> bool:
    """Whether each key was put in place by the one before it, and no record was changed since."""
    signers = [*records[:1], *records]
    return all(_is_signed_by(signer, record) for record, signer in zip(records, signers, strict=False))


def _is_signed_by(signer: KeyRecord, record: KeyRecord) -> bool:
    retires = None if record is signer else signer.key_id
    if record.retires != retires or record.key_id != key_id(record.public_key):
        return False
    signature = Signature(signer.key_id, bytes.fromhex(record.signature))
    trusted = {signer.key_id: signer.public_key}
    return find_fault(KEY_TYPE, _signed_part(record), [signature], trusted) is None


def _signed_part(statement: KeyStatement) -> bytes:
    return rfc8785.dumps(statement.model_dump(mode="json", include=set(KeyStatement.model_fields)))
