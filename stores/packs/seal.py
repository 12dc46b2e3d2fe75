"""Sealing a pack, and opening a sealed one: only what is whole and signed by a trusted key comes out (OR-15)."""

import json
from dataclasses import dataclass
from typing import Any

from recuerdo.state.errors import SettingsError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import Signature, SigningKey, Trusted, envelope, find_fault
from recuerdo.stores.packs.pack import FORMAT, SHOWN_DIGITS, Pack, PackFile, manifest_of, pin_of

sentences = load_sentences(__package__)

PACK_TYPE = "application/vnd.recuerdo.pack+json"


@dataclass(frozen=True)
class SealedPack:
    """A pack as it is stored: nothing in it is to be believed before :func:`unseal`."""

    name: str
    pin: str
    manifest: bytes
    signatures: tuple[Signature, ...]

    @property
    def reference(self) -> str:
        """``name@pin`` under which it is stored."""
        return f"{self.name}@{self.pin[:SHOWN_DIGITS]}"

    def envelope(self) -> dict[str, Any]:
        """The pack as a DSSE envelope."""
        return envelope(PACK_TYPE, self.manifest, self.signatures)


def seal(pack: Pack, key: SigningKey) -> SealedPack:
    """Sign a pack."""
    manifest = manifest_of(pack.name, pack.files)
    return SealedPack(pack.name, pack.pin, manifest, (key.sign(PACK_TYPE, manifest),))


def unseal(sealed: SealedPack, trusted: Trusted) -> Pack:
    """The pack inside.

    Raises SettingsError, which names the pack and its pin, when the content is not what the pin says, when no
    trusted key has signed it, or when this program does not know its form.
    """
    if pin_of(sealed.manifest) != sealed.pin:
        raise _refused(sealed, "altered")
    fault = find_fault(PACK_TYPE, sealed.manifest, sealed.signatures, trusted)
    if fault is not None:
        raise _refused(sealed, f"signature_{fault}")
    document = json.loads(sealed.manifest)
    if document["name"] != sealed.name:
        raise _refused(sealed, "altered")
    if document["format"] != FORMAT:
        raise _refused(sealed, "format_unknown")
    files = tuple(PackFile(file["path"], file["text"]) for file in document["files"])
    return Pack(sealed.name, sealed.pin, files)


def _refused(sealed: SealedPack, reason: str) -> SettingsError:
    return SettingsError(sentences("pack_refused", pack=sealed.reference, reason=sentences(reason)))
