"""Decides what a turn waits for, and goes on with it (OR-33, IM-49)."""

from contextlib import aclosing
from typing import TYPE_CHECKING
from uuid import UUID

from recuerdo.nodes.run_tools.key_events import KEY_EVENT_TOOLS
from recuerdo.nodes.run_tools.toolbox import own_tools
from recuerdo.state.errors import ElsewhereError, InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.postgres.approvals import Approval, Approvals, Decision
from recuerdo.turn import Turn
from recuerdo.turn_run import ResumedRun

if TYPE_CHECKING:
    from recuerdo.agent import Agent

sentences = load_sentences(__package__)


async def resume_turn(
    agent: "Agent",
    pending: Approval | UUID | str,
    decision: Decision | None,
    actor: str | None,
    reason: str | None,
) -> Turn:
    """Decide the request, unless ``decision`` is None, and run its turn on. See :meth:`recuerdo.Agent.resume`."""
    if agent.mode != "live":
        raise InputError(sentences("approval_in_preview"))
    if decision is not None and not actor:
        raise InputError(sentences("approval_actor_missing"))
    services = agent.services
    approvals = Approvals(services.database, agent.tenant, services.keys)
    key = approval_id(pending)
    approval = await (approvals.seen(key, actor=actor) if actor else approvals.get(key))
    if (approval.plan, approval.assistant) != (services.plan.name, agent.assistant):
        raise InputError(
            sentences("approval_elsewhere", id=approval.id, plan=approval.plan, assistant=approval.assistant)
        )
    if decision is not None and actor:
        approval = await approvals.decide(
            approval.id, decision, actor=actor, at=services.clock(), reason=reason
        )
    if approval.status == "pending":
        raise InputError(sentences("approval_undecided", id=approval.id))
    await _refuse_turn_of_others(agent, approval, approvals)
    return await _run_on(agent, approval)


async def _refuse_turn_of_others(agent: "Agent", approval: Approval, approvals: Approvals) -> None:
    """Leave a turn to the application that brings its tools. Whatever was decided: with a rejection too the user is
    answered, and that with the model of that application.
    """
    services = agent.services
    shipped = {*own_tools(), *KEY_EVENT_TOOLS}
    brought = {*services.toolbox.tools, *shipped, *(tool.name for tool in services.app_tools)}
    for one in await approvals.of_turn(approval.turn):
        if one.tool not in brought:
            raise ElsewhereError(sentences("approval_tool_elsewhere", tool=one.tool))


def approval_id(pending: Approval | UUID | str) -> UUID:
    """The id of a request. Raises InputError for a text that is none."""
    if isinstance(pending, Approval):
        return pending.id
    try:
        return UUID(str(pending))
    except ValueError:
        raise InputError(sentences("approval_id_invalid", id=str(pending)[:60])) from None


async def _run_on(agent: "Agent", approval: Approval) -> Turn:
    run = ResumedRun(agent, approval)
    async with run.reserved(), aclosing(run.chunks()) as chunks:
        async for chunk in chunks:
            if chunk.turn is not None:
                return chunk.turn
    raise AssertionError("a turn that raised nothing ends with its turn")
