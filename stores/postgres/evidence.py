"""Evidence: what happened in runs that people should look at and the Learning Hub learns from (OR-22).

Durable for 180 days (A-30); every text in it went through the filter for sensitive data (C-16).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, LiteralString
from uuid import NAMESPACE_URL, UUID, uuid5

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from recuerdo.state.levels import EPISODIC, Level
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import without_sensitive
from recuerdo.stores.sensitive import MASK, redact

EvidenceKind = Literal[
    "run_failed",
    "approval_requested",
    "approval_decided",
    "auto_approved",
    "reversal",
    "ambiguity",
    "tool_used",
    "outcome_unknown",
    "outcome_settled",
    "pack_conflict",
]

EVIDENCE_KEPT = timedelta(days=180)
"""How long evidence is kept (A-30)."""

_SUMMER = timedelta(hours=2)
"""By how much two spans of so many days may differ where clocks are changed for the summer."""

NOWHERE = "-"
"""The conversation of what is kept of a user who was forgotten."""

LONG_NUMBER, _LONGEST_NUMBER = 10**9, 10**40
"""From here on a number may be that of a card or an account; below it is an amount."""

_COLUMNS = (
    "id, kind, at, turn_id as turn, conversation, assistant, user_id as user, plan, revision, tool, data"
)

_INSERT = """
insert into recuerdo.evidence (tenant, id, kind, at, turn_id, conversation, assistant, user_id, plan, revision,
    tool, data, expires_at)
values (%(tenant)s, %(id)s, %(kind)s, %(at)s, %(turn)s, %(conversation)s, %(assistant)s, %(user)s, %(plan)s,
    %(revision)s, %(tool)s, %(data)s, %(expires_at)s)
on conflict (tenant, id) do nothing
"""


@dataclass(frozen=True)
class Run:
    """The turn that something happened in, whose it is, and the plan that it ran under.

    ``revision`` None is an unsigned draft; ``plan`` None where it is not known any more.
    """

    turn: UUID
    conversation: str
    assistant: str
    user: str | None
    plan: str | None = None
    revision: int | None = None


@dataclass(frozen=True)
class NewEvidence:
    """A piece of evidence. ``subject`` tells it from others of its kind: of one subject there is one piece.

    ``at`` is aware. ``names`` are ids, states and names of ours, kept as they are; ``data`` is plain JSON data of
    what somebody said or gave, which goes through the filter for sensitive data. Both are read as ``data``.
    """

    kind: EvidenceKind
    at: datetime
    run: Run
    subject: str
    tool: str | None = None
    names: Mapping[str, str | None] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """A piece of evidence as it is kept; ``turn`` is the run."""

    id: UUID
    kind: EvidenceKind
    at: datetime
    turn: UUID
    conversation: str
    assistant: str
    user: str | None
    plan: str | None
    revision: int | None
    tool: str | None
    data: dict[str, Any]
    level: Level = EPISODIC


@dataclass(frozen=True)
class EvidenceFilter:
    """Which evidence: of these kinds (none: any), of one tool, of one run or conversation, from ``since`` to before
    ``until``.
    """

    kinds: tuple[EvidenceKind, ...] = ()
    tool: str | None = None
    turn: UUID | None = None
    conversation: str | None = None
    since: datetime | None = None
    until: datetime | None = None


_ALL = EvidenceFilter()


async def write_evidence(connection: Connection, tenant: str, pieces: Sequence[NewEvidence]) -> None:
    """Write in the transaction of ``connection``; what is there already stays as it is."""
    for piece in pieces:
        require_aware(piece.at)
        await connection.execute(
            _INSERT,
            {
                **vars(piece.run),
                "tenant": tenant,
                "id": evidence_id(tenant, piece.kind, piece.subject),
                "kind": piece.kind,
                "at": piece.at,
                "tool": piece.tool,
                "data": Jsonb({**await _filtered(piece.data), **piece.names}),
                "expires_at": piece.at + EVIDENCE_KEPT,
            },
        )


def evidence_id(tenant: str, kind: EvidenceKind, subject: str) -> UUID:
    """The id of the one piece of that kind and subject."""
    return uuid5(NAMESPACE_URL, "\x1f".join((tenant, kind, subject)))


async def _filtered(data: Mapping[str, Any]) -> Any:
    """What somebody said or gave without sensitive data: a card is one as a number too."""
    return await without_sensitive(await asyncio.to_thread(_without_numbers, dict(data)))


def _without_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_numbers(item) for item in value]
    if not isinstance(value, int | float) or not LONG_NUMBER <= abs(value) < _LONGEST_NUMBER:
        return value
    digits = str(int(value))
    masked = redact(digits).text
    return value if masked == digits else masked


class EvidenceLog:
    """The evidence of one tenant. What has expired is never read, whether or not it was swept."""

    def __init__(self, database: Database, tenant: str) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant

    async def write(self, *pieces: NewEvidence) -> None:
        """Write pieces in a transaction of their own."""
        async with self._database.tenant(self._tenant) as connection:
            await write_evidence(connection, self._tenant, pieces)

    async def list(
        self, now: datetime, which: EvidenceFilter = _ALL, *, limit: int = 100, offset: int = 0
    ) -> Sequence[Evidence]:
        """What matches and has not expired, newest first."""
        require_aware(now)
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(Evidence))
            await cursor.execute(
                f"select {_COLUMNS} from recuerdo.evidence where tenant = %(tenant)s and expires_at > %(now)s"
                " and (%(kinds)s::text[] = '{}' or kind = any(%(kinds)s))"
                " and (%(tool)s::text is null or tool = %(tool)s)"
                " and (%(turn)s::uuid is null or turn_id = %(turn)s)"
                " and (%(conversation)s::text is null or conversation = %(conversation)s)"
                " and (%(since)s::timestamptz is null or at >= %(since)s)"
                " and (%(until)s::timestamptz is null or at < %(until)s)"
                " order by at desc, id desc limit %(limit)s offset %(offset)s",
                {
                    **vars(which),
                    "kinds": list(which.kinds),
                    "tenant": self._tenant,
                    "now": now,
                    "limit": limit,
                    "offset": offset,
                },
            )
            return await cursor.fetchall()


_OBJECTIONS = """
insert into recuerdo.evidence (tenant, id, kind, at, turn_id, conversation, assistant, plan, revision, tool, data,
    expires_at)
select e.tenant, gen_random_uuid(), e.kind, e.at, gen_random_uuid(), %(nowhere)s, e.assistant, e.plan, e.revision,
    e.tool, jsonb_build_object('status', e.data -> 'status', 'arguments', (
        select coalesce(jsonb_object_agg(a.key, case
            when jsonb_typeof(a.value) in ('number', 'boolean', 'null') then a.value
            when jsonb_typeof(a.value) = 'string' and exists (select from recuerdo.evidence o
                where o.tenant = e.tenant and o.tool = e.tool and o.user_id <> e.user_id
                    and o.data -> 'arguments' -> a.key = a.value) then a.value
            else to_jsonb(%(mask)s::text) end), '{}')
        from jsonb_each(e.data -> 'arguments') a)), e.expires_at
from recuerdo.evidence e
where e.tenant = %(tenant)s and e.user_id = %(user)s and jsonb_typeof(e.data -> 'arguments') = 'object'
    and (e.kind = 'reversal' or (e.kind = 'approval_decided' and e.data ->> 'status' = 'rejected'))
"""


async def keep_objections(connection: Connection, tenant: str, user: str) -> None:
    """Before a user is forgotten: what was rejected or had to be undone speaks against a rule without him (A-31).

    Neither run nor conversation, person or reason stays; of the arguments only numbers, yes or no, and those texts
    that other users gave too.
    """
    values = {"tenant": tenant, "user": user, "mask": MASK, "nowhere": NOWHERE}
    await connection.execute(_OBJECTIONS, values)


# How far it went is noted, for a verification of the audit: what is older may be gone, or blank.
_DELETE_EXPIRED: LiteralString = """
with blank as (
    update recuerdo.approvals set arguments = '{}', reason = null
    where decided_at <= %(oldest)s and (arguments <> '{}' or reason is not null){ours} returning tenant
), ended as (
    update recuerdo.tool_calls set result = null
    where ended_at <= %(oldest)s and result is not null{ours}
), gone as (
    delete from recuerdo.evidence where expires_at <= %(now)s{ours} returning tenant
), noted as (
    insert into recuerdo.evidence_horizons as known (tenant, at)
    select tenant, %(horizon)s from gone union select tenant, %(horizon)s from blank
    on conflict (tenant) do update set at = greatest(known.at, excluded.at)
)
select count(*) as pieces from gone
"""


async def delete_expired_evidence(
    database: Database, now: datetime, *, tenant: str | None = None, spared: Sequence[str] = ()
) -> int:
    """Delete what has expired, of one tenant or (None) of every one but the spared. Returns how many pieces.

    What decided requests and calls that ended held, is kept as long and goes too: who decided what and when stays,
    as the audit says it. How far it went stays too: a clock that goes back makes nothing missing.
    """
    require_aware(now)
    oldest = now - EVIDENCE_KEPT
    values = {
        "now": now,
        "oldest": oldest,
        "horizon": oldest + _SUMMER,
        "tenant": tenant,
        "spared": list(spared),
    }
    ours: LiteralString = (
        " and (%(tenant)s::text is null or tenant = %(tenant)s) and tenant <> all(%(spared)s)"
    )
    async with database.operator() as connection:
        cursor = await connection.execute(_DELETE_EXPIRED.replace("{ours}", ours), values)
        row = await cursor.fetchone()
        return int(row["pieces"]) if row else 0
