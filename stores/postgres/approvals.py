"""Four eyes: calls of tools that wait until a second person has decided (OR-22, OR-33, IM-49).

A request is decided once, by a supervisor or owner who did not make it; who made it may only take it back. Every
decision is audited and is evidence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString, NoReturn, get_args
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from recuerdo.state.errors import InputError, ScopeError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import KeyFolder
from recuerdo.stores.postgres.database import Connection, Database
from recuerdo.stores.postgres.evidence import EvidenceKind, NewEvidence, Run, write_evidence
from recuerdo.stores.postgres.governance_audit import AuditAct, GovernanceAudit
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.marks import REQUEST_MARK, reason_mark, request_mark
from recuerdo.stores.postgres.roles import AUTO_APPROVE, SUPERVISING, require_role, same_person
from recuerdo.stores.postgres.scope import require_scope
from recuerdo.stores.postgres.text import storable_json, without_sensitive

_sentences = load_sentences(__package__, "approvals_sentences.yaml")

ApprovalStatus = Literal["pending", "approved", "rejected", "withdrawn", "auto_approved"]
Decision = Literal["approve", "reject"]

_REASON_READ, _REASON_CHARACTERS = 50_000, 1000

_COLUMNS: LiteralString = (
    "id, tool, arguments, status, rule, turn_id as turn, conversation, assistant, user_id as user, plan, revision,"
    " requested_at, decided_at, decided_by, reason, reversed_at, reversed_by"
)

_INSERT = """
insert into recuerdo.approvals (tenant, id, turn_id, conversation, assistant, user_id, plan, revision, tool,
    arguments, status, rule, requested_at, decided_at, decided_by)
values (%(tenant)s, %(id)s, %(turn)s, %(conversation)s, %(assistant)s, %(user)s, %(plan)s, %(revision)s, %(tool)s,
    %(arguments)s, %(status)s, %(rule)s, %(at)s, %(decided_at)s, %(decided_by)s)
on conflict (tenant, id) do nothing
"""

_WITHDRAW: LiteralString = f"""
update recuerdo.approvals set status = 'withdrawn', decided_at = %(at)s, decided_by = %(actor)s
where tenant = %(tenant)s and status = 'pending'
    and (conversation = %(conversation)s or user_id = %(user)s or turn_id = %(turn)s)
returning {_COLUMNS}
"""


_NOT_GONE_ON: LiteralString = """
and status in ('approved', 'rejected', 'withdrawn')
and exists (
    select from recuerdo.turns t where t.tenant = approvals.tenant and t.id = turn_id and t.status = 'waiting'
)
and not exists (
    select from recuerdo.approvals a
    where a.tenant = approvals.tenant and a.turn_id = approvals.turn_id and a.status = 'pending'
)
order by decided_at desc, id limit %(limit)s
"""


@dataclass(frozen=True)
class NewApproval:
    """A call that needs a second person, or (``rule``) that a rule of the plan in force lets pass."""

    id: UUID
    run: Run
    tool: str
    arguments: Mapping[str, Any]
    at: datetime
    rule: str | None = None


@dataclass(frozen=True)
class Approval:
    """A request. ``user`` asked for it, None in an anonymous session; ``id`` is also that of the call."""

    id: UUID
    tool: str
    arguments: dict[str, Any]
    status: ApprovalStatus
    rule: str | None
    turn: UUID
    conversation: str
    assistant: str
    user: str | None
    plan: str
    revision: int | None
    requested_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    reason: str | None
    reversed_at: datetime | None
    reversed_by: str | None

    @property
    def run(self) -> Run:
        """The turn that waits for it."""
        return Run(self.turn, self.conversation, self.assistant, self.user, self.plan, self.revision)

    @property
    def passes(self) -> bool:
        """Whether the call may run."""
        return self.status in ("approved", "auto_approved")


class Approvals:
    """The requests of one tenant. ``keys`` holds the key of the audit."""

    def __init__(self, database: Database, tenant: str, keys: KeyFolder) -> None:
        require_scope(tenant=tenant)
        self._database = database
        self._tenant = tenant
        self._audit = GovernanceAudit(database, tenant, keys)

    async def request(self, asked: Sequence[NewApproval]) -> None:
        """Write requests, audited; one that is there already stays as it is. Those with a rule pass.

        While one of them waits for a person its turn waits too, and gives up the conversation's lease.
        """
        async with self._database.tenant(self._tenant) as connection:
            written = [new for new in asked if await self._write(connection, new)]
            waiting = {new.run.turn for new in asked if new.rule is None}
            for turn in waiting:
                await _let_wait(connection, self._tenant, turn)
            # The audit comes last: from there on its chain waits for this transaction.
            for new in written:
                await self._audit.append(connection, _asked(new))

    async def decide(
        self, approval_id: UUID, decision: Decision, *, actor: str, at: datetime, reason: str | None = None
    ) -> Approval:
        """Decide a request, once. A rejection by who made the request takes it back, with any role.

        Raises:
            InputError: there is no such request or decision, it was decided before, or is not the one that was made.
            ScopeError: the actor made the request himself, or is neither supervisor nor owner.
        """
        require_scope(actor=actor)
        require_aware(at)
        if decision not in get_args(Decision):
            raise InputError(_sentences("decision_unknown", decision=str(decision)[:40]))
        kept = await kept_reason(reason)
        async with self._database.tenant(self._tenant) as connection:
            before = await self._seen(connection, approval_id, actor, lock=" for update")
            status = await self._status_after(connection, before, decision, actor)
            if before.status != "pending":
                raise InputError(
                    _sentences("approval_decided", id=approval_id, status=_sentences(f"is_{before.status}"))
                )
            if decision == "approve" and await self._is_noted(connection, before, "requested") is False:
                raise InputError(_sentences("approval_altered", id=approval_id))
            await connection.execute(
                "update recuerdo.approvals set status = %s, decided_at = %s, decided_by = %s, reason = %s"
                " where tenant = %s and id = %s",
                (status, at, actor, kept, self._tenant, approval_id),
            )
            after = await self._one(connection, approval_id)
            await self._note(connection, after, "approval_decided", at, actor)
            await self._audit.append(connection, _act(after, status, at, actor, before="pending"))
        return after

    async def reverse(
        self, approval_id: UUID, *, actor: str, at: datetime, reason: str | None = None
    ) -> Approval:
        """Say that what was approved had to be undone: it is evidence against a rule. It undoes nothing itself.

        Raises InputError when the request is unknown, did not pass or was reversed before; ScopeError when the
        actor is neither supervisor nor owner.
        """
        require_aware(at)
        kept = await kept_reason(reason)
        async with self._database.tenant(self._tenant) as connection:
            await require_role(connection, self._tenant, actor, SUPERVISING)
            before = await self._one(connection, approval_id, lock=" for update")
            if not before.passes or before.reversed_at:
                raise InputError(_sentences("approval_not_reversible", id=approval_id))
            await connection.execute(
                "update recuerdo.approvals set reversed_at = %s, reversed_by = %s where tenant = %s and id = %s",
                (at, actor, self._tenant, approval_id),
            )
            after = await self._one(connection, approval_id)
            await self._note(connection, after, "reversal", at, actor, kept)
            await self._audit.append(
                connection, _act(after, "reversed", at, actor, before=before.status, reason=kept)
            )
        return after

    async def withdraw(
        self,
        connection: Connection,
        *,
        actor: str,
        at: datetime,
        conversation: str | None = None,
        user: str | None = None,
        turn: UUID | None = None,
    ) -> Sequence[Approval]:
        """Take back what waits in a conversation, of a user's or in a turn, in the transaction of ``connection``:
        nothing will go on with it. Whoever calls writes it into the audit with :meth:`audit_withdrawn`, last.
        """
        require_aware(at)
        where = {"conversation": conversation, "user": user, "turn": turn}
        cursor = connection.cursor(row_factory=class_row(Approval))
        await cursor.execute(_WITHDRAW, {**where, "tenant": self._tenant, "actor": actor, "at": at})
        withdrawn = await cursor.fetchall()
        for approval in withdrawn:
            await self._note(connection, approval, "approval_decided", at, actor)
        return withdrawn

    async def withdraw_of_turn(self, turn: UUID, *, actor: str, at: datetime) -> None:
        """Take back what waits in a turn that cannot go on, in a transaction of its own, audited."""
        async with self._database.tenant(self._tenant) as connection:
            withdrawn = await self.withdraw(connection, actor=actor, at=at, turn=turn)
            await self.audit_withdrawn(connection, withdrawn)

    async def audit_withdrawn(self, connection: Connection, withdrawn: Sequence[Approval]) -> None:
        """Write into the audit what :meth:`withdraw` took back."""
        for one in withdrawn:
            assert one.decided_at is not None and one.decided_by is not None, "it was taken back"
            act = _act(one, "withdrawn", one.decided_at, one.decided_by, before="pending")
            await self._audit.append(connection, act)

    async def get(self, approval_id: UUID) -> Approval:
        """One request. Raises InputError when there is none."""
        async with self._database.tenant(self._tenant) as connection:
            return await self._one(connection, approval_id)

    async def seen(self, approval_id: UUID, *, actor: str) -> Approval:
        """One request, for a supervisor or owner, or who made it.

        Raises ScopeError for anybody else, whether or not there is such a request; else InputError when there is none.
        """
        require_scope(actor=actor)
        async with self._database.tenant(self._tenant) as connection:
            return await self._seen(connection, approval_id, actor)

    async def altered(self, passing: Sequence[Approval]) -> set[UUID]:
        """Those of these requests that are not what the audit says was asked for and let pass."""
        async with self._database.tenant(self._tenant) as connection:
            return {one.id for one in passing if not await self._is_noted(connection, one, one.status)}

    async def of(self, ids: Sequence[UUID]) -> dict[UUID, Approval]:
        """Those of these calls that there are requests of."""
        found = await self._select("and id = any(%(ids)s)", {"ids": list(ids)})
        return {approval.id: approval for approval in found}

    async def of_turn(self, turn: UUID) -> Sequence[Approval]:
        """All requests of a turn, as they were made."""
        return await self._select("and turn_id = %(turn)s order by requested_at, id", {"turn": turn})

    async def list(
        self, status: ApprovalStatus | None = None, *, limit: int = 100, offset: int = 0
    ) -> Sequence[Approval]:
        """Requests, newest first; of one status, or of any."""
        return await self._select(
            "and (%(status)s::text is null or status = %(status)s)"
            " order by requested_at desc, id limit %(limit)s offset %(offset)s",
            {"status": status, "limit": limit, "offset": offset},
        )

    async def not_gone_on(self, *, limit: int = 100) -> Sequence[Approval]:
        """Requests that people decided and whose turn waits all the same, for nobody: no process has gone on with it
        yet. The last decided first.
        """
        return await self._select(_NOT_GONE_ON, {"limit": limit})

    async def _write(self, connection: Connection, new: NewApproval) -> bool:
        """Write one, with its evidence; False when it is there already."""
        cursor = await connection.execute(
            _INSERT,
            {
                **vars(new.run),
                "tenant": self._tenant,
                "id": new.id,
                "tool": new.tool,
                "arguments": Jsonb(storable_json(dict(new.arguments))),
                "status": "pending" if new.rule is None else "auto_approved",
                "rule": new.rule,
                "at": new.at,
                "decided_at": None if new.rule is None else new.at,
                "decided_by": None if new.rule is None else AUTO_APPROVE,
            },
        )
        if cursor.rowcount:
            made = await self._one(connection, new.id)
            kind: EvidenceKind = "approval_requested" if new.rule is None else "auto_approved"
            await self._note(connection, made, kind, new.at, new.run.user)
        return bool(cursor.rowcount)

    async def _seen(
        self, connection: Connection, approval_id: UUID, actor: str, lock: Literal["", " for update"] = ""
    ) -> Approval:
        """One request, for whoever may know of it: nobody else learns which there are."""
        found = await self._find(connection, approval_id, lock)
        if found is None or actor != found.user:
            await require_role(connection, self._tenant, actor, SUPERVISING)
        return found or _unknown(approval_id)

    async def _is_noted(
        self, connection: Connection, approval: Approval, action: Literal["requested"] | ApprovalStatus
    ) -> bool | None:
        """Whether the audit says of a request what its row says; None when it says nothing of that action.

        An entry from before requests had marks only says that the action was taken.
        """
        act, subject = f"approval.{action}", str(approval.id)
        cursor = await connection.execute(
            "select bool_or(details like %s) as marked from recuerdo.governance_audit"
            " where tenant = %s and subject = %s and action = %s",
            (f'%"{REQUEST_MARK}"%', self._tenant, subject, act),
        )
        row = await cursor.fetchone()
        if row is None or row["marked"] is None:
            return None
        said = request_mark(approval.id, approval.tool, approval.arguments, approval.run)
        return await self._audit.holds(connection, act, subject, said if row["marked"] else {})

    async def _status_after(
        self, connection: Connection, before: Approval, decision: Decision, actor: str
    ) -> ApprovalStatus:
        """What a decision makes of a request, if the actor may take it."""
        if decision == "approve":
            await require_role(connection, self._tenant, actor, SUPERVISING)
        if not same_person(actor, before.user):
            return "approved" if decision == "approve" else "rejected"
        if decision == "approve":
            raise ScopeError(_sentences("approver_is_requester", actor=actor))
        return "withdrawn"

    async def _note(
        self,
        connection: Connection,
        approval: Approval,
        kind: EvidenceKind,
        at: datetime,
        actor: str | None,
        reason: str | None = None,
    ) -> None:
        names = {
            "approval": str(approval.id),
            "status": approval.status,
            "actor": actor,
            "rule": approval.rule,
        }
        given = {"arguments": approval.arguments, "reason": reason or approval.reason}
        new = NewEvidence(kind, at, approval.run, str(approval.id), approval.tool, names, given)
        await write_evidence(connection, self._tenant, [new])

    async def _one(
        self, connection: Connection, approval_id: UUID, lock: Literal["", " for update"] = ""
    ) -> Approval:
        return await self._find(connection, approval_id, lock) or _unknown(approval_id)

    async def _find(
        self, connection: Connection, approval_id: UUID, lock: Literal["", " for update"]
    ) -> Approval | None:
        cursor = connection.cursor(row_factory=class_row(Approval))
        await cursor.execute(
            f"select {_COLUMNS} from recuerdo.approvals where tenant = %s and id = %s{lock}",
            (self._tenant, approval_id),
        )
        return await cursor.fetchone()

    async def _select(self, which: LiteralString, values: dict[str, Any]) -> Sequence[Approval]:
        async with self._database.tenant(self._tenant) as connection:
            cursor = connection.cursor(row_factory=class_row(Approval))
            await cursor.execute(
                f"select {_COLUMNS} from recuerdo.approvals where tenant = %(tenant)s {which}",
                {**values, "tenant": self._tenant},
            )
            return await cursor.fetchall()


async def _let_wait(connection: Connection, tenant: str, turn: UUID) -> None:
    """The turn waits; its conversation's lease is free, but for an agent's reservation."""
    await connection.execute(
        "update recuerdo.turns set status = 'waiting' where tenant = %s and id = %s and status = 'running'",
        (tenant, turn),
    )
    await connection.execute(
        "update recuerdo.conversations set lease_turn = null,"
        " lease_until = case when lease_ticket is not null then lease_until end"
        " where tenant = %s and lease_turn = %s",
        (tenant, turn),
    )


def _unknown(approval_id: UUID) -> NoReturn:
    raise InputError(_sentences("approval_unknown", id=approval_id))


def _asked(new: NewApproval) -> AuditAct:
    """That a call was asked for, or (``rule``) let pass."""
    details = {
        **run_details(new.tool, new.run),
        **request_mark(new.id, new.tool, new.arguments, new.run),
    }
    subject = str(new.id)
    if new.rule is not None:
        details = {**details, "rule": new.rule}
        action, after = "approval.auto_approved", "auto_approved"
        return AuditAct(new.at, AUTO_APPROVE, action, subject, after=after, details=details)
    actor = new.run.user or new.run.conversation
    return AuditAct(new.at, actor, "approval.requested", subject, after="pending", details=details)


def _act(
    approval: Approval, action: str, at: datetime, actor: str, *, before: str, reason: str | None = None
) -> AuditAct:
    return AuditAct(
        at=at,
        actor=actor,
        action=f"approval.{action}",
        subject=str(approval.id),
        before=before,
        after=action,
        details={
            **run_details(approval.tool, approval.run),
            **request_mark(approval.id, approval.tool, approval.arguments, approval.run),
            **reason_mark(str(approval.id), reason or approval.reason),
        },
    )


async def kept_reason(reason: str | None) -> str | None:
    """A reason as it is kept: not endless, and without sensitive data (C-16)."""
    # Filtered before it is cut: of a number that is cut in two the filter knows neither half.
    return str(await without_sensitive(reason[:_REASON_READ]))[:_REASON_CHARACTERS] if reason else None


def run_details(tool: str, run: Run) -> dict[str, str]:
    """Ids and names: the arguments are nobody's business there."""
    revision = f"r{run.revision}" if run.revision is not None else "draft"
    return {"tool": tool, "turn": str(run.turn), "plan": str(run.plan), "revision": revision}
