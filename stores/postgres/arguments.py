"""What a caller gives, checked before it reaches the database: names, pages."""

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.text import storable
from recuerdo.stores.sensitive.naming import is_sensitive_name

_sentences = load_sentences(__package__, "arguments_sentences.yaml")

LONGEST_NAME = 100
"""Characters of the name of a kind or of a preference."""

MOST_ROWS = 1_000_000_000
"""What a page may begin with, or hold, at most: more than there are rows, and less than PostgreSQL counts."""

_SHOWN = 60


def checked_name(part: str, name: object, longest: int = LONGEST_NAME) -> str:
    """``name`` when it can be kept: a text of 1 to ``longest`` characters that is not sensitive itself (C-16).

    A name is refused, never altered: what is kept under another name would not be found again. ``part`` says in
    the error what it names. Raises InputError.
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(_sentences("name_missing", part=part))
    if storable(name) != name:
        raise InputError(_sentences("name_no_text", part=part))
    if len(name) > longest:
        raise InputError(_sentences("name_too_long", part=part, longest=longest))
    if is_sensitive_name(name):
        raise InputError(_sentences("name_sensitive", part=part))
    return name


def checked_page(limit: object, offset: object = 0) -> None:
    """Raise InputError unless both are whole numbers from 0 on."""
    for part, number in (("limit", limit), ("offset", offset)):
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= MOST_ROWS:
            raise InputError(_sentences("page_invalid", part=part))


def shown(value: object) -> str:
    """What was given in the place of something else, as an error repeats it: short, whatever it is."""
    return storable(value)[:_SHOWN] if isinstance(value, str) else type(value).__name__


def checked_query(query: object) -> str:
    """``query`` when it is a text; raises InputError."""
    if not isinstance(query, str):
        raise InputError(_sentences("query_no_text"))
    return storable(query)
