"""Requests that wait for a second person, as supervisors see them (OR-22, OR-33, IM-49)."""

from collections.abc import Sequence
from typing import get_args
from uuid import UUID

from recuerdo.governance.arguments import checked_choice, checked_id, checked_reason
from recuerdo.nodes.services import Services
from recuerdo.stores.postgres.approvals import Approval, Approvals, ApprovalStatus, Decision
from recuerdo.stores.postgres.arguments import checked_page
from recuerdo.stores.postgres.roles import SUPERVISING, Roles
from recuerdo.stores.postgres.settling import settle_call
from recuerdo.stores.postgres.tool_calls import Settled, ToolCall, ToolCalls


class GovernedApprovals:
    """The requests of one tenant. ``actor`` says who looks or decides.

    Every call raises ScopeError when the actor is neither supervisor nor owner, StoreError when the database does
    not answer, and InputError for an argument that is none. To decide and go on with the turn in one step there is
    ``agent.resume``.
    """

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._approvals = Approvals(services.database, tenant, services.keys)
        self._roles = Roles(services.database, tenant, services.keys)

    async def list(
        self, status: ApprovalStatus | None = None, *, actor: str, limit: int = 100, offset: int = 0
    ) -> Sequence[Approval]:
        """Requests of one status, or (None) of any, newest first."""
        await self._roles.require(actor, SUPERVISING)
        checked_page(limit, offset)
        if status is not None:
            checked_choice("status", status, get_args(ApprovalStatus))
        return await self._approvals.list(status, limit=limit, offset=offset)

    async def show(self, approval_id: UUID | str, *, actor: str) -> Approval:
        """One request. Raises InputError when there is none."""
        await self._roles.require(actor, SUPERVISING)
        return await self._approvals.get(checked_id(approval_id))

    async def decide(
        self, approval_id: UUID | str, decision: Decision, *, actor: str, reason: str | None = None
    ) -> Approval:
        """Decide, once; the turn goes on with ``agent.resume(approval)``, in any process.

        Who made the request may reject it, which takes it back. Raises InputError when it was decided before,
        ScopeError when the actor made the request.
        """
        checked_choice("decision", decision, get_args(Decision))
        checked_reason(reason)
        key, now = checked_id(approval_id), self._services.clock()
        return await self._approvals.decide(key, decision, actor=actor, at=now, reason=reason)

    async def reverse(self, approval_id: UUID | str, *, actor: str, reason: str | None = None) -> Approval:
        """Note that what was approved had to be undone: no rule is suggested from it (A-31). It undoes nothing.

        Raises InputError when it did not pass, or was noted before.
        """
        checked_reason(reason)
        key, now = checked_id(approval_id), self._services.clock()
        return await self._approvals.reverse(key, actor=actor, at=now, reason=reason)

    async def settle(
        self, call: UUID | str, outcome: Settled, *, actor: str, reason: str | None = None
    ) -> ToolCall:
        """Note what came of a call whose outcome is unknown, once: "happened" or "did_not_happen". It runs nothing.

        Raises InputError for another outcome, and when the call is not open: unknown, or settled before.
        """
        checked_choice("outcome", outcome, get_args(Settled))
        checked_reason(reason)
        services = self._services
        return await settle_call(
            services.database,
            self._tenant,
            services.keys,
            checked_id(call),
            outcome,
            actor=actor,
            at=services.clock(),
            reason=reason,
        )

    async def unknown_outcomes(self, *, actor: str, limit: int = 100) -> Sequence[ToolCall]:
        """Calls that were started and whose result nobody knows, newest first: never repeated by themselves. Those
        that were settled are not among them.
        """
        await self._roles.require(actor, SUPERVISING)
        checked_page(limit)
        return await ToolCalls(self._services.database, self._tenant).unknown(limit=limit)

    async def not_gone_on(self, *, actor: str, limit: int = 100) -> Sequence[Approval]:
        """Requests that people decided elsewhere and whose turn has not gone on, the last decided first: each goes on
        with ``agent.resume(approval)`` in an app that brings its tools.
        """
        await self._roles.require(actor, SUPERVISING)
        checked_page(limit)
        return await self._approvals.not_gone_on(limit=limit)
