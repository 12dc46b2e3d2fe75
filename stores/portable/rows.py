"""Rows of a file that is not trusted: what they may hold, and what of them is made anew from their texts."""

import json
from collections.abc import Callable
from typing import Any, ParamSpec

from recuerdo.state.errors import RecuerdoError
from recuerdo.stores.memory_store.namespaces import memory_scope
from recuerdo.stores.memory_store.ranking import analysed
from recuerdo.stores.portable.tables import PortableTable, Unfit, plain_json
from recuerdo.stores.postgres.arguments import checked_name
from recuerdo.stores.postgres.memories import usable_embedding
from recuerdo.stores.postgres.memories.rows import checked_text, words_digest
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.recall.analysis import ANALYZER, analyse
from recuerdo.stores.sensitive.naming import is_sensitive_name

Row = dict[str, Any]
P = ParamSpec("P")

_SCOPE = ("assistant", "user_id")


def check_row(table: PortableTable, row: Row) -> None:
    """Raise Unfit for a value that this program itself would not have written."""
    for name in _SCOPE:
        if row.get(name) is not None:
            _checked(name, require_scope, **{name: row[name]})
    for name in table.names:
        _checked(name, checked_name, name, row[name])
    for name, longest in table.longest.items():
        if _length(plain_json(row[name])) > longest:
            raise Unfit(name)
    for name, shape in table.shapes.items():
        if not isinstance(plain_json(row[name]), shape):
            raise Unfit(name)
    if table.name == "user_memory":
        _checked("text", checked_text, row["text"])
    if table.name == "store_items":
        _check_item(row)


def derived_of_memory(row: Row, *, changed: bool) -> Row:
    """What the search needs of a memory. Its vector stays unless the text was ``changed`` or it is none."""
    analysis = analyse(row["text"], row["language"])
    return {
        **_vector(row, changed=changed),
        "terms": analysis.terms,
        "asks": analysis.asks,
        "analyzer": ANALYZER,
        "words": words_digest(row["text"]),
    }


def derived_of_item(row: Row, *, changed: bool) -> Row:
    """What the search needs of an app's item; nothing of one without a text."""
    if row["text"] is None:
        return {"embedding": None, "embedder": None, "terms": None, "analyzer": None}
    return {**_vector(row, changed=changed), "terms": analysed(row["text"]), "analyzer": ANALYZER}


def _vector(row: Row, *, changed: bool) -> Row:
    embedding = usable_embedding(row["embedding"])
    if changed or embedding is None or not row["embedder"]:
        return {"embedding": None, "embedder": None}
    return {"embedding": embedding, "embedder": row["embedder"]}


def _check_item(row: Row) -> None:
    labels = tuple(row["namespace"].split("."))
    # Memories of users have a table of their own: here nobody would find them.
    if memory_scope(labels) is not None or any(map(is_sensitive_name, labels)):
        raise Unfit("namespace")
    if is_sensitive_name(row["key"]):
        raise Unfit("key")


def _checked(column: str, check: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    try:
        check(*args, **kwargs)
    except RecuerdoError:
        raise Unfit(column) from None


def _length(value: Any) -> int:
    return len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
