"""``recuerdo events``: key events for operators; each look is audited (IM-16, IM-18)."""

import getpass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
import yaml
from rich.console import Group, RenderableType
from rich.table import Table

from recuerdo.cli.console import (
    checked_name,
    complain,
    is_terminal,
    out,
    plain_text,
    print_json,
    printable,
    say,
    speaker,
)
from recuerdo.cli.options import AsJson, Assistant, PlanName, Tenant
from recuerdo.state.errors import InputError
from recuerdo.state.os_errors import system_reason
from recuerdo.state.sentences import load_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recuerdo.agent import Agent
    from recuerdo.events import TypeUse
    from recuerdo.state.plan import Plan
    from recuerdo.stores.postgres.key_events import OperatorFilter

sentences = load_sentences(__package__, "events_sentences.yaml")
_say = speaker(sentences)

events_app = typer.Typer(name="events", help="Key events, for operators.", no_args_is_help=True)


class ExportForm(StrEnum):
    """How events are written out."""

    json = "json"
    csv = "csv"


Actor = Annotated[
    str | None,
    typer.Option(help="Who looks, for the audit. Default: the user of this machine.", metavar="NAME"),
]
OfUser = Annotated[str | None, typer.Option("--user", help="Only of this user.", metavar="ID")]
OfSession = Annotated[
    str | None, typer.Option("--conversation", help="Only those made in this conversation.", metavar="ID")
]
OfType = Annotated[
    str | None, typer.Option("--type", help="Only of this type, to the letter.", metavar="NAME")
]
OfStatus = Annotated[
    str | None,
    typer.Option("--status", help="Only PENDING, IN_PROGRESS, RESOLVED or CLOSED ones.", metavar="STATUS"),
]
Since = Annotated[str | None, typer.Option(help="Only those made from this date on.", metavar="DATE")]
Until = Annotated[str | None, typer.Option(help="Only those made before this date.", metavar="DATE")]
Unresolved = Annotated[bool, typer.Option("--unresolved", help="Only of sessions without a known user.")]


@events_app.command("list")
def list_events(
    user: OfUser = None,
    conversation: OfSession = None,
    event_type: OfType = None,
    status: OfStatus = None,
    since: Since = None,
    until: Until = None,
    unresolved: Unresolved = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 50,
    offset: Annotated[int, typer.Option(min=0, help="How many to skip.")] = 0,
    actor: Actor = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """List events of all users, last changed first; filtered as asked."""
    from recuerdo.cli.session import Identity, open_stores

    which = _filter(assistant, user, conversation, event_type, status, since, until, unresolved)
    with open_stores(Identity(None, tenant, assistant, plan)) as agent:
        page = agent.run_sync(agent.events.list(which, actor=_actor(actor), limit=limit, offset=offset))
        listed = list(agent.run_sync(agent.events.data(page.events)))
    if as_json:
        print_json({"total": page.total, "offset": offset, "events": listed})
        return
    out().print(_entries(listed) if listed else plain_text(_say("none")))
    if len(listed) < page.total:
        complain(sentences("shown_of", shown=len(listed), total=page.total))


@events_app.command()
def show(
    event: Annotated[str, typer.Argument(help="Id of an event.", metavar="ID")],
    actor: Actor = None,
    tenant: Tenant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Show one event with every change of it."""
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(None, tenant, None, plan)) as agent:
        found = agent.run_sync(agent.events.show(_uuid(event), actor=_actor(actor)))
        data = agent.run_sync(agent.events.data([found])) if found else None
    if data is None:
        raise InputError(sentences("missing", id=event[:60]))
    if as_json:
        print_json(data[0])
    else:
        print(_yaml(data[0]), end="")


@events_app.command()
def export(
    user: OfUser = None,
    conversation: OfSession = None,
    event_type: OfType = None,
    status: OfStatus = None,
    since: Since = None,
    until: Until = None,
    unresolved: Unresolved = False,
    form: Annotated[ExportForm, typer.Option("--format", help="How to write them.")] = ExportForm.json,
    output: Annotated[
        Path | None, typer.Option(help="File to write. Default: standard output.", metavar="FILE")
    ] = None,
    actor: Actor = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
) -> None:
    """Write out all events that match, with every change of each."""
    from recuerdo.cli.session import Identity, open_stores

    which = _filter(assistant, user, conversation, event_type, status, since, until, unresolved)
    with open_stores(Identity(None, tenant, assistant, plan)) as agent:
        text = agent.run_sync(agent.events.export(which, actor=_actor(actor), form=form.value))
    if output is None:
        print(text.replace("\r\n", "\n").removesuffix("\n"))
    else:
        _write(output, text)


@events_app.command()
def types(
    remove: Annotated[
        str | None, typer.Option(help="Print the plan without this type.", metavar="NAME")
    ] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Remove it although there are events of it.")
    ] = False,
    actor: Actor = None,
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """List the types of event with how many there are of each; or remove one from the plan."""
    from recuerdo.cli.session import Identity, open_stores

    with open_stores(Identity(None, tenant, assistant, plan)) as agent:
        hint = agent.events.hint
        uses = agent.run_sync(agent.events.types(actor=_actor(actor)))
        draft = _without(agent, uses, remove, _actor(actor), confirm) if remove is not None else None
    if draft is not None:
        _print_draft(draft, as_json=as_json)
        return
    if as_json:
        print_json([vars(use) for use in uses])
        return
    out().print(_types_table(uses) if uses else plain_text(_say("no_types")))
    if hint:
        complain(hint)


@events_app.command()
def extract(
    conversation: Annotated[str, typer.Option(help="The conversation to read.", metavar="ID")],
    tenant: Tenant = None,
    assistant: Assistant = None,
    plan: PlanName = None,
    as_json: AsJson = False,
) -> None:
    """Read the events of a conversation now, for an agent that does not write them itself."""
    from recuerdo.cli.session import Identity, open_with_model

    checked_name("--conversation", conversation)
    with open_with_model(Identity(None, tenant, assistant, plan)) as agent:
        made = agent.run_sync(agent.events.extract(conversation))
    if as_json:
        print_json(vars(made))
        return
    counts = {"created": len(made.created), "updated": len(made.updated), "turns": made.turns}
    out().print(plain_text(_say("extracted", **counts)))
    out().print(plain_text("\n".join(map(str, (*made.created, *made.updated)))))


def _without(agent: "Agent", uses: "Sequence[TypeUse]", name: str, actor: str, confirmed: bool) -> "Plan":
    """Ask a person at the terminal; a script confirms with the option."""
    events = next((use.events for use in uses if use.name == name and use.configured), 0)
    if events and not confirmed and is_terminal():
        confirmed = typer.confirm(printable(_say("confirm_type", type=name, events=events)), err=True)
    return agent.run_sync(agent.events.without_type(name, actor=actor, confirmed=confirmed))


def _print_draft(draft: "Plan", *, as_json: bool) -> None:
    data = draft.model_dump(mode="json")
    if as_json:
        print_json(data)
        return
    print(_yaml(data), end="")
    complain(sentences("draft", plan=draft.name))


def _filter(
    assistant: str | None,
    user: str | None,
    conversation: str | None,
    event_type: str | None,
    status: str | None,
    since: str | None,
    until: str | None,
    unresolved: bool,
) -> "OperatorFilter":
    from recuerdo.state.key_events import named_status
    from recuerdo.stores.postgres.key_events import OperatorFilter

    return OperatorFilter(
        assistant=assistant,
        user=checked_name("--user", user),
        session=checked_name("--conversation", conversation),
        type=event_type,
        status=named_status(status) if status is not None else None,
        since=_instant("--since", since),
        until=_instant("--until", until),
        unresolved=unresolved,
    )


def _instant(option: str, text: str | None) -> datetime | None:
    """A date begins at midnight UTC; a time needs its zone."""
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(sentences("date_invalid", option=option)) from None
    if instant.tzinfo is not None:
        return instant
    if len(text) > len("2025-12-05"):
        raise InputError(sentences("date_invalid", option=option))
    return instant.replace(tzinfo=UTC)


def _actor(actor: str | None) -> str:
    return checked_name("--actor", actor) or getpass.getuser()


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InputError(sentences("missing", id=text[:60])) from None


def _entries(events: list[dict[str, Any]]) -> RenderableType:
    """Two lines an event, so that its whole id fits on a narrow terminal."""
    lines = []
    for event in events:
        kind = _say("removed", type=event["type"]) if event["type_removed"] else event["type"]
        owner = event["user"] or _say("session", session=event["session"])
        head = (event["id"], event["status"], event["priority"], event["updated_at"][:16])
        what = (kind, owner, say("level", level=event["level"]), event["summary"])
        lines += [plain_text("  ".join(head), "bold"), plain_text(" · ".join(what))]
    return Group(*lines)


def _types_table(uses: "Sequence[TypeUse]") -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("type", "events", "open", "description"):
        table.add_column(_say(f"column_{name}"), overflow="fold")
    for use in uses:
        kind = use.name if use.configured else _say("removed", type=use.name)
        cells = (kind, str(use.events), str(use.open), use.description)
        table.add_row(*(plain_text(cell) for cell in cells))
    return table


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(sentences("not_written", file=path, reason=system_reason(error))) from None


def _yaml(data: Any) -> str:
    return printable(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=110))
