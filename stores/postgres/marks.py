"""What the audit holds of texts and requests that it must not hold themselves: salted hashes.

The chain cannot be changed, so neither a person who is named in a reason nor what somebody asked for may stand there.
"""

import json
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID

from recuerdo.stores.postgres.evidence import Run
from recuerdo.stores.postgres.text import storable_json

REQUEST_MARK = "request_sha256"
"""The detail of an entry that holds the mark of a request."""


def reason_mark(subject: str, reason: str | None) -> dict[str, str]:
    """The mark of a reason: whether the one beside the decision is still the one that was given."""
    if not reason:
        return {}
    return {"reason_sha256": sha256(f"{subject}\x1f{reason}".encode()).hexdigest()}


def request_mark(request: UUID, tool: str, arguments: object, run: Run) -> dict[str, str]:
    """The mark of a request: whether it is still the one that was made, and decided. ``arguments`` are plain JSON
    data, as given or as read from the row; the salt is the request's id.
    """
    return {REQUEST_MARK: _request_hash(request, tool, arguments, run)}


def is_as_marked(marked: str, request: UUID, tool: str, arguments: object, run: Run) -> bool:
    """Whether a request is the one of its mark. Of an anonymous session's the user may be known since (A-22)."""
    try:
        marks = {_request_hash(request, tool, arguments, whose) for whose in (run, replace(run, user=None))}
    except (RecursionError, ValueError):
        # Nothing that a request of ours holds.
        return False
    return marked in marks


def _request_hash(request: UUID, tool: str, arguments: object, run: Run) -> str:
    revision = str(run.revision) if run.revision is not None else None
    asked = canonical_arguments(arguments)
    parts = [str(request), tool, asked, run.user, run.plan, revision, str(run.turn)]
    return sha256(json.dumps(parts).encode()).hexdigest()


def canonical_arguments(arguments: object) -> str:
    """One text for arguments that are the same, whether a model gave them or the database: it keeps 1e+23 as a whole
    number, and no lone surrogate.
    """
    return json.dumps(_canonical(storable_json(arguments)), sort_keys=True)


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(Decimal(repr(value)))
    return value
