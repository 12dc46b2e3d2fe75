"""What a source gave, checked: nonsense, or another user's rows, counts as no answer (IM-40)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from pydantic import ValidationError

from recuerdo.stores.sources.cache import Failure
from recuerdo.stores.sources.kinds import Kind
from recuerdo.stores.sources.rows import Row

MOST_ROWS = 5_000
"""Rows of one answer; more of them are taken for a fault of the source."""

_TWO_ROWS = "two different rows"


class WrongAnswer(Exception):
    """What a source gave cannot be used. The text names fields, never their values."""


def user_rows(kind: Kind, user: str | None, given: Any, now: datetime) -> Any:
    """The rows of ``user`` at ``now``, a single one or None for a kind of one row. Raises WrongAnswer."""
    if kind.single:
        return None if given is None else _of_user(_row(kind, given, now), user)
    return [_of_user(row, user) for row in _rows(kind, given, now)]


def tenant_rows(kind: Kind, given: Any, now: datetime) -> list[Row]:
    """All rows at ``now``. Raises WrongAnswer."""
    return _rows(kind, given, now)


def rows_by_symbol(
    kind: Kind, symbols: Iterable[str], given: Any, now: datetime
) -> dict[str, Row | Failure | None]:
    """For each symbol its row at ``now``, None where there is none, or why it cannot be used. Other symbols are
    left out.

    One symbol's nonsense costs that symbol. Raises WrongAnswer for what belongs to no symbol.
    """
    found: dict[str, Row | Failure | None] = dict.fromkeys(symbols)
    for item in _items(given):
        symbol = _values(kind, item).get("symbol")
        if not isinstance(symbol, str):
            raise WrongAnswer("a row without symbol")
        if symbol in found:
            found[symbol] = _one_of(found[symbol], _row_or_failure(kind, item, now))
    return found


def _one_of(before: Row | Failure | None, row: Row | Failure) -> Row | Failure:
    if before is None or before == row:
        return row
    return Failure(_TWO_ROWS)


def _row_or_failure(kind: Kind, item: Any, now: datetime) -> Row | Failure:
    try:
        return _row(kind, item, now)
    except WrongAnswer as wrong:
        return Failure(str(wrong))


def _rows(kind: Kind, given: Any, now: datetime) -> list[Row]:
    """Each once: the same position given twice is one position, and of two that differ neither can be told right."""
    found: dict[tuple[Any, ...], Row] = {}
    for item in _items(given):
        row = _row(kind, item, now)
        if found.setdefault(row.key, row) != row:
            raise WrongAnswer(_TWO_ROWS)
    return list(found.values())


def _items(given: Any) -> list[Any]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise WrongAnswer(f"rows expected, not {type(given).__name__}")
    items = list(islice(given, MOST_ROWS + 1))
    if len(items) > MOST_ROWS:
        raise WrongAnswer(f"more than {MOST_ROWS} rows")
    return items


def _row(kind: Kind, item: Any, now: datetime) -> Row:
    """Validated anew: a row may have been built without checks."""
    values = _values(kind, item)
    try:
        return kind.row.model_validate(values, context={"now": now})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise WrongAnswer(f"{place}: {first['type']}") from None


def _values(kind: Kind, item: Any) -> Mapping[str, Any]:
    """The fields of a row or of a mapping. A row of a class of the app's own may have more of them."""
    if isinstance(item, kind.row):
        return {name: getattr(item, name) for name in kind.row.model_fields if hasattr(item, name)}
    if isinstance(item, Mapping):
        return item
    raise WrongAnswer(f"a row expected, not {type(item).__name__}")


def _of_user(row: Row, user: str | None) -> Row:
    if getattr(row, "user", None) != user:
        raise WrongAnswer("a row of another user")
    return row
