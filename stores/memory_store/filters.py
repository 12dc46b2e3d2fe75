"""Filters of a search, read once and compared in SQL or in Python alike.

As LangGraph's ``PostgresStore`` does it: a value that an item does not have meets no condition, ``$ne``
included. Beyond it: numbers are compared as numbers, and a dictionary without operators looks inside.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any, LiteralString

from psycopg.sql import SQL, Composed, Placeholder

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.text import storable, storable_json

sentences = load_sentences(__package__, "items_sentences.yaml")

_ORDER: dict[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_ORDER_SQL = {"$gt": SQL(">"), "$gte": SQL(">="), "$lt": SQL("<"), "$lte": SQL("<=")}
_EQUALITY = ("$eq", "$ne")
_MISSING = object()
_TEXT: LiteralString = (
    "jsonb_typeof({found}) not in ('object', 'array', 'null')"
    " and ({found} #>> '{{}}') collate \"C\" {sign} {wanted}::text"
)
_AS_TEXT = SQL(_TEXT)
# Within a case, so that no text is ever cast.
_AS_NUMBER = SQL(
    "case when jsonb_typeof({found}) = 'number' then ({found} #>> '{{}}')::numeric {sign} {wanted}::numeric"
    " else " + _TEXT + " end"
)


class FilterError(InputError, ValueError):
    """A filter cannot be understood."""


@dataclass(frozen=True)
class Condition:
    """The value at ``path`` compared with ``value``, plain JSON data."""

    path: tuple[str, ...]
    operator: str
    value: Any


def read_filter(wanted: Mapping[str, Any] | None, path: tuple[str, ...] = ()) -> list[Condition]:
    """The conditions of a filter, all of which must be met. Raises FilterError."""
    conditions: list[Condition] = []
    for name, value in (wanted or {}).items():
        if name.startswith("$"):
            conditions.append(_condition(path, name, value))
        elif isinstance(value, Mapping):
            conditions += read_filter(value, (*path, name))
        else:
            conditions.append(_condition((*path, name), "$eq", value))
    return conditions


def meets(item: Any, conditions: Sequence[Condition]) -> bool:
    """Whether a value (plain JSON data) meets them all."""
    return all(_meets(_at(item, condition.path), condition) for condition in conditions)


def _condition(path: tuple[str, ...], operator: str, value: Any) -> Condition:
    if not path or operator not in (*_EQUALITY, *_ORDER):
        raise FilterError(sentences("operator_unknown", operator=operator))
    if operator in _ORDER and not isinstance(value, str | int | float):
        raise FilterError(sentences("filter_value", operator=operator))
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise FilterError(sentences("filter_value", operator=operator)) from None
    return Condition(tuple(map(storable, path)), operator, storable_json(plain))


# In Python


def _at(item: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(item, dict) or name not in item:
            return _MISSING
        item = item[name]
    return item


def _meets(found: Any, condition: Condition) -> bool:
    if found is _MISSING:
        return False
    if condition.operator in _EQUALITY:
        return _same(found, condition.value) == (condition.operator == "$eq")
    compare = _ORDER[condition.operator]
    if _is_number(found) and _is_number(condition.value):
        return compare(_number(found), _number(condition.value))
    if found is None or isinstance(found, dict | list):
        return False
    return compare(_text(found).encode(), _text(condition.value).encode())


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if _is_number(one) and _is_number(other):
        return _number(one) == _number(other)
    return type(one) is type(other) and bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> Decimal:
    return Decimal(json.dumps(value))


def _text(value: Any) -> str:
    """A scalar as PostgreSQL writes it."""
    if isinstance(value, str):
        return value
    return format(_number(value), "f") if _is_number(value) else json.dumps(value)


# In SQL


def filter_sql(conditions: Sequence[Condition]) -> tuple[Composed, dict[str, Any]]:
    """The conditions on the column ``value`` (jsonb), each with an ``and`` before it, and their parameters."""
    parameters: dict[str, Any] = {}

    def parameter(value: Any) -> Placeholder:
        name = f"filter_{len(parameters)}"
        parameters[name] = value
        return Placeholder(name)

    parts = [SQL(" and ({})").format(_sql(condition, parameter)) for condition in conditions]
    return SQL("").join(parts), parameters


def _sql(condition: Condition, parameter: Callable[[Any], Placeholder]) -> Composed:
    path = [SQL(" -> {}::text").format(parameter(name)) for name in condition.path]
    found = SQL("(value{})").format(SQL("").join(path))
    if condition.operator in _EQUALITY:
        sign = SQL("=") if condition.operator == "$eq" else SQL("<>")
        return SQL("{} {} {}::jsonb").format(found, sign, parameter(json.dumps(condition.value)))
    names = {
        "found": found,
        "sign": _ORDER_SQL[condition.operator],
        "wanted": parameter(_text(condition.value)),
    }
    if _is_number(condition.value):
        return _AS_NUMBER.format(**names)
    return _AS_TEXT.format(**names)
