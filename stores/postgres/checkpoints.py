"""LangGraph's checkpoints: its saver over our pool, and what is removed so that they do not grow for ever."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, LiteralString
from uuid import uuid4

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from recuerdo.state.errors import StoreError
from recuerdo.state.limits import TURNS_KEPT_FOR_TIME_TRAVEL
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.scope import require_scope

_sentences = load_sentences(__package__)

_SETUP_LEASE = timedelta(seconds=60)
_SETUP_WAIT = timedelta(seconds=90)
_POLL_SECONDS = 0.05

# Which threads are ours, in the words of thread_of: LangGraph's tables may hold those of other graphs too.
_THREAD_ID: LiteralString = "length(v.tenant) || ':' || v.tenant || ':' || v.id"

_TAKE_SETUP: LiteralString = """
insert into recuerdo.jobs as held (name, due_at, lease_holder, lease_until)
values ('langgraph_tables', clock_timestamp(), %(holder)s, clock_timestamp() + %(lease)s)
on conflict (name) do update set lease_holder = excluded.lease_holder, lease_until = excluded.lease_until
where held.lease_until <= clock_timestamp()
"""

_THREADS_WITH_OLD: LiteralString = f"""
select v.tenant, v.id, c.thread_id
from (select thread_id from checkpoints group by thread_id, checkpoint_ns having count(*) > %(keep)s) as c
join recuerdo.conversations v on c.thread_id = {_THREAD_ID}
"""

_OLD: LiteralString = """
select checkpoint_ns, checkpoint_id from (
    select checkpoint_ns, checkpoint_id,
        row_number() over (partition by checkpoint_ns order by checkpoint_id desc) as place
    from checkpoints where thread_id = %(thread)s
) as numbered where place > %(keep)s
"""

# What a run stopped at before its end: a node was still to run, or it is the run's input.
_IS_UNFINISHED: LiteralString = """
(c.metadata ->> 'source' = 'input' or exists (
    select 1 from jsonb_object_keys(c.checkpoint -> 'channel_values') as channel
    where starts_with(channel, 'branch:to:')))
"""

_NOTHING_RUNS: LiteralString = """
not exists (select 1 from recuerdo.turns t
    where t.tenant = v.tenant and t.conversation = v.id and t.status in ('running', 'waiting'))
"""

_THREADS_WITH_LEFTOVERS: LiteralString = f"""
select distinct v.tenant, v.id, c.thread_id
from checkpoints c join recuerdo.conversations v on c.thread_id = {_THREAD_ID}
where {_NOTHING_RUNS} and {_IS_UNFINISHED}
"""

_LEFTOVERS: LiteralString = f"""
select checkpoint_ns, checkpoint_id from checkpoints c
where thread_id = %(thread)s and {_IS_UNFINISHED}
"""

_DELETE_CHECKPOINTS: LiteralString = """
with gone as (
    delete from checkpoints c using ({which}) as doomed
    where c.thread_id = %(thread)s and c.checkpoint_ns = doomed.checkpoint_ns
        and c.checkpoint_id = doomed.checkpoint_id
    returning c.checkpoint_ns, c.checkpoint_id, c.checkpoint -> 'channel_versions' as versions
), unwritten as (
    delete from checkpoint_writes w using gone
    where w.thread_id = %(thread)s and w.checkpoint_ns = gone.checkpoint_ns
        and w.checkpoint_id = gone.checkpoint_id
)
select distinct checkpoint_ns as namespace, version.key as channel, version.value as version
from gone cross join jsonb_each_text(gone.versions) as version
"""

# Only what a deleted checkpoint used: a turn may just be writing values for a checkpoint still to come.
_DELETE_FREED_VALUES: LiteralString = """
delete from checkpoint_blobs b
using unnest(%(namespaces)s::text[], %(channels)s::text[], %(versions)s::text[])
    as freed (namespace, channel, version)
where b.thread_id = %(thread)s and b.checkpoint_ns = freed.namespace
    and b.channel = freed.channel and b.version = freed.version
    and not exists (select 1 from checkpoints c
        where c.thread_id = b.thread_id and c.checkpoint_ns = b.checkpoint_ns
            and c.checkpoint -> 'channel_versions' ->> b.channel = b.version)
"""


def thread_of(tenant: str, conversation: str) -> str:
    """The LangGraph thread of a conversation; two different conversations never share one.

    Raises ScopeError when a part is missing.
    """
    require_scope(tenant=tenant, conversation=conversation)
    return f"{len(tenant)}:{tenant}:{conversation}"


async def open_saver(database: Database) -> AsyncPostgresSaver:
    """LangGraph's saver over the pool, its tables made, whoever starts at the same time.

    It loads plain data and LangChain messages and nothing else: a value of any other type is not imported.
    One saver holds one lock, so a busy process wants several over one pool.
    """
    saver = AsyncPostgresSaver(database.pool, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    deadline = asyncio.get_running_loop().time() + _SETUP_WAIT.total_seconds()
    while not await _is_set_up(database, saver):
        if await _set_up(database, saver):
            break
        if asyncio.get_running_loop().time() > deadline:
            raise StoreError(_sentences("checkpoints_setup_busy"))
        await asyncio.sleep(_POLL_SECONDS)
    return saver


async def delete_thread(database: Database, tenant: str, conversation: str) -> None:
    """Delete every checkpoint of the conversation's thread."""
    async with database.transaction() as connection:
        await delete_threads(connection, tenant, [conversation])


async def delete_threads(connection: Connection, tenant: str, conversations: Sequence[str]) -> None:
    """Delete every checkpoint of the conversations' threads, where LangGraph's tables are there.

    In the transaction of ``connection``, whose role must be the one that logged in.
    """
    cursor = await connection.execute("select to_regclass('checkpoints') is not null as made")
    row = await cursor.fetchone()
    threads = [thread_of(tenant, conversation) for conversation in conversations]
    if not threads or not row or not row["made"]:
        return
    await connection.execute("delete from checkpoints where thread_id = any(%s)", (threads,))
    await connection.execute("delete from checkpoint_writes where thread_id = any(%s)", (threads,))
    await connection.execute("delete from checkpoint_blobs where thread_id = any(%s)", (threads,))


async def prune(database: Database, *, keep: int = TURNS_KEPT_FOR_TIME_TRAVEL) -> int:
    """Delete all but the newest ``keep`` checkpoints of each of our threads; a turn writes one.

    Values that a kept checkpoint still uses stay. Returns how many threads were pruned.
    """
    async with database.operator() as connection:
        threads = await (await connection.execute(_THREADS_WITH_OLD, {"keep": keep})).fetchall()
    return sum([await _delete_from(database, row, _OLD, {"keep": keep}) for row in threads])


async def remove_leftovers(database: Database) -> int:
    """Delete what runs of our threads stopped at, where no turn is running any more: level 1 leaves no trace.

    So the thread goes on from the end of its last whole turn. Returns how many threads had some (C-12).
    """
    async with database.operator() as connection:
        threads = await (await connection.execute(_THREADS_WITH_LEFTOVERS)).fetchall()
    return sum([await _delete_from(database, row, _LEFTOVERS, {}) for row in threads])


async def _delete_from(
    database: Database, thread: dict[str, Any], which: LiteralString, values: dict[str, Any]
) -> bool:
    """Delete checkpoints of one thread, while no turn of it can begin; False when one is running."""
    async with database.operator() as connection:
        cursor = await connection.execute(
            "select 1 from recuerdo.conversations v where v.tenant = %(tenant)s and v.id = %(id)s"
            f" and {_NOTHING_RUNS} for update",
            thread,
        )
        if await cursor.fetchone() is None:
            return False
        await _delete_checkpoints(connection, thread["thread_id"], which, values)
        return True


async def _delete_checkpoints(
    connection: Connection, thread: str, which: LiteralString, values: dict[str, Any]
) -> None:
    cursor = await connection.execute(
        _DELETE_CHECKPOINTS.replace("{which}", which), {**values, "thread": thread}
    )
    freed = await cursor.fetchall()
    await connection.execute(
        _DELETE_FREED_VALUES,
        {
            "thread": thread,
            "namespaces": [row["namespace"] for row in freed],
            "channels": [row["channel"] for row in freed],
            "versions": [row["version"] for row in freed],
        },
    )


async def summaries_of(database: Database, tenant: str, conversations: Sequence[str]) -> dict[str, str]:
    """The text of the running summary by conversation, of those that have one. Raises ScopeError."""
    if not conversations:
        return {}
    saver = await open_saver(database)
    summaries = {}
    for conversation in conversations:
        newest = await saver.aget({"configurable": {"thread_id": thread_of(tenant, conversation)}})
        if newest and (summary := newest["channel_values"].get("summary")):
            summaries[conversation] = summary["text"]
    return summaries


async def _is_set_up(database: Database, saver: AsyncPostgresSaver) -> bool:
    async with database.connection() as connection:
        cursor = await connection.execute("select to_regclass('checkpoint_migrations') is not null as made")
        row = await cursor.fetchone()
        if not row or not row["made"]:
            return False
        cursor = await connection.execute("select max(v) as newest from checkpoint_migrations")
        row = await cursor.fetchone()
        return bool(row and row["newest"] is not None and row["newest"] >= len(saver.MIGRATIONS) - 1)


async def _set_up(database: Database, saver: AsyncPostgresSaver) -> bool:
    """Let the saver make its tables, unless another process is at it: then False.

    A lease row and not a lock: the saver's CREATE INDEX CONCURRENTLY waits for every transaction under way,
    so for one that holds a lock, or waits for it, it would wait for ever.
    """
    holder = uuid4()
    async with database.connection() as connection:
        cursor = await connection.execute(_TAKE_SETUP, {"holder": holder, "lease": _SETUP_LEASE})
    if not cursor.rowcount:
        return False
    await saver.setup()
    async with database.connection() as connection:
        # The worker removes checkpoints as the operator.
        await connection.execute(
            "grant select, delete on checkpoints, checkpoint_blobs, checkpoint_writes to recuerdo_operator"
        )
        await connection.execute("delete from recuerdo.jobs where lease_holder = %s", (holder,))
    return True
