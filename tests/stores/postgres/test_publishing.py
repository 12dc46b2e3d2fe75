"""Publishing and withdrawing memories, and the audit of it (OR-11, OR-12, IM-51, C-7)."""

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.audit import read_audit
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.governance_audit import GovernanceAudit
from recuerdo.stores.postgres.memories import Memories, MemoryWriter, NewMemory
from recuerdo.stores.postgres.publishing import Publishing
from recuerdo.stores.postgres.retention import delete_expired, forget_user
from recuerdo.stores.postgres.roles import Roles

DAY_0 = datetime(2025, 12, 5, tzinfo=UTC)
DAY_400 = DAY_0 + timedelta(days=400)
TEXT = "Prefiere pisos altos"


@pytest.fixture
def memories(database: Database) -> Memories:
    return Memories(database, "t1")


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
async def publishing(database: Database, keys: KeyFolder) -> Publishing:
    roles = Roles(database, "t1", keys)
    await roles.appoint_first_owner("olga", DAY_0)
    await roles.grant("sara", "supervisor", actor="olga", at=DAY_0)
    await roles.grant("bot", "agent", actor="olga", at=DAY_0)
    return Publishing(database, "t1", "A1", keys)


@pytest.fixture
async def fact(memories: Memories) -> UUID:
    memory = NewMemory("fact", TEXT, "es", confidence=0.5)
    return (await memories.add("A1", "u1", memory, DAY_0)).id


def by(actor: str, **changes: Any) -> dict[str, Any]:
    return {"actor": actor, "reason": "lo pidió por escrito", "at": DAY_0, **changes}


@pytest.mark.parametrize("actor", ["u1", "bot", "nobody"])
async def test_or_11_agent_and_user_may_not_publish(
    memories: Memories, publishing: Publishing, fact: UUID, actor: str
) -> None:
    for decision in (publishing.publish, publishing.withdraw):
        with pytest.raises(ScopeError, match="supervisor"):
            await decision(fact, **by(actor))
    (memory,) = await memories.get([fact], "A1", "u1", DAY_0)
    assert memory.status == "low"


@pytest.mark.parametrize("actor", ["sara", "olga"])
async def test_or_11_c_7_published_is_returned_on_day_400(
    memories: Memories, publishing: Publishing, fact: UUID, actor: str, database: Database
) -> None:
    unpublished = (await memories.add("A1", "u1", NewMemory("fact", "otra", "es", 1.0), DAY_0)).id
    await publishing.publish(fact, **by(actor))
    await delete_expired(database, DAY_400, actor="worker")
    (memory,) = await memories.get([fact, unpublished], "A1", "u1", DAY_400)
    assert (memory.id, memory.status, memory.expires_at) == (fact, "published", None)
    assert await memories.get([fact], "A1", "u2", DAY_400) == []
    # Nor does the user's saying it again give it an expiry.
    assert not await memories.confirm(fact, "A1", "u1", DAY_0)
    assert (await memories.get([fact], "A1", "u1", DAY_400))[0].expires_at is None


async def test_or_12_the_audit_says_who_when_what_and_both_statuses(
    database: Database, publishing: Publishing, fact: UUID
) -> None:
    await publishing.publish(fact, **by("sara"))
    entry = (await read_audit(database, "t1", "user_memory", str(fact)))[-1]
    assert (entry.actor, entry.at, entry.item_id, entry.action) == ("sara", DAY_0, str(fact), "published")
    assert (entry.previous_status, entry.new_status) == ("low", "published")
    async with database.tenant("t1") as connection:
        row = await (await connection.execute("select key from recuerdo.audit_keys")).fetchone()
    assert row is not None
    assert entry.content_hash == hmac.new(row["key"], TEXT.encode(), hashlib.sha256).digest()
    assert entry.content_hash != hashlib.sha256(TEXT.encode()).digest()


async def test_or_12_publishing_and_withdrawing_enter_the_chain(
    database: Database, publishing: Publishing, fact: UUID, keys: KeyFolder
) -> None:
    await publishing.publish(fact, **by("sara", reason="RAZONES"))
    await publishing.withdraw(fact, **by("olga", reason="RAZONES"))
    audit = GovernanceAudit(database, "t1", keys)
    after, before = await audit.entries(subject=str(fact))
    assert (before.actor, before.action, before.before, before.after) == (
        "sara",
        "memory.published",
        "low",
        "published",
    )
    assert (after.actor, after.action, after.after) == ("olga", "memory.withdrawn", "withdrawn")
    assert "content_hash" in before.details
    assert TEXT not in before.details and "RAZONES" not in before.details + after.details
    assert (await audit.verify()).fault is None


async def test_or_12_tenants_have_keys_of_their_own(database: Database, keys: KeyFolder) -> None:
    hashes = []
    for tenant in ("t1", "t2"):
        await Roles(database, tenant, keys).appoint_first_owner("olga", DAY_0)
        added = await Memories(database, tenant).add("A1", "u1", NewMemory("fact", TEXT, "es", 1.0), DAY_0)
        await Publishing(database, tenant, "A1", keys).publish(added.id, **by("olga"))
        hashes.append((await read_audit(database, tenant, "user_memory", str(added.id)))[-1].content_hash)
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize(
    "statement",
    [
        "update recuerdo.memory_audit set actor = 'x'",
        "delete from recuerdo.memory_audit",
        "truncate recuerdo.memory_audit",
    ],
)
async def test_or_12_entries_cannot_be_changed_by_anybody(
    database: Database, database_url: str, publishing: Publishing, fact: UUID, statement: str
) -> None:
    await publishing.publish(fact, **by("sara"))
    before = await read_audit(database, "t1", "user_memory", str(fact))
    for begin in (database.tenant("t1"), database.operator()):
        with pytest.raises(InsufficientPrivilege):
            async with begin as connection:
                await connection.execute(statement)
    with (
        psycopg.connect(database_url) as superuser,
        pytest.raises(psycopg.errors.RaiseException, match="cannot be changed"),
    ):
        superuser.execute(statement)
    assert await read_audit(database, "t1", "user_memory", str(fact)) == before


async def test_im_51_withdrawn_is_read_by_no_path_and_both_entries_stay(
    database: Database, memories: Memories, publishing: Publishing, fact: UUID
) -> None:
    await publishing.publish(fact, **by("sara"))
    await publishing.withdraw(fact, **by("olga", reason="era de otro huésped", at=DAY_400))
    # Not even where the clock is behind.
    for now in (DAY_400, DAY_400 - timedelta(days=1)):
        assert await memories.get([fact], "A1", "u1", now) == []
        assert await memories.all("A1", "u1", now) == []
        assert await memories.search_rows("A1", "u1", now, "e", 9) == []
        assert not await memories.confirm(fact, "A1", "u1", now)
        assert not await memories.set_active(fact, "A1", "u1", True, now)
    decided = [(p.action, p.actor, p.reason) for p in await publishing.publications(fact)]
    assert decided == [
        ("published", "sara", "lo pidió por escrito"),
        ("withdrawn", "olga", "era de otro huésped"),
    ]
    await delete_expired(database, DAY_400, actor="worker")
    entries = await read_audit(database, "t1", "user_memory", str(fact))
    assert [entry.action for entry in entries] == ["added", "published", "withdrawn", "expired"]
    assert (entries[2].previous_status, entries[2].new_status) == ("published", "withdrawn")
    assert entries[1].content_hash == entries[2].content_hash


async def test_c_7_without_a_reason_nothing_is_published(publishing: Publishing, fact: UUID) -> None:
    for reason in ("", "  "):
        with pytest.raises(InputError, match="reason"):
            await publishing.publish(fact, **by("sara", reason=reason))


async def test_c_7_forget_all_removes_what_is_published_and_why(
    database: Database, memories: Memories, publishing: Publishing, fact: UUID
) -> None:
    await publishing.publish(fact, **by("sara", reason="RAZONES"))
    await forget_user(database, "t1", "u1", DAY_0)
    assert await memories.get([fact], "A1", "u1", DAY_0) == []
    assert await publishing.publications(fact) == []


async def test_only_memories_in_force_of_this_tenant_and_assistant(
    database: Database, memories: Memories, publishing: Publishing, fact: UUID, keys: KeyFolder
) -> None:
    await Roles(database, "t2", keys).appoint_first_owner("sara", DAY_0)
    foreign = (Publishing(database, "t1", "A2", keys), Publishing(database, "t2", "A1", keys))
    for other in foreign:
        with pytest.raises(InputError, match="no memory"):
            await other.publish(fact, **by("sara"))
    for memory_id, at in ((uuid4(), DAY_0), (fact, DAY_0 + timedelta(days=7))):
        with pytest.raises(InputError, match="no memory"):
            await publishing.publish(memory_id, **by("sara", at=at))
    with pytest.raises(InputError, match="not published"):
        await publishing.withdraw(fact, **by("sara"))
    await memories.set_active(fact, "A1", "u1", False, DAY_0)
    with pytest.raises(InputError, match="no memory"):
        await publishing.publish(fact, **by("sara"))


async def test_or_11_what_is_published_its_user_cannot_rewrite_but_forget(
    database: Database, memories: Memories, publishing: Publishing, fact: UUID
) -> None:
    await publishing.publish(fact, **by("sara"))
    with pytest.raises(ScopeError, match="published"):
        await memories.update(fact, "A1", "u1", "otra cosa", DAY_0)
    with pytest.raises(ScopeError, match="published"):
        await memories.supersede(fact, "A1", "u1", NewMemory("fact", "otra", "es"), DAY_0)
    assert not await memories.set_active(fact, "A1", "u1", False, DAY_0)
    # A turn goes on: its own memory is written, the published one stays.
    async with database.tenant("t1") as connection:
        writer = MemoryWriter(connection, "t1", "A1", "u1", DAY_0, uuid4())
        await writer.add(NewMemory("fact", "de un turno", "es", supersedes=[fact]))
    assert {m.text for m in await memories.all("A1", "u1", DAY_0)} == {TEXT, "de un turno"}
    with pytest.raises(ScopeError, match="published"):
        await memories.forget(fact, "A1", "u1", DAY_0)
    assert await memories.forget(fact, "A1", "u1", DAY_0, published=True)


async def test_rf_33_a_reason_holds_nothing_sensitive(publishing: Publishing, fact: UUID) -> None:
    await publishing.publish(fact, **by("sara", reason="su tarjeta es 4111 1111 1111 1111"))
    assert "4111" not in (await publishing.publications(fact))[0].reason
