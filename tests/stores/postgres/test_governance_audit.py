"""The chain of the governance audit: what was changed, removed, moved or cut off shows (governance, part 7)."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest

import benchmarks.audit
from recuerdo.state.errors import InputError, RecuerdoError, ScopeError, SettingsError, StoreError
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres import governance_audit
from recuerdo.stores.postgres.database import Database
from recuerdo.stores.postgres.governance_audit import Anchor, AuditAct, AuditFault, GovernanceAudit
from recuerdo.stores.postgres.roles import Roles

NOW = datetime(2025, 12, 5, 10, 30, 0, 123456, tzinfo=timezone(timedelta(hours=-6)))


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


@pytest.fixture
def audit(database: Database, keys: KeyFolder) -> GovernanceAudit:
    return GovernanceAudit(database, "t1", keys)


async def write(database: Database, audit: GovernanceAudit, *acts: AuditAct, tenant: str = "t1") -> None:
    for act in acts:
        async with database.tenant(tenant) as connection:
            await audit.append(connection, act)


def acts(count: int) -> Sequence[AuditAct]:
    return [
        AuditAct(
            NOW, "sara", "call.noted", "hotel", before=f"{n}", after=f"{n + 1}", details={"revision": "ñ"}
        )
        for n in range(count)
    ]


async def test_or_29_an_entry_says_who_when_what_before_and_after(
    database: Database, audit: GovernanceAudit
) -> None:
    await write(database, audit, *acts(2))
    first = (await audit.entries())[1]
    assert (first.number, first.at, first.actor, first.action) == (1, NOW, "sara", "call.noted")
    assert (first.subject, first.before, first.after, first.details) == (
        "hotel",
        "0",
        "1",
        '{"revision": "ñ"}',
    )
    found = await audit.verify()
    assert (found.entries, found.fault) == (2, None)
    assert found.last == Anchor(2, (await audit.entries(limit=1))[0].hash)
    assert [entry.number for entry in await audit.entries(before=2)] == [1]
    assert not await audit.entries(subject="trading")


async def test_c_16_a_reason_is_kept_without_sensitive_data(
    database: Database, audit: GovernanceAudit
) -> None:
    reason = "La tarjeta 4111 1111 1111 1111 no pasó"
    await write(database, audit, replace(acts(1)[0], reason=reason))
    (entry,) = await audit.entries()
    assert "no pasó" in entry.details and "4111" not in entry.details


async def test_an_empty_chain_is_whole(audit: GovernanceAudit) -> None:
    found = await audit.verify()
    assert (found.entries, found.last, found.fault) == (0, None, None)


FORGERIES: dict[str, tuple[str, AuditFault, int]] = {
    "actor": ("update recuerdo.governance_audit set actor = 'ana' where number = 3", "altered", 3),
    "time": (
        "update recuerdo.governance_audit set at = at + interval '1 microsecond' where number = 3",
        "altered",
        3,
    ),
    "before": ("update recuerdo.governance_audit set before = null where number = 1", "altered", 1),
    "details": ("update recuerdo.governance_audit set details = '{}' where number = 5", "altered", 5),
    "fields moved": (
        "update recuerdo.governance_audit set action = 'call.notedh', subject = 'otel' where number = 2",
        "altered",
        2,
    ),
    "hash": (
        "update recuerdo.governance_audit set hash = repeat('x', 32)::bytea where number = 4",
        "altered",
        4,
    ),
    "row deleted": ("delete from recuerdo.governance_audit where number = 3", "missing", 3),
    "first row deleted": ("delete from recuerdo.governance_audit where number = 1", "missing", 1),
    "gap closed": (
        "delete from recuerdo.governance_audit where number = 3;"
        "update recuerdo.governance_audit set number = number - 1 where number > 3",
        "altered",
        3,
    ),
    "two rows swapped": (
        "update recuerdo.governance_audit set number = 9 where number = 2;"
        "update recuerdo.governance_audit set number = 2 where number = 3;"
        "update recuerdo.governance_audit set number = 3 where number = 9",
        "altered",
        2,
    ),
    "row put in": (
        "insert into recuerdo.governance_audit select tenant, 6, at, actor, action, subject, before, after,"
        " details, hash from recuerdo.governance_audit where number = 5",
        "altered",
        6,
    ),
    "tail cut off": ("delete from recuerdo.governance_audit where number > 3", "end_missing", 4),
    "all rows": ("delete from recuerdo.governance_audit", "end_missing", 1),
    "tail and mark": (
        "delete from recuerdo.governance_audit where number > 3;"
        "update recuerdo.governance_audit_heads h set number = 3, hash ="
        " (select hash from recuerdo.governance_audit where number = 3)",
        "end_wrong",
        3,
    ),
    "mark deleted": ("delete from recuerdo.governance_audit_heads", "end_missing", 6),
    "another tenant's": (
        "update recuerdo.governance_audit set tenant = 't2';"
        "update recuerdo.governance_audit_heads set tenant = 't2'",
        "other_key",
        0,
    ),
}


def tamper(url: str, statement: str) -> None:
    """As somebody with the run of the database would."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute(statement)


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_or_29_verification_finds_what_was_changed_removed_or_moved(
    database: Database, keys: KeyFolder, database_url: str, forgery: str
) -> None:
    statement, fault, number = FORGERIES[forgery]
    await write(database, GovernanceAudit(database, "t1", keys), *acts(5))
    tamper(database_url, statement)
    tenant = "t2" if fault == "other_key" else "t1"
    found = await GovernanceAudit(database, tenant, keys).verify()
    assert (found.fault, found.at or 0) == (fault, number)


async def test_or_29_an_anchor_finds_an_old_copy_put_back(
    database: Database, audit: GovernanceAudit, database_url: str
) -> None:
    await write(database, audit, *acts(3))
    with psycopg.connect(database_url) as connection:
        saved = connection.execute("select hash, seal from recuerdo.governance_audit_heads").fetchone()
    await write(database, audit, *acts(2))
    anchor = (await audit.verify()).last
    assert anchor and (await audit.verify(Anchor.parse(str(anchor)))).fault is None
    assert saved
    tamper(
        database_url,
        "delete from recuerdo.governance_audit where number > 3;"
        f"update recuerdo.governance_audit_heads set number = 3, hash = '\\x{saved[0].hex()}',"
        f" seal = '\\x{saved[1].hex()}'",
    )
    assert (await audit.verify()).fault is None
    found = await audit.verify(anchor)
    assert (found.fault, found.at) == ("anchor_missing", 5)
    # As many entries as before, but others.
    await write(database, audit, *acts(5)[3:], acts(1)[0])
    assert (await audit.verify(Anchor(5, bytes(32)))).fault == "anchor_missing"


@pytest.mark.parametrize("text", ["", "5", "5:xyz", "0:" + "a" * 64, "5:" + "a" * 63])
def test_or_29_what_is_no_anchor_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="NUMBER:HASH"):
        Anchor.parse(text)


async def test_or_29_appending_at_once_gives_one_unbroken_chain(
    database: Database, audit: GovernanceAudit
) -> None:
    await asyncio.gather(*(write(database, audit, act) for act in acts(20)))
    found = await audit.verify()
    assert (found.entries, found.fault) == (20, None)


async def test_or_29_a_transaction_that_fails_leaves_no_entry(
    database: Database, audit: GovernanceAudit
) -> None:
    await write(database, audit, *acts(1))
    with pytest.raises(RuntimeError):
        async with database.tenant("t1") as connection:
            await audit.append(connection, acts(1)[0])
            raise RuntimeError
    found = await audit.verify()
    assert (found.entries, found.fault) == (1, None)


@pytest.mark.parametrize("table", ["governance_audit", "governance_audit_heads"])
async def test_or_12_entries_cannot_be_changed_with_the_tables_own_means(
    database: Database, audit: GovernanceAudit, table: str
) -> None:
    await write(database, audit, *acts(1))
    statements = [f"delete from recuerdo.{table}", f"truncate recuerdo.{table}"]
    if table == "governance_audit":
        statements.append("update recuerdo.governance_audit set actor = 'ana'")
    async with database.connection() as connection:
        for statement in statements:
            with pytest.raises(psycopg.errors.RaiseException, match="immutable"):
                await connection.execute(statement)  # type: ignore[arg-type]
    for statement in statements:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with database.tenant("t1") as connection:
                await connection.execute(statement)  # type: ignore[arg-type]


async def test_or_6_each_tenant_has_a_chain_and_a_key_of_its_own(
    database: Database, keys: KeyFolder, audit: GovernanceAudit
) -> None:
    other = GovernanceAudit(database, "t2", keys)
    await write(database, audit, *acts(2))
    await write(database, other, *acts(1), tenant="t2")
    assert ((await audit.verify()).entries, (await other.verify()).entries) == (2, 1)
    assert (await audit.entries())[1].hash != (await other.entries())[0].hash
    with pytest.raises(ScopeError):
        GovernanceAudit(database, "", keys)


async def test_a_28_another_key_folder_neither_adds_nor_verifies(
    database: Database, audit: GovernanceAudit, tmp_path: Path
) -> None:
    await write(database, audit, *acts(1))
    others = KeyFolder(tmp_path / "other")
    others.audit_key()
    stranger = GovernanceAudit(database, "t1", others)
    with pytest.raises(SettingsError, match="keys folder"):
        await write(database, stranger, *acts(1))
    assert (await stranger.verify()).fault == "other_key"
    assert ((await audit.verify()).entries, (await audit.verify()).fault) == (1, None)


async def test_or_29_a_chain_whose_end_was_removed_is_not_begun_anew(
    database: Database, audit: GovernanceAudit, database_url: str
) -> None:
    await write(database, audit, *acts(2))
    tamper(
        database_url,
        "delete from recuerdo.governance_audit where number > 1; delete from recuerdo.governance_audit_heads",
    )
    with pytest.raises(StoreError, match="backup"):
        await write(database, audit, *acts(1))


ODD_ROWS = {
    "no instant": "'infinity', 'a', 'b', 'c', null, null, '{}', hash",
    "before the beginning": "'-infinity', 'a', 'b', 'c', null, null, '{}', hash",
    "before our era": "'0044-03-15 BC', 'a', 'b', 'c', null, null, '{}', hash",
    "after the last year": "'20000-01-01', 'a', 'b', 'c', null, null, '{}', hash",
    "no details": "now(), 'a', 'b', 'c', null, null, 'not JSON', hash",
    "no hash": "now(), 'a', 'b', 'c', null, null, '{}', ''",
}


@pytest.mark.parametrize("row", ODD_ROWS.values(), ids=list(ODD_ROWS))
async def test_or_12_a_row_that_cannot_be_read_is_named_and_stops_what_is_written(
    database: Database, audit: GovernanceAudit, row: str
) -> None:
    await write(database, audit, *acts(2))
    async with database.tenant("t1") as connection:
        await connection.execute(
            f"insert into recuerdo.governance_audit select tenant, 3, {row} from recuerdo.governance_audit"  # type: ignore[arg-type]
            " where number = 2"
        )
        assert not await audit.holds(connection, "b", "c", {})
    found = await audit.verify()
    assert (found.fault, found.at) == ("altered", 3)
    with pytest.raises(StoreError, match="past its end"):
        await write(database, audit, *acts(1))
    try:
        assert len(await audit.entries()) == 3
    except StoreError as error:
        assert "audit verify" in str(error)


async def test_or_12_nothing_is_written_after_an_end_that_was_changed(
    database: Database, audit: GovernanceAudit
) -> None:
    await write(database, audit, *acts(2))
    for number in (1, 9, 2**63 - 1):
        async with database.tenant("t1") as connection:
            await connection.execute("update recuerdo.governance_audit_heads set number = %s", (number,))
        with pytest.raises(StoreError, match="audit verify"):
            await write(database, audit, *acts(1))
        assert (await audit.verify()).fault == "end_wrong"


async def test_or_29_a_governed_tenant_has_an_audit(
    database: Database, audit: GovernanceAudit, database_url: str
) -> None:
    tamper(
        database_url,
        "insert into recuerdo.plan_activations (tenant, name, number, newest, activated_at, activated_by)"
        " values ('t1', 'hotel', 1, 1, now(), 'sara')",
    )
    assert (await audit.verify()).fault == "end_missing"


@pytest.mark.parametrize(
    "act", [replace(acts(1)[0], actor=""), replace(acts(1)[0], at=NOW.replace(tzinfo=None))]
)
async def test_or_29_nobody_acts_without_a_name_or_an_instant(
    database: Database, audit: GovernanceAudit, act: AuditAct
) -> None:
    with pytest.raises(RecuerdoError):
        await write(database, audit, act)
    assert (await audit.verify()).entries == 0


async def test_a_28_the_audits_key_is_nobody_elses(
    audit: GovernanceAudit, database: Database, tmp_path: Path
) -> None:
    await write(database, audit, *acts(1))
    path = tmp_path / "keys" / "audit.key"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        await audit.verify()
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(SettingsError, match="damaged"):
        await audit.verify()


async def test_a_28_a_lost_key_of_the_audit_is_never_made_anew(
    audit: GovernanceAudit, database: Database, tmp_path: Path
) -> None:
    assert (await audit.verify()).entries == 0
    path = tmp_path / "keys" / "audit.key"
    assert not path.exists()
    await write(database, audit, *acts(1))
    path.rename(tmp_path / "away")
    for refused in (audit.verify(), write(database, audit, *acts(1))):
        with pytest.raises(SettingsError, match="backup"):
            await refused
    assert not path.exists()


@pytest.mark.parametrize("name", ["keys.json", "."])
def test_a_28_keys_that_others_may_replace_are_refused(keys: KeyFolder, tmp_path: Path, name: str) -> None:
    keys.signing_key("olga", NOW)
    path = tmp_path / "keys" / name
    path.chmod(path.stat().st_mode | 0o022)
    with pytest.raises(SettingsError, match="chmod go-w"):
        keys.trusted()
    path.chmod(path.stat().st_mode & ~0o022)
    assert keys.trusted()


async def test_or_11_changes_of_roles_stand_in_the_chain(
    database: Database, audit: GovernanceAudit, keys: KeyFolder
) -> None:
    roles = Roles(database, "t1", keys)
    await roles.appoint_first_owner("olga", NOW)
    await roles.grant("sara", "supervisor", actor="olga", at=NOW)
    await roles.revoke("sara", actor="olga", at=NOW)
    found: list[Any] = [(e.actor, e.action, e.subject, e.before, e.after) for e in await audit.entries()]
    assert found == [
        ("olga", "role.revoked", "sara", "supervisor", "user"),
        ("olga", "role.granted", "sara", "user", "supervisor"),
        ("olga", "role.granted", "olga", "user", "owner"),
    ]


def test_or_29_every_fault_is_said_in_words() -> None:
    from recuerdo.cli.audit import sentences

    assert all(f"fault_{fault}" in sentences for fault in get_args(AuditFault))


async def test_or_29_a_chain_longer_than_one_batch(
    database: Database, audit: GovernanceAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(governance_audit, "_BATCH", 3)
    await write(database, audit, *acts(7))
    found = await audit.verify()
    assert (found.entries, found.fault) == (7, None)


def test_the_measurement_writes_and_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks.audit, "ENTRIES", 50)
    monkeypatch.setattr(benchmarks.audit, "APPENDED", 5)
    figures = benchmarks.audit.measure(None)
    assert (figures["entries"], figures["fault"]) == (50, None)
    assert re.fullmatch(r"\d+\.\d+", str(figures["verify_s"]))
