"""Proposals of the Learning Hub: what a sweep suggests, and what a person decided on it (OR-24 to OR-30, IM-55).

A decision is recorded, and nothing else happens (IM-47): what was approved acts in the next signed revision, once.
What was rejected is archived, and the evidence that it rested on argues for nothing else (C-41).
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString, get_args
from uuid import UUID, uuid4

from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from pydantic import TypeAdapter, ValidationError

from recuerdo.state.amendment import Amendment, ApprovedProposal
from recuerdo.state.errors import InputError, StoreError
from recuerdo.state.sentences import Sentence, load_sentences
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.plans import Revision
from recuerdo.stores.plans.merge import Changes
from recuerdo.stores.postgres.approvals import Decision, kept_reason
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.governance_audit import AuditAct, GovernanceAudit
from recuerdo.stores.postgres.held.proposals import proposal_marks, was_there_before
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.marks import reason_mark
from recuerdo.stores.postgres.roles import SUPERVISING, SYSTEM, require_role
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import storable_json

_sentences = load_sentences(__package__, "proposals_sentences.yaml")

ProposalKind = Literal["rule_suggestion", "eval_case_suggestion", "skill_lifecycle"]
ProposalStatus = Literal["pending", "approved", "rejected", "included"]

_AMENDMENT: TypeAdapter[Amendment] = TypeAdapter(Amendment)

_COLUMNS: LiteralString = (
    "id, kind, plan, revision, subject, change, wording, effect, sample_size, period_from, period_to, status,"
    " created_at, decided_at, decided_by, reason, included_in, included_at"
)

_INSERT = """
insert into recuerdo.proposals (tenant, id, kind, plan, revision, subject, change, wording, effect, sample_size,
    period_from, period_to, user_id, created_at)
values (%(tenant)s, %(id)s, %(kind)s, %(plan)s, %(revision)s, %(subject)s, %(change)s, %(wording)s, %(effect)s, 1,
    %(at)s, %(at)s, %(user)s, %(at)s)
on conflict (tenant, plan, kind, subject) where status in ('pending', 'approved') do nothing
"""

_SUM_UP = """
update recuerdo.proposals p set sample_size = s.size, period_from = s.first, period_to = s.last
from (select count(*) as size, min(at) as first, max(at) as last
    from recuerdo.proposal_evidence where tenant = %(tenant)s and proposal = %(proposal)s) s
where p.tenant = %(tenant)s and p.id = %(proposal)s and s.size >= %(least)s
"""


@dataclass(frozen=True)
class Link:
    """A piece that a proposal rests on: evidence, or the revision that has had an unused tool all the time."""

    at: datetime
    evidence: UUID | None = None
    turn: UUID | None = None
    approval: UUID | None = None
    revision: int | None = None


@dataclass(frozen=True)
class NewProposal:
    """A proposal about to be made. ``subject`` tells it from others of its kind: one of each is open at a time.

    ``effect`` is an estimate, names and numbers; ``user`` whose words are in it, if anybody's.
    """

    kind: ProposalKind
    plan: str
    revision: int | None
    subject: str
    change: Amendment
    wording: Sentence
    effect: Mapping[str, float]
    user: str | None = None


@dataclass(frozen=True)
class Proposal:
    """A proposal: the question (``wording``), what it would change, and what that rests on.

    ``sample_size`` counts the pieces of evidence between ``period_from`` and ``period_to``.
    """

    id: UUID
    kind: ProposalKind
    plan: str
    revision: int | None
    subject: str
    change: dict[str, Any]
    wording: dict[str, str]
    effect: dict[str, float]
    sample_size: int
    period_from: datetime
    period_to: datetime
    status: ProposalStatus
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    reason: str | None
    included_in: int | None
    included_at: datetime | None

    @property
    def amendment(self) -> Amendment:
        """What it would change, checked. Raises StoreError when no proposal was ever made with that."""
        try:
            return _AMENDMENT.validate_json(json.dumps(self.change))
        except (ValidationError, RecursionError):
            raise StoreError(_sentences("proposal_changed", id=self.id)) from None


Tie = Callable[[Connection, UUID], Awaitable[None]]
"""Ties the proposal of that id to what it rests on, in the transaction of the connection."""


class _TooFewError(Exception):
    """Too little is left to make the proposal from."""


async def make_proposal(
    connection: Connection,
    tenant: str,
    new: NewProposal,
    tie: Tie,
    *,
    audit: GovernanceAudit,
    at: datetime,
    least: int = 1,
) -> UUID | None:
    """Make a proposal and tie it to its evidence, in the transaction of ``connection``; returns its id.

    The ``audit`` notes what is asked, so that nobody can be made to answer another question.

    None, and nothing written: one of its subject is open, or fewer than ``least`` pieces are not taken by others.
    """
    require_aware(at)
    key = uuid4()
    values = {**vars(new), "tenant": tenant, "id": key, "at": at}
    values["change"] = Jsonb(storable_json(new.change.model_dump(mode="json")))
    values["wording"] = Jsonb(storable_json({"es": new.wording.es, "en": new.wording.en}))
    values["effect"] = Jsonb(dict(new.effect))
    try:
        async with connection.transaction():
            if not (await connection.execute(_INSERT, values)).rowcount:
                return None
            await tie(connection, key)
            sums = {"tenant": tenant, "proposal": key, "least": max(least, 1)}
            if not (await connection.execute(_SUM_UP, sums)).rowcount:
                raise _TooFewError
    except _TooFewError:
        return None
    details = {"kind": new.kind, "plan": new.plan}
    await audit.append(
        connection, AuditAct(at, SYSTEM, "proposal.made", str(key), after="pending", details=details)
    )
    return key


async def join_proposal(connection: Connection, tenant: str, new: NewProposal, tie: Tie) -> bool:
    """Tie to the proposal of the same subject that was not rejected, if there is one; returns whether there is.

    A pending one rests on that too. On a decided one it changes nothing but that the same is not asked again.
    """
    cursor = await connection.execute(
        "select id, status from recuerdo.proposals where tenant = %s and plan = %s and kind = %s and subject = %s"
        " and status <> 'rejected' order by created_at desc limit 1 for update",
        (tenant, new.plan, new.kind, new.subject),
    )
    found = await cursor.fetchone()
    if found is None:
        return False
    await tie(connection, found["id"])
    if found["status"] == "pending":
        await connection.execute(_SUM_UP, {"tenant": tenant, "proposal": found["id"], "least": 1})
    return True


async def was_rejected(connection: Connection, tenant: str, new: NewProposal) -> bool:
    """Whether a person has said no to a proposal of this subject."""
    cursor = await connection.execute(
        "select from recuerdo.proposals where tenant = %s and plan = %s and kind = %s and subject = %s"
        " and status = 'rejected' limit 1",
        (tenant, new.plan, new.kind, new.subject),
    )
    return await cursor.fetchone() is not None


class Proposals:
    """The proposals of one tenant. ``keys`` holds the key of the audit."""

    def __init__(self, database: Database, tenant: str, keys: KeyFolder) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant
        self._audit = GovernanceAudit(database, tenant, keys)

    async def list(
        self,
        status: ProposalStatus | None = None,
        *,
        plan: str | None = None,
        archived: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> Sequence[Proposal]:
        """Proposals, newest first; of one status or of any but the rejected, which are in the archive (OR-30)."""
        among = [status] if status else _shelf(archived)
        return await self._select(
            "status = any(%(among)s) and (%(plan)s::text is null or plan = %(plan)s)"
            " order by created_at desc, id limit %(limit)s offset %(offset)s",
            {"among": among, "plan": plan, "limit": limit, "offset": offset},
        )

    async def get(self, proposal_id: UUID) -> Proposal:
        """One proposal. Raises InputError when there is none."""
        async with self._database.tenant(self._tenant) as connection:
            return await self._one(connection, proposal_id)

    async def links(self, proposal_id: UUID, *, limit: int = 100, offset: int = 0) -> Sequence[Link]:
        """What a proposal rests on, in the order of time."""
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(Link))
            await cursor.execute(
                "select at, evidence, turn_id as turn, approval, revision from recuerdo.proposal_evidence"
                " where tenant = %s and proposal = %s order by at, id limit %s offset %s",
                (self._tenant, proposal_id, limit, offset),
            )
            return await cursor.fetchall()

    async def decide(
        self, proposal_id: UUID, decision: Decision, *, actor: str, at: datetime, reason: str | None = None
    ) -> Proposal:
        """Decide a proposal, once (IM-47). Nothing changes by that but its status.

        Raises InputError when there is no such proposal or decision, or it is not pending; ScopeError when the
        actor is neither supervisor nor owner; StoreError when it is to be approved and not the one that was made.
        """
        require_scope(actor=actor)
        require_aware(at)
        if decision not in get_args(Decision):
            raise InputError(_sentences("decision_unknown", decision=str(decision)[:40]))
        kept = await kept_reason(reason)
        async with self._database.tenant(self._tenant) as connection:
            await require_role(connection, self._tenant, actor, SUPERVISING)
            before = await self._one(connection, proposal_id, lock=" for update")
            if before.status != "pending":
                status = _sentences(f"is_{before.status}")
                raise InputError(_sentences("proposal_not_pending", id=proposal_id, status=status))
            if decision == "approve":
                await self._require_made(connection, str(proposal_id))
            await connection.execute(
                "update recuerdo.proposals set status = %s, decided_at = %s, decided_by = %s, reason = %s"
                " where tenant = %s and id = %s",
                (
                    "approved" if decision == "approve" else "rejected",
                    at,
                    actor,
                    kept,
                    self._tenant,
                    proposal_id,
                ),
            )
            after = await self._one(connection, proposal_id)
            await self._audit.append(connection, _decided(after, actor, at))
        return after

    async def changes(self, plan: str, without: Sequence[str] = (), include: Sequence[str] = ()) -> Changes:
        """What the next revision of a plan takes in, approved and in no revision yet, and what it can take in again,
        each the oldest first (OR-29); ``without`` and ``include`` as in :class:`Changes`.
        """
        found = await self._select(
            "status in ('approved', 'included') and plan = %(plan)s order by decided_at, id", {"plan": plan}
        )
        given: dict[str, list[ApprovedProposal]] = {"approved": [], "included": []}
        for one in found:
            given[one.status].append(ApprovedProposal(proposal=str(one.id), change=one.amendment))
        return Changes(given["approved"], given["included"], without, include)

    async def included(self, connection: Connection, revision: Revision) -> None:
        """Note in the transaction of a compilation what the revision took in; what was noted before stays (IM-48)."""
        await connection.execute(
            "update recuerdo.proposals p set status = 'included', included_in = %(number)s, included_at = r.compiled_at"
            " from recuerdo.plan_revisions r"
            " where r.tenant = p.tenant and r.name = p.plan and r.number = %(number)s and p.tenant = %(tenant)s"
            " and p.plan = %(plan)s and p.status = 'approved' and p.id::text = any(%(ids)s)",
            {
                "number": revision.number,
                "tenant": self._tenant,
                "plan": revision.plan.name,
                "ids": [one.proposal for one in revision.included],
            },
        )

    async def _require_made(self, connection: Connection, proposal: str) -> None:
        """What is approved is what was asked: else somebody answers a question, and approves another change."""
        action = "proposal.made"
        marks = await proposal_marks(connection, self._tenant, action, proposal)
        if await self._audit.holds(connection, action, proposal, marks):
            return
        if not await was_there_before(connection, self._tenant, proposal):
            raise StoreError(_sentences("proposal_changed", id=proposal))

    async def _one(
        self, connection: Connection, proposal_id: UUID, lock: Literal["", " for update"] = ""
    ) -> Proposal:
        cursor = connection.cursor(row_factory=class_row(Proposal))
        await cursor.execute(
            f"select {_COLUMNS} from recuerdo.proposals where tenant = %s and id = %s{lock}",
            (self._tenant, proposal_id),
        )
        found = await cursor.fetchone()
        if found is None:
            raise InputError(_sentences("proposal_unknown", id=proposal_id))
        return found

    async def _select(self, which: LiteralString, values: dict[str, Any]) -> Sequence[Proposal]:
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(Proposal))
            await cursor.execute(
                f"select {_COLUMNS} from recuerdo.proposals where tenant = %(tenant)s and {which}",
                {**values, "tenant": self._tenant},
            )
            return await cursor.fetchall()


def _shelf(archived: bool) -> list[str]:
    return ["rejected"] if archived else ["pending", "approved", "included"]


def _decided(proposal: Proposal, actor: str, at: datetime) -> AuditAct:
    return AuditAct(
        at=at,
        actor=actor,
        action=f"proposal.{proposal.status}",
        subject=str(proposal.id),
        before="pending",
        after=proposal.status,
        details={
            "kind": proposal.kind,
            "plan": proposal.plan,
            "change": proposal.amendment.name,
            **reason_mark(str(proposal.id), proposal.reason),
        },
    )
