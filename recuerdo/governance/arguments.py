"""What callers of ``agent.governance`` give, checked before it reaches a file or the database.

Each function returns what it was given, as its type says, or raises InputError that names the argument.
"""

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.arguments import MOST_ROWS, shown
from recuerdo.stores.postgres.scope import LONGEST_NAME
from recuerdo.stores.postgres.text import storable

_sentences = load_sentences(__package__, "arguments_sentences.yaml")
_plan_sentences = load_sentences("recuerdo.stores.plans")

_LONGEST_PATH = 4096

T = TypeVar("T")


def checked_id(value: object) -> UUID:
    """An id, or its text."""
    try:
        return value if isinstance(value, UUID) else UUID(value if isinstance(value, str) else "")
    except ValueError:
        raise InputError(_sentences("id_invalid", id=shown(value))) from None


def checked_revision(value: object) -> int:
    """A revision's number, of 8, "8" or "r8"."""
    found = re.fullmatch(r"r?([1-9][0-9]{0,8})", value.strip()) if isinstance(value, str) else None
    number = int(found[1]) if found else value
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number < 10**9:
        raise InputError(_plan_sentences("revision_number", text=shown(value)))
    return number


def checked_choice(part: str, value: object, known: Collection[str]) -> None:
    """One of the words of a type."""
    if not isinstance(value, str) or value not in known:
        raise InputError(_sentences("not_one_of", part=part, known=", ".join(known)))


def checked_text(part: str, value: object) -> None:
    """A name or id that the database can hold."""
    if not isinstance(value, str) or storable(value) != value or not 1 <= len(value) <= LONGEST_NAME:
        raise InputError(_sentences("no_text", part=part, longest=LONGEST_NAME))


def checked_reason(value: object) -> None:
    """A reason, or none. What the database cannot hold is taken out of it where it is kept, and what is too long."""
    if value is not None and not isinstance(value, str):
        raise InputError(_sentences("no_reason", part="reason"))


def checked_names(part: str, value: object) -> Sequence[str]:
    """A list of names; one text alone would be read letter by letter."""
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise InputError(_sentences("no_names", part=part))
    return value


def checked_path(part: str, value: object) -> Path:
    """A path; its text too."""
    try:
        path = os.fsencode(value) if isinstance(value, str | Path) else b""
    except UnicodeEncodeError:
        path = b""
    if not path or b"\0" in path or len(path) > _LONGEST_PATH:
        raise InputError(_sentences("no_path", part=part, longest=_LONGEST_PATH))
    return Path(os.fsdecode(path))


def checked_flag(part: str, value: object) -> None:
    """Yes or no: of any other value nobody could say which was meant."""
    if not isinstance(value, bool):
        raise InputError(_sentences("no_flag", part=part))


def checked_number(part: str, value: object) -> None:
    """The number of an entry."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_ROWS:
        raise InputError(_sentences("no_number", part=part))


def checked_instance(part: str, value: object, wanted: type[T]) -> T:
    """An object of ours, such as a plan."""
    if not isinstance(value, wanted):
        raise InputError(_sentences("no_instance", part=part, wanted=wanted.__name__))
    return value
