"""What Chroma leaves in its files of vectors that are gone, taken out of them (C-17, IM-43).

Chroma writes every change to a queue in ``chroma.sqlite3``, vector and metadata, and purges it only after some
thousand more of them. A change that a later one of the same id has overtaken is of no use to it any more.
"""

import logging
import os
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

from recuerdo.stores.chroma.foreign import DATABASE_FILE

_log = logging.getLogger(__name__)

_OVERTAKEN = """
delete from embeddings_queue where vector is not null
    and seq_id not in (select max(seq_id) from embeddings_queue group by topic, id)
"""
# A topic ends with the id of its collection.
_OF_NO_COLLECTION = """
delete from embeddings_queue where substr(topic, -36) not in (select id from collections)
"""
_SEGMENTS = "select id from segments"

# How hnswlib begins a segment's header: version, offset, places in all, places taken, bytes of a place.
_HEADER = struct.Struct("<iQQQQ")


def remove_leftovers(folder: Path) -> None:
    """Take overtaken changes and dropped collections out of the files of ``folder``, which nobody has open.

    What was deleted from the queue and from Chroma's other tables is overwritten. Vectors without a name stay in the
    taken places of ``data_level0.bin`` of a living collection until that is written anew. A database that is no such
    one is left as it is, with a line in the log.
    """
    try:
        with closing(sqlite3.connect(folder / DATABASE_FILE, isolation_level=None)) as database:
            database.execute(_OVERTAKEN)
            database.execute(_OF_NO_COLLECTION)
            # Whatever was deleted, by Chroma too, still stands in free pages.
            database.execute("vacuum")
            living = {row[0] for row in database.execute(_SEGMENTS)}
    except sqlite3.Error as error:
        _log.warning("vector index %s: deleted vectors stay on disk: %s", folder, type(error).__name__)
        return
    for path in folder.glob("*-*-*-*-*"):
        if path.is_dir() and path.name not in living:
            shutil.rmtree(path, ignore_errors=True)
        elif path.is_dir():
            _clear_free_places(path)


def _clear_free_places(segment: Path) -> None:
    """Zero the places of a segment that hold no vector: hnswlib writes there what its memory held before."""
    try:
        header = (segment / "header.bin").read_bytes()
        with (segment / "data_level0.bin").open("r+b") as data:
            size = data.seek(0, os.SEEK_END)
            _, _, places, taken, bytes_of_one = _HEADER.unpack_from(header)
            # Else it is of another version of hnswlib, and none of our business.
            if taken * bytes_of_one <= size <= places * bytes_of_one:
                data.seek(taken * bytes_of_one)
                data.write(bytes(size - taken * bytes_of_one))
    except FileNotFoundError:
        return
    except (OSError, struct.error) as error:
        _log.warning("vector index %s: its free places are not cleared: %s", segment, type(error).__name__)
