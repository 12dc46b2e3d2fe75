"""Knowledge packs: a folder of rules becomes an immutable, signed ``name@pin`` (OR-13 to OR-16).

``folder`` reads and checks the files, ``pack`` is the canonical form and its pin, ``seal`` signs and verifies,
``store`` keeps packs in PostgreSQL, ``shelf`` loads the verified ones once per process.
"""

from recuerdo.stores.packs.folder import read_folder
from recuerdo.stores.packs.pack import Pack, PackFile
from recuerdo.stores.packs.seal import SealedPack, seal, unseal
from recuerdo.stores.packs.shelf import PackShelf
from recuerdo.stores.packs.store import PackEntry, Packs

__all__ = [
    "Pack",
    "PackEntry",
    "PackFile",
    "PackShelf",
    "Packs",
    "SealedPack",
    "read_folder",
    "seal",
    "unseal",
]
