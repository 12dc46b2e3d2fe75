"""Revisions, activations and stops in PostgreSQL: rows are added, never changed.

Each function works in the transaction of the connection that it is given, under its tenant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from recuerdo.state.levels import NORMATIVE, Level
from recuerdo.stores.keys import Signature
from recuerdo.stores.plans.revision import SealedRevision
from recuerdo.stores.postgres.database import Connection

ACTIVE_HASH = (
    "select r.sha256 from recuerdo.plan_activations a"
    " join recuerdo.plan_revisions r using (tenant, name, number)"
    " where a.tenant = %s and a.name = %s order by a.id desc limit 1"
)
"""Hash of the revision in force; for a tenant and a name."""

_SEALED = "tenant, name, number, sha256, document, key_id, signature"


@dataclass(frozen=True)
class RevisionEntry:
    """A line in the list of revisions; ``active`` is the one in force."""

    name: str
    number: int
    sha256: str
    compiled_at: datetime
    compiled_by: str
    key_id: str
    active: bool
    level: Level = NORMATIVE


@dataclass(frozen=True)
class Activation:
    """What is in force; ``newest`` is the number of the newest revision at that moment."""

    number: int
    newest: int
    activated_at: datetime
    activated_by: str


async def lock_plan(connection: Connection, tenant: str, name: str) -> None:
    """Changes of one plan come one after the other."""
    await connection.execute(
        "select pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"plan\x1f{tenant}\x1f{name}",)
    )


async def list_revisions(connection: Connection, tenant: str, name: str | None) -> Sequence[RevisionEntry]:
    """Every revision of a plan, or of every plan, the newest of each first."""
    cursor = connection.cursor(row_factory=class_row(RevisionEntry))
    await cursor.execute(
        "select r.name, r.number, r.sha256, r.compiled_at, r.compiled_by, r.key_id,"
        " r.number is not distinct from (select a.number from recuerdo.plan_activations a"
        "  where a.tenant = r.tenant and a.name = r.name order by a.id desc limit 1) as active"
        " from recuerdo.plan_revisions r"
        " where r.tenant = %(tenant)s and (%(name)s::text is null or r.name = %(name)s)"
        " order by r.name, r.number desc",
        {"tenant": tenant, "name": name},
    )
    return await cursor.fetchall()


async def newest_number(connection: Connection, tenant: str, name: str) -> int:
    """Number of the newest revision; 0 when there is none."""
    cursor = await connection.execute(
        "select coalesce(max(number), 0) as number from recuerdo.plan_revisions"
        " where tenant = %s and name = %s",
        (tenant, name),
    )
    row = await cursor.fetchone()
    return int(row["number"]) if row else 0


async def is_known(connection: Connection, tenant: str, name: str) -> bool:
    """Whether the plan has a revision, or calls that ran or waited under it, as a draft's do."""
    cursor = await connection.execute(
        "select exists (select from recuerdo.plan_revisions where tenant = %(tenant)s and name = %(name)s)"
        " or exists (select from recuerdo.approvals where tenant = %(tenant)s and plan = %(name)s)"
        " or exists (select from recuerdo.tool_calls where tenant = %(tenant)s and plan = %(name)s) as known",
        {"tenant": tenant, "name": name},
    )
    row = await cursor.fetchone()
    return bool(row and row["known"])


async def read_revision(connection: Connection, tenant: str, name: str, number: int) -> SealedRevision | None:
    """The revision of that number."""
    cursor = await connection.execute(
        f"select {_SEALED} from recuerdo.plan_revisions where tenant = %s and name = %s and number = %s",
        (tenant, name, number),
    )
    row = await cursor.fetchone()
    return _sealed(row) if row else None


async def read_by_hash(connection: Connection, tenant: str, name: str, sha256: str) -> SealedRevision | None:
    """The revision of that hash."""
    cursor = await connection.execute(
        f"select {_SEALED} from recuerdo.plan_revisions"
        " where tenant = %s and name = %s and sha256 = %s order by number limit 1",
        (tenant, name, sha256),
    )
    row = await cursor.fetchone()
    return _sealed(row) if row else None


async def add_revision(connection: Connection, sealed: SealedRevision, actor: str, at: datetime) -> None:
    """Keep a revision."""
    await connection.execute(
        "insert into recuerdo.plan_revisions (tenant, name, number, sha256, document, key_id, signature,"
        " compiled_at, compiled_by) values (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            sealed.tenant,
            sealed.name,
            sealed.number,
            sealed.sha256,
            sealed.document,
            sealed.signature.key_id,
            sealed.signature.value,
            at,
            actor,
        ),
    )


async def active_hash(connection: Connection, tenant: str, name: str) -> str | None:
    """Hash of the revision in force."""
    cursor = await connection.execute(ACTIVE_HASH, (tenant, name))
    row = await cursor.fetchone()
    return str(row["sha256"]) if row else None


async def activations(connection: Connection, tenant: str, name: str, limit: int) -> Sequence[Activation]:
    """The newest activations first; the first is what is in force."""
    cursor = connection.cursor(row_factory=class_row(Activation))
    await cursor.execute(
        "select number, newest, activated_at, activated_by from recuerdo.plan_activations"
        " where tenant = %s and name = %s order by id desc limit %s",
        (tenant, name, limit),
    )
    return await cursor.fetchall()


async def add_activation(
    connection: Connection, tenant: str, name: str, number: int, actor: str, at: datetime
) -> None:
    """Put a revision in force."""
    newest = await newest_number(connection, tenant, name)
    await connection.execute(
        "insert into recuerdo.plan_activations (tenant, name, number, newest, activated_at, activated_by)"
        " values (%s, %s, %s, %s, %s, %s)",
        (tenant, name, number, newest, at, actor),
    )


def _sealed(row: dict[str, Any]) -> SealedRevision:
    signature = Signature(row["key_id"], row["signature"])
    return SealedRevision(
        row["tenant"], row["name"], row["number"], row["sha256"], row["document"], signature
    )
