"""Step 1 of a sweep: what the evidence of the period has, counted in the database (OR-22)."""

import asyncio
from datetime import datetime, timedelta
from typing import Final

from recuerdo.nodes.build_prompt.layouts import tool_tokens
from recuerdo.nodes.learning.in_force import PlanInForce, long_held, plan_in_force, toolbox_of
from recuerdo.nodes.learning.people import Known, without_people
from recuerdo.nodes.services import Services
from recuerdo.state import limits
from recuerdo.state.learning import AmbiguousTurn, ApprovedTool, IdleTool, LearningState
from recuerdo.stores.postgres.instants import require_aware
from recuerdo.stores.postgres.learning_evidence import (
    AmbiguousRun,
    ToolUse,
    Window,
    ambiguous_runs,
    approved_calls,
    count_evidence,
    plans_at_work,
    remembered_of,
    said_before,
    tool_uses,
)
from recuerdo.stores.postgres.text import without_sensitive
from recuerdo.stores.sources.registry import SourceQuery

PERIOD: Final = timedelta(days=90)
"""What a sweep looks back on, and how long a tool is not used before it is named (A-31, A-34)."""

CASES: Final = 200
"""Ambiguous runs of one sweep; the next one goes on."""

ALWAYS_KEPT: Final = frozenset({"read_tool_result", "ask_for_help"})
"""Tools that no sweep proposes to deactivate: the engine points at them, and whoever needs them has no other way. Nor
does it propose those with four eyes: that they are seldom used is what the house wants of them.
"""

MESSAGES: Final = 5
"""User's messages of a case, the last one is judged."""

_MESSAGE_CHARACTERS = 2000

_MEMORIES = 200
"""Memories of a case's user that are read for names, the newest first."""


async def collect(state: LearningState, services: Services) -> LearningState:
    """Count, and gather what is small: tools, ambiguous runs. No piece of evidence is kept."""
    window = window_of(state, services)
    async with services.database.tenant(window.tenant, snapshot=True) as connection:
        evidence = await count_evidence(connection, window)
        plans = await plans_at_work(connection, window)
        approved = await approved_calls(connection, window, limits.RULE_SUGGESTION_MIN_APPROVALS)
        runs = await ambiguous_runs(connection, window, CASES)
        spoken = [await said_before(connection, window.tenant, run, MESSAGES) for run in runs]
    known = {user: await _known(user, window, services) for user in {run.user for run in runs}}
    return LearningState(
        tenant=window.tenant,
        now=window.now.isoformat(),
        evidence=evidence,
        approved=[ApprovedTool(plan=one.plan, tool=one.tool, approved=one.approved) for one in approved],
        idle=[idle for name in plans for idle in await _idle_tools(name, window, services)],
        ambiguous=[
            await _ambiguous(run, said, known[run.user]) for run, said in zip(runs, spoken, strict=True)
        ],
    )


def window_of(state: LearningState, services: Services) -> Window:
    """The evidence that a sweep looks at. Raises InputError for an instant without a zone."""
    tenant = state.get("tenant") or services.settings.tenant
    given = state.get("now")
    now = require_aware(datetime.fromisoformat(given)) if given else services.clock()
    return Window(tenant, now - PERIOD, now)


async def _idle_tools(name: str, window: Window, services: Services) -> list[IdleTool]:
    """The tools of a plan that nobody has used in the period, and that are older than it (OR-36)."""
    found = await plan_in_force(services, window.tenant, name)
    if found is None:
        return []
    async with services.database.tenant(window.tenant) as connection:
        uses = await tool_uses(connection, window, name)
    held = await long_held(services, window.tenant, found, window.since)
    toolbox = toolbox_of(services, found.plan)
    kept = ALWAYS_KEPT.union(found.plan.four_eyes)
    idle = [
        _idle(tool, found, uses.get(tool), held.since if tool in held.tools else None)
        for tool in toolbox.tools
        if tool not in kept and _is_idle(uses.get(tool), tool in held.tools, window)
    ]
    schemas = dict(zip(toolbox.tools, toolbox.schemas, strict=True))
    count = services.counter.count
    for one in idle:
        one["tokens"] = await asyncio.to_thread(tool_tokens, [schemas[one["tool"]]], count)
    return idle


def _is_idle(use: ToolUse | None, held: bool, window: Window) -> bool:
    """What was used before the period is older than it, whatever plans say of it. What was decided on is not asked
    again, unless a revision has had it for the whole period since.
    """
    if use is None:
        return held
    return use.last <= window.since and (held or use.fresh > 0)


def _idle(tool: str, found: PlanInForce, use: ToolUse | None, since: datetime | None) -> IdleTool:
    return IdleTool(
        plan=found.plan.name,
        tool=tool,
        uses=use.fresh if use else 0,
        last_used=use.last.isoformat() if use else None,
        in_force_since=since.isoformat() if since else None,
        revision=found.number,
        tokens=0,
    )


async def _ambiguous(run: AmbiguousRun, said: list[str], known: Known) -> AmbiguousTurn:
    """The run with the user's words, without sensitive data and what names a person; where they are gone, with what
    the evidence has.
    """
    filtered = await without_sensitive(said or [run.message or ""])
    messages = await asyncio.to_thread(without_people, filtered, known)
    # Cut last: of a card or a name that is cut in two nothing would tell what it was.
    texts = [text[:_MESSAGE_CHARACTERS].strip() for text in messages]
    return AmbiguousTurn(
        plan=run.plan,
        revision=run.revision,
        evidence=str(run.id),
        turn=str(run.turn),
        approval=str(run.approval),
        at=run.at.isoformat(),
        user=run.user,
        messages=[text for text in texts if text],
        called=run.called or [],
        refused=run.refused or [],
    )


async def _known(user: str | None, window: Window, services: Services) -> Known:
    """What tells the user's words from his name: what the platform and his memories say of him."""
    if user is None:
        return Known()
    profile = await services.sources.fetch("profile", SourceQuery(window.tenant, user, (), window.now))
    async with services.database.tenant(window.tenant) as connection:
        texts = await remembered_of(connection, window, user, _MEMORIES)
    return Known(user, profile.value.name if profile.value else None, texts)
