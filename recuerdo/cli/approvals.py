"""``recuerdo approvals``: what waits for a second person (OR-33, IM-49)."""

import asyncio
import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.table import Table

from recuerdo.cli.console import checked_id, complain, out, plain_text, print_json, printable, speaker
from recuerdo.cli.desk import at_desk, open_desk
from recuerdo.cli.options import Actor, AsJson, Assistant, PlanName, Tenant
from recuerdo.state.errors import ElsewhereError, InputError, RecuerdoError, SettingsError
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from uuid import UUID

    from recuerdo.cli.session import Identity
    from recuerdo.governance import Governance
    from recuerdo.level_1 import Level1
    from recuerdo.nodes.services import Services
    from recuerdo.stores.postgres.approvals import Approval, Decision
    from recuerdo.stores.postgres.tool_calls import ToolCall
    from recuerdo.turn import Turn

sentences = load_sentences(__package__, "approvals_sentences.yaml")
_say = speaker(sentences)
_agent_sentences = load_sentences("recuerdo")

_LISTING = "recuerdo approvals list"
_ID_WIDTH = 36

approvals_app = typer.Typer(
    name="approvals", help="What waits for a second person's decision.", no_args_is_help=True
)


class Status(StrEnum):
    """Which requests are listed."""

    pending = "pending"
    approved = "approved"
    rejected = "rejected"
    withdrawn = "withdrawn"
    auto_approved = "auto_approved"


class Outcome(StrEnum):
    """What came of a call."""

    happened = "happened"
    did_not_happen = "did_not_happen"


Id = Annotated[str, typer.Argument(help="Id of a request, as the list shows it.", metavar="ID")]
Reason = Annotated[str | None, typer.Option(help="Why; the model is told why it was rejected.")]


@approvals_app.command("list")
def list_approvals(
    actor: Actor,
    status: Annotated[Status, typer.Option(help="Which ones.")] = Status.pending,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 50,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """List requests, newest first; those decided whose turn has not gone on; calls whose outcome nobody knows."""

    async def work(desk: "Governance") -> "tuple[Sequence[Approval], Sequence[Approval], Sequence[ToolCall]]":
        approvals = desk.approvals
        return (
            await approvals.list(status.value, actor=actor, limit=limit),
            await approvals.not_gone_on(actor=actor, limit=limit),
            await approvals.unknown_outcomes(actor=actor, limit=limit),
        )

    found, stopped, unknown = at_desk(tenant, work)
    if as_json:
        print_json(
            {
                "approvals": [vars(one) for one in found],
                "not_gone_on": [vars(one) for one in stopped],
                "unknown_outcomes": [vars(one) for one in unknown],
            }
        )
        return
    nothing = _say("nothing_waits" if status is Status.pending else "none_is_so")
    out().print(_table(found) if found else plain_text(nothing))
    if stopped:
        out().print(plain_text("\n" + _say("not_gone_on"), "yellow"))
        out().print(_table(stopped))
    if unknown:
        out().print(plain_text("\n" + _say("unknown_outcomes"), "yellow"))
        out().print(_unknown_table(unknown))


@approvals_app.command()
def show(approval: Id, actor: Actor, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """Show one request with its arguments and what the turn works with."""
    found, level = asyncio.run(_shown(checked_id(approval, _LISTING), actor, tenant))
    document = {**vars(found), "level_1": vars(level) if level else None}
    if as_json:
        print_json(document)
    else:
        print(
            printable(yaml.safe_dump(_plain(document), allow_unicode=True, sort_keys=False, width=110)),
            end="",
        )


@approvals_app.command()
def approve(
    approval: Id,
    actor: Actor,
    reason: Reason = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Approve a request and let its turn go on."""
    from recuerdo.cli.session import Identity

    _decide(Identity(None, tenant, assistant, plan), approval, "approve", actor, reason, as_json=as_json)


@approvals_app.command()
def reject(
    approval: Id,
    actor: Actor,
    reason: Reason = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Reject a request and let its turn go on; whoever made it takes it back so."""
    from recuerdo.cli.session import Identity

    _decide(Identity(None, tenant, assistant, plan), approval, "reject", actor, reason, as_json=as_json)


@approvals_app.command()
def resume(
    approval: Id,
    actor: Actor,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Go on with the turn of a request that was decided before."""
    from recuerdo.cli.session import Identity

    _decide(Identity(None, tenant, assistant, plan), approval, None, actor, None, as_json=as_json)


@approvals_app.command()
def reverse(
    approval: Id, actor: Actor, reason: Reason = None, tenant: Tenant = None, as_json: AsJson = False
) -> None:
    """Note that what was approved had to be undone; this undoes nothing by itself."""
    key = checked_id(approval, _LISTING)
    found = at_desk(tenant, lambda desk: desk.approvals.reverse(key, actor=actor, reason=reason))
    if as_json:
        print_json(vars(found))
    else:
        print(_say("reversed", id=found.id))


@approvals_app.command()
def settle(
    call: Annotated[str, typer.Argument(help="Id of a call whose outcome is unknown.", metavar="CALL")],
    outcome: Annotated[Outcome, typer.Option(help="What you found out.")],
    actor: Actor,
    reason: Annotated[str | None, typer.Option(help="How you know.")] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Say what came of a call whose outcome nobody knew, once; this runs nothing."""
    key = checked_id(call, _LISTING)
    found = at_desk(
        tenant, lambda desk: desk.approvals.settle(key, outcome.value, actor=actor, reason=reason)
    )
    if as_json:
        print_json(vars(found))
    else:
        print(printable(_say(f"settled_{outcome.value}", id=found.id, tool=found.tool)))


def _decide(
    identity: "Identity",
    approval: str,
    decision: "Decision | None",
    actor: str,
    reason: str | None,
    *,
    as_json: bool,
) -> None:
    """Decide at the desk, then go on in an agent of the request's own plan and assistant.

    Who made a request may take it back without a role; to go on with what was decided takes one.
    """
    key = checked_id(approval, _LISTING)
    found = asyncio.run(_taken(identity, key, decision, actor, reason))
    try:
        turn = _gone_on(identity, found, actor)
    except (ElsewhereError, SettingsError) as error:
        if decision is None:
            raise
        _say_stands(found, error, as_json)
        return
    if as_json:
        print_json(_turn(turn))
        return
    out().print(plain_text(turn.reply), soft_wrap=True)
    if turn.pending:
        print(_say("next", id=turn.pending.id, tool=printable(turn.pending.tool)))


async def _taken(
    identity: "Identity", key: "UUID", decision: "Decision | None", actor: str, reason: str | None
) -> "Approval":
    """The request, decided if that is asked for. No agent opens for somebody who may not."""
    from recuerdo.governance.approvals import GovernedApprovals
    from recuerdo.stores.postgres.approvals import Approvals

    async with open_desk(identity.tenant) as (services, tenant):
        desk = GovernedApprovals(services, tenant)
        if decision is None:
            return await desk.show(key, actor=actor)
        approvals = Approvals(services.database, tenant, services.keys)
        await asyncio.to_thread(_require_its_own, await approvals.seen(key, actor=actor), identity)
        return await desk.decide(key, decision, actor=actor, reason=reason)


def _require_its_own(found: "Approval", identity: "Identity") -> None:
    """Whoever names another plan or assistant than the request's may mean another request. Raises InputError."""
    from recuerdo.stores.plans import is_file, load_plan

    plan = identity.plan or found.plan
    plan = load_plan(plan).name if is_file(plan) else plan
    if (plan, identity.assistant or found.assistant) != (found.plan, found.assistant):
        where = {"plan": found.plan, "assistant": found.assistant}
        raise InputError(_agent_sentences("approval_elsewhere", id=found.id, **where))


def _gone_on(identity: "Identity", found: "Approval", actor: str) -> "Turn":
    from recuerdo.cli.session import Identity, open_with_model

    assistant, plan = identity.assistant or found.assistant, identity.plan or found.plan
    with open_with_model(Identity(None, identity.tenant, assistant, plan)) as agent:
        return agent.run_sync(agent.resume(found, actor=actor))


def _say_stands(found: "Approval", error: RecuerdoError, as_json: bool) -> None:
    """The decision is taken, and that was asked for; the turn goes on where it can."""
    complain(sentences("stands", id=found.id, why=error.sentence))
    if as_json:
        print_json({"approval": vars(found), "gone_on": False})
    else:
        print(printable(f"{found.id} {_state(found)}"))


async def _shown(key: "UUID", actor: str, tenant: str | None) -> "tuple[Approval, Level1 | None]":
    from recuerdo.governance.approvals import GovernedApprovals

    async with open_desk(tenant) as (services, name):
        found = await GovernedApprovals(services, name).show(key, actor=actor)
        return found, await _level_1(services, name, found)


async def _level_1(services: "Services", tenant: str, found: "Approval") -> "Level1 | None":
    """What the turn that waits works with: read from its thread, whatever the plan."""
    from recuerdo.agent import Agent
    from recuerdo.graph.turn import build_turn_graph
    from recuerdo.stores.postgres.checkpoints import open_saver

    async def provide() -> "Services":
        return services

    graph = build_turn_graph(provide, await open_saver(services.database))
    agent = Agent(services, graph, tenant, found.assistant, "live")
    return await agent.level_1(found.conversation, user=found.user)


def _turn(turn: "Turn") -> dict[str, Any]:
    return {
        "reply": turn.reply,
        "conversation": turn.conversation,
        "turn": turn.id,
        "pending": str(turn.pending.id) if turn.pending else None,
        "record": turn.record.model_dump(mode="json"),
    }


def _plain(value: Any) -> Any:
    """As YAML writes it: ids and instants as texts."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _table(found: "Sequence[Approval]") -> Table:
    table = _columns(
        "column_id", "column_at", "column_tool", "column_arguments", "column_user", "column_status"
    )
    for one in found:
        # Quoted: a text must not pass for other arguments.
        given = ((name, json.dumps(value, ensure_ascii=False)) for name, value in one.arguments.items())
        arguments = ", ".join(f"{name}={value}" for name, value in given)
        cells = (one.id, _at(one.requested_at), one.tool, arguments, one.user or "-", _state(one))
        table.add_row(*(plain_text(str(cell)) for cell in cells))
    return table


def _state(one: "Approval") -> str:
    return f"{_say('is_' + one.status)} {one.rule or one.decided_by or ''}".strip()


def _unknown_table(unknown: "Sequence[ToolCall]") -> Table:
    table = _columns("column_id", "column_at", "column_tool", "column_user")
    for one in unknown:
        cells = (one.id, _at(one.started_at), one.tool, one.user or "-")
        table.add_row(*(plain_text(str(cell)) for cell in cells))
    return table


def _columns(*keys: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in keys:
        # An id has to be read whole, to be given back.
        table.add_column(_say(key), overflow="fold", min_width=_ID_WIDTH if key == "column_id" else None)
    return table


def _at(instant: Any) -> str:
    return f"{instant:%Y-%m-%d %H:%M %Z}"
