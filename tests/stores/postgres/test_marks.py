"""What the audit holds of a request: the same hash for what a model gave and what the database gives back (IM-49)."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.evidence import Run
from recuerdo.stores.postgres.marks import REQUEST_MARK, is_as_marked, request_mark
from recuerdo.stores.postgres.text import storable_json

KEY = uuid4()
RUN = Run(uuid4(), "conv-456", "A1", "user-123", "trading", 3)
ARGUMENTS = {"discount_pct": 50, "nights": 1}


def mark(key: UUID = KEY, tool: str = "apply_discount", arguments: Any = ARGUMENTS, run: Run = RUN) -> str:
    return request_mark(key, tool, arguments, run)[REQUEST_MARK]


@pytest.mark.parametrize(
    "other",
    [
        {"key": uuid4()},
        {"tool": "place_order"},
        {"arguments": {"discount_pct": 1, "nights": 1}},
        {"arguments": {"discount_pct": "50", "nights": 1}},
        {"arguments": {"discount_pct": True, "nights": 1}},
        {"arguments": {"discount_pct": 50}},
        {"arguments": {}},
        {"run": replace(RUN, user="zoe")},
        {"run": replace(RUN, user=None)},
        {"run": replace(RUN, plan="hotel")},
        {"run": replace(RUN, revision=None)},
        {"run": replace(RUN, turn=uuid4())},
    ],
)
def test_im_49_whatever_is_changed_of_a_request_changes_its_mark(other: dict[str, Any]) -> None:
    assert mark(**other) != mark()
    changed = {"key": KEY, "tool": "apply_discount", "arguments": ARGUMENTS, "run": RUN, **other}
    assert not is_as_marked(mark(), changed["key"], changed["tool"], changed["arguments"], changed["run"])


def test_a_22_a_request_of_an_anonymous_session_keeps_its_mark_when_the_user_is_known() -> None:
    anonymous = mark(run=replace(RUN, user=None))
    assert is_as_marked(anonymous, KEY, "apply_discount", ARGUMENTS, RUN)
    assert not is_as_marked(anonymous, KEY, "place_order", ARGUMENTS, RUN)


@pytest.mark.parametrize(
    "value",
    [
        5.0,
        -0.0,
        0.1,
        1e23,
        -1.5e300,
        1e308,
        5e-324,
        2**53 + 1,
        -(2**63),
        True,
        None,
        "50",
        "a\0\ud800",
        [1.0, {"x": []}],
    ],
)
async def test_im_49_the_mark_is_that_of_what_the_database_gives_back(database: Database, value: Any) -> None:
    given = {"value": value, "zoe": 1, "ana": {"ñ": value}}
    async with database.tenant("t1") as connection:
        cursor = await connection.execute("select %s::jsonb as value", (Jsonb(storable_json(given)),))
        row = await cursor.fetchone()
    assert row is not None and mark(arguments=row["value"]) == mark(arguments=given)


def test_im_49_what_no_request_can_hold_is_none() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for arguments in (deep, {"value": 10**5000}):
        assert not is_as_marked(mark(), KEY, "apply_discount", arguments, RUN)
