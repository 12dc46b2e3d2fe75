"""Keys that seal what governs an agent: the key folder with its rotations, and DSSE signatures (A-28)."""

from recuerdo.stores.keys.dsse import Signature, SignatureFault, SigningKey, Trusted, envelope, find_fault
from recuerdo.stores.keys.folder import KeyFolder
from recuerdo.stores.keys.record import KeyRecord

__all__ = [
    "KeyFolder",
    "KeyRecord",
    "Signature",
    "SignatureFault",
    "SigningKey",
    "Trusted",
    "envelope",
    "find_fault",
]
