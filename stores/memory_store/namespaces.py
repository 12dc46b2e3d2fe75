"""Namespaces: which are listed, how a name becomes a label, and the one that holds the memories of a user."""

from dataclasses import dataclass
from typing import NamedTuple

from langgraph.store.base import ListNamespacesOp, MatchCondition

Namespace = tuple[str, ...]

MEMORIES = "memories"
"""First label of the namespaces that hold users' memories: ``("memories", assistant, user)``."""


class MemoryScope(NamedTuple):
    """Whose memories a namespace holds; the names themselves, not the labels."""

    assistant: str
    user: str


@dataclass(frozen=True)
class NamespaceQuery:
    """What to list. ``max_depth`` cuts the listed namespaces, after the conditions were tried on the whole."""

    conditions: tuple[MatchCondition, ...]
    max_depth: int | None
    limit: int
    offset: int

    @classmethod
    def of(cls, op: ListNamespacesOp) -> "NamespaceQuery":
        """The query of an operation; conditions without a path ask for nothing."""
        conditions = tuple(each for each in op.match_conditions or () if each.path)
        return cls(conditions, op.max_depth, op.limit, op.offset)

    def matches(self, namespace: Namespace) -> bool:
        """Whether ``namespace`` meets every condition; ``*`` stands for any one label."""
        return all(_matches(namespace, condition) for condition in self.conditions)


def encode_label(name: str) -> str:
    """A name as a label: LangGraph allows no dots in it, and an e-mail address is a user's name too.

    >>> encode_label("ana@mail.example")
    'ana@mail%2Eexample'
    """
    return name.replace("%", "%25").replace(".", "%2E")


def decode_label(label: str) -> str:
    """The name that :func:`encode_label` made ``label`` of; other labels are names as they stand."""
    return label.replace("%2E", ".").replace("%25", "%")


def memories_namespace(assistant: str, user: str) -> Namespace:
    """Where the memories stand that ``assistant`` has of ``user``."""
    return (MEMORIES, encode_label(assistant), encode_label(user))


def memory_scope(namespace: Namespace) -> MemoryScope | None:
    """Whose memories ``namespace`` holds; None: it holds an app's own items."""
    if len(namespace) != 3 or namespace[0] != MEMORIES:
        return None
    return MemoryScope(decode_label(namespace[1]), decode_label(namespace[2]))


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))
