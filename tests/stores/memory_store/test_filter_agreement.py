"""A filter means the same in SQL and in Python."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import connect
from psycopg.sql import SQL
from psycopg.types.json import Jsonb

from recuerdo.stores.memory_store.filters import filter_sql, meets, read_filter

NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=4)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS | st.sampled_from(["10", "9", "a", "é", "z"])
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
ITEMS = st.dictionaries(NAMES, VALUES, max_size=3)
COMPARED = st.sampled_from(["$gt", "$gte", "$lt", "$lte"])
OPERATIONS = st.dictionaries(COMPARED, NUMBERS | TEXTS | st.booleans(), min_size=1, max_size=2)
EQUALITY = st.dictionaries(st.sampled_from(["$eq", "$ne"]), VALUES, min_size=1, max_size=1)
LEAVES = OPERATIONS | EQUALITY | SCALARS | st.lists(SCALARS, max_size=2)
FILTERS = st.dictionaries(NAMES, LEAVES | st.dictionaries(NAMES, LEAVES, max_size=2), min_size=1, max_size=2)


@pytest.fixture(scope="module")
def connection(postgres_server: str) -> Any:
    with connect(postgres_server, autocommit=True) as connection:
        yield connection


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(item=ITEMS, wanted=FILTERS)
def test_sql_and_python_agree(connection: Any, item: dict[str, Any], wanted: dict[str, Any]) -> None:
    conditions = read_filter(wanted)
    where, values = filter_sql(conditions)
    query = SQL("select 1 from (values (%(item)s::jsonb)) as items (value) where true{}").format(where)
    found = connection.execute(query, {"item": Jsonb(item), **values}).fetchone() is not None
    assert found == meets(json.loads(json.dumps(item)), conditions)
