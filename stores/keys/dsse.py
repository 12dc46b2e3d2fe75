"""Ed25519 signatures over the pre-authentication encoding of DSSE 1.0 (dead simple signing envelope; A-28).

The type of what is signed is signed with it: a signature of one kind of document never passes for another.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_ID_DIGITS = 16
"""Hex digits of a key's id: the beginning of the SHA-256 of its 32 public bytes."""

Trusted = Mapping[str, Ed25519PublicKey]
"""The public keys that are believed, by key id."""

SignatureFault = Literal["missing", "unknown_key", "wrong"]
"""Nothing is signed, by no key that is trusted, or by a trusted one over something else."""


@dataclass(frozen=True)
class Signature:
    """64 bytes, and the id of the key that they were made with."""

    key_id: str
    value: bytes


class SigningKey:
    """A private key. It never shows in a log or an error: it has no text form of its own."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private

    @property
    def public(self) -> Ed25519PublicKey:
        """What others check its signatures with."""
        return self._private.public_key()

    @cached_property
    def key_id(self) -> str:
        """The id under which others know the key."""
        return key_id(self.public)

    def sign(self, payload_type: str, payload: bytes) -> Signature:
        """Sign ``payload`` as a document of the media type ``payload_type``."""
        return Signature(self.key_id, self._private.sign(_encoded(payload_type, payload)))


def key_id(public: Ed25519PublicKey) -> str:
    """The id of a public key."""
    return sha256(public.public_bytes_raw()).hexdigest()[:KEY_ID_DIGITS]


def find_fault(
    payload_type: str, payload: bytes, signatures: Sequence[Signature], trusted: Trusted
) -> SignatureFault | None:
    """Why ``payload`` is not to be believed; None when one of the signatures is right and by a trusted key."""
    if not signatures:
        return "missing"
    known = [signature for signature in signatures if signature.key_id in trusted]
    if not known:
        return "unknown_key"
    encoded = _encoded(payload_type, payload)
    right = any(_is_right(trusted[signature.key_id], signature.value, encoded) for signature in known)
    return None if right else "wrong"


def envelope(payload_type: str, payload: bytes, signatures: Sequence[Signature]) -> dict[str, Any]:
    """The DSSE envelope as a JSON document, for tools of others."""
    return {
        "payloadType": payload_type,
        "payload": b64encode(payload).decode(),
        "signatures": [
            {"keyid": signature.key_id, "sig": b64encode(signature.value).decode()}
            for signature in signatures
        ],
    }


def _encoded(payload_type: str, payload: bytes) -> bytes:
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _is_right(public: Ed25519PublicKey, value: bytes, encoded: bytes) -> bool:
    try:
        public.verify(value, encoded)
    except InvalidSignature:
        return False
    return True
