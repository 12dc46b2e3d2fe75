"""What differs between two plans: fields, tools, packs and rules, each by its own name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recuerdo.state.plan import Plan

_NAMES = {"tools", "four_eyes", "deactivated_tools"}
_KEYS = ("id", "name")


@dataclass(frozen=True)
class Difference:
    """A field with its value before and after; None where it is not there. Parts of lists stand in brackets."""

    field: str
    before: Any
    after: Any


def differences(before: Plan, after: Plan) -> list[Difference]:
    """Every difference, by field."""
    old, new = (dict(_leaves("", plan.model_dump(mode="json"))) for plan in (before, after))
    return [
        Difference(field, old.get(field), new.get(field))
        for field in sorted({*old, *new})
        if old.get(field) != new.get(field)
    ]


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    parts = _parts(path, value)
    if parts is None:
        yield path, value
        return
    for name, part in parts.items():
        yield from _leaves(name, part)


def _parts(path: str, value: Any) -> Mapping[str, Any] | None:
    """The parts of a value under names of their own; None where it is compared as a whole."""
    if isinstance(value, dict):
        return {f"{path}.{name}" if path else name: part for name, part in value.items()}
    if path in _NAMES:
        return {f"{path}[{name}]": True for name in value}
    if path == "packs":
        return {f"packs[{name}]": pin for name, _, pin in (pack.partition("@") for pack in value)}
    if value == []:
        return {}
    if isinstance(value, list) and isinstance(value[0], dict):
        key = next((key for key in _KEYS if key in value[0]), None)
        return {f"{path}[{part[key]}]": part for part in value} if key else None
    return None
