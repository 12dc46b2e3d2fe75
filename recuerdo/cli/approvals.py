"""``recuerdo approvals``: what waits for a second person (OR-33, IM-49)."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.table import Table

from recuerdo.cli.console import out, plain_text, print_json, printable, speaker
from recuerdo.cli.desk import at_desk
from recuerdo.cli.options import Actor, AsJson, Assistant, PlanName, Tenant
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from recuerdo.cli.session import Identity
    from recuerdo.stores.postgres.approvals import Approval, Decision
    from recuerdo.stores.postgres.tool_calls import ToolCall
    from recuerdo.turn import Turn

sentences = load_sentences(__package__, "approvals_sentences.yaml")
_say = speaker(sentences)

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
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """List requests, newest first, and calls whose outcome nobody knows."""
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(None, tenant, None, plan)) as agent:
        desk = agent.governance.approvals
        found = agent.run_sync(desk.list(status.value, actor=actor, limit=limit))
        unknown = agent.run_sync(desk.unknown_outcomes(actor=actor, limit=limit))
    if as_json:
        print_json(
            {"approvals": [vars(one) for one in found], "unknown_outcomes": [vars(one) for one in unknown]}
        )
        return
    out().print(_table(found) if found else plain_text(_say("none")))
    if unknown:
        out().print(plain_text("\n" + _say("unknown_outcomes"), "yellow"))
        out().print(_unknown_table(unknown))


@approvals_app.command()
def show(
    approval: Id, actor: Actor, tenant: Tenant = None, plan: PlanName = None, as_json: AsJson = False
) -> None:
    """Show one request with its arguments and what the turn works with."""
    from recuerdo.cli.session import Identity, open_stores
    from recuerdo.resuming import approval_id

    with open_stores(Identity(None, tenant, None, plan)) as agent:
        found = agent.run_sync(agent.governance.approvals.show(approval_id(approval), actor=actor))
        level = agent.run_sync(agent.level_1(found.conversation, user=found.user))
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
    approval: Id,
    actor: Actor,
    reason: Reason = None,
    tenant: Tenant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Note that what was approved had to be undone; this undoes nothing by itself."""
    from recuerdo.cli.session import Identity, open_stores
    from recuerdo.resuming import approval_id

    with open_stores(Identity(None, tenant, None, plan)) as agent:
        desk = agent.governance.approvals
        found = agent.run_sync(desk.reverse(approval_id(approval), actor=actor, reason=reason))
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
    found = at_desk(
        tenant, lambda desk: desk.approvals.settle(call, outcome.value, actor=actor, reason=reason)
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
    """In an agent of the request's own plan and assistant, unless others are named.

    Who made a request may take it back without a role; to go on with what was decided takes one.
    """
    from recuerdo.cli.session import Identity, open_stores, open_with_model
    from recuerdo.resuming import approval_id
    from recuerdo.stores.postgres.approvals import Approvals

    key = approval_id(approval)
    with open_stores(identity) as agent:
        if decision is None:
            agent.run_sync(agent.governance.approvals.show(key, actor=actor))
        approvals = Approvals(agent.services.database, agent.tenant, agent.services.keys)
        found = agent.run_sync(approvals.get(key))
    own = Identity(None, identity.tenant, identity.assistant or found.assistant, identity.plan or found.plan)
    with open_with_model(own) as agent:
        turn = agent.run_sync(agent.resume(key, decision, actor=actor, reason=reason))
    if as_json:
        print_json(_turn(turn))
        return
    out().print(plain_text(turn.reply), soft_wrap=True)
    if turn.pending:
        print(_say("next", id=turn.pending.id, tool=printable(turn.pending.tool)))


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
        arguments = ", ".join(f"{name}={value}" for name, value in one.arguments.items())
        decided = one.rule or one.decided_by or ""
        state = f"{_say('is_' + one.status)} {decided}".strip()
        cells = (one.id, _at(one.requested_at), one.tool, arguments, one.user or "-", state)
        table.add_row(*(plain_text(str(cell)) for cell in cells))
    return table


def _unknown_table(unknown: "Sequence[ToolCall]") -> Table:
    table = _columns("column_id", "column_at", "column_tool", "column_user")
    for one in unknown:
        cells = (one.id, _at(one.started_at), one.tool, one.user or "-")
        table.add_row(*(plain_text(str(cell)) for cell in cells))
    return table


def _columns(*keys: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in keys:
        table.add_column(_say(key), overflow="fold")
    return table


def _at(instant: Any) -> str:
    return f"{instant:%Y-%m-%d %H:%M %Z}"
